"""YOOCHOOSE: what was clicked in a session, and which of it bought, by category; 80 % learnt from, 20 % tested.

Objects have one feature, the category, 1 to 20, of which nets learn an embedding. All 107,245 sets of the training part
are learnt from: at batches of 256 the nets see each of them about ten times.
"""

import gzip
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.real.parts import Fit, Part, Target, Task, folds_of
from benchmarks.real.rivals import auto, baselines_of, nets_of
from entourage.data.coerce import offsets_of
from entourage.data.sets import Sets

__all__ = ["TASK", "load"]

LEVELS = 20


@cache
def load(data: Path, part: str = "") -> Part:
    """Read the 134,057 sets."""
    with gzip.open(data / "yoochoose_subsets" / "yc_cats.txt.gz", "rt") as file:
        offered, bought = zip(*(line.split(";") for line in file), strict=True)
    codes, owner = _codes(offered)
    chosen, whose = _codes(bought)
    targets = ~np.isin((LEVELS + 1) * owner + codes, (LEVELS + 1) * whose + chosen)
    sets = Sets(codes[:, None].astype(float), offsets_of(np.bincount(owner)), targets, worst=1.0)
    return Part({"features": sets}, folds_of(len(sets))[:1])


def _codes(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all ids, from 1 on, and the line of each."""
    words = [text.split() for text in texts]
    codes = np.array([word for some in words for word in some], dtype=np.int64)
    return codes, np.repeat(np.arange(len(words)), [len(some) for some in words])


IDS = {"categories": [(0, LEVELS)]}
TASK = Task(
    name="yoochoose",
    kind="subset",
    metrics=("f1", "subset_accuracy", "hamming_accuracy"),
    load=load,
    n_folds=1,
    budget=600.0,
    models=baselines_of("subset")
    | nets_of("subset", **IDS)
    | {"auto": Fit(auto("subset", **IDS), ours=True)},
    targets=tuple(
        Target(model, metric, rivals=("ContextFree",))
        for model in ("auto", "FATE")
        for metric in ("f1", "subset_accuracy")
    ),
)
