"""Several models of one description fitted side by side, each to its own data."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from entourage.data.sets import Sets
from entourage.estimators.net_estimator import NetEstimator
from entourage.training.processes import processes_here
from entourage.training.stacked import can_train_together, train_together

__all__ = ["fit_together"]


def fit_together(models: Sequence[NetEstimator], data: Sequence[tuple[Any, Any]]) -> None:
    """Fit each model to its ``(X, y)``, all at once; each ends as if it had been fitted by itself.

    Meant for repetitions on fresh data: on a GPU ten small nets side by side cost much less than one after another. The
    models may differ in their ``random_state`` only, and all data must have one shape, with sets of one size;
    where that isn't so, sets have positions, or the net can't be stacked (``FETA(order=2)``, nets with dropout),
    they are fitted one after the other. For an ensemble on one data set there is ``Ranker(members=...)``.

    Examples
    --------
    >>> from entourage import FATE, Ranker
    >>> from entourage.data import make_medoid
    >>> models = [Ranker(FATE(width=16), steps=10, random_state=seed) for seed in range(3)]
    >>> fit_together(models, [make_medoid(n_sets=100, random_state=seed) for seed in range(3)])
    >>> [model.n_steps_ for model in models]
    [10, 10, 10]
    """
    alike = len({repr(clone(model).set_params(random_state=None)) for model in models}) == 1
    first = models[0]
    shown = any(isinstance(X, Sets) and X.position is not None for X, _ in data)  # at positions of their own
    plain = (
        not shown
        and not processes_here().several
        and first.checkpoint is None
        and first.members == 1
        and not isinstance(first.net, str)
    )
    if len(models) > 1 and alike and plain:
        starts = [model.prepare(X, y, None, None) for model, (X, y) in zip(models, data, strict=True)]
        residents, plans = [start.data for start in starts], [start.plan for start in starts]
        if can_train_together(starts[0].scorer, residents, plans):
            evaluations = [start.evaluation for start in starts if start.evaluation is not None]
            outcomes = train_together(
                [start.scorer for start in starts],
                first.task.find_loss(first.loss),
                residents,
                plans,
                evaluate=evaluations or None,
                progress=first.verbose,
            )
            for model, start, outcome in zip(models, starts, outcomes, strict=True):
                model.finish(start, outcome)
            return
    for model, (X, y) in zip(models, data, strict=True):
        model.fit(X, y)
