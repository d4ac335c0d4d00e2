"""The error of a model that has no graph."""

from entourage.errors import UserError

__all__ = ["ExportError"]


class ExportError(UserError):
    """A model can't be exported, or the exported graph differs from it; nothing was written."""
