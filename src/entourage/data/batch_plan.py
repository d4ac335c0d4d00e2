"""Which sets go into a batch together: those of about one size, so that little is padding."""

import numpy as np

from entourage.data.coerce import Index
from entourage.errors import check_number

__all__ = ["plan_batches"]


def plan_batches(
    sizes: Index,
    batch_size: int,
    *,
    max_objects: int | None = None,
    max_pairs: int | None = None,
    rng: np.random.Generator | None = None,
) -> list[Index]:
    """Group sets of the given sizes into batches of about one size.

    Parameters
    ----------
    sizes : how many objects each set holds
    batch_size : at most so many sets a batch
    max_objects : at most so many objects a batch, padding included; a larger set goes alone
    max_pairs : at most so many pairs of objects a batch, padding included; a larger set goes alone
    rng : shuffles the sets of one size and the order of the batches; without it the plan is in order

    Examples
    --------
    >>> [batch.tolist() for batch in plan_batches(np.array([2, 9, 2, 2, 9]), 2)]
    [[1, 4], [0, 2], [3]]
    """
    check_number("batch_size", batch_size, least=1, whole=True)
    order = np.arange(len(sizes)) if rng is None else rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    ordered = sizes[order]
    plan, start = [], 0
    while start < len(order):
        count = batch_size
        if max_objects is not None:
            count = min(count, max(1, max_objects // int(ordered[start])))
        if max_pairs is not None:
            count = min(count, max(1, max_pairs // int(ordered[start]) ** 2))
        plan.append(order[start : start + count])
        start += count
    if rng is not None:
        plan = [plan[i] for i in rng.permutation(len(plan))]
    return plan
