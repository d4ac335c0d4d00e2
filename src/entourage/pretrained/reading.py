"""Labelled sets as the pretrained net has read them, ready to score new ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import DataError, ShapeError
from entourage.nets.prior_fitted import TASK_KINDS, Memory, PriorFittedNet, label_views
from entourage.pretrained.fine_tune import LabelledTensors
from entourage.pretrained.fine_tune import fine_tune as tune
from entourage.pretrained.inputs import ENDS, Knowledge, learn
from entourage.pretrained.interactions import MIX, find_products, with_products
from entourage.pretrained.reading_file import describe_reading, reading_from
from entourage.pretrained.verdict import InstantVerdict, verdict_of
from entourage.pretrained.weights import pretrained_net
from entourage.tasks import Choice, SubsetChoice, Task
from entourage.training.device import find_device
from entourage.training.standardizer import Standardizer

__all__ = ["Page", "Reading"]

Floats: TypeAlias = NDArray[np.float64]

MOST_OBJECTS = 8_000  # labelled, in one reading; of more, several readings of some sets each
DRAWS = 4  # readings of a larger table
CELLS = 60_000  # scored at once


@dataclass(frozen=True)
class Page:
    """One reading of some labelled sets: what they taught, and the net's memory of them."""

    knowledge: Knowledge
    memory: Memory


@dataclass(frozen=True)
class Reading:
    """What the pretrained net knows of a table.

    Parameters
    ----------
    kind : a name of `TASK_KINDS`
    outside : whether nothing may be chosen; then each set has one object more, which stands for that
    standardise : learnt from the labelled sets
    pages : one, or several of a larger table, whose scores are averaged
    n_sets : how many labelled sets there were
    net : None for the net of the package, otherwise one that was fine-tuned
    mix : how much a second reading counts, which also sees interactions with the situation
    products : those interactions, see :mod:`~entourage.pretrained.interactions`; None without that reading
    more : the pages of the second reading
    level : of subsets, what is added to each logit: the net itself hardly sees how many objects are chosen
    """

    kind: str
    outside: bool
    standardise: Standardizer
    pages: list[Page]
    n_sets: int
    n_features: tuple[int, int]
    net: PriorFittedNet | None = None
    mix: float = 0.0
    products: Tensor | None = None
    more: list[Page] = field(default_factory=list)
    level: float = 0.0

    @classmethod
    @torch.no_grad()
    def read(
        cls,
        sets: Sets,
        task: Task,
        *,
        weights: NDArray[np.float64] | None = None,
        fine_tune: bool = False,
        groups: NDArray[Any] | None = None,
        interactions: bool = True,
        products: Tensor | None = None,
        random_state: int = 0,
        device: str = "auto",
        tell: Callable[[str], None] | None = None,
    ) -> Self:
        """Read labelled sets.

        Parameters
        ----------
        sets : with targets, all numeric
        task : of the targets
        weights : one a set; a set of weight 0 is left out
        fine_tune : whether to train the net on them for some hundred steps
        groups : one a set; in fine-tuning, sets of one group are held out together
        interactions : whether to read the sets a second time with interactions with the situation, if there are any;
            after fine-tuning and with an outside option there is no second reading
        products : those interactions, where they are known already
        random_state : of the sets that are read where there are too many, and of fine-tuning
        """
        if sets.targets is None:
            raise DataError("Labelled sets need targets.")
        if weights is not None:
            if weights.shape != (len(sets),) or not np.isfinite(weights).all() or not (weights > 0).any():
                raise DataError(
                    f"Weights need to be finite, one a set ({len(sets)}), and not all 0; got {weights.size}."
                )
            groups = None if groups is None else np.asarray(groups)[weights > 0]
            sets, weights = sets[weights > 0], weights[weights > 0]
            weights = None if np.ptp(weights) == 0 else weights / weights.mean()
        kind = _kind_of(task)
        standardise = _centred_on_medians(sets, weights)
        where = find_device(device)
        net = pretrained_net()
        blank = cls(
            kind, task.outside, standardise, [], len(sets), (sets.n_features, sets.n_situation_features)
        )
        own: PriorFittedNet | None = None
        if fine_tune:
            table = blank._tensors(sets, weights, where)
            with torch.enable_grad():
                tuned, steps = tune(net.to(where), table, seed=random_state, groups=groups, tell=tell)
            own = tuned if steps else None
        drawn = []
        for chosen in _draws(sets, np.random.default_rng(random_state)):
            some = sets if chosen is None else sets[chosen]
            weight = None if weights is None else weights if chosen is None else weights[chosen]
            drawn.append(blank._tensors(some, weight, where))
        used = net.to(where) if own is None else own
        pages = [_page(used, table) for table in drawn]
        found = replace(blank, pages=pages, net=own)
        if products is None and interactions and not (fine_tune or task.outside):
            products = find_products(drawn[0].values, drawn[0].mask)
        if products is not None:
            more = [_page(used, _with(table, products)) for table in drawn]
            found = replace(found, mix=MIX, products=products, more=more)
        return found._levelled(sets, weights, random_state, device) if kind == "subset" else found

    def _levelled(self, sets: Sets, weights: Floats | None, seed: int, device: str) -> Self:
        """Return it with the level by which as many of the labelled objects are expected to be chosen as were."""
        chosen = next(_draws(sets, np.random.default_rng(seed)))
        some = sets if chosen is None else sets[chosen]
        own = np.ones(len(sets)) if weights is None else weights
        each = np.repeat(own if chosen is None else own[chosen], some.sizes)
        return replace(self, level=_level_of(self.scores(some, device), np.asarray(some.targets) == 0, each))

    def _tensors(self, sets: Sets, weights: Floats | None, device: torch.device) -> LabelledTensors:
        values, mask = self._padded(sets)
        ranks = sets.pad(np.asarray(sets.targets, dtype=np.float64))
        ranks = np.where(ranks < 0, np.nan, ranks)
        if self.outside:  # chosen where nothing else is
            nothing = np.where((ranks == 0).any(1), 1.0, 0.0)
            ranks = _behind(ranks[..., None], sets.sizes, nothing[:, None])[..., 0]
        ranks = np.where(mask, ranks, np.nan).astype(np.float32)
        return LabelledTensors(
            self.kind,
            torch.as_tensor(values, device=device),
            torch.as_tensor(ranks, device=device),
            None if mask.all() else torch.as_tensor(mask, device=device),
            None if weights is None else torch.as_tensor(weights, dtype=torch.float32, device=device),
        )

    def scores(self, sets: Sets, device: str = "auto") -> Floats:
        """Return the utility of each object, packed."""
        came = (sets.n_features, sets.n_situation_features)
        if came != self.n_features:
            raise ShapeError(
                "Sets need the features of those that were read, {} of objects and {} of situations; got {} and "
                "{}.".format(*self.n_features, *came)
            )
        where = find_device(device)
        net = (pretrained_net() if self.net is None else self.net).to(where).eval()
        pages, more = (
            [Page(_moved(page.knowledge, where), page.memory.to(where)) for page in some]
            for some in (self.pages, self.more)
        )
        found = np.empty(len(sets.objects))
        columns = sum(self.n_features) + self.outside
        with torch.no_grad():
            for chosen, rows in sets.by_size():
                step = max(1, CELLS // (columns * rows.shape[1]))
                for start in range(0, len(chosen), step):
                    some = chosen[start : start + step]
                    values, _ = self._padded(sets[some])
                    given = torch.as_tensor(values, device=where)
                    own = self._scored(net, pages, given)
                    if self.products is not None:
                        other = self._scored(net, more, with_products(given, self.products.to(where)))
                        own = (1 - self.mix) * own + self.mix * other
                    found[rows[start : start + step]] = own.cpu().numpy()
        return found + self.level

    def _scored(self, net: PriorFittedNet, pages: list[Page], values: Tensor) -> Tensor:
        """Return utilities (n, m) of sets of m objects each, in double precision."""
        every = []
        for page in pages:
            seen = page.knowledge.see(values[None], None)
            utilities = net.score(page.memory, seen, TASK_KINDS.index(self.kind))[0].double()
            if self.outside:
                utilities = (utilities - utilities[:, -1:])[:, :-1]
            elif self.kind != "subset":
                utilities = utilities - utilities.mean(1, keepdim=True)
            every.append(utilities)
        return torch.stack(every).mean(0)

    def verdict(self) -> InstantVerdict:
        """Return what the net believes of the context."""
        return verdict_of([page.memory.verdict for page in self.pages])

    def describe(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what a model file holds of it: the JSON content, and the tensors."""
        return describe_reading(self)

    @classmethod
    def from_file(cls, content: Any, tensors: dict[str, Tensor]) -> "Reading":
        """Make it again, if all that a file says of it can be."""
        return reading_from(cls, content, tensors)

    def _padded(self, sets: Sets) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return standardised columns (n, m, d), those of the situation included, and the mask."""
        shown = sets.with_features(self.standardise(sets.objects, 0), None)
        values, _, mask = shown.to_padded()
        if sets.situation is not None:
            shared = self.standardise(sets.situation, 1)
            shared = np.broadcast_to(shared[:, None], (*mask.shape, shared.shape[1]))
            values = np.concatenate([values, shared], axis=2)
        values = values.astype(np.float32)
        if self.outside:
            flag = np.zeros((*mask.shape, 1), dtype=np.float32)
            values = np.concatenate([values, flag], axis=2)
            nothing = np.zeros((len(values), 1, values.shape[2]), dtype=np.float32)
            nothing[..., -1] = 1.0
            values = _behind(values, sets.sizes, nothing)
            mask = np.concatenate([mask, np.ones((len(mask), 1), dtype=bool)], axis=1)
            mask = np.sort(mask, axis=1)[:, ::-1].copy()
        return values, mask


def _centred_on_medians(sets: Sets, weights: Floats | None) -> Standardizer:
    """Bring columns to a size that float32 holds well, whatever a stray cell among them is.

    Their centres are medians, their units the widths of all values but the outermost; standard deviations, where
    hardly any values differ. What is standardised for the net comes later, in `Scales`.
    """
    found = Standardizer.fit(lambda: iter([sets.objects]), sets.situation, weights=weights, sizes=sets.sizes)
    means, scales = [], []
    for values, mean, scale in zip((sets.objects, sets.situation), found.means, found.scales, strict=False):
        assert values is not None
        low, middle, high = np.quantile(values, (ENDS, 0.5, 1 - ENDS), axis=0, method="nearest")
        width = (high - low) / 2
        plain = (width <= 0) | np.isinf(scale) | ~np.isfinite(width)
        means.append(np.where(plain, mean, middle).astype(np.float64))
        scales.append(np.where(plain, scale, width).astype(np.float64))
    return Standardizer(tuple(means), tuple(scales))


def _page(net: PriorFittedNet, table: LabelledTensors) -> Page:
    """Let the net read labelled sets."""
    values, ranks = table.values[None], table.ranks[None]
    mask = None if table.mask is None else table.mask[None]
    weight = None if table.weights is None else table.weights[None]
    knowledge, seen = learn(values, ranks, mask, weight)
    memory, _ = net.read(
        seen,
        label_views(ranks, mask, table.kind == "subset"),
        knowledge.columns,
        knowledge.table,
        TASK_KINDS.index(table.kind),
        None if weight is None else weight.log(),
    )
    return Page(knowledge, _without_padding(memory, mask, weight is not None))


def _with(table: LabelledTensors, products: Tensor) -> LabelledTensors:
    return replace(table, values=with_products(table.values, products.to(table.values.device)))


def _level_of(logits: Floats, chosen: NDArray[np.bool_], weights: Floats) -> float:
    """Return the intercept of highest likelihood beside given logits, half a choice and half a refusal added."""
    share = (weights @ chosen + 0.5) / (weights.sum() + 1)
    ends = logit(share) - logits.max() - 1, logit(share) - logits.min() + 1
    return float(brentq(lambda level: weights @ (expit(logits + level) - share), *ends))


def _kind_of(task: Task) -> str:
    return "choice" if isinstance(task, Choice) else "subset" if isinstance(task, SubsetChoice) else "ranking"


def _behind(values: NDArray[Any], sizes: NDArray[np.int64], last: NDArray[Any]) -> NDArray[Any]:
    """Put one object more behind the last of each set, (n, m, any) to (n, m + 1, any)."""
    wide = np.concatenate([values, np.zeros_like(values[:, :1])], axis=1)
    wide[np.arange(len(sizes)), sizes] = last.reshape(len(sizes), *values.shape[2:])
    return wide


def _draws(sets: Sets, random: np.random.Generator) -> Iterator[NDArray[np.int64] | None]:
    """Return which sets are read together: all, or some at random, several times."""
    if len(sets.objects) <= MOST_OBJECTS:
        yield None
        return
    for _ in range(DRAWS):
        order = random.permutation(len(sets))
        count = int(np.searchsorted(np.cumsum(sets.sizes[order]), MOST_OBJECTS, side="right"))
        yield np.sort(order[: max(1, count)])


def _without_padding(memory: Memory, mask: Tensor | None, weighted: bool) -> Memory:
    """Drop what stands for no object; keep the weights, where there are such."""
    if mask is None:
        return memory
    assert memory.bias is not None
    real = mask.flatten()
    return Memory(
        memory.facts,
        [state[:, real] for state in memory.states],
        memory.bias[:, real] if weighted else None,
        memory.gates,
        memory.verdict,
    )


def _moved(knowledge: Knowledge, device: torch.device) -> Knowledge:
    def move(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(device)
        return type(value)(**{f.name: move(getattr(value, f.name)) for f in fields(value)})

    moved: Knowledge = move(knowledge)
    return moved
