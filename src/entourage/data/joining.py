"""What several `Sets` must share to be joined into one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from entourage.errors import DataError, ShapeError

if TYPE_CHECKING:
    from entourage.data.sets import Sets

__all__ = ["check_joinable"]


def check_joinable(parts: Sequence["Sets"]) -> None:
    """Raise an error where sets can't be joined."""
    if len(parts) == 0:
        raise DataError("There is nothing to join: at least one Sets is needed.")
    if len({(p.n_features, p.targets is None, p.n_situation_features) for p in parts}) != 1:
        raise ShapeError(
            "Only sets with the same features, all with or all without targets and situation, can be "
            f"joined; got {', '.join(map(repr, parts))}."
        )
    for part in parts[1:]:
        if part.encoder is not None and parts[0].encoder is not None:
            parts[0].encoder.check_same(part.encoder, "These sets can't be joined")
    if len({p.worst is None for p in parts}) != 1:
        raise DataError("Sets whose targets are relevances can't be joined with sets of plain ranks.")
    if len({None if p.position is None else p.position.dtype.kind for p in parts}) != 1:
        raise DataError(
            "Sets with positions can't be joined with sets without, nor whole numbers with text as positions."
        )
