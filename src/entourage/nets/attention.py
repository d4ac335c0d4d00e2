"""Attention over pairs of objects: pairwise influence is learnt."""

import torch

from entourage.errors import check_choice, check_number
from entourage.nets.base import Net, Scorer
from entourage.nets.context_free import ContextFree
from entourage.nets.message_passing import FEATURE_MAPS, InducedMessage, PairMessage, RefinedScorer, Round

__all__ = ["SetAttention"]


class SetAttention(Net):
    r"""Rounds of attention whose logits and values see the pair, then one utility for each state.

    .. math:: h_i \leftarrow h_i + \sum_j \mathrm{softmax}_j\bigl(a^\top g_{ij}\bigr)\, V g_{ij}, \qquad
              g_{ij} = \mathrm{gelu}(A h_i + B h_j)

    with several heads, and a small net on each state after each round. In plain attention the value depends on the
    key object only; here both the weight and the value depend on the pair. Quadratic time in the size of the set,
    bounded memory; linear with ``points``.

    Parameters
    ----------
    width : int
        Units of a state and of a pair.
    rounds : int
        How many rounds of attention.
    heads : int
        How many weightings each round has; a divisor of ``width``.
    depth : int
        Hidden layers of the pair net.
    sharpening : float
        How fast each head learns its sharpness, beside the other weights: the logits are multiplied by
        ``exp(sharpening * s)`` with a learnt s that is exempt from weight decay. With 0 it isn't learnt.
    norm : {"layer", "none"}
        Whether states are normalised before each round; before they are scored they always are. Distances between
        objects survive without.
    dropout : float
        The share of each round's changes that is left out in training.
    points : int, optional
        So many learnt inducing points: they attend to all objects, and the objects to them, in linear time. For sets
        of thousands.
    features : {"centred", "linear", "periodic"}
        How features become states: beside what is left of them when the mean of the set is taken off (0 where an
        object is alone), since where an object stands often matters more than what it is; by a linear map; or beside
        sines and cosines of learnt frequencies.

    Examples
    --------
    >>> net = SetAttention(width=16).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(4, 5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(
        self,
        width: int = 64,
        rounds: int = 4,
        *,
        heads: int = 4,
        depth: int = 1,
        sharpening: float = 5.0,
        norm: str = "none",
        dropout: float = 0.1,
        points: int | None = None,
        features: str = "centred",
    ) -> None:
        self.width = width
        self.rounds = rounds
        self.heads = heads
        self.depth = depth
        self.sharpening = sharpening
        self.norm = norm
        self.dropout = dropout
        self.points = points
        self.features = features

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        check_number("width", self.width, least=1, whole=True)
        check_number("rounds", self.rounds, least=1, whole=True)
        check_number("heads", self.heads, least=1, whole=True)
        start = FEATURE_MAPS[check_choice("features", self.features, FEATURE_MAPS)]
        check_number("depth", self.depth, least=1, whole=True)
        check_number("sharpening", self.sharpening, least=0)
        shared = {
            "heads": self.heads,
            "depth": self.depth,
            "sharpening": self.sharpening,
            "generator": generator,
        }
        if self.points is not None:
            check_number("points", self.points, least=1, whole=True)
        rounds = [
            Round(
                PairMessage(self.width, **shared)  # type: ignore[arg-type]
                if self.points is None
                else InducedMessage(self.width, points=self.points, **shared),  # type: ignore[arg-type]
                self.width,
                norm=self.norm,
                dropout=self.dropout,
                generator=generator,
            )
            for _ in range(self.rounds)
        ]
        last = ContextFree(width=self.width, depth=1, activation="gelu", norm="none")
        return RefinedScorer(
            start(n_features, self.width, generator), rounds, self.width, last.build(self.width, generator)
        )
