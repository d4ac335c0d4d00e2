"""What each tier of models is worth: alone, relative, net.

In each outer fold the best candidate of a tier is chosen on other sets than those it is compared on. Three differences
are taken on each held-out set: of the best model with any context and the best without (the *context gain*), of the
best relative and the best context-free model, and of the best net of the whole set and the best of all others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANY_CONTEXT", "WITHOUT_NET", "Step", "choose_by_tier", "rivals_of", "steps_of"]

Floats: TypeAlias = NDArray[np.float64]

ANY_CONTEXT = "any context"  # relative or context
WITHOUT_NET = "without net"  # context-free or relative

_PARTS = {ANY_CONTEXT: ("relative", "context"), WITHOUT_NET: ("context-free", "relative")}
_STEPS = {"relative": ("relative", "context-free"), "net": ("context", WITHOUT_NET)}


@dataclass(frozen=True)
class Step:
    """How much a tier adds.

    Attributes
    ----------
    name : "relative" (the standing of an object in its set) or "net" (interactions)
    models, against : the two compared in each outer fold
    gain : the mean difference on held-out sets, positive where the tier is better
    interval : of the gain, at the level of the comparison
    p_value : one-sided
    """

    name: str
    models: list[str]
    against: list[str]
    gain: float
    interval: tuple[float, float]
    p_value: float
    differences: Floats = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, without the differences."""
        return {
            "models": list(self.models),
            "against": list(self.against),
            "gain": self.gain,
            "interval": list(self.interval),
            "p_value": self.p_value,
        }


def rivals_of(kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the candidates of each kind that there is, and of the unions of kinds.

    Examples
    --------
    >>> rivals_of({"linear": "context-free", "FATE": "context"})
    {'context-free': ['linear'], 'context': ['FATE'], 'any context': ['FATE'], 'without net': ['linear']}
    """
    found: dict[str, list[str]] = {}
    for kind in ("context-free", "relative", "context"):
        mine = [name for name, its in kinds.items() if its == kind]
        if mine:
            found[kind] = mine
    for union, parts in _PARTS.items():
        found[union] = [name for part in parts for name in found.get(part, [])]
    return {role: names for role, names in found.items() if names}


def choose_by_tier(rivals: Mapping[str, Sequence[str]], score: Callable[[str], float]) -> dict[str, str]:
    """Return the best candidate of each kind, and of each union of kinds; a single one needs no score."""
    return {role: max(names, key=score) if len(names) > 1 else names[0] for role, names in rivals.items()}


def steps_of(
    chosen: Sequence[Mapping[str, str]],
    difference: Callable[[str, str], Floats],
    judge: Callable[[Floats], tuple[float, tuple[float, float], float]],
) -> dict[str, Step]:
    """Return what each tier adds; none where there are no relative candidates.

    Parameters
    ----------
    chosen : the best of each tier, for each outer fold
    difference : two tiers to their difference on each set
    judge : differences to their mean, its interval and its p-value
    """
    if "relative" not in chosen[0]:
        return {}
    found = {}
    for name, (tier, other) in _STEPS.items():
        if tier in chosen[0]:
            differences = difference(tier, other)
            models, against = ([fold[role] for fold in chosen] for role in (tier, other))
            found[name] = Step(name, models, against, *judge(differences), differences)
    return found
