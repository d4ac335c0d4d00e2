"""Entourage learns to rank and to choose objects in the company they keep."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entourage.data import Sets
    from entourage.effects import instant_verdict
    from entourage.estimators import DiscreteChooser, Ranker, SubsetChooser, load
    from entourage.nets import FATE, FETA, ContextFree, SetAttention
    from entourage.selection import cross_validate

__all__ = [
    "FATE",
    "FETA",
    "ContextFree",
    "DiscreteChooser",
    "Ranker",
    "SetAttention",
    "Sets",
    "SubsetChooser",
    "__version__",
    "cross_validate",
    "instant_verdict",
    "load",
]

__version__ = "0.2.0"

_HOMES = {
    "cross_validate": "entourage.selection",
    "instant_verdict": "entourage.effects",
    "Ranker": "entourage.estimators",
    "DiscreteChooser": "entourage.estimators",
    "SubsetChooser": "entourage.estimators",
    "load": "entourage.estimators",
    "FATE": "entourage.nets",
    "FETA": "entourage.nets",
    "ContextFree": "entourage.nets",
    "SetAttention": "entourage.nets",
    "Sets": "entourage.data",
}


def __getattr__(
    name: str,
) -> Any:  # torch is imported when first needed, so that the command line starts at once
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'entourage' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
