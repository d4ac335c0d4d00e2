"""Remake the golden model file: ``python tests/estimators/golden/make.py``, after a change of format only."""

import json
from pathlib import Path

from entourage import FATE, Ranker
from entourage.data import make_medoid

HERE = Path(__file__).parent


if __name__ == "__main__":
    X, ranks = make_medoid(n_sets=300, random_state=0)
    model = Ranker(FATE(width=6), steps=200, random_state=0, device="cpu").fit(X, ranks)
    model.save(HERE / "fate.entourage")
    scores = model.predict_scores(X[:4])
    (HERE / "fate.json").write_text(json.dumps({"objects": X[:4].tolist(), "scores": scores.tolist()}) + "\n")
