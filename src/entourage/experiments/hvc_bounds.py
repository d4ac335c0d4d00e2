"""A net that says where between its bounds a contribution lies."""

import torch

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import ShapeError
from entourage.nets import Entry, Net, Scorer, register
from entourage.nets.layers import MLP, present

__all__ = ["BetweenBounds"]

FEATURES = 4  # the last ones of `entourage.data.front_features`


class BetweenBounds(Net):
    """Scores are logarithms of contributions: ``log lower + p (log upper - log lower)``, with p between 0 and 1.

    The last four features are those of :func:`entourage.data.front_features`, not standardized. With e the place of
    the estimate between the bounds, ``p = sigmoid(logit(e) + MLP(log upper - log lower, e, crowding))``. So whatever
    the net has learnt, a score lies within the bounds.

    Parameters
    ----------
    width, depth : int
        Units in a hidden layer, and how many hidden layers.
    """

    def __init__(self, width: int = 32, depth: int = 2) -> None:
        self.width = width
        self.depth = depth

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        if n_features < FEATURES:
            raise ShapeError(
                f"BetweenBounds needs what front_features returns, at least {FEATURES} features; got {n_features}."
            )
        return _BetweenBoundsScorer(
            MLP(
                FEATURES - 1,
                1,
                depth=self.depth,
                width=self.width,
                activation="relu",
                norm="none",
                generator=generator,
            )
        )


class _BetweenBoundsScorer(Scorer):
    def __init__(self, place: MLP) -> None:
        super().__init__()
        self.place = place

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        lower, estimate, upper, crowding = objects[..., -FEATURES:].unbind(-1)  # (n, m) each
        gap = upper - lower
        estimated = ((estimate - lower) / gap.clamp(min=1e-6)).clamp(0.01, 0.99)
        known = torch.stack([gap, estimated, crowding], dim=-1)  # (n, m, 3)
        p = torch.sigmoid(torch.logit(estimated) + self.place(known).squeeze(-1))
        return present(lower + p * gap, mask)


register(Entry("between_bounds", BetweenBounds, context=False))
