"""First evaluate, then aggregate."""

import torch
from torch import nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import check_number
from entourage.nets.base import Net, Scorer
from entourage.nets.layers import MLP, present, score_in_tiles
from entourage.nets.message_passing import PairMessage, refine
from entourage.nets.pairs import fits_at_once, mean_over_others
from entourage.nets.subcontexts import SubcontextMean

__all__ = ["FETA", "FETAScorer"]


class FETA(Net):
    r"""First evaluate then aggregate: the utility of an object averaged over the sub-contexts.

    .. math:: U(x, C) = U_0(x) + \sum_{k=1}^{K} \binom{|C|}{k}^{-1}
              \sum_{C' \subseteq C, |C'| = k} U_k(x, C')

    ``order=1`` is the paper's FETA-Net: :math:`U_1(x, y)` is one network with CmpNN weight sharing,
    evaluated on every ordered pair and averaged over the others. Quadratic time in the size of the set,
    bounded memory.

    Parameters
    ----------
    width, depth : int
        Units in a hidden layer, and how many hidden layers each utility has.
    order : int
        K, the size of the largest sub-contexts. Order 0 is :class:`ContextFree`.
    squash : bool
        Whether the utilities of sub-contexts go through a sigmoid, into [0, 1], as in the paper.
    max_subcontexts : int
        For k >= 2: how many sub-contexts of an object are evaluated at most. Where there are more, so
        many are drawn at random, without bias (see :class:`entourage.nets.subcontexts.SubcontextMean`).
    rounds : int
        With 1, the paper's network. With more, features become states of ``width``, and in each earlier round
        every pair sends a message, averaged over the others, that changes a state (see
        :mod:`entourage.nets.message_passing`); the paper's network then scores the last states.
    dropout : float
        The share of each earlier round's changes that is left out in training.
    features : {"linear", "periodic", "centred"}
        With several rounds: how features become states; see :class:`entourage.SetAttention`.
    activation : {"relu", "selu", "gelu"}
    norm : {"none", "batch", "layer"}
        Normalisation before each activation. The paper uses "relu" with "batch", or "selu" with
        "none"; "gelu" with "layer" is what transformers do. This is about the paper's network: the rounds before
        it have "gelu", and normalise states where ``norm="layer"``.

    Notes
    -----
    With ``depth=0`` every utility is linear. Unsquashed, the context then shifts all scores of a set
    alike, but for a part that depends on the size of the set only. Squashed, :math:`U_1(x, y)` is a logistic function
    of the pair, and the context can reverse a preference.

    Examples
    --------
    >>> net = FETA(width=16).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(4, 5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(
        self,
        width: int = 128,
        depth: int = 2,
        *,
        order: int = 1,
        squash: bool = False,
        max_subcontexts: int = 64,
        rounds: int = 1,
        dropout: float = 0.0,
        features: str = "linear",
        activation: str = "relu",
        norm: str = "none",
    ) -> None:
        self.width = width
        self.depth = depth
        self.order = order
        self.squash = squash
        self.max_subcontexts = max_subcontexts
        self.rounds = rounds
        self.dropout = dropout
        self.features = features
        self.activation = activation
        self.norm = norm

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        return refine(
            self,
            lambda: PairMessage(self.width, heads=0, generator=generator),
            self._build_last,
            n_features,
            generator,
        )

    def _build_last(self, n_features: int, generator: torch.Generator) -> Scorer:
        check_number("order", self.order, least=0, whole=True)
        check_number("max_subcontexts", self.max_subcontexts, least=1, whole=True)

        def mlp(n_inputs: int | tuple[int, ...], n_outputs: int = 1) -> MLP:
            return MLP(
                n_inputs,
                n_outputs,
                depth=self.depth,
                width=self.width,
                activation=self.activation,
                norm=self.norm,
                generator=generator,
            )

        higher = [
            SubcontextMean(
                mlp(n_features, self.width),
                mlp((n_features, self.width)),
                k=k,
                max_subcontexts=self.max_subcontexts,
                squash=self.squash,
                n_features=n_features,
                generator=generator,
            )
            for k in range(2, self.order + 1)
        ]
        pairs = mlp((n_features, n_features)) if self.order >= 1 else None
        return FETAScorer(mlp(n_features), pairs, higher, squash=self.squash)


class FETAScorer(Scorer):
    """The module of :class:`FETA`."""

    def __init__(self, alone: MLP, pairs: MLP | None, higher: list[SubcontextMean], *, squash: bool) -> None:
        super().__init__()
        self.alone, self.pairs, self.higher = alone, pairs, nn.ModuleList(higher)
        self.squash = squash
        self.stackable = not higher  # which sub-contexts are drawn depends on the values of the features

    def in_one_piece(self, n: int, m: int) -> bool:
        return self.pairs is None or fits_at_once(self.pairs, n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        scores = score_in_tiles(self.alone.forward, objects, mask)
        if self.pairs is not None:
            scores = scores + mean_over_others(self.pairs, objects, mask, squash=self.squash)
        for subcontexts in self.higher:
            scores = scores + subcontexts(objects, mask)
        return present(scores, mask)
