"""The pretrained net on the command line: fit, info, predict, evaluate and effects; the instant verdict of compare."""

import json
from dataclasses import asdict
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import instant_verdict, load
from entourage.pretrained import Reading

pytestmark = pytest.mark.usefixtures("small_pretrained")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("pretrained")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"trip": np.repeat(np.arange(24), 3), "cost": rng.normal(size=72)})
    frame["mode"] = rng.choice(["bus", "car", "train"], 72)
    noisy = -2 * frame.cost + rng.gumbel(size=72)
    frame["chosen"] = (noisy == noisy.groupby(frame.trip).transform("max")).astype(int)
    frame.sample(frac=1, random_state=0).to_csv(home / "trips.csv", index=False)
    return home


def plain(verdict):
    return asdict(verdict) | {"interval": list(verdict.interval)}


COLUMNS = ["--set-id", "trip", "--target", "chosen", "--target-kind", "choice"]


def fit(capsys, folder, *options):
    table = folder / "trips.csv"
    common = [*COLUMNS, "--model", "pretrained", "--device", "cpu", "-o", folder / "m"]
    return run(capsys, "fit", table, *common, *options)


def test_fit_info_predict_evaluate_and_effects(folder, capsys):
    code, out, err = fit(capsys, folder)
    assert code == 0, err
    text = " ".join(out.split())
    assert "pretrained, read by it: 24 sets of 72 objects" in text
    assert "Instant verdict: " in text
    model, frame = load(folder / "m"), pd.read_csv(folder / "trips.csv")

    code, out, _ = run(capsys, "info", folder / "m")
    text = " ".join(out.split())
    assert "pretrained, not fine-tuned" in text
    assert "labelled sets 24" in text
    assert f"instant verdict {model.reading_.verdict()}" in text
    assert "cost (number), mode (category)" in text
    code, out, _ = run(capsys, "info", folder / "m", "--json")
    assert json.loads(out)["instant_verdict"] == plain(model.reading_.verdict())

    assert run(capsys, "predict", folder / "m", folder / "trips.csv", "-o", folder / "p.csv")[0] == 0
    predicted = pd.read_csv(folder / "p.csv")
    np.testing.assert_allclose(predicted["probability"], model.predict_proba(frame), rtol=1e-5)
    code, out, _ = run(capsys, "evaluate", folder / "m", folder / "trips.csv")
    assert f"{model.score(frame):.4f}" in out

    quick = ["--json", "--draws", 0, "--refits", 0, "--report", folder / "effects.html"]
    code, out, err = run(capsys, "effects", folder / "m", folder / "trips.csv", *quick)
    assert code == 0, err
    assert "no refits" in json.loads(out)["no_intervals"]


def test_fine_tuning_is_kept_and_wrong_options_say_what_to_do(folder, capsys):
    plain_read, asked = Reading.read, []

    def read(*arguments, fine_tune=False, **named):  # which would take a while
        asked.append(fine_tune)
        return plain_read(*arguments, **named)

    with patch.object(Reading, "read", read):
        code, out, err = fit(capsys, folder, "--fine-tune", "--json")
    assert code == 0, err
    assert asked == [True, True]  # of all sets, and of those that calibration does not hold out
    assert json.loads(out)["fine_tune"]
    assert "pretrained, fine-tuned" in " ".join(run(capsys, "info", folder / "m")[1].split())
    common = [folder / "trips.csv", *COLUMNS, "-o", folder / "n"]
    for options, words in [
        (["--model", "fate", "--fine-tune"], "--fine-tune belongs to --model pretrained"),
        (["--model", "pretrained", "--budget", "9"], "--budget belongs to --model auto; pretrained takes"),
        (["--model", "pretrained", "--on-disk", folder / "d"], "With --on-disk, name the model"),
        (["--model", "pretrained", "--members", 3], "members plays no part"),
        (["--model", "pretrained", "--relative", "cost"], "relative plays no part"),
        (["--model", "pretrained", "--position", "mode"], "learns no effect of positions"),
        (["--model", "pretrain"], "pretrained"),
    ]:
        code, _, err = run(capsys, "fit", *common, *options)
        assert code != 0
        assert words in " ".join(err.split())
    code, _, err = run(capsys, "tune", *common, "--model", "pretrained")
    assert code != 0
    assert "is not trained" in " ".join(err.split())


def test_compare_says_the_instant_verdict_beside_the_cross_validated_one(folder, capsys):
    page = folder / "page.html"
    quick = ["--folds", 2, "--workers", 1, "--device", "cpu", "--report", page]
    quick += ["--models", "linear,pretrained,pretrained ablated"]
    code, out, err = run(capsys, "compare", folder / "trips.csv", *COLUMNS, *quick)
    assert code == 0, err
    frame = pd.read_csv(folder / "trips.csv")
    found = instant_verdict(frame, set_id="trip", target="chosen", device="cpu")
    assert f"Instant verdict: {found}." in " ".join(out.split())
    assert "Instant verdict" in page.read_text()
    quick += ["--models", "linear,pretrained", "--json"]
    code, out, _ = run(capsys, "compare", folder / "trips.csv", *COLUMNS, *quick)
    assert json.loads(out)["instant_verdict"] == plain(found)


def test_a_comparison_without_the_pretrained_net_has_no_instant_verdict(folder, capsys):
    quick = ["--folds", 2, "--workers", 1, "--device", "cpu", "--report", folder / "page.html"]
    quick += ["--models", "linear,linear relative", "--json"]
    code, out, err = run(capsys, "compare", folder / "trips.csv", *COLUMNS, *quick)
    assert code == 0, err
    assert json.loads(out)["instant_verdict"] is None
