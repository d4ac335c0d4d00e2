"""Fitted models where they are used: over HTTP (``entourage serve``), as ONNX graphs, in a page.

Nothing is imported before it is asked for, so that each part needs its own packages only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from entourage.errors import UserError

if TYPE_CHECKING:
    from entourage.serving.app import create_app
    from entourage.serving.explorer import explore
    from entourage.serving.limits import Limits
    from entourage.serving.onnx import to_onnx

__all__ = ["Limits", "create_app", "explore", "to_onnx"]

_HOMES = {
    "Limits": "entourage.serving.limits",
    "create_app": "entourage.serving.app",
    "explore": "entourage.serving.explorer",
    "to_onnx": "entourage.serving.onnx",
}
_NEEDED = ("fastapi", "starlette", "uvicorn", "httptools", "prometheus_client")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'entourage.serving' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _NEEDED:
            raise
        raise UserError(f"Serving needs {error.name}: run pip install 'entourage[serve]'.") from None
