"""Compromise, attraction and similarity, learnt from generated rankings."""

import numpy as np

from entourage.data.synthetic.context_effects import EFFECTS, effect_utilities, third_objects
from entourage.experiments import effects
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options


def test_reversals_are_counted_as_the_legend_says():
    class Oracle:
        def predict_scores(self, X):
            return effect_utilities(X, "similarity")

    class Blind:
        def predict_scores(self, X):
            return X.mean(2)

    X = third_objects("similarity", 400, random_state=1)
    right = effects.reversals(Oracle(), X, "similarity")
    assert (right["followed"], right["turned_wrongly"]) == (1.0, 0.0)
    assert 0.3 < right["turned"] < 0.7
    assert effects.reversals(Blind(), X, "similarity")["followed"] == 0.0


def test_effects_writes_table_panels_and_report(tmp_path, monkeypatch):
    claims = read_claims("effects")
    claims["modes"]["quick"] |= {"n_train": 300, "n_test": 200, "steps": 10}
    monkeypatch.setattr(effects, "read_claims", lambda name: claims)
    monkeypatch.setattr(effects, "GRID", np.linspace(0.02, 0.98, 13))
    text = effects.run_effects(tmp_path, Options(device="cpu"))
    assert text.count("RankNet") == 3
    assert set(EFFECTS) == {line.split("|")[1].strip() for line in text.splitlines() if "RankNet" in line}
    assert (tmp_path / "effects.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "report.html").read_text()
    only = effects.run_effects(tmp_path / "only", Options(device="cpu", models=["RankNet"]))
    assert "FATE" not in only
