"""An additive effect of the position at which an object is shown, learnt beside a net and left out of it afterwards."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.base import Scorer
from entourage.nets.ensemble import Stack

__all__ = ["WithPosition", "with_position", "without_position"]

SCALE = 5.0  # of an effect to its parameter: one number has as far to go as a whole net, at the same learning rate


class WithPosition(Scorer):
    r"""A net whose scores have an effect of the position added: :math:`U(x, C) + e_{p(x)}`.

    The effects are relative to their mean over the objects learnt from. So the net alone scores an object at an
    average position, also where the level of scores matters (an outside option, subset choice).

    Parameters
    ----------
    scorer : the net
    place : the feature that holds the code of the position: from 1; 0 for none, which has no effect
    shares : of each position among the objects learnt from
    """

    shares: Tensor

    def __init__(self, scorer: Scorer, place: int, shares: Sequence[float]) -> None:
        super().__init__()
        self.scorer = scorer
        self.stackable = scorer.stackable
        self.place = place
        self.effects = nn.Parameter(torch.zeros(len(shares)))
        self.register_buffer("shares", torch.tensor(shares, dtype=torch.float32))

    def in_one_piece(self, n: int, m: int) -> bool:
        """Whether a batch is computed at once, by the net."""
        return self.scorer.in_one_piece(n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        """Score ``objects (n, m, d)``, one feature of which is the code of the position."""
        code = objects[..., self.place].round().long()
        others = torch.cat([objects[..., : self.place], objects[..., self.place + 1 :]], dim=-1)
        effect = torch.where(code > 0, self.centred()[(code - 1).clamp(min=0)], 0.0)  # (n, m)
        scores: Scores = self.scorer(others, mask) + effect
        return scores

    def centred(self) -> Tensor:
        """Return the effect of each position."""
        effects = SCALE * self.effects
        return effects - (effects * self.shares).sum(-1, keepdim=True)


def with_position(scorer: Scorer, place: int, shares: Sequence[float]) -> Scorer:
    """Add effects of the position to a net, or to each net of a stack; see `WithPosition`.

    Examples
    --------
    >>> from entourage.nets import ContextFree
    >>> net = ContextFree().build(2, torch.Generator().manual_seed(0))
    >>> shown = with_position(net, 2, [0.5, 0.5])
    >>> objects = torch.tensor([[[0.1, 0.2, 1.0], [0.1, 0.2, 2.0]]])
    >>> bool((shown(objects) == net(objects[..., :2])).all())  # nothing is learnt yet
    True
    """
    if isinstance(scorer, Stack):
        own = [scorer.scorer(i) for i in range(scorer.members)]
        return Stack([WithPosition(one, place, shares).train(scorer.training) for one in own])
    return WithPosition(scorer, place, shares)


def without_position(scorer: Scorer) -> tuple[Scorer, Tensor]:
    """Return the net alone, and the effects of the positions; of a stack, their mean over its members."""
    if isinstance(scorer, Stack):
        own = [without_position(scorer.scorer(i)) for i in range(scorer.members)]
        return Stack([one for one, _ in own]), torch.stack([effects for _, effects in own]).mean(0)
    if not isinstance(scorer, WithPosition):
        return scorer, torch.zeros(0)
    return scorer.scorer, scorer.centred().detach()
