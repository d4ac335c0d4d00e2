"""Own demand that never rises with a price: a net whose utilities are monotone in chosen columns, for certain."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import ParameterError, check_number
from entourage.nets.base import Net, Scorer
from entourage.nets.context_ablated import ContextAblated
from entourage.nets.layers import MLP, linear_map, present, runs_of
from entourage.nets.registry import entry_of

__all__ = ["Monotone"]

UNITS = 16  # steps that the monotone part is a sum of
SIGNALS = 8  # numbers by which an object's monotone columns affect the others of its set
WIDTH = 64  # of the net that places these steps, at most
SMALL = -2.0  # where softplus is about 1/8: at first every slope is small


class Monotone(Net):
    r"""A net whose utilities rise (sign +1) or fall (sign -1) with chosen columns of the object, for certain.

    .. math:: U(x_i, C) = N(z_i, C_z) + \sum_k v_k(z_i, C_z) \tanh\bigl(A_k T_i - B_k E_i + b_k(z_i, C_z)\bigr)
              + c(z_i, C_z)\, T_i - d(z_i, C_z)\, E_i

    The columns :math:`x = (t, z)` are those that are monotone, each times its sign, and all others. N is the given
    net; it sees :math:`z` alone. :math:`T_i` holds :math:`t_i` and its standings in the set. :math:`E_i` is the mean
    of :math:`\varphi(y) = \tanh(G t_y + g(z_y))` over the *other* objects y of the set. A, B, G, v, c and d are never
    negative. They are constants or depend, as b and g do, on the columns in z only, of the object and of its set.

    Parameters
    ----------
    net : FATE(), FETA(), ...
    own : pairs (place, sign)
        The inputs that are monotone: those that depend on the object alone.
    standings : pairs (place, sign)
        Inputs that say where the object stands in its set by a monotone column. When this column of one object rises,
        they must not fall for this object, and must not rise for any other.
    ignored : places
        Inputs that N must not see and that are none of the above, such as the z-score of a monotone column within its
        set.

    Notes
    -----
    *Own demand is monotone.* Let :math:`t_i` of one object rise in any of its columns, by any amount, all else equal.

    1. z stays the same in the whole set. So N, b, g, v, c and d stay the same for every object.
    2. :math:`U_i` doesn't fall: no entry of :math:`T_i` falls, :math:`E_i` doesn't hold object i and stays the same,
       and weights and tanh are monotone.
    3. No :math:`U_j` of another object rises: :math:`t_j` stays the same, its standings don't rise, and
       :math:`E_j` doesn't fall, as :math:`\varphi(x_i)` doesn't, and counts against :math:`U_j`.

    So :math:`U_i - U_j` doesn't fall for any j, and neither does :math:`U_i` itself: the probability that i is chosen,
    :math:`1 / \sum_j \exp(U_j - U_i)`, with or without an outside option of utility 0, doesn't fall, nor that it is
    among the chosen of a subset, :math:`1 / (1 + \exp(-U_i))`, nor that it is ranked first. The same holds
    for a mean of such utilities (an ensemble) and for a positive temperature. In floating point it holds up to
    rounding.

    What it excludes is what the proof excludes: a column of one object that raises the utility of another.
    Context effects remain: by z without restriction, by t as far as objects are substitutes. Where the given net
    doesn't depend on the context, E is left out. Where it is linear (``depth=0``), so is the monotone part.

    Examples
    --------
    >>> from entourage.nets import FATE
    >>> scorer = Monotone(FATE(width=8), own=[(1, -1)]).build(2, torch.Generator().manual_seed(0))
    >>> objects = torch.rand(1, 3, 2, generator=torch.Generator().manual_seed(1))
    >>> dearer = objects + torch.tensor([[[0.0, 0.5], [0.0, 0.0], [0.0, 0.0]]])
    >>> change = scorer(dearer).softmax(1) - scorer(objects).softmax(1)
    >>> (change < 0).tolist()
    [[True, False, False]]
    """

    def __init__(
        self,
        net: Net,
        own: Sequence[tuple[int, int]],
        standings: Sequence[tuple[int, int]] = (),
        ignored: Sequence[int] = (),
    ) -> None:
        self.net = net
        self.own = own
        self.standings = standings
        self.ignored = ignored

    def build(self, n_features: int, generator: torch.Generator) -> Scorer:
        """Make the module."""
        signed = [*self.own, *self.standings]
        taken = [place for place, _ in signed] + [*self.ignored]
        for place in taken:
            check_number("the place of a monotone column", place, least=0, below=n_features, whole=True)
        if not self.own or len(set(taken)) < len(taken) or any(sign not in (1, -1) for _, sign in signed):
            raise ParameterError(
                "A monotone net needs at least one column of its own, each place once, and the sign +1 or -1; got "
                f"own={self.own!r}, standings={self.standings!r}, ignored={self.ignored!r}."
            )
        rest = [place for place in range(n_features) if place not in set(taken)]
        return _MonotoneScorer(
            self.net.build(max(1, len(rest)), generator),
            [(place, sign) for place, sign in self.own],
            [(place, sign) for place, sign in self.standings],
            rest,
            width=min(WIDTH, getattr(self.net, "width", WIDTH)),
            linear=_is_linear(self.net),
            context=_depends_on_context(self.net),
            generator=generator,
        )


class _MonotoneScorer(Scorer):
    def __init__(
        self,
        scorer: Scorer,
        own: list[tuple[int, int]],
        standings: list[tuple[int, int]],
        rest: list[int],
        *,
        width: int,
        linear: bool,
        context: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.stackable = scorer.stackable
        self.own, self.standings, self.rest = own, standings, runs_of(rest)
        self.signals = SIGNALS if context and not linear else 0
        n_rest, n_monotone = max(1, len(rest)), len(own) + len(standings)
        if linear:
            self.slopes = linear_map(n_monotone, 1, generator, bias=False)
            self.gates = self.steps = self.embedding = self.sent = self.heard = None
            return

        def mlp(n_inputs: int, n_outputs: int) -> MLP:
            shape = {"depth": 1, "width": width, "activation": "gelu", "norm": "none"}
            return MLP(n_inputs, n_outputs, generator=generator, **shape)  # type: ignore[arg-type]

        self.pooled = width if context else 0
        self.parts = [UNITS, UNITS, n_monotone, self.signals]  # b, and what v, c and d are made from
        self.gates = mlp(n_rest + self.pooled, sum(self.parts))
        self.steps = linear_map(n_monotone, UNITS, generator, bias=False)  # A
        last = self.gates.linears[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(0.3)
            last.bias[UNITS:] = SMALL
        if context:
            self.embedding = mlp(n_rest, self.pooled + SIGNALS)  # what of z is pooled, and g
            self.sent = linear_map(len(own), SIGNALS, generator, bias=False)  # G
            self.heard = linear_map(SIGNALS, UNITS, generator, bias=False)  # B
        else:
            self.embedding = self.sent = self.heard = None

    def in_one_piece(self, n: int, m: int) -> bool:
        return self.scorer.in_one_piece(n, m)

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        own = _signed(objects, self.own)  # (n, m, q)
        monotone = torch.cat([own, _signed(objects, self.standings)], dim=-1) if self.standings else own
        if self.rest:
            rest = torch.cat([objects[..., begin:end] for begin, end in self.rest], dim=-1)
        else:
            rest = torch.zeros_like(objects[..., :1])
        scores: Scores = self.scorer(rest, mask) + present(self._monotone(monotone, own, rest, mask), mask)
        return scores

    def _monotone(self, monotone: Tensor, own: Tensor, rest: Tensor, mask: Tensor | None) -> Tensor:
        """Return the part of the scores (n, m) that depends on the monotone columns."""
        if self.gates is None or self.steps is None:
            return F.linear(monotone, self.slopes.weight.abs()).squeeze(-1)
        others: Tensor | None = None
        seen = rest
        if self.embedding is not None and self.sent is not None:
            pooled, shift = self.embedding(rest).split([self.pooled, SIGNALS], dim=-1)
            there = torch.ones_like(rest[..., :1]) if mask is None else mask.unsqueeze(-1).to(rest.dtype)
            size = there.sum(1, keepdim=True)  # (n, 1, 1)
            mean = (pooled * there).sum(1, keepdim=True) / size.clamp(min=1)
            seen = torch.cat([rest, mean.expand(-1, rest.shape[1], -1)], dim=-1)
            sent = torch.tanh(F.linear(own, self.sent.weight.abs()) + shift) * there
            others = _sum_of_others(sent) / (size - 1).clamp(min=1)  # (n, m, signals)
        bias, heights, slopes, against = self.gates(seen).split(self.parts, dim=-1)
        level = F.linear(monotone, self.steps.weight.abs()) + bias
        if others is not None and self.heard is not None:
            level = level - F.linear(others, self.heard.weight.abs())
        found = (F.softplus(heights) * torch.tanh(level)).sum(-1) + (F.softplus(slopes) * monotone).sum(-1)
        return found if others is None else found - (F.softplus(against) * others).sum(-1)


def _sum_of_others(values: Tensor) -> Tensor:
    """Return the sum over the other objects of a set, (n, m, k), which doesn't change by a bit with the own value."""
    before = F.pad(values.cumsum(1)[:, :-1], (0, 0, 1, 0))
    after = F.pad(values.flip(1).cumsum(1)[:, :-1], (0, 0, 1, 0)).flip(1)
    return before + after


def _signed(objects: Tensor, columns: list[tuple[int, int]]) -> Tensor:
    return torch.stack([sign * objects[..., place] for place, sign in columns], dim=-1)


def _is_linear(net: Net) -> bool:
    if isinstance(net, ContextAblated):
        return _is_linear(net.net)
    return getattr(net, "depth", 1) == 0 and getattr(net, "rounds", 1) == 1


def _depends_on_context(net: Net) -> bool:
    entry = entry_of(net)
    if isinstance(net, ContextAblated) or getattr(net, "order", 1) == 0:
        return False
    return entry is None or entry.context
