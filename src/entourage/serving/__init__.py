"""Fitted models where they are used: over HTTP (``entourage serve``)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from entourage.errors import UserError

if TYPE_CHECKING:
    from entourage.serving.app import create_app
    from entourage.serving.limits import Limits

__all__ = ["Limits", "create_app"]

_HOMES = {"create_app": "entourage.serving.app", "Limits": "entourage.serving.limits"}
_NEEDED = ("fastapi", "starlette", "uvicorn", "prometheus_client")


def __getattr__(name: str) -> Any:  # the packages of the server are imported when it is asked for
    if name not in _HOMES:
        raise AttributeError(f"module 'entourage.serving' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _NEEDED:
            raise
        raise UserError(f"Serving needs {error.name}: run pip install 'entourage[serve]'.") from None
