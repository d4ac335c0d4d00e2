"""Latent classes: people are of a few kinds, each with coefficients of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp

from entourage.choice.batches import Batches
from entourage.choice.columns import base_columns
from entourage.choice.likelihood import Floats, Index, Packed, log_sum_exp, softmax_information, softmax_terms
from entourage.choice.logit import ridge_start
from entourage.choice.optimise import maximise
from entourage.choice.people import Panel, PanelModel
from entourage.data.encoder import TableEncoder
from entourage.data.sets import Sets
from entourage.errors import DataError, check_number

__all__ = ["LatentClassLogit"]

RIDGE = 1e-6  # of an M-step, for each set: keeps a class of few people finite
QUICK = 30  # EM steps of each start; the best of them goes on


@dataclass(frozen=True, eq=False)
class _Classes(Panel):
    """Objects, the sets of a person side by side, and what membership depends on: a constant and the situation."""

    about: Floats  # of each person, (g, 1 + q)

    def part(self, start: int, stop: int) -> Self:
        return replace(super().part(start, stop), about=self.about[start:stop])


class LatentClassLogit(PanelModel):
    r"""A mixture of logits: each person is of one of K classes, which differ in their coefficients.

    .. math:: P_i = \sum_k π_k \frac{e^{b_k^\top x_i}}{\sum_j e^{b_k^\top x_j}}, \quad π_k \propto e^{c_k + g_k^\top z}.

    ``groups`` of ``fit`` identifies the decision maker, whose choices are all made by one class; by default every set
    has one of its own. Where sets have situation features z, these change the probabilities of the classes (the same
    z for all sets of a person); without them, classes have constant shares. Estimated by EM from several random starts,
    the best of which is maximised by L-BFGS and Newton's method (Kamakura and Russell 1989; Train 2009, ch. 14).

    Classes are ordered by their mean share, the largest first; membership is relative to that one. A mixture has local
    maxima: more restarts find higher ones. AIC and BIC help to choose K; a likelihood-ratio test does not apply.

    Parameters
    ----------
    classes : int
        K.
    restarts : int
        Random starts of EM.
    l2 : float
        Penalty l2 / 2 on the square of each coefficient of a class, in units of one over its feature's standard
        deviation within sets.
    relative : bool, "all", or list of columns or places
        Which numbers also enter as z-score and rank within their set (:mod:`entourage.data.relative`).
    base : dict of str to str, optional
        The base level of categories of a table, see `MultinomialLogit`.
    random_state : int
        Of the starts.

    Attributes
    ----------
    class_coefficients_ : of each class, (K, d)
    class_shares_ : the mean share of each class, over people, (K,)
    people_, beliefs_ : see `PanelModel`; beliefs are about classes

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import LatentClassLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3, 1))
    >>> person = np.repeat(np.arange(100), 10)
    >>> taste = np.where(person < 70, 2.0, -2.0)  # 70 of 100 people like it
    >>> y = (taste[:, None] * X[..., 0] + rng.gumbel(size=(1000, 3))).argmax(1)
    >>> model = LatentClassLogit(2, restarts=2).fit(X, y, groups=person)
    >>> model.class_shares_.round(1), model.class_coefficients_.round().ravel()
    (array([0.7, 0.3]), array([ 2., -2.]))
    """

    uses_situation = True
    has_logsum = True

    def __init__(
        self,
        classes: int = 2,
        *,
        restarts: int = 10,
        l2: float = 0.0,
        relative: bool | str | Sequence[str | int] = False,
        base: Mapping[str, str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.classes = classes
        self.restarts = restarts
        self.l2 = l2
        self.relative = relative
        self.base = base
        self.random_state = random_state

    @property
    def class_coefficients_(self) -> Floats:
        """Return the coefficients of each class."""
        self._check_fitted()
        return self.theta_[: self.classes * self.n_columns].reshape(self.classes, -1)

    @property
    def membership_coefficients_(self) -> Floats:
        """Return the utilities of the classes but the first, (K - 1, 1 + q): a constant, and one a situation column.

        Situation columns are taken less ``situation_centre_``; the utility of the first class is 0.
        """
        self._check_fitted()
        return self.theta_[self.classes * self.n_columns :].reshape(self.classes - 1, -1)

    def class_probabilities(self, situation: ArrayLike | None = None) -> Floats:
        """Return the probability of each class, given the situation, (n, K); of one row without any."""
        self._check_fitted()
        z = np.zeros((1, 0)) if situation is None else np.asarray(situation, dtype=np.float64)
        return np.asarray(np.exp(log_softmax(self._membership(self.theta_, self._about(z)), axis=1)))

    @property
    def logsum_problem(self) -> str | None:
        """Why the logsums of sets can't be compared, with what to do; None where they can."""
        if self.relative_ is None and len(self.situation_columns_):
            return (
                "The utilities of each class are known up to a constant of their own, and the shares of classes differ "
                "between situations, so that logsums of different situations can't be compared. Fit without situation "
                "features."
            )
        return super().logsum_problem

    def check_parameters(self) -> None:
        """Raise an error where a parameter of the constructor is invalid."""
        check_number("classes", self.classes, least=2, whole=True)
        check_number("restarts", self.restarts, least=1, whole=True)
        check_number("l2", self.l2, least=0)
        check_number("random_state", self.random_state, least=0, whole=True)

    # --- the data ---------------------------------------------------------------------------------

    def _objects_alone(self, sets: Sets) -> Sets:
        return sets

    def _prepare(self, sets: Sets) -> None:
        q = sets.n_situation_features
        dropped = base_columns(self.base, sets, True, role="situation") if q else ()
        self.situation_columns_ = np.setdiff1d(np.arange(q), dropped).astype(np.int64)
        z = np.zeros((1, 0)) if sets.situation is None else sets.situation.astype(np.float64)
        self.situation_centre_ = z[:, self.situation_columns_].mean(0)
        self.begin_ = ridge_start(sets)

    def _about(self, situation: Floats) -> Floats:
        z = situation[:, self.situation_columns_] - self.situation_centre_
        return np.concatenate([np.ones((len(z), 1)), z], axis=1)

    def _design(self, sets: Sets) -> _Classes:
        return self._learn_from(sets, np.arange(len(sets)))

    def _learn_from(self, sets: Sets, people: Index) -> _Classes:
        features, offsets, order, shift, heads = Panel.arrange(sets, people)
        given = np.zeros((len(sets), 0)) if sets.situation is None else sets.situation.astype(np.float64)
        first = given[order[heads[:-1]]]
        differs = np.flatnonzero((given != first[people]).any(1))
        if len(differs):
            raise DataError(
                "The class of a person depends on situation features, which must be the same for all sets of a group; "
                f"those of set {differs[0]} differ from those of an earlier set. Multiply features that differ with "
                "features of the objects, or leave groups out."
            )
        return _Classes(features, offsets, order, shift, heads, self._about(first))

    # --- the model --------------------------------------------------------------------------------

    def _split(self, theta: Floats, d: int) -> tuple[Floats, Floats]:
        """Return the coefficients of classes, (K, d), and of membership, (K - 1, 1 + q)."""
        return theta[: self.classes * d].reshape(-1, d), theta[self.classes * d :].reshape(
            self.classes - 1, -1
        )

    def _membership(self, theta: Floats, about: Floats) -> Floats:
        """Return the utility of each class for each person, (g, K); the first one's is 0."""
        own = theta[len(theta) - (self.classes - 1) * about.shape[1] :].reshape(self.classes - 1, -1)
        return np.concatenate([np.zeros((len(about), 1)), about @ own.T], axis=1)

    def _start(self, packed: Any) -> Floats:
        return np.append(
            np.tile(self.begin_, self.classes), np.zeros((self.classes - 1) * packed.about.shape[1])
        )

    def _steps(self, packed: Any) -> Floats:
        deviation = packed.about.std(0)
        own = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1.0), 1.0)
        return np.append(np.tile(1 / packed.spread(), self.classes), np.tile(own, self.classes - 1))

    def _penalty(self, packed: Any) -> Floats:
        coefficients = self.classes * packed.features.shape[1]
        return np.where(np.arange(len(self._steps(packed))) < coefficients, super()._penalty(packed), 0.0)

    def _begin(self, data: Batches) -> Floats:
        rng = np.random.default_rng(self.random_state)
        packed, weights = data.packed, data.weights
        best, highest = self._start(packed), -np.inf
        steps = 1 / packed.spread()
        for _ in range(self.restarts):
            beliefs = rng.dirichlet(np.full(self.classes, 0.5), size=len(weights))
            theta, value = self._start(packed), -np.inf
            for _ in range(QUICK):
                theta = self._update(theta, beliefs, data, steps)
                joint = np.concatenate([self._joint(theta, batch.packed, batch.chosen) for batch in data])
                total = logsumexp(joint, axis=1)
                beliefs = np.exp(joint - total[:, None])
                before, value = value, float(weights @ total)
                if value - before < 1e-4:
                    break
            if value > highest + 1e-9 * abs(value):
                best, highest = theta, value
        return self._in_order(best, packed)

    def _update(self, theta: Floats, beliefs: Floats, data: Batches, steps: Floats) -> Floats:
        """Do an M-step: a weighted logit for each class, and one of membership."""
        weights, packed = data.weights, cast(_Classes, data.packed)
        classes, own = (part.copy() for part in self._split(theta, len(steps)))
        sets = Packed(packed.features, packed.offsets)
        rows, counts = packed.rows_of(data.chosen), np.diff(packed.heads)
        ridge = (RIDGE * len(packed.sizes) + self.l2) / steps**2
        for k in range(self.classes):
            mine = Batches(sets, rows, np.repeat(weights * beliefs[:, k], counts), data.most)

            def slope(b: Floats, mine: Batches = mine) -> tuple[float, Floats]:
                value, gradient = mine.total(_of_one_class, b)
                return value - 0.5 * float(ridge @ b**2), gradient - ridge * b

            def bend(b: Floats, mine: Batches = mine) -> Floats:
                return mine.information(_bend_of_one_class, b) + np.diag(ridge)

            classes[k] = maximise(slope, bend, classes[k], steps, concave=True, max_iter=3).theta
        z = packed.about
        q = z.shape[1]
        weighted = weights[:, None] * beliefs

        def slope_of_shares(c: Floats) -> tuple[float, Floats]:
            log_p = log_softmax(self._membership(c, z), axis=1)
            surprise = weighted - weighted.sum(1, keepdims=True) * np.exp(log_p)
            value = float((weighted * log_p).sum() - 0.5 * RIDGE * weights.sum() * c @ c)
            return value, (surprise[:, 1:].T @ z).ravel() - RIDGE * weights.sum() * c

        def bend_of_shares(c: Floats) -> Floats:
            p = np.exp(log_softmax(self._membership(c, z), axis=1))[:, 1:]
            found = np.zeros((len(c), len(c)))
            for a in range(self.classes - 1):
                for b in range(self.classes - 1):
                    both = weights * (p[:, a] * (a == b) - p[:, a] * p[:, b])
                    found[a * q : (a + 1) * q, b * q : (b + 1) * q] = (z * both[:, None]).T @ z
            return np.asarray(found + RIDGE * weights.sum() * np.eye(len(c)))

        found = maximise(
            slope_of_shares, bend_of_shares, own.ravel(), np.ones(own.size), concave=True, max_iter=3
        )
        return np.append(classes, found.theta)

    def _joint(self, theta: Floats, packed: Any, chosen: Index) -> Floats:
        """Return the log-probability of each class and of all choices of a person by it, (g, K)."""
        classes, _ = self._split(theta, packed.features.shape[1])
        log_p = packed.log_softmax(packed.features @ classes.T)[packed.rows_of(chosen)]  # (n, K)
        return np.asarray(
            np.add.reduceat(log_p, packed.heads[:-1], axis=0)
            + log_softmax(self._membership(theta, packed.about), axis=1)
        )

    def _in_order(self, theta: Floats, packed: Any) -> Floats:
        classes, own = self._split(theta, packed.features.shape[1])
        share = np.exp(log_softmax(self._membership(theta, packed.about), axis=1)).mean(0)
        order = np.lexsort((*classes.T[::-1], -share))
        every = np.concatenate([np.zeros((1, own.shape[1])), own])[order]
        return np.append(classes[order], (every[1:] - every[0]))

    def _contributions(self, theta: Floats, packed: Any, chosen: Index) -> tuple[Floats, Floats]:
        rows, x, heads = packed.rows_of(chosen), packed.features, packed.heads[:-1]
        classes, _ = self._split(theta, x.shape[1])
        prior = log_softmax(self._membership(theta, packed.about), axis=1)
        log_p = packed.log_softmax(x @ classes.T)  # (N, K)
        joint = np.add.reduceat(log_p[rows], heads, axis=0) + prior
        total = logsumexp(joint, axis=1)
        beliefs = np.exp(joint - total[:, None])
        slopes = [
            beliefs[:, [k]] * np.add.reduceat(x[rows] - packed.sum(np.exp(log_p[:, [k]]) * x), heads, axis=0)
            for k in range(self.classes)
        ]
        shares = [(beliefs - np.exp(prior))[:, [k]] * packed.about for k in range(1, self.classes)]
        return total, np.concatenate([*slopes, *shares], axis=1)

    def _utilities(self, theta: Floats, packed: Any) -> Floats:
        prior = log_softmax(self._membership(theta, packed.about), axis=1)
        return self._mixed(theta, packed, prior)

    def _logsum(self, theta: Floats, sets: Sets) -> Floats:
        """Return the mean over classes; features are centred in `_design`, so what all share is added again."""
        packed = self._design(sets)
        classes, _ = self._split(theta, packed.features.shape[1])
        shares = np.exp(log_softmax(self._membership(theta, packed.about), axis=1))  # (n, K)
        found = log_sum_exp(packed.features @ classes.T, packed.starts) + Packed.shared(sets) @ classes.T
        return np.asarray((shares * found).sum(1))

    def _mixed(self, theta: Floats, packed: Packed, prior: Floats) -> Floats:
        """Return log-probabilities, given those of the classes in each set, (n, K)."""
        classes, _ = self._split(theta, packed.features.shape[1])
        log_p = packed.log_softmax(packed.features @ classes.T)
        return np.asarray(logsumexp(log_p + prior[packed.owner], axis=1))

    # --- people who are known ---------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.classes

    def _know_people(self, groups: Any, data: Any) -> None:
        prior = np.exp(log_softmax(self._membership(self.theta_, data.packed.about), axis=1))
        self.class_shares_ = prior.mean(0)
        super()._know_people(groups, data)

    def _beliefs(self, packed: Any, chosen: Index) -> Floats:
        joint = self._joint(self.theta_, packed, chosen)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1)[:, None]))

    def _individual(self) -> Floats:
        return np.asarray(self.beliefs_ @ self.class_coefficients_)

    def _scores_given(self, sets: Sets, person: Index) -> Floats:
        packed = self._design(sets)
        prior = log_softmax(self._membership(self.theta_, packed.about), axis=1)
        known = person >= 0
        with np.errstate(divide="ignore"):
            prior[known] = np.log(self.beliefs_[person[known]])
        return self._mixed(self.theta_, packed, prior)

    # --- what is reported -------------------------------------------------------------------------

    def _names(self, features: Sequence[str]) -> list[str]:
        of_classes = [f"class {k + 1}: {name}" for k in range(self.classes) for name in features]
        about = ["constant", *self._situation_names()]
        return of_classes + [f"class {k + 1} membership: {n}" for k in range(1, self.classes) for n in about]

    def _situation_names(self) -> list[str]:
        if self.table_ is None:
            return [f"z{i}" for i in self.situation_columns_]
        columns = TableEncoder.from_json(self.table_).columns
        every = [name for column in columns if column.role == "situation" for name in column.names]
        return [every[i] for i in self.situation_columns_]

    def _reported(self, theta: Floats) -> tuple[Floats, Floats]:
        slopes = np.eye(len(theta))
        q = 1 + len(self.situation_columns_)
        for k in range(self.classes - 1):  # constants of a situation of 0, not of the mean one
            at = len(theta) - (self.classes - 1 - k) * q
            slopes[at, at + 1 : at + q] = -self.situation_centre_
        return slopes @ theta, slopes

    def _notes(self) -> list[str]:
        shares = ", ".join(f"{k + 1}: {share:.3f}" for k, share in enumerate(self.class_shares_))
        return [f"Mean shares of classes {shares}. Membership is relative to class 1."]


def _of_one_class(b: Floats, packed: Packed, chosen: Index) -> tuple[Floats, Floats]:
    """Return the log-likelihood of each set by the class with coefficients b, (n,), and its gradient, (n, d)."""
    return softmax_terms(packed.features @ b, packed.features, packed, chosen)


def _bend_of_one_class(b: Floats, packed: Packed, chosen: Index, weights: Floats) -> Floats:
    """Return minus the Hessian, (d, d)."""
    return softmax_information(packed.features @ b, packed.features, packed, weights)
