"""One view of any fitted model with choice probabilities: what every decision is computed from."""

import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.choice.base import ChoiceModel
from entourage.choice.nested import NestedLogit
from entourage.data.sets import AnySets, Sets
from entourage.decisions.gradients import has_gradient, probability_gradients
from entourage.errors import ParameterError, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import Given, given_sets
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.probabilities import CalibratedRanker
from entourage.nets.ensemble import Stack
from entourage.nets.registry import entry_of
from entourage.tasks import Choice, SubsetChoice

__all__ = ["Market", "market_of"]

Floats: TypeAlias = NDArray[np.float64]


class Market:
    r"""The choice probabilities of a fitted model, whatever its kind.

    Choosers, and the models of :mod:`entourage.choice`: the probability that an object is chosen. Rankers: that of
    the first place (Plackett-Luce, at the temperature learnt from held-out sets). Subset choosers: the probability of
    each object on its own. All values are packed, one an object in the order of ``sets.objects``.

    Parameters
    ----------
    model : fitted; a ranker needs probabilities (see :meth:`entourage.Ranker.calibrate`)

    Attributes
    ----------
    model : as given
    kind : "choice", "ranking" or "subset"
    has_outside : whether nothing may be chosen

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> from entourage.data import Sets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> market = Market(MultinomialLogit().fit(X, y))
    >>> sets = market.sets_of(X[:2])
    >>> bool(np.allclose(market.probabilities(sets).reshape(2, 3).sum(1), 1)), market.has_gradient
    (True, True)
    >>> len(market.gradient(sets, 1)), market.gradient(sets, 1)[0].shape
    (2, (3, 3))
    """

    def __init__(self, model: Any) -> None:
        if isinstance(model, Market):
            model = model.model
        if not isinstance(model, SetPredictor):
            raise ParameterError(
                "A fitted model of choices or rankings is needed (DiscreteChooser, Ranker, MultinomialLogit, ...); got "
                f"{type(model).__name__}."
            )
        task: Any = model.task
        self.model: Any = model
        self.kind = (
            "choice"
            if isinstance(task, Choice)
            else "subset"
            if isinstance(task, SubsetChoice)
            else "ranking"
        )
        if self.kind == "ranking" and not isinstance(model, CalibratedRanker):
            raise ParameterError(
                f"{type(model).__name__} has no probabilities, only scores. Fit a Ranker (its probabilities are "
                "calibrated on held-out sets), or a chooser."
            )
        if not hasattr(model, "n_features_in_"):
            model.predict_scores(np.zeros((1, 1, 1)))  # raises NotFittedError
        if self.kind == "ranking" and model.calibration_ is None:
            raise ParameterError(
                "This Ranker has no probabilities: no sets were held out when it was fitted (validation=0, fewer than "
                "20 sets, partial_fit). Call model.calibrate(X, y) with sets that were not used for training."
            )
        self.has_outside = bool(getattr(task, "outside", False))

    def __repr__(self) -> str:
        outside = ", outside option" if self.has_outside else ""
        return f"Market({type(self.model).__name__}, {self.kind}{outside})"

    @property
    def task(self) -> Any:
        """The task of the model."""
        return self.model.task

    @property
    def has_gradient(self) -> bool:
        """Whether `gradient` is exact rather than by finite differences."""
        return has_gradient(self.model)

    def given(self, X: AnySets, situation: ArrayLike | None = None) -> Given:
        """Return the sets of any input, and the way back from packed values to its form."""
        return given_sets(self.model, X, situation)

    def sets_of(self, X: AnySets, situation: ArrayLike | None = None) -> Sets:
        """Return the sets of any input; a table as the model learnt to read it (its order of rows: `given`)."""
        return self.given(X, situation).sets

    def names(self) -> list[str]:
        """Return what the numbers of an object are called: x0, x1, ... where the model learnt from arrays."""
        if self.model.table_ is None:
            return [f"x{i}" for i in range(self.model.n_features_in_)]
        from entourage.estimators.inputs import encoder_of

        return list(encoder_of(self.model).feature_names)

    def place_of(self, column: int | str) -> int:
        """Return the place among an object's numbers of a numeric column, given by its name or its place."""
        codes = [place for place, _ in getattr(self.model, "categories_", None) or []]
        if isinstance(column, str):
            if self.model.table_ is None:
                raise ParameterError(
                    f"{column!r} names a column, but the model learnt from arrays. Give a place, from 0 to "
                    f"{self.model.n_features_in_ - 1}."
                )
            from entourage.estimators.inputs import encoder_of

            known = encoder_of(self.model).number_places
            if column not in known:
                raise ParameterError(
                    f"{column!r} is no numeric column of the objects; these are "
                    f"{', '.join(map(repr, known)) or 'none'}."
                )
            return int(known[column])
        check_number("column", column, least=0, below=self.model.n_features_in_, whole=True)
        if column in codes:
            raise ParameterError(f"Feature {column} holds codes of levels, which have no order.")
        return int(column)

    # --- probabilities ------------------------------------------------------------------------------

    def utilities(self, sets: Sets) -> Floats:
        """Return packed utilities; their softmax (with 0 for the outside option) gives the probabilities.

        Of subset choice: the logits of the probabilities.
        """
        scores = np.asarray(self.model.predict_scores(sets), dtype=np.float64)
        return scores / self.model.temperature_ if self.kind == "ranking" else scores

    def probabilities(self, sets: Sets) -> Floats:
        """Return the packed choice probabilities of all objects; of rankers, those of the first place."""
        return self.probabilities_of(sets, self.utilities(sets))

    def probabilities_of(self, sets: Sets, utilities: Floats) -> Floats:
        """Return the packed probabilities that packed utilities stand for."""
        if self.kind == "ranking":
            return np.asarray(Choice().probabilities(sets, utilities))
        return np.asarray(self.task.probabilities(sets, utilities))

    def outside(self, sets: Sets) -> Floats | None:
        """Return the probability that nothing is chosen, (n,); None without an outside option."""
        if not self.has_outside:
            return None
        return np.asarray(self.task.probability_of_nothing(sets, self.utilities(sets)))

    def expected_ranks(self, sets: Sets) -> Floats:
        """Return the packed expected rank of each object, 0 = best, under the Plackett-Luce model; of rankers only."""
        if self.kind != "ranking":
            raise ParameterError("Expected ranks are of rankers; a chooser has probabilities of choice only.")
        return np.asarray(self.model.predict_expected_places(sets), dtype=np.float64)

    # --- surplus ------------------------------------------------------------------------------------

    @property
    def logsum_problem(self) -> str | None:
        """Why the logsum is not identified, in a sentence with what to do; None where it is.

        Choice data identify differences of utilities within a set. So the logsum is comparable between sets where
        the utility of an object is the same in every set, or where the outside option (utility 0) is in every set.
        """
        model = self.model
        advice = "Fit with outside=True where nothing may be chosen, or a context-free model (MultinomialLogit, say)."
        if self.kind == "subset":
            return "The objects of a subset choice are chosen independently, so there is no logsum."
        if getattr(model, "blend_", None) is not None:
            return (
                "A blend averages probabilities, which have no utilities of their own. Fit one model, such as "
                "MultinomialLogit, or a net with outside=True."
            )
        if self.has_outside:
            return None
        if isinstance(model, NetEstimator):
            context = model.reading_ is not None or model.view_.relative is not None
            entry = None if context else entry_of(model.net_)
            context = context or entry is None or entry.context
        else:
            context = model.relative_ is not None
        if isinstance(model, ChoiceModel):
            if model.has_logsum and not context:
                return model.logsum_problem
            context = True
        if not context:
            return None
        return (
            "Utilities depend on the other objects of the set, and data without an outside option identify them up to "
            f"a constant of each set: logsums of different sets can't be compared. {advice}"
        )

    @property
    def logsum_note(self) -> str | None:
        """What a reader of logsums should know besides; None where there is nothing.

        With a dissimilarity λ above 1, a nested logit contradicts utility maximisation for some sets. Its logsum
        still has the choice probabilities as slopes, so that a difference of logsums is the area under demand curves.
        """
        model = self.model
        if not isinstance(model, NestedLogit) or not (model.dissimilarities_ > 1).any():
            return None
        named = ", ".join(
            f"{nest} (λ = {own:.3g})"
            for nest, own in zip(model.nests, model.dissimilarities_, strict=True)
            if own > 1
        )
        return (
            f"Nests with λ above 1 contradict utility maximisation for some sets: {named}. Consumer surplus is then "
            "the area under demand curves, not the gain of people who maximise utility."
        )

    def logsum(self, sets: Sets) -> Floats:
        """Return the expected maximal utility of each set, (n,), up to a constant: consumer surplus in utils.

        MNL: log Σ exp(u), with 1 added under the logarithm for the outside option; nested and cross-nested
        logit: over nests; mixed logit and latent classes: the mean over draws of the coefficients, or over classes.
        Refused where it is not identified (`logsum_problem`).
        """
        problem = self.logsum_problem
        if problem is not None:
            raise ParameterError(f"Consumer surplus is not identified. {problem}")
        if isinstance(self.model, ChoiceModel):
            return np.asarray(self.model.logsum(sets))
        utilities = self.utilities(sets)
        starts = sets.offsets[:-1]
        highest = np.maximum.reduceat(utilities, starts)
        highest = np.maximum(highest, 0.0) if self.has_outside else highest
        powers = np.add.reduceat(np.exp(utilities - np.repeat(highest, sets.sizes)), starts)
        powers += np.exp(-highest) if self.has_outside else 0.0
        return np.asarray(highest + np.log(powers))

    # --- derivatives --------------------------------------------------------------------------------

    def gradient(self, sets: Sets, column: int | str) -> list[Floats]:
        """Return d p_i / d x_j of a raw column, an (m, m) array a set: row i, column j.

        The probabilities of all objects of a set move, through the softmax and, in a context-dependent model, through
        all utilities. By autograd through standardisation for nets, by a closed form for the multinomial logit, else
        by central finite differences: 1e-4 standard deviations of the column for smooth models, 0.05 for trees,
        blends and models that see ranks within the set (``relative``), which have no derivative.
        """
        return probability_gradients(self, sets, self.place_of(column))

    # --- uncertainty --------------------------------------------------------------------------------

    @property
    def n_members(self) -> int:
        """How many members an ensemble has; 1 where there is none."""
        scorer = getattr(self.model, "scorer_", None)
        return scorer.members if isinstance(scorer, Stack) else 1

    @property
    def has_draws(self) -> bool:
        """Whether coefficients have an asymptotic distribution to draw from."""
        return isinstance(self.model, ChoiceModel)

    def members(self) -> list["Market"]:
        """Return the members of an ensemble, each as a market; empty where there is none."""
        scorer = getattr(self.model, "scorer_", None)
        if not isinstance(scorer, Stack):
            return []
        found = []
        for i in range(scorer.members):
            one = copy.copy(self.model)
            one.scorer_ = scorer.scorer(i)
            found.append(Market(one))
        return found

    def draws(self, count: int, random_state: int = 0) -> list["Market"]:
        """Return models whose coefficients are drawn from their asymptotic normal distribution; else empty.

        Only the models of :mod:`entourage.choice` have one; see their ``drawn``.
        """
        if not self.has_draws:
            return []
        return [Market(one) for one in self.model.drawn(count, random_state)]


def market_of(model: Any) -> Market:
    """Return the market of a model, or the market itself."""
    return model if isinstance(model, Market) else Market(model)
