"""What is asked of the prior and what it gives: a :class:`Shape`, and :class:`Worlds` of that shape."""

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from entourage.errors import ParameterError

__all__ = ["Shape", "TaskName", "Worlds"]

TaskName = Literal["choice", "ranking", "subset"]


@dataclass(frozen=True)
class Shape:
    """How many worlds (data sets) to draw, and how large each is.

    Parameters
    ----------
    worlds, sets, objects, columns : int
        W worlds of N sets of m objects (at most m where ragged) with d columns.
    task : {"choice", "ranking", "subset"}
        What the labels are.
    ragged : bool
        Whether sets differ in size: 2 to m objects.

    Examples
    --------
    >>> Shape(worlds=2, sets=8, objects=3, columns=4).task
    'choice'
    """

    worlds: int
    sets: int
    objects: int
    columns: int
    task: TaskName = "choice"
    ragged: bool = False

    def __post_init__(self) -> None:
        """Refuse shapes in which there is nothing to choose."""
        if min(self.worlds, self.sets, self.columns) < 1 or self.objects < 2:
            raise ParameterError(
                "a shape needs at least 1 world, 1 set, 1 column and 2 objects; got "
                f"{self.worlds} worlds, {self.sets} sets, {self.objects} objects, {self.columns} columns."
            )
        if self.task not in get_args(TaskName):
            raise ParameterError(
                f"task needs to be one of {', '.join(get_args(TaskName))}; got {self.task!r}."
            )


@dataclass(frozen=True)
class Worlds:
    """Simulated data sets with their labels and what is true of them.

    Attributes
    ----------
    values : Tensor (W, N, m, d)
        The columns in units of their own, as a user would have them; padding 0.
    mask : Tensor (W, N, m) or None
        Which objects are real: those in front, at least two; None where all are.
    labels : Tensor (W, N, m)
        Choice and subset: 1 where chosen, else 0. Ranking: 0 is best, ties are equal, NaN is not ranked. Padding 0.
    oracle : Tensor (W, N)
        Log-likelihood of each set's label in the true world, marginal over tastes; NaN for rankings with ties.
    share : Tensor (W,)
        Part of the expected log-likelihood gain over uniform choice that is due to context, 0 to 1.
    effects : Tensor (W, 3)
        Whether attraction, compromise and similarity are present.
    families : Tensor (W, F)
        Weight of each family of :data:`~entourage.pretraining.prior.FAMILIES`; 0 is absent.
    """

    values: Tensor
    mask: Tensor | None
    labels: Tensor
    oracle: Tensor
    share: Tensor
    effects: Tensor
    families: Tensor
