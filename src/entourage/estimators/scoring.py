"""Sets scored by a fitted net: on a device, in bounded memory, with a progress bar where asked for."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets
from entourage.estimators.large_sets import warn_of_large_sets
from entourage.estimators.setup import scoring_precision
from entourage.nets import Net, Scorer
from entourage.training.batches import Resident, predict_packed
from entourage.training.device import autocast, find_device, placed
from entourage.training.progress import progress_bar
from entourage.training.view import View

__all__ = ["score_sets"]

AT_ONCE = 4096  # objects of sets of one size that need no batches, on a CPU


def score_sets(
    net: Net, scorer: Scorer, view: View, sets: Sets, *, device: str, precision: str, verbose: bool
) -> NDArray[Any]:
    """Score all objects of sets, packed.

    Parameters
    ----------
    net, scorer : the description of a net, and its module
    view : what the net sees of sets
    sets : to score, checked
    device, precision, verbose : see :class:`entourage.Ranker`
    """
    found = find_device(device)
    scorer = placed(scorer, found)
    warn_of_large_sets(net, scorer, sets, found, stacklevel=5)
    size = None if sets.on_disk else sets.uniform_size
    if size and len(sets.objects) <= AT_ONCE and found.type == "cpu" and sets.situation is None:
        return _at_once(scorer, view(sets).objects, len(sets), size)
    if sets.on_disk:
        data = Resident(view.situations(sets), found, on_batch=view.on_batch)
    else:
        data = Resident(view(sets), found)
    narrow = autocast(found, scoring_precision(precision, found))
    with progress_bar("scoring", len(sets), verbose) as show, narrow:
        return predict_packed(scorer, data, show).cpu().numpy()


def _at_once(scorer: Scorer, objects: NDArray[np.float32], n: int, m: int) -> NDArray[Any]:
    """Score all objects (n m, d) in one pass: what lies around it would take as long as the net."""
    if scorer.training:
        scorer.eval()
    with torch.inference_mode():
        scores: Tensor = scorer(torch.from_numpy(objects).view(n, m, -1))
    return scores.float().reshape(-1).numpy()
