"""Files of baselines on the command line: predict, evaluate and info take them like any other model."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage.baselines import (
    BestColumn,
    BestColumnLogit,
    BestColumnSubset,
    BoostedLogit,
    BoostedSubset,
    LambdaMART,
    LinearRanker,
    RankSVM,
)
from entourage.selection.candidates import LinearLogit

MODELS = [
    RankSVM(),
    LinearRanker(),
    BestColumn(),
    LambdaMART(5),
    BestColumnLogit(),
    BoostedLogit(5),
    LinearLogit(),
    BestColumnSubset(),
    BoostedSubset(5),
]


def races(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(n), 4), "day": np.repeat(rng.random(n), 4)})
    frame["odds"], frame["team"] = np.exp(rng.normal(size=4 * n)), rng.choice(["red", "blue"], 4 * n)
    frame["place"] = frame.groupby("race").odds.rank()
    frame["won"] = (frame.place == 1) * 1
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_predict_evaluate_and_info_take_the_file(model, tmp_path, capsys):
    frame = races()
    ranks = model.task.kind == "rank"
    target = "place" if ranks else "won"
    other = "won" if ranks else "place"
    model.fit(frame, set_id="race", target=target, situation=["day"], ignore=[other])
    file, table, out = tmp_path / "m.entourage", tmp_path / "t.csv", tmp_path / "out.csv"
    model.save(file)
    frame.to_csv(table, index=False)
    assert run(capsys, "predict", file, table, "-o", out)[0] == 0
    np.testing.assert_allclose(pd.read_csv(out).score, model.predict_scores(frame), rtol=1e-9)
    code, text, _ = run(capsys, "evaluate", file, table, "--json")
    metrics = json.loads(text)["metrics"]
    assert code == 0
    assert {name: metrics[name] for name in metrics} == pytest.approx(model.evaluate(frame), nan_ok=True)
    code, text, _ = run(capsys, "info", file)
    assert code == 0
    assert "odds" in text
    code, text, _ = run(capsys, "info", file, "--json")
    assert json.loads(text)["estimator"] == type(model).__name__
