"""What rooms above provide to estimators, by name, imported when first asked for.

An estimator can be told to find its net by itself, and a model file can hold a choice model. Both live in rooms that
are built upon estimators, so estimators know them by name alone, and only here.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["provided"]

_HOMES = {
    "automatic choice of a net": "entourage.selection.auto",
    "files of choice models": "entourage.choice.kept",
}


def provided(what: str) -> ModuleType:
    """Return the module that provides ``what``."""
    return import_module(_HOMES[what])
