"""Repeated choice sets: observed choice shares next to a model's probabilities."""

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from entourage.data.sets import AnySets, Sets
from entourage.effects.simulate import object_keys, plackett_luce_scale
from entourage.effects.utilities import Model, utilities_of
from entourage.errors import check_number
from entourage.tasks import Choice, SubsetChoice

__all__ = ["Menu", "Share", "repeated_menus"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """The choice share of an alternative of a repeated choice set.

    Attributes
    ----------
    place : of one instance among ``sets.objects``; None for choosing nothing
    copies : how many identical alternatives the choice set has; they are counted together
    share, interval : the observed choice share, with its Wilson interval
    model : the model's mean probability
    """

    place: int | None
    copies: int
    share: float
    interval: tuple[float, float]
    model: float


@dataclass(frozen=True)
class Menu:
    """A choice set that was offered ``n`` times; its alternatives, the most chosen first."""

    n: int
    shares: list[Share]

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return asdict(self)


def repeated_menus(
    model: Model, sets: AnySets, *, least: int = 10, most: int = 5, level: float = 0.05
) -> list[Menu]:
    """Return the observed choice shares in the choice sets that were offered most often, and the model's.

    Two choice sets are the same if they have the same alternatives, in any order, in the same situation. For rankings
    the share is of first places; sets with a tied first place are not counted. The utilities of a ranker are scaled
    to the maximum likelihood of the rankings. Intervals assume independent choices.

    Parameters
    ----------
    least : how often a choice set must have been offered
    most : how many choice sets to return
    level : the significance level: intervals hold 1 - level

    Examples
    --------
    >>> class Larger:
    ...     def predict_scores(self, sets):
    ...         return np.log(sets.objects[:, 0])
    >>> sets = Sets.from_array(np.tile([[[3.0], [1.0]]], (10, 1, 1)), np.repeat([[0, 1], [1, 0]], [8, 2], axis=0))
    >>> [(share.share, round(share.model, 2)) for share in repeated_menus(Larger(), sets)[0].shares]
    [(0.8, 0.75), (0.2, 0.25)]
    """
    check_number("least", least, least=1, whole=True)
    check_number("most", most, least=0, whole=True)
    check_number("level", level, above=0, below=1)
    given = Sets.of(sets)
    if given.targets is None:
        return []
    task = getattr(model, "task", None)
    won, counted = _won(given, task)
    keys = np.unique(object_keys(given), return_inverse=True)[1]
    offered: dict[bytes, list[int]] = {}
    for chosen, rows in given.by_size():
        for i, own in zip(chosen[counted[chosen]], np.sort(keys[rows[counted[chosen]]], axis=1), strict=True):
            offered.setdefault(own.tobytes(), []).append(int(i))
    often = sorted(
        (own for own in offered.values() if len(own) >= least), key=lambda own: (-len(own), own[0])
    )
    if not often[:most]:
        return []
    utilities, _ = utilities_of(model, given)
    if not isinstance(task, Choice | SubsetChoice) and task is not None:
        utilities = utilities * plackett_luce_scale(given, utilities)
    probabilities = (task if isinstance(task, Choice | SubsetChoice) else Choice()).probabilities(
        given, utilities
    )
    outside = bool(getattr(task, "outside", False))
    return [_menu(given, np.array(own), keys, won, probabilities, outside, level) for own in often[:most]]


def _won(sets: Sets, task: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of each object whether it was chosen or came first, and of each set whether that is unambiguous."""
    targets = np.asarray(sets.targets, dtype=np.float64)
    if isinstance(task, SubsetChoice):
        return targets == 0, np.ones(len(sets), dtype=bool)
    places = np.where(targets >= 0, targets, np.inf)
    best = np.minimum.reduceat(places, sets.offsets[:-1])
    won = (places == np.repeat(best, sets.sizes)) & np.isfinite(places)
    if getattr(task, "outside", False):
        won = targets == 0
        return won, np.ones(len(sets), dtype=bool)
    return won, np.add.reduceat(won, sets.offsets[:-1], dtype=np.int64) == 1


def _menu(
    sets: Sets,
    own: Index,
    keys: Index,
    won: NDArray[np.bool_],
    probabilities: Floats,
    outside: bool,
    level: float,
) -> Menu:
    n = len(own)
    rows = sets.offsets[own][:, None] + np.arange(sets.sizes[own[0]])  # (n, m)
    kinds, first, copies = np.unique(keys[rows[0]], return_index=True, return_counts=True)
    shares = []
    for kind, at, count in zip(kinds, first, copies, strict=True):
        mine = keys[rows] == kind
        times = int((won[rows] & mine).any(1).sum())
        expected = float((probabilities[rows] * mine).sum() / n)
        shares.append(_share(int(rows[0, at]), int(count), times, n, min(expected, 1.0), level))
    shares.sort(key=lambda share: -share.share)
    if outside:
        nothing = int((~won[rows].any(1)).sum())
        shares.append(_share(None, 1, nothing, n, float(1 - probabilities[rows].sum(1).mean()), level))
    return Menu(n, shares)


def _share(place: int | None, copies: int, times: int, n: int, model: float, level: float) -> Share:
    ends = binomtest(times, n).proportion_ci(1 - level, method="wilson")
    return Share(place, copies, times / n, (float(ends.low), float(ends.high)), model)
