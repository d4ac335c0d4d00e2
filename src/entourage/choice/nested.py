"""Nested logit: alternatives of a nest are closer substitutes."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from entourage.choice.base import ChoiceModel
from entourage.choice.columns import place_of, spans_of
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_choice, check_number

__all__ = ["NestStructure", "NestedLogit"]


@dataclass(frozen=True, eq=False)
class _Nests(Packed):
    """Rows, one for each nest that an object is in, in the order of sets and, within each, of nests."""

    before: Index  # how many objects there are before each set, and in all, (n + 1,)
    objects: Index  # the object of each row, (R,)
    by_object: Index  # the rows in the order of objects, (R,)
    cell: Index  # which alternative in which nest each row is, (R,)
    heads: Index  # the first row of each group, (G,): a group is the rows of one nest in one set
    nest: Index  # of each group, (G,)
    group: Index  # of each row, (R,)
    groups: Packed  # the groups of each set

    def part(self, start: int, stop: int) -> Self:
        row, group = int(self.offsets[start]), int(self.groups.offsets[start])
        rows, groups = slice(row, self.offsets[stop]), slice(group, self.groups.offsets[stop])
        return replace(
            super().part(start, stop),
            before=self.before[start : stop + 1] - self.before[start],
            objects=self.objects[rows] - self.before[start],
            by_object=self.by_object[rows] - row,
            cell=self.cell[rows],
            heads=self.heads[groups] - row,
            nest=self.nest[groups],
            group=self.group[rows] - group,
            groups=self.groups.part(start, stop),
        )

    def chosen_in(self, rows: Index, start: int, stop: int) -> Index:
        return np.asarray(rows[start:stop] - self.before[start])


@dataclass(frozen=True, eq=False)
class NestStructure:
    """What a fitted model is made of, with A alternatives in B nests; one that is in no nest given has its own.

    Attributes
    ----------
    id_columns : the places, among the columns that are seen, that say which alternative an object is
    text : whether these are an indicator of each level, of the ids 1, 2, ...; else there is one, the id
    coefficients : of the other columns, which are taken less the mean of their set
    intercepts : of each alternative, (A,)
    member : whether an alternative is in a nest, (A, B)
    log_shares : the logarithm of its share in the nest, (A, B); 0 where it is not in it
    dissimilarities : λ of each nest, (B,)
    """

    id_columns: tuple[int, ...]
    text: bool
    coefficients: Floats
    intercepts: Floats
    member: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    log_shares: Floats
    dissimilarities: Floats


class NestedLogit(ChoiceModel):
    r"""Choose a nest, then one of its alternatives (McFadden 1978).

    With the inclusive value :math:`I_B = \log \sum_{j \in B} e^{u_j / λ_B}` over the available alternatives of nest B,

    .. math::
        P_i = \frac{e^{u_i / λ_B}}{e^{I_B}} \cdot \frac{e^{λ_B I_B}}{\sum_C e^{λ_C I_C}}, \quad u_i = a_i + b^\top x_i.

    At λ = 1 this is the multinomial logit. λ may be any number above 0; above 1 the model contradicts utility
    maximisation for some sets, and ``outside_`` names these nests.

    Parameters
    ----------
    nests : list of lists of int or str
        The ids of the alternatives in each nest. Those in none are a nest each. A nest of one has λ = 1.
    alternative : int or str
        The column that holds the id of the alternative, a whole number; the other columns are features. Of a table, the
        name of a column of whole numbers or of text, whose levels are then the ids.
    intercepts : bool
        Whether each alternative has an intercept; that of the smallest id, or of the one that ``base`` names, is 0.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`). The other
        standings differ from the number by a constant of the set, which cancels.
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`; of the column of alternatives, that whose
        intercept is 0.

    Attributes
    ----------
    dissimilarities_ : λ of each nest given
    outside_ : the places of nests with λ above 1
    alternatives_ : the ids, ascending

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import NestedLogit
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([np.tile([1, 2, 3], (3000, 1)), rng.normal(size=(3000, 3))], axis=2)  # train, bus, blue bus
    >>> shared = rng.gumbel(size=(3000, 1)) * [0, 1, 1]  # the buses please and displease together
    >>> y = (X[..., 1] + shared + rng.gumbel(size=(3000, 3))).argmax(1)
    >>> bool(NestedLogit([[2, 3]]).fit(X, y).dissimilarities_[0] < 0.9)
    True
    """

    has_logsum = True

    def __init__(
        self,
        nests: Sequence[Sequence[int | str]],
        *,
        alternative: int | str = 0,
        intercepts: bool = True,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
    ) -> None:
        self.nests = nests
        self.alternative = alternative
        self.intercepts = intercepts
        self.relative = relative
        self.base = base

    def linear_place(self, column: int) -> int | None:
        """Return where ``coef_`` has the coefficient of a feature; None for a base level or the id."""
        place = self._place_seen(column)
        if place is None or place in self._id_columns:
            return None
        before = len(self.alternatives_) - 1 if self.intercepts else 0
        return before + place - sum(own < place for own in self._id_columns)

    def is_id(self, column: int) -> bool:
        """Whether a feature, by its place among all, says which alternative an object is."""
        place = self._place_seen(column)
        return place is not None and place in self._id_columns

    def ids_of(self, sets: Sets) -> Floats:
        """Return the id of each object, (N,), as ``alternatives_`` has it: of text, the number of its level from 1."""
        self._check_fitted()
        return self._ids(self._seen(sets))

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        if not isinstance(self.alternative, str):
            check_number("alternative", self.alternative, least=0, whole=True)
        try:
            ids = [i for nest in self.nests for i in nest]
            if any(isinstance(nest, str) for nest in self.nests):
                raise TypeError
        except TypeError:
            raise ParameterError(
                f"nests is a list of lists of ids, [[1, 2], [3, 4]] say; got {self.nests!r}."
            ) from None
        if any(len(nest) == 0 for nest in self.nests):
            raise ParameterError("A nest is empty; give it the ids of its alternatives, or leave it out.")
        if not self.intercepts and self._base_name is not None:
            raise ParameterError(
                f"base names {self.alternative!r}, the column of alternatives, but intercepts=False leaves out their "
                "intercepts. Leave one of the two out."
            )
        self._check_overlap([i for i, count in Counter(ids).items() if count > 1])

    def _check_overlap(self, twice: Sequence[int | str]) -> None:
        if twice:
            raise ParameterError(
                f"Alternative {twice[0]} is in two nests; an alternative is in one at most. In CrossNestedLogit it may "
                "be in several."
            )

    @property
    def dissimilarities_(self) -> Floats:
        """Return λ of each nest given."""
        self._check_fitted()
        return self._lambdas(self.theta_)[: len(self.nests)]

    def structure(self) -> NestStructure:
        """Return what the fitted model is made of."""
        self._check_fitted()
        theta, count = self.theta_, len(self.alternatives_)
        first = count - 1 if self.intercepts else 0
        lambdas = self._lambdas(theta)
        member = np.zeros((count, len(lambdas)), dtype=bool)
        shares = np.zeros((count, len(lambdas)))
        member[self._cell_code, self._cell_nest] = True
        shares[self._cell_code, self._cell_nest] = self._allocations(theta)[0]
        return NestStructure(
            id_columns=tuple(self._id_columns),
            text=self._levels is not None,
            coefficients=theta[first : first + self.n_columns - self.n_id_columns],
            intercepts=np.append(0.0, theta[:first]) if self.intercepts else np.zeros(count),
            member=member,
            log_shares=shares,
            dissimilarities=lambdas,
        )

    @property
    def outside_(self) -> list[int]:
        """Return the places of nests with λ above 1."""
        return [i for i, value in enumerate(self.dissimilarities_) if value > 1]

    # --- alternatives and nests -------------------------------------------------------------------

    @property
    def _base_name(self) -> str | None:
        """The alternative whose intercept is 0, where ``base`` names it."""
        named = isinstance(self.base, Mapping) and isinstance(self.alternative, str)
        given = dict(self.base or {}).get(str(self.alternative)) if named else None
        return None if given is None else str(given)

    def _without_base(self) -> tuple[str, ...]:
        return (self.alternative,) if isinstance(self.alternative, str) else ()

    def find_ids(self, encoder: Any, names: Sequence[str]) -> None:
        """Find the columns that say which alternative an object is, given the names of the columns that are seen."""
        self._levels: list[str] | None = None
        if not isinstance(self.alternative, str):
            width = len(names) + len(self.dropped_)
            if self.alternative >= width:
                raise DataError(
                    f"alternative={self.alternative} is the column of ids, but objects have {width} "
                    "features, counted from 0."
                )
            self._id_columns = [place_of(self.alternative, names, self.dropped_, width, "alternative")]
            return
        if encoder is None:
            raise ParameterError(
                f"alternative={self.alternative!r} names a column, but there is no table. Give its place."
            )
        spans = spans_of(encoder)
        column, _ = spans[check_choice("alternative", self.alternative, spans)]
        self._id_columns = [list(names).index(name) for name in column.names]
        if column.kind == "category":
            self._levels = list(column.levels)
            if column.rest:
                raise DataError(
                    f"Column {self.alternative!r} has more than {len(column.levels)} alternatives, too many for nests. "
                    "Number them."
                )

    @property
    def n_id_columns(self) -> int:
        """How many columns say which alternative an object is."""
        return len(self._id_columns)

    def _ids(self, sets: Sets) -> Floats:
        """Return the id of each object: a number, or from 1 the place of its level."""
        given = sets.objects[:, self._id_columns]
        if self._levels is None:
            return np.asarray(given[:, 0])
        known = given.sum(1) == 1
        if not known.all():
            i = int(np.searchsorted(sets.offsets, int(np.argmin(known)), side="right")) - 1
            raise DataError(
                f"Column {self.alternative!r} says which alternative an object is; in set {i} it is missing or one "
                f"that was not learnt from: {', '.join(self._levels)}."
            )
        return np.asarray(given @ np.arange(1.0, len(self._levels) + 1))

    def number_of(self, one: int | str) -> float:
        """Return the id of an alternative of ``nests``."""
        if self._levels is None:
            if isinstance(one, str):
                raise ParameterError(
                    f"nests names {one!r}, but the column of alternatives holds numbers. Give these."
                )
            return float(one)
        return 1.0 + self._levels.index(check_choice("nests", str(one), self._levels))

    def _called(self, one: float) -> str:
        return f"{one:g}" if self._levels is None else self._levels[int(one) - 1]

    def _prepare(self, sets: Sets) -> None:
        self.find_ids(sets.encoder, self._names_of(sets))
        self.alternatives_ = np.unique(self._ids(sets)).astype(np.float64)
        strange = self.alternatives_[self.alternatives_ != np.round(self.alternatives_)]
        if len(strange):
            raise DataError(
                f"Column {self.alternative} should hold ids, whole numbers; there is {strange[0]:g}. "
                "Name the column of ids with alternative=."
            )
        numbers = [self.number_of(i) for nest in self.nests for i in nest]
        unknown = sorted(i for i in numbers if i not in self.alternatives_)
        if unknown:
            raise DataError(
                f"Alternative {self._called(unknown[0])} of nests is in no set. Leave it out, or check column "
                f"{self.alternative}."
            )
        self.allocate()

    def allocate(self) -> None:
        """Find which alternatives are in which nests and which have an intercept, given ``alternatives_``."""
        base = 0
        if self._base_name is not None and self._levels is not None:
            level = check_choice(f"base of {self.alternative!r}", self._base_name, self._levels)
            found = np.flatnonzero(self.alternatives_ == 1.0 + self._levels.index(level))
            if len(found) == 0:
                raise DataError(f"The base {level!r} of {self.alternative!r} is in no set. Choose another.")
            base = int(found[0])
        self._with_intercept = [code for code in range(len(self.alternatives_)) if code != base]
        cells = [
            (int(np.searchsorted(self.alternatives_, self.number_of(i))), k)
            for k, nest in enumerate(self.nests)
            for i in nest
        ]
        alone = [code for code in range(len(self.alternatives_)) if code not in {c for c, _ in cells}]
        cells += [(code, len(self.nests) + k) for k, code in enumerate(alone)]
        table = np.array(sorted(cells))
        self._cell_code, self._cell_nest = table[:, 0], table[:, 1]
        self.nest_of_ = self._cell_nest[np.unique(self._cell_code, return_index=True)[1]]  # the first of each
        self.estimated_ = np.flatnonzero(np.bincount(self._cell_nest) > 1)  # the nests whose λ is not 1

    def _design(self, sets: Sets) -> _Nests:
        ids = self._ids(sets)
        known = np.isin(ids, self.alternatives_)
        if not known.all():
            raise DataError(
                f"Alternative {ids[int(np.argmin(known))]:g} was not among those learnt from: "
                f"{', '.join(map(self._called, self.alternatives_))}. Learn from sets that have it."
            )
        code = np.searchsorted(self.alternatives_, ids)
        counts = np.bincount(self._cell_code)
        first = np.cumsum(counts) - counts
        objects = np.repeat(np.arange(len(code)), counts[code])
        begin = np.cumsum(counts[code]) - counts[code]
        cell = first[code][objects] + np.arange(len(objects)) - begin[objects]
        owner = np.repeat(np.arange(len(sets)), sets.sizes)[objects]
        order = np.lexsort((self._cell_nest[cell], owner))
        objects, cell, owner = objects[order], cell[order], owner[order]
        nest = self._cell_nest[cell]
        begins = np.append(True, (np.diff(nest) != 0) | (np.diff(owner) != 0))
        heads = np.flatnonzero(begins)
        numbers = [i for i in range(sets.n_features) if i not in self._id_columns]
        own: list[int] = self._with_intercept if self.intercepts else []
        features = np.empty((len(objects), len(own) + len(numbers)))
        for k, one in enumerate(own):
            features[:, k] = code[objects] == one
        centred = Packed.centred(sets).features
        for k, column in enumerate(numbers):
            features[:, len(own) + k] = centred[objects, column]
        in_sets = np.bincount(owner[heads], minlength=len(sets))
        groups = Packed(np.zeros((len(heads), 0)), np.append(0, np.cumsum(in_sets)))
        offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=len(sets))))
        group = np.cumsum(begins) - 1
        by_object = np.argsort(objects, kind="stable")
        return _Nests(
            features, offsets, sets.offsets, objects, by_object, cell, heads, nest[heads], group, groups
        )

    # --- the model --------------------------------------------------------------------------------

    @property
    def n_allocations(self) -> int:
        """How many parameters share alternatives among nests: none."""
        return 0

    def _allocations(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the logarithm of the share of an alternative in a nest, (C,), and its derivatives, (C, a)."""
        return np.zeros(len(self._cell_code)), np.zeros((len(self._cell_code), 0))

    def _lambdas(self, theta: Floats) -> Floats:
        """Return λ of every nest, those of one alternative included."""
        lambdas = np.ones(int(self._cell_nest.max()) + 1)
        lambdas[self.estimated_] = np.exp(theta[len(theta) - len(self.estimated_) :])
        return lambdas

    def _start(self, packed: Packed) -> Floats:
        return np.zeros(packed.features.shape[1] + self.n_allocations + len(self.estimated_))

    def _steps(self, packed: Packed) -> Floats:
        others = np.ones(self.n_allocations + len(self.estimated_))
        return np.append(1 / packed.spread(), others)

    def _names(self, features: Sequence[str]) -> list[str]:
        numbers = [name for i, name in enumerate(features) if i not in self._id_columns]
        own = self.alternatives_[self._with_intercept if self.intercepts else []]
        called = [f"alternative {self._called(i)}" for i in own]
        return [*called, *numbers, *self._shares(), *(f"λ of nest {i}" for i in self.estimated_)]

    def _shares(self) -> list[str]:
        """Name the shares of alternatives in nests that are estimated."""
        return []

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        linear = len(theta) - len(self.estimated_)
        values = np.append(theta[:linear], np.exp(theta[linear:]))
        return values, np.diag(np.append(np.ones(linear), values[linear:]))

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        return self._of_objects(packed, self._parts(theta, packed)[-1])

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        nests = self._design(sets)
        inclusive = self._parts(theta, nests)[1]
        found = log_sum_exp(self._lambdas(theta)[nests.nest] * inclusive, nests.groups.starts)
        shared = np.delete(Packed.shared(sets), self._id_columns, axis=1)  # features are centred in `_design`
        end = nests.features.shape[1]
        return np.asarray(found + shared @ theta[end - shared.shape[1] : end])

    @staticmethod
    def _of_objects(nests: _Nests, log_p: Floats) -> Floats:
        """Sum the probabilities of the rows of each object: (R,) to (N,)."""
        if len(log_p) == nests.before[-1]:  # one row each
            return np.asarray(log_p[nests.by_object])
        counts = np.bincount(nests.objects)
        return log_sum_exp(log_p[nests.by_object], np.cumsum(counts) - counts)

    def _parts(self, theta: Floats, nests: _Nests) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return utilities with shares (R,), inclusive values (G,), log-probabilities: within, of nests, of rows."""
        scale = self._lambdas(theta)[nests.nest]
        u = nests.features @ theta[: nests.features.shape[1]] + self._allocations(theta)[0][nests.cell]
        scaled = u / scale[nests.group]
        inclusive = log_sum_exp(scaled, nests.heads)
        within = scaled - inclusive[nests.group]
        between = nests.groups.log_softmax(scale * inclusive)
        return u, inclusive, within, between, within + between[nests.group]

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        u, inclusive, within, between, log_p = self._parts(theta, packed)
        total = self._of_objects(packed, log_p)
        is_chosen = np.zeros(len(total), dtype=bool)
        is_chosen[chosen] = True
        rows = np.flatnonzero(is_chosen[packed.objects])  # of what was chosen, one for each of its nests
        heads = np.flatnonzero(np.append(True, np.diff(packed.objects[rows]) != 0))
        belief = np.exp(log_p[rows] - total[packed.objects[rows]])  # in each of these
        x = packed.features
        if self.n_allocations:
            x = np.concatenate([x, self._allocations(theta)[1][packed.cell]], axis=1)
        g, lambdas = packed.group[rows], self._lambdas(theta)
        scale = lambdas[packed.nest]
        share, nest_share = np.exp(within), np.exp(between)
        x_mean = np.add.reduceat(share[:, None] * x, packed.heads, axis=0)  # (G, q), over each nest
        u_mean = np.add.reduceat(share * u, packed.heads)
        own = scale[g][:, None]
        felt = belief[:, None] * (x[rows] / own + (1 - 1 / own) * x_mean[g])
        linear = np.add.reduceat(felt, heads, axis=0) - packed.groups.sum(nest_share[:, None] * x_mean)
        gain = inclusive - u_mean / scale  # d(λ I) / dλ
        by_nest = np.zeros((len(chosen), len(lambdas)))
        by_nest[packed.groups.owner, packed.nest] = -nest_share * gain
        by_nest[packed.groups.owner[g], packed.nest[g]] += belief * (
            gain[g] + (u_mean[g] - u[rows]) / scale[g] ** 2
        )
        slopes = (by_nest * lambdas)[:, self.estimated_]  # by log λ
        return total[chosen], np.concatenate([linear, slopes], axis=1)

    def _notes(self) -> list[str]:
        found = []
        for i, value, error in self._tests():
            z = (value - 1) / error if error > 0 else np.nan
            found.append(f"λ of nest {i} against 1: z = {z:.2f}, p = {2 * ndtr(-abs(z)):.3g} (Wald).")
        return found + [f"λ of nest {i} is above 1: no utility maximisation there." for i in self.outside_]

    def _tests(self) -> list[tuple[int, float, float]]:
        """Return each nest whose λ is estimated, with the estimate and its standard error, as z values have it."""
        k = len(self.coef_) - len(self.estimated_)
        errors = self.robust_standard_errors_ if self.clustered else self.standard_errors_
        return list(zip(self.estimated_.tolist(), self.coef_[k:].tolist(), errors[k:].tolist(), strict=True))

    def _warn(self) -> None:
        super()._warn()
        k = len(self.estimated_)
        far = (self.coef_ - 1.96 * self.standard_errors_)[len(self.coef_) - k :] > 1
        if far.any():
            warnings.warn(
                f"λ of nest {self.estimated_[int(np.argmax(far))]} is clearly above 1, which contradicts utility "
                "maximisation: its alternatives are less similar than others. Change the nests.",
                UserWarning,
                stacklevel=3,
            )
