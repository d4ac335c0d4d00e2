"""First aggregate, then evaluate."""

import torch
from torch import Tensor

from entourage.data.shapes import Hidden, Mask, Objects, Scores
from entourage.errors import check_number
from entourage.nets.base import Net, Scorer
from entourage.nets.layers import MLP, is_one_tile, object_tiles, present, score_in_tiles, sum_of_objects
from entourage.nets.message_passing import SetMessage, refine

__all__ = ["FATE", "FATEScorer"]


class FATE(Net):
    r"""First aggregate then evaluate: the utility of an object given the average embedding of its context.

    .. math:: U(x, C) = U\Bigl(x, \frac{1}{|C|} \sum_{y \in C} \varphi(y)\Bigr)

    with an embedding :math:`\varphi` and a joint net :math:`U`. Linear time in the size of the set.

    Parameters
    ----------
    width, depth : int
        Units in a hidden layer, and how many hidden layers the joint net has.
    embedding_size : int, optional
        The dimension of the embedding; by default ``width``.
    embedding_depth : int, optional
        How many hidden layers the embedding has; by default ``depth``.
    include_self : bool
        Whether an object belongs to its own context: ``C(x) = Q``, the paper's efficient variant, or
        ``C(x) = Q \ {x}``. An empty context (a set of one) is represented by 0.
    rounds : int
        With 1, the paper's network. With more, features become states of ``width``, and in each earlier round
        all states are aggregated and each is changed in that context (see :mod:`entourage.nets.message_passing`); the
        paper's network then scores the last states.
    pooling : {"mean", "spread"}
        What the earlier rounds aggregate: the mean of embeddings, or also their deviation and maximum.
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
    With ``depth=0`` both nets are linear. With ``include_self=True`` the context then shifts all scores
    of a set alike: no preference is ever reversed. With ``include_self=False`` an object's own features count less
    the larger the set is: a preference can be reversed, but only by the size of the set.

    Examples
    --------
    >>> net = FATE(width=16).build(n_features=2, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(4, 5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(
        self,
        width: int = 128,
        depth: int = 2,
        *,
        embedding_size: int | None = None,
        embedding_depth: int | None = None,
        include_self: bool = True,
        rounds: int = 1,
        pooling: str = "mean",
        dropout: float = 0.0,
        features: str = "linear",
        activation: str = "gelu",
        norm: str = "layer",
    ) -> None:
        self.width = width
        self.depth = depth
        self.embedding_size = embedding_size
        self.embedding_depth = embedding_depth
        self.include_self = include_self
        self.rounds = rounds
        self.pooling = pooling
        self.dropout = dropout
        self.features = features
        self.activation = activation
        self.norm = norm

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        return refine(
            self,
            lambda: SetMessage(self.width, pooling=self.pooling, generator=generator),
            self._build_last,
            n_features,
            generator,
        )

    def _build_last(self, n_features: int, generator: torch.Generator) -> Scorer:
        check_number("width", self.width, least=1, whole=True)
        check_number("depth", self.depth, least=0, whole=True)
        size = self.width if self.embedding_size is None else self.embedding_size
        check_number("embedding_size", size, least=1, whole=True)
        embedding_depth = self.depth if self.embedding_depth is None else self.embedding_depth
        check_number("embedding_depth", embedding_depth, least=0, whole=True)
        shared = {
            "width": self.width,
            "activation": self.activation,
            "norm": self.norm,
            "generator": generator,
        }
        return FATEScorer(
            embedding=MLP(n_features, size, depth=embedding_depth, **shared),  # type: ignore[arg-type]
            joint=MLP((n_features, size), 1, depth=self.depth, **shared),  # type: ignore[arg-type]
            include_self=self.include_self,
        )


class FATEScorer(Scorer):
    """The module of :class:`FATE`."""

    weights_by_set = True

    def __init__(self, *, embedding: MLP, joint: MLP, include_self: bool) -> None:
        super().__init__()
        self.embedding, self.joint, self.include_self = embedding, joint, include_self

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        if is_one_tile(objects):
            embedded = self._embed(objects, mask)
            if self.include_self and mask is None:
                context = sum_of_objects(embedded) / objects.shape[1]  # (n, 1, k)
            else:
                total = sum_of_objects(embedded)
                context = self._context(total, _sizes(objects, mask), embedded)
            return present(self._evaluate(objects, mask, context).squeeze(-1), mask)
        total = objects.new_zeros(())
        for _, some, there in object_tiles(objects, mask):
            total = total + self._embed(some, there).sum(1, keepdim=True)
        sizes = _sizes(objects, mask)

        def evaluate(some: Tensor, there: Tensor | None) -> Tensor:
            own = None if self.include_self else self._embed(some, there)
            return self._evaluate(some, there, self._context(total, sizes, own))

        return present(score_in_tiles(evaluate, objects, mask), mask)

    def _context(self, total: Tensor, sizes: Tensor, own: Tensor | None) -> Tensor:
        """Return the mean embedding of the context, from the sum over the set: (n, 1, k), without ``own`` (n, t, k)."""
        if self.include_self or own is None:
            return total / sizes.clamp(min=1)
        return torch.where(sizes > 1, (total - own) / (sizes - 1).clamp(min=1), 0.0)

    def _evaluate(self, objects: Tensor, mask: Tensor | None, context: Tensor) -> Tensor:
        """Score objects (n, t, d) in their context (n, 1 or t, k): (n, t, 1)."""
        joint = self.joint
        own_part, context_part = joint.first(objects, context)
        return joint.after_first(own_part + context_part, mask)

    def _embed(self, objects: Objects, mask: Mask | None) -> Hidden:
        embedded = self.embedding.forward(objects, mask)
        return embedded if mask is None else embedded * mask.unsqueeze(-1)


def _sizes(objects: Tensor, mask: Tensor | None) -> Tensor:
    """Return the number of objects of each set, (n, 1, 1)."""
    if mask is None:
        n, m, _ = objects.shape
        return torch.full((n, 1, 1), m, device=objects.device)
    return mask.sum(1)[:, None, None]
