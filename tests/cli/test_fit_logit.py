"""Choice models by command: fit, predict, compare."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import load
from entourage.choice import MixedLogit, MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.selection import compare
from entourage.selection.candidates import candidate_names

ROLES = ["--set-id", "trip", "--target", "taken", "--target-kind", "choice"]


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"trip": np.repeat(np.arange(120), 3), "mode": np.tile(["car", "bus", "rail"], 120)})
    frame["who"] = [f"p{trip // 6}" for trip in frame["trip"]]
    frame["price"] = rng.normal(size=360)
    taste = np.repeat(rng.normal(-1, 0.7, size=20), 18)
    u = taste * frame["price"] + rng.gumbel(size=360)
    frame["taken"] = (u == u.groupby(frame["trip"]).transform("max")).astype(int)
    path = tmp_path_factory.mktemp("trips") / "trips.csv"
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path, pd.read_csv(path)


def fit(capsys, trips, tmp_path, *options):
    out = tmp_path / "m.entourage"
    code, text, error = run(capsys, "fit", trips[0], *ROLES, "-o", out, *options)
    return code, text, error, out


def test_the_command_equals_python(capsys, trips, tmp_path):
    roles = {"set_id": "trip", "target": "taken", "groups": "who"}
    group = ["--group", "who"]
    code, text, _, out = fit(
        capsys, trips, tmp_path, "--model", "multinomial_logit", "--base", "mode=car", *group
    )
    direct = MultinomialLogit(base={"mode": "car"}).fit(trips[1], **roles)
    assert code == 0
    assert "log-likelihood" in text
    assert load(out).coef_ == pytest.approx(direct.coef_)
    assert load(out).robust_standard_errors_ == pytest.approx(direct.robust_standard_errors_)
    nested = ["--model", "nested_logit", "--nest", "car,bus", "--alternative", "mode", "--ignore", "who"]
    code, text, _, out = fit(capsys, trips, tmp_path, *nested, "--json")
    direct = NestedLogit([["car", "bus"]], alternative="mode")
    direct.fit(trips[1].drop(columns="who"), set_id="trip", target="taken")
    found = json.loads(text)
    assert found["log_likelihood"] == pytest.approx(direct.log_likelihood_)
    assert [row["name"] for row in found["estimates"]] == direct.parameter_names_


def test_people_who_are_known_are_predicted_by_command(capsys, trips, tmp_path):
    options = ["--model", "mixed_logit", "--random", "price", "--param", "draws=20", "--group", "who"]
    code, _, _, out = fit(capsys, trips, tmp_path, *options)
    assert code == 0
    model = load(out)
    assert isinstance(model, MixedLogit)
    code, _, error = run(capsys, "predict", out, trips[0], "-o", tmp_path / "o.csv", "--people", "who")
    assert code == 0, error
    found = pd.read_csv(tmp_path / "o.csv")["probability"].to_numpy()
    assert found == pytest.approx(model.predict_proba(trips[1], people="who"))
    assert np.abs(found - model.predict_proba(trips[1])).max() > 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "nested_logit"], "nested_logit needs --nest"),
        (["--model", "fate", "--nest", "a,b"], "--nest is about logit models"),
        (["--model", "mixed_logit", "--nest", "a,b"], "--nest is no option of mixed_logit"),
        (["--model", "multinomial_logit", "--outside"], "no option of choosing nothing"),
        (["--model", "multinomial_logit", "--param", "drwas=3"], "is not known"),
        (["--model", "multinomial_logit", "--base", "mode"], "--base needs a name, an equals sign"),
        (["--model", "multinomial_logit", "--steps", "5"], "are about nets"),
        (["--model", "multinomial_logit", "--monotone", "price:-1"], "are about nets"),
        (["--model", "multinomial_logit", "--fine-tune"], "belongs to --model pretrained"),
        (["--model", "multinomial_lgit"], "did you mean 'multinomial_logit'"),
    ],
)
def test_options_that_make_no_sense_are_refused(capsys, trips, tmp_path, options, message):
    code, _, error, _ = fit(capsys, trips, tmp_path, *options)
    assert code == 2
    assert message in error.replace("\n", " ")


def test_rankings_have_no_logit(capsys, trips, tmp_path):
    roles = ["--set-id", "trip", "--target", "taken"]
    code, _, error = run(capsys, "fit", trips[0], *roles, "-o", tmp_path / "m", "--model", "latent_class")
    assert code == 2
    assert "--target-kind choice" in error


def test_logits_can_be_compared_by_name(trips):
    names = ["multinomial_logit", "latent_class", "random_regret", "linear_context_logit"]
    assert set(names) <= set(candidate_names("choice"))
    assert not set(names) & set(candidate_names("rank"))
    frame = trips[1].drop(columns="who")
    sets = Sets.from_frame(frame, set_id="trip", target="taken", target_kind="choice")
    result = compare(
        sets, kind="choice", models=["multinomial_logit", "linear_context_logit"], folds=2, inner=0
    )
    assert set(result.kinds) == {"multinomial_logit", "linear_context_logit"}
