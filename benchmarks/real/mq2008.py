"""LETOR 4.0 MQ2008: five folds of queries, nDCG@10 over the queries with a relevant document."""

from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.real.parts import Fit, Part, Target, Task
from benchmarks.real.rivals import SHORT, auto, baselines_of, nets_of
from entourage.data.datasets.letor import load_letor
from entourage.data.sets import Sets

__all__ = ["TASK", "load"]


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 784 queries; fold k tests on the k-th file."""
    files = [data / "letor_mq2008" / f"Fold{i}_test.txt.gz" for i in range(1, 6)]
    parts = [load_letor(file, n_features=46).sets for file in files]
    fold = np.repeat(np.arange(5), [len(sets) for sets in parts])
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    return Part({"features": Sets.concatenate(parts)}, folds)


TASK = Task(
    name="mq2008",
    kind="rank",
    metrics=("ndcg@10", "ranking_accuracy"),
    load=load,
    models=baselines_of("rank") | nets_of("rank", **SHORT) | {"auto": Fit(auto("rank"), ours=True)},
    targets=(Target("auto", "ndcg@10", least=0.722),),
)
