"""A warning before a net that scores every pair of a set runs on large sets."""

import time
import warnings

import numpy as np
import torch

from entourage.data.sets import Sets
from entourage.nets import Net, Scorer, entry_of
from entourage.training.progress import in_words

__all__ = ["warn_of_large_sets"]

LARGE_SET = 20_000  # objects, from which on all pairs take so long that there is a warning
TIMED = 1000  # objects of the set that is timed


def warn_of_large_sets(
    net: Net,
    scorer: Scorer,
    sets: Sets,
    device: torch.device,
    steps: int | None = None,
    *,
    stacklevel: int = 4,
) -> None:
    """Warn of how long all pairs of large sets take, by timing a smaller one; with ``steps``, to train."""
    if len(sets.objects) < LARGE_SET:  # nor is any set
        return
    largest, entry = int(sets.sizes.max()), entry_of(net)
    if largest < LARGE_SET or entry is None or not entry.all_pairs or getattr(net, "points", None):
        return
    objects = torch.zeros(1, TIMED, sets.n_features + sets.n_situation_features, device=device)
    with torch.no_grad():
        scorer.eval()(objects).sum().item()  # .item() waits for the device
        begin = time.perf_counter()
        scorer(objects).sum().item()
    seconds = time.perf_counter() - begin
    if steps is None:
        work, what = seconds * float(np.square(sets.sizes / TIMED).sum()), "Scoring"
    else:  # backwards costs twice as much again
        work, what = 3 * steps * seconds * (largest / TIMED) ** 2, f"Training for {steps:,} steps"
    way_out = (
        "SetAttention(points=32) uses 32 summaries of the set instead of all pairs, and takes linear time; "
        "so does FATE()."
    )
    if steps is not None:
        way_out += " Or learn from subsets: subset_size=100."
    warnings.warn(
        f"{type(net).__name__} scores every pair of a set, and the largest here has {largest:,} objects, "
        f"{largest**2:,} pairs. {what} will take about {in_words(work)}. {way_out}",
        stacklevel=stacklevel,
    )
