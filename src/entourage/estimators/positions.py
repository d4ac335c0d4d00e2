"""How an estimator of a net learns the effect of positions in training, and what it keeps of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.positions import code_positions, levels_of_positions
from entourage.data.sets import Sets
from entourage.errors import DataError
from entourage.nets import Scorer
from entourage.nets.position import with_position, without_position
from entourage.training.loop import Outcome

__all__ = ["Positions", "effects_by_position", "learnable_sets"]

See: TypeAlias = Callable[[Sets], Sets]


def effects_by_position(levels: list[Any], effects: NDArray[Any]) -> dict[Any, float]:
    """Return the effect of each position, relative to their mean.

    Examples
    --------
    >>> effects_by_position(["left", "right"], np.array([3.0, 1.0]))
    {'left': 1.0, 'right': -1.0}
    """
    centred = np.asarray(effects, dtype=np.float64)
    return dict(zip(levels, (centred - centred.mean()).tolist(), strict=True))


def learnable_sets(model: Any, sets: Sets) -> Sets:
    """Return sets for a model to learn from, without positions where it can't learn their effects.

    For models that are compared with others, which learn them.
    """
    return sets if sets.position is None or model.learns_position else sets.with_position(None)


@dataclass(frozen=True)
class Positions:
    """The positions that occur in training sets, and the share of each."""

    levels: list[Any]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, sets: Sets) -> Self | None:
        """Find the positions of sets; None where they have none."""
        if sets.position is None:
            return None
        if sets.on_disk:
            raise DataError("Sets on disk can't have positions; leave them out.")
        levels = levels_of_positions(sets.position)
        counts = np.bincount(code_positions(sets.position, levels), minlength=len(levels) + 1)[1:]
        return cls(levels, tuple((counts / counts.sum()).tolist()))

    def seen(self, view: See) -> See:
        """Return what gives objects the code of their position as a last feature, behind what a net sees of them."""

        def see(sets: Sets) -> Sets:
            shown = view(sets)
            codes = code_positions(np.asarray(sets.position), self.levels)[:, None].astype(np.float32)
            return shown.with_features(np.concatenate([shown.objects, codes], axis=1), shown.situation)

        return see

    def beside(self, scorer: Scorer, place: int) -> Scorer:
        """Add their effects to a net whose objects have the code at a place."""
        return with_position(scorer, place, self.shares)

    def apart(self, scorer: Scorer, outcome: Outcome) -> tuple[Scorer, Outcome, dict[Any, float]]:
        """Part a trained net from the effects: the net, its outcome, and the effects.

        The state of the optimiser is of both, so it is left out.
        """
        scorer.load_state_dict(outcome.weights)
        alone, effects = without_position(scorer)
        outcome.weights = {name: value.detach().clone() for name, value in alone.state_dict().items()}
        outcome.optimizer = {}
        return alone, outcome, effects_by_position(self.levels, effects.cpu().numpy())
