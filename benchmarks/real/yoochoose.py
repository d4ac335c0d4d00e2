"""YOOCHOOSE: what was clicked in a session, and which of it bought, by category; 80 % learnt from, 20 % tested.

Objects have one feature, the category, 1 to 20, of which nets learn an embedding. All 107,245 sets of the training part
are learnt from: at batches of 256 the nets see each of them about ten times.
"""

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.real.parts import Fit, Part, Target, Task, folds_of
from benchmarks.real.rivals import auto, nets_of
from entourage.data.coerce import offsets_of
from entourage.data.sets import Sets

__all__ = ["TASK", "load"]

LEVELS = 20


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 134,057 sets."""
    with gzip.open(data / "yoochoose_subsets" / "yc_cats.txt.gz", "rt") as file:
        lines = [line.strip().split(";") for line in file]
    offered = [words.split() for words, _ in lines]
    bought = [set(words.split()) for _, words in lines]
    codes = np.array([float(word) for words in offered for word in words])
    targets = np.array(
        [word not in mine for words, mine in zip(offered, bought, strict=True) for word in words]
    )
    sets = Sets(codes[:, None], offsets_of(np.array([len(words) for words in offered])), targets, worst=1.0)
    return Part({"features": sets}, folds_of(len(sets))[:1])


IDS = {"categories": [(0, LEVELS)]}
TASK = Task(
    name="yoochoose",
    kind="subset",
    metrics=("f1", "subset_accuracy", "hamming_accuracy"),
    load=load,
    n_folds=1,
    budget=600.0,
    models=nets_of("subset", **IDS) | {"auto": Fit(auto("subset", **IDS), ours=True)},
    targets=tuple(
        Target(model, metric, rivals=("ContextFree",))
        for model in ("auto", "FATE")
        for metric in ("f1", "subset_accuracy")
    ),
)
