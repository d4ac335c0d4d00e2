"""Models where they are used: as an ONNX graph, in a page.

Nothing is imported before it is asked for, so that each part needs its own packages only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entourage.serving.explorer import explore
    from entourage.serving.onnx import to_onnx

__all__ = ["explore", "to_onnx"]

_HOMES = {"explore": "entourage.serving.explorer", "to_onnx": "entourage.serving.onnx"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'entourage.serving' has no attribute {name!r}")
