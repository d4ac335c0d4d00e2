"""The instant verdict on context: by the pretrained net, from labelled sets, in one pass and without fitting."""

from typing import Any, Unpack

from numpy.typing import ArrayLike

from entourage.data.encoder import TableColumns
from entourage.data.sets import AnySets
from entourage.errors import DataError, ParameterError, check_choice
from entourage.estimators.inputs import check_something_to_learn, training_sets
from entourage.estimators.pretrained_net import read_sets
from entourage.pretrained import InstantVerdict
from entourage.tasks import Choice, Ranking, SubsetChoice, Task

__all__ = ["instant_verdict"]


def instant_verdict(
    X: AnySets,
    y: Any = None,
    *,
    task: str = "choice",
    situation: ArrayLike | list[str] | None = None,
    sample_weight: ArrayLike | str | None = None,
    random_state: int = 0,
    device: str = "auto",
    **table: Unpack[TableColumns],
) -> InstantVerdict:
    """Say at once whether context matters in labelled sets, and how much; nothing is fitted.

    The pretrained net (:mod:`entourage.pretrained`) knows of each simulated world that it learnt from how much of the
    choices was due to context, and says what it believes of these sets. That takes a second and is no test: for one,
    with a p-value, there is :func:`entourage.selection.compare`. It decides where its probability is 95 % or more. So
    far that is hardly ever so: its probabilities come true, but are modest (docs: The pretrained net).

    Parameters
    ----------
    X, y, situation : as for :meth:`entourage.DiscreteChooser.fit`: arrays, lists, Sets, or a frame and its columns
    task : {"choice", "ranking", "subset"}
        What targets are: one chosen object, ranks, or some chosen objects. Of sets in which nothing may be chosen,
        leave out those in which nothing was.
    sample_weight : how much each set counts; one of weight 0 is left out
    random_state : seeds which sets are read, where there are too many for all
    device : "cpu", "cuda", ...; "auto" is the GPU where there is one
    set_id, target, ... : of a frame, as for ``fit``

    Examples
    --------
    >>> from entourage.data import make_context_effect
    >>> sets = make_context_effect("attraction", n_sets=60, random_state=0)
    >>> found = instant_verdict(sets, task="ranking")
    >>> print(str(found).partition(";")[0])
    undecided
    """
    tasks: dict[str, Task] = {"choice": Choice(), "ranking": Ranking(), "subset": SubsetChoice()}
    kind = tasks[check_choice("task", task, tasks)]
    sets, weights, _ = training_sets(
        kind, X, y, situation, sample_weight=sample_weight, table=table, codes=True
    )
    if sets.position is not None:
        raise ParameterError(
            "The instant verdict knows of no positions. Leave position out, or drop it: sets.with_position(None)."
        )
    if sets.on_disk:
        raise DataError(
            "The instant verdict reads sets in memory, a few thousand at most; these are on disk. Take a sample, "
            "sets[:5_000]."
        )
    if weights is not None:
        sets, weights = sets[weights > 0], weights[weights > 0]
    check_something_to_learn(kind, sets)
    categories = [] if sets.encoder is None else list(sets.encoder.categories)
    return read_sets(
        kind, sets, weights, categories, interactions=False, seed=random_state, device=device
    ).verdict()
