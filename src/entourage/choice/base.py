"""What choice models share: maximum likelihood, standard errors, and a table of estimates."""

import copy
import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from entourage.choice.batches import Batches
from entourage.choice.columns import base_columns
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp, rows_at_once
from entourage.choice.optimise import inverse, maximise
from entourage.choice.summary import table
from entourage.data.encoder import TableColumns, TableEncoder
from entourage.data.grouping import group_labels
from entourage.data.relative import LINEAR_STANDINGS
from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError, ParameterError, ShapeError, check_number
from entourage.estimators.base import OneChoicePredictor
from entourage.estimators.inputs import given_sets
from entourage.estimators.model_file import attributes_of, save_described

__all__ = ["ChoiceModel"]


class ChoiceModel(OneChoicePredictor):
    """A parametric model of discrete choice: one object of each set is chosen.

    A subclass says what its parameters are (``_start``, ``_steps``, ``_names``), and what a set adds to the
    log-likelihood (``_contributions``). The rest is here.

    Attributes
    ----------
    coef_ : the estimates, in the order of ``parameter_names_``
    standard_errors_ : by the inverse of minus the Hessian; NaN where a parameter is not identified
    robust_standard_errors_ : by the sandwich estimator, valid also under misspecification; with ``groups`` clustered,
        valid also where the sets of a group are not independent (times G / (G - 1) for G groups; they need many
        groups)
    z_values_ : estimates over their standard errors; over the robust ones where these are clustered
    covariance_ : the covariance of the estimates, by the Hessian
    log_likelihood_, null_log_likelihood_ : of the data; null = all objects of a set are equally likely
    rho_squared_ : 1 less the ratio of the two (McFadden)
    n_parameters_ : how many parameters are identified; with a penalty, the effective number
    aic_, bic_ : information criteria, smaller is better; that of a panel counts people, others count sets
    n_sets_, n_groups_ : how many sets were seen, and how many groups of them; without ``groups``, as many
    dropped_ : the columns of base levels: those of a table's categories whose coefficient is 0
    open_ : which parameters are not identified, by directions in which the likelihood is flat
    converged_ : whether the maximum of the likelihood was found
    """

    _max_iter = 500
    standings = LINEAR_STANDINGS
    dropped_: Index = np.zeros(0, dtype=np.int64)
    uses_situation = False  # whether features of the situation play a part
    drops_situation = False  # whether features of the situation are left out rather than refused

    def fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        **table: Unpack[TableColumns],
    ) -> Self:
        """Estimate from sets and the place of the chosen object in each, or rows of 0 and 1.

        A weight counts as so many sets, once weights are scaled to mean 1. ``groups`` identifies the decision maker,
        one label a set: robust standard errors are then clustered by person, and in `MixedLogit` a person's choices
        share their coefficients. By default every set has a decision maker of its own. Of a table, both may be names
        of columns; see :meth:`entourage.Ranker.fit`.
        """
        self.check_parameters()
        named = groups
        sets, given, groups = self._check_training_data(X, y, situation, sample_weight, groups, table)
        of_sets = np.ones(len(sets)) if given is None else given
        given_sets = sets
        self._choose_base(sets)
        sets = self._learn_relative(self._objects_alone(sets))
        if groups is not None and isinstance(named, str):
            groups = np.array(group_labels(X, named))[np.asarray(groups)]
        people = _people(groups, len(sets))
        weights = _weights_of_people(of_sets, people) if self._panel else of_sets
        self._prepare(sets)
        packed = self._learn_from(sets, people)
        chosen = np.flatnonzero(sets.targets == 0)
        steps, penalty = self._steps(packed), self._penalty(packed)
        data = Batches(packed, chosen, weights, self._rows_at_once(len(steps)))

        def slope(theta: Floats) -> tuple[float, Floats]:
            value, gradient = data.total(self._contributions, theta)
            return value - 0.5 * float(penalty @ theta**2), gradient - penalty * theta

        def bend(theta: Floats) -> Floats:
            if self._closed_form:
                return data.information(self._information, theta) + np.diag(penalty)
            return data.information_by_differences(self._contributions, theta, steps) + np.diag(penalty)

        begin = self._begin(data)
        peak = maximise(slope, bend, begin, steps, concave=self._concave, max_iter=self._max_iter)
        self.theta_, self.converged_ = self._in_order(peak.theta, packed), peak.converged
        information = peak.information if np.array_equal(self.theta_, peak.theta) else bend(self.theta_)
        self._learnt_from(given_sets)
        self.null_log_likelihood_ = -float(of_sets @ np.log(sets.sizes))
        self.n_sets_, self.n_groups_ = len(sets), int(people.max()) + 1
        self.log_likelihood_, meat = data.outer_products(
            self._contributions, self.theta_, people if self.clustered else None
        )
        self._set_results(information, penalty, meat, steps)
        self._know_people(groups, data)
        self._warn()
        return self

    def summary(self, feature_names: Sequence[str] | None = None) -> str:
        """Return the estimates as a plain table, with the given names of the features."""
        self._check_fitted()
        if feature_names is not None and len(feature_names) != self.n_features_in_:
            raise ShapeError(
                f"This model has {self.n_features_in_} features; got {len(feature_names)} names."
            )
        return table(self, self._names(self._feature_names(feature_names)), self._notes())

    def logsum(self, X: AnySets) -> Floats:
        """Return the expected maximal utility of each set, (n,), up to a constant that all sets share.

        Only for models in which the utility of an object is the same in every set (``has_logsum``).
        """
        self._check_fitted()
        problem = self.logsum_problem
        if problem is not None:
            raise ParameterError(f"There is no logsum. {problem}")
        sets = given_sets(self, X).sets
        self._check_features(sets)
        return self._logsum(self.theta_, self._seen(sets))

    @property
    def logsum_problem(self) -> str | None:
        """Why the logsums of sets can't be compared, with what to do; None where they can."""
        if self.has_logsum and self.relative_ is None:
            return None
        return (
            "The logsum needs utilities that are the same in every set; those of this model depend on the other "
            "objects of the set. Fit MultinomialLogit, NestedLogit, CrossNestedLogit, MixedLogit or LatentClassLogit "
            "without relative."
        )

    def drawn(self, count: int, random_state: int = 0) -> list[Self]:
        """Return models whose parameters are drawn from the asymptotic normal distribution of the estimates.

        Its covariance is that by the Hessian; where robust standard errors are clustered, scaled to these. In
        directions that are not identified, parameters stay as they are.

        Examples
        --------
        >>> import numpy as np
        >>> from entourage.choice import MultinomialLogit
        >>> X = np.random.default_rng(0).normal(size=(500, 3, 1))
        >>> y = (X[..., 0] + np.random.default_rng(1).gumbel(size=(500, 3))).argmax(1)
        >>> model = MultinomialLogit().fit(X, y)
        >>> spread = np.std([one.coef_[0] for one in model.drawn(500)])
        >>> bool(abs(spread / model.standard_errors_[0] - 1) < 0.1)
        True
        """
        self._check_fitted()
        check_number("count", count, least=1, whole=True)
        covariance = self.covariance_
        if self.clustered:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.nan_to_num(
                    self.robust_standard_errors_ / self.standard_errors_, nan=0.0, posinf=0.0
                )
            covariance = covariance * ratio[:, None] * ratio
        back = np.linalg.pinv(self._reported(self.theta_)[1])  # from what is reported to the parameters
        covariance = back @ covariance @ back.T
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normals = np.random.default_rng(random_state).normal(size=(count, len(root)))
        found = []
        for theta in self.theta_ + normals @ root.T:
            one = copy.copy(self)
            one.theta_ = theta
            one.coef_ = one._reported(theta)[0]
            found.append(one)
        return found

    def linear_place(self, column: int) -> int | None:
        """Return where ``coef_`` has the one coefficient of a feature, by the place of the feature among all.

        None where there is none: of base levels (whose coefficient is 0), of random or regretted features, and in
        models whose coefficients differ between classes or depend on the set.
        """
        return None

    def _place_seen(self, column: int) -> int | None:
        """Return the place of a feature among those that the model sees; None for a base level."""
        return None if column in self.dropped_ else column - int((self.dropped_ < column).sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`entourage.load` reads."""
        self._check_fitted()
        save_described(self, path)

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file holds of the model: the JSON content, and the tensors."""
        return attributes_of(self)

    @classmethod
    def from_file(cls, content: dict[str, Any], tensors: dict[str, Any]) -> "ChoiceModel":
        """Restore the model that a file holds."""
        from entourage.choice.kept import remake

        return remake(cls, content, tensors)

    # --- what a model says of itself --------------------------------------------------------------

    has_logsum = False  # whether the utility of an object is the same in every set
    _concave = False
    _closed_form = False  # whether `_information` is there; otherwise it is found by differences
    _panel = False  # whether the choices of a person are one contribution to the likelihood

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""

    def _objects_alone(self, sets: Sets) -> Sets:
        """Return sets without features of the situation, or say that there are some."""
        if sets.situation is None:
            return sets
        if self.drops_situation:
            return sets.with_features(sets.objects, None)
        raise DataError(
            "Situation features are the same for all objects of a set, and cancel in a linear utility. "
            "Multiply them with features of the objects (one-hot alternatives, say) and pass those."
        )

    def _choose_base(self, sets: Sets) -> None:
        """Find the levels of categories that are left out; a penalty identifies them all."""
        self.__dict__.pop("dropped_", None)  # of an earlier fit
        coded = [] if sets.encoder is None else [c.name for c in sets.encoder.columns if c.kind == "code"]
        if coded:
            raise DataError(
                f"Column {coded[0]!r} was encoded as codes of its levels, for nets; a logit would take them for "
                "numbers. Give the table to fit itself, or encode it without codes."
            )
        default = getattr(self, "l2", 0.0) == 0
        dropped = base_columns(getattr(self, "base", None), sets, default, self._without_base())
        if len(dropped):
            self.dropped_ = dropped

    def _without_base(self) -> tuple[str, ...]:
        """Return the categories that are no features."""
        return ()

    def _prepare(self, sets: Sets) -> None:
        """Note what must be known of the data that are learnt from."""

    def _design(self, sets: Sets) -> Packed:
        """Bring sets into the form the model works on; say what is wrong with them."""
        return Packed.of(sets)

    def _learn_from(self, sets: Sets, people: Index) -> Packed:
        """Do what `_design` does, given the decision maker of each set, (n,)."""
        return self._design(sets)

    @abstractmethod
    def _start(self, packed: Packed) -> Floats:
        """Return where to begin, (p,)."""

    def _begin(self, data: Batches) -> Floats:
        """Return where to begin, (p,), given what was chosen."""
        return self._start(data.packed)

    def _in_order(self, theta: Floats, packed: Packed) -> Floats:
        """Return the same maximum, written in the one way that is reported."""
        return theta

    def _know_people(self, groups: Any, data: Batches) -> None:
        """Note what is known of each decision maker, where ``groups`` named them."""

    @abstractmethod
    def _steps(self, packed: Packed) -> Floats:
        """Return the typical size of each parameter, (p,)."""

    @abstractmethod
    def _names(self, features: Sequence[str]) -> list[str]:
        """Name what is reported, one a number of ``coef_``."""

    @abstractmethod
    def _utilities(self, theta: Floats, packed: Packed) -> Floats:
        """Return what the softmax makes probabilities of, (N,)."""

    @abstractmethod
    def _contributions(self, theta: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
        """Return the log-likelihood of each set, (n,), and its gradient, (n, p); a panel's, of each person."""

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        """Return the expected maximal utility of each set, (n,), where ``has_logsum``."""
        return log_sum_exp(self._utilities(theta, self._design(sets)), sets.offsets[:-1])

    def _information(self, theta: Floats, packed: Packed, chosen: Index, weights: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood, (p, p), where ``_closed_form``."""
        raise NotImplementedError

    def _rows_at_once(self, n_parameters: int) -> int:
        """Return how many rows a batch has at most."""
        return rows_at_once(n_parameters)

    def _penalty(self, packed: Packed) -> Floats:
        """How much the square of each parameter costs, twice, (p,): ``l2`` for one of its typical size."""
        return getattr(self, "l2", 0.0) / self._steps(packed) ** 2

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return what is reported, (r,), and its derivatives by the parameters, (r, p)."""
        return theta, np.eye(len(theta))

    def _notes(self) -> list[str]:
        """Say what a reader of the table should know besides."""
        return []

    # --- the same for all -------------------------------------------------------------------------

    def _seen(self, sets: Sets) -> Sets:
        seen = super()._seen(sets)
        if len(self.dropped_) == 0:
            return seen
        return seen.with_features(np.delete(seen.objects, self.dropped_, axis=1), seen.situation)

    @property
    def n_columns(self) -> int:
        """How many numbers of an object the model sees."""
        return super().n_columns - len(self.dropped_)

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        packed = self._design(self._seen(sets))
        most = self._rows_at_once(len(self.theta_))
        return np.concatenate([self._utilities(self.theta_, part) for part in packed.parts(most)])

    @property
    def column_names(self) -> list[str]:
        """The names of the columns that the model sees: without base levels, with standings."""
        self._check_fitted()
        return self._feature_names()

    @property
    def every_column(self) -> list[str]:
        """The names of the columns that the model knows: base levels are among them."""
        names = [f"x{i}" for i in range(self.n_features_in_)]
        if self.table_ is not None:
            names = list(TableEncoder.from_json(self.table_).feature_names)
        return names if self.relative_ is None else names + self.relative_.names(names)

    def _names_of(self, sets: Sets) -> list[str]:
        """Return the names of the columns that are seen of sets, before the model is fitted."""
        if sets.encoder is None:
            return [f"x{i}" for i in range(sets.n_features)]
        return self._seen_names(sets.encoder.feature_names)

    def _feature_names(self, given: Sequence[str] | None = None) -> list[str]:
        if given is not None:
            return self._seen_names(list(given))
        return [name for i, name in enumerate(self.every_column) if i not in self.dropped_]

    def _seen_names(self, names: list[str]) -> list[str]:
        names = names if self.relative_ is None else names + self.relative_.names(names)
        return [name for i, name in enumerate(names) if i not in self.dropped_]

    def _set_results(self, information: Floats, penalty: Floats, meat: Floats, steps: Floats) -> None:
        """Set estimates, standard errors and criteria; see the class."""
        free, flat = inverse(information, steps, self.n_sets_)
        factor = self.n_groups_ / (self.n_groups_ - 1) if self.clustered else 1.0
        sandwich = factor * free @ meat @ free
        self.coef_, slopes = self._reported(self.theta_)
        scaled = slopes * steps
        size = np.linalg.norm(scaled, axis=1)
        self.open_ = np.linalg.norm(scaled @ flat, axis=1) > 1e-3 * np.where(size > 0, size, 1.0)
        self.covariance_ = slopes @ free @ slopes.T
        self.standard_errors_ = self._root(np.diag(self.covariance_))
        self.robust_standard_errors_ = self._root(np.diag(slopes @ sandwich @ slopes.T))
        with np.errstate(divide="ignore", invalid="ignore"):
            self.z_values_ = self.coef_ / (
                self.robust_standard_errors_ if self.clustered else self.standard_errors_
            )
        self.parameter_names_ = self._names(self._feature_names())
        self.n_parameters_ = float(np.trace(free @ (information - np.diag(penalty))))
        self.rho_squared_ = (
            1 - self.log_likelihood_ / self.null_log_likelihood_ if self.null_log_likelihood_ else 0.0
        )
        self.aic_ = 2 * self.n_parameters_ - 2 * self.log_likelihood_
        self.bic_ = float(np.log(self.n_units)) * self.n_parameters_ - 2 * self.log_likelihood_

    @property
    def n_units(self) -> int:
        """How many contributions to the likelihood there are: people of a panel, otherwise sets."""
        return self.n_groups_ if self._panel else self.n_sets_

    @property
    def clustered(self) -> bool:
        """Whether robust errors are clustered by group, while the likelihood takes sets for independent."""
        return not self._panel and self.n_groups_ < self.n_sets_

    def _root(self, variances: Floats) -> Floats:
        return np.where(self.open_, np.nan, np.sqrt(np.maximum(variances, 0.0)))

    def _warn(self) -> None:
        name = type(self).__name__
        if not self.converged_:
            warnings.warn(
                f"{name} did not converge to the maximum of the likelihood. Bring features to similar scales, or use "
                "fewer parameters.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.clustered and self.n_groups_ <= round(self.n_parameters_):
            warnings.warn(
                f"{self.n_groups_} groups are too few for clustered errors of {self.n_parameters_:g} parameters: they "
                "are too small, and z is too large. Give more groups, or leave groups out.",
                stacklevel=3,
            )
        if self.open_.any():
            names = [name for name, is_open in zip(self.parameter_names_, self.open_, strict=True) if is_open]
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            way_out = ", or set l2 above 0" if hasattr(self, "l2") else ""
            warnings.warn(
                f"Not identified: {shown}. The likelihood has no unique finite maximum in them (a feature that never "
                "differs within a set, one that is collinear with others, or one that predicts choices perfectly). "
                f"Their standard errors are NaN. Drop such features{way_out}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _people(groups: ArrayLike | None, n_sets: int) -> Index:
    """Return the decision maker of each set, (n,): the place of its label among the sorted ones."""
    if groups is None:
        return np.arange(n_sets)
    try:
        labels = np.asarray(groups)
        people = labels_of(labels, n_sets)
        missing = np.flatnonzero(labels != labels)
    except TypeError:
        raise DataError(
            "groups needs labels that can be sorted, all of them numbers or all of them text; there are others, or "
            "some are missing. Label every set."
        ) from None
    if len(missing):
        raise DataError(
            f"groups needs a label for every set; that of set {missing[0]} is {labels[missing[0]]}."
        )
    if n_sets > 1 and not people.any():
        raise DataError(
            f"groups needs at least two labels; all {n_sets} sets have {labels[0]}. Leave groups out where one "
            "person chose throughout."
        )
    return people


def _weights_of_people(weights: Floats, people: Index) -> Floats:
    """Return the weight of each person, which all their sets must have."""
    first = np.unique(people, return_index=True)[1]
    differs = np.flatnonzero(weights != weights[first][people])
    if len(differs):
        i, j = first[people[differs[0]]], differs[0]
        raise DataError(
            "sample_weight must be the same for all sets of a group, whose choices count together; sets "
            f"{i} and {j} are of one group and have {weights[i]:g} and {weights[j]:g} (once brought to mean 1)."
        )
    return weights[first]
