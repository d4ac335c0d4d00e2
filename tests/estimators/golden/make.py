"""Remake the golden model files: ``python tests/estimators/golden/make.py``, after a change of format only.

``attention.entourage`` was written when ``SetAttention(width=8)`` had three rounds and linear features.
"""

import json
from pathlib import Path

from entourage import FATE, Ranker, SetAttention
from entourage.data import make_medoid

HERE = Path(__file__).parent


if __name__ == "__main__":
    X, ranks = make_medoid(n_sets=300, random_state=0)
    attention = SetAttention(width=8, rounds=3, features="linear")
    for name, net, steps in (("fate", FATE(width=6), 200), ("attention", attention, 60)):
        model = Ranker(net, steps=steps, random_state=0, device="cpu").fit(X, ranks)
        model.save(HERE / f"{name}.entourage")
        content = {"objects": X[:4].tolist(), "scores": model.predict_scores(X[:4]).tolist()}
        (HERE / f"{name}.json").write_text(json.dumps(content) + "\n")
