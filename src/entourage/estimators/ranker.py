"""The estimators: one for each task, alike in all else (:mod:`entourage.estimators.net_estimator`)."""

import functools
import inspect
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.data.sets import AnySets, Sets
from entourage.errors import check_choice, check_number
from entourage.estimators.base import OneChoicePredictor
from entourage.estimators.inputs import given_sets
from entourage.estimators.net_estimator import SetEstimator
from entourage.estimators.plugins import provided
from entourage.nets import Net
from entourage.tasks import Choice, SubsetChoice
from entourage.tasks.losses import Loss, choice_loss
from entourage.training import tensor_file as model_file
from entourage.training.loop import Outcome
from entourage.training.model_check import Kept, check_versions, refusing, take, unpack

__all__ = ["ESTIMATORS", "DiscreteChooser", "Ranker", "SetEstimator", "SubsetChooser", "load"]

_SHARED = (SetEstimator.__doc__ or "").partition("\n")[2]


def _takes_settings(init: Any) -> Any:
    """Let a constructor that hands settings on show them all, as scikit-learn needs; its own come first."""
    own = [p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in own}
    shared = inspect.signature(SetEstimator.__init__).parameters.values()
    init.__signature__ = inspect.Signature([*own, *(p for p in shared if p.name not in names)])
    return init


class Ranker(SetEstimator):  # noqa: D101 - its docstring is put together below
    __doc__ = (
        """Ranks the objects of a set in each other's company.

    Examples
    --------
    >>> from entourage import FATE, Ranker
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=200, random_state=0)
    >>> model = Ranker(FATE(width=16), steps=100, random_state=0).fit(X, ranks)
    >>> model.predict(X[:1]).shape
    (1, 5)
    """
        + _SHARED
    )


class DiscreteChooser(OneChoicePredictor, SetEstimator):  # noqa: D101 - its docstring is put together below
    __doc__ = """Chooses one object of a set: softmax over the utilities, which depend on the company.

    ``y`` holds the place of the chosen object in each set, or rows of 0 and 1. In `Sets` targets are ranks, as
    ever: 0 for the chosen object, 1 for the others.

    Examples
    --------
    >>> from entourage import FATE, DiscreteChooser
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=200, random_state=0)
    >>> model = DiscreteChooser(FATE(width=16), steps=100, random_state=0).fit(X, ranks.argmin(1))
    >>> model.predict(X[:3]).shape, model.predict_proba(X[:3]).shape
    ((3,), (3, 5))

    Parameters
    ----------
    outside : bool
        Whether nothing may be chosen (-1 in ``y``, or a row of zeros). Not choosing has utility 0.
    """ + _SHARED.partition("----------\n")[2].replace(
        '{"hinge", "logistic", "plackett_luce", "listnet"}', '"nll"'
    )

    @_takes_settings
    def __init__(
        self,
        net: Net | str | None = None,
        *,
        loss: str | Loss = "nll",
        outside: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(net, loss=loss, **settings)
        self.outside = outside

    @property
    def task(self) -> Choice:
        """What a target means."""
        return Choice(outside=self.outside)

    def _loss(self) -> Loss:
        loss = super()._loss()
        return functools.partial(choice_loss, outside=True) if self.outside and loss is choice_loss else loss

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores.

        With ``outside``, nothing has a place of its own among the ranks, so that rank 0 is always what is chosen, and
        each object is told how probable it is that nothing is chosen from its set.
        """
        found = super().columns(sets, scores)
        if self.outside:
            nothing = self.task.probability_of_nothing(sets, scores)
            found["probability_of_nothing"] = np.repeat(nothing, sets.sizes)
        return found


class SubsetChooser(SetEstimator):  # noqa: D101 - its docstring is put together below
    __doc__ = """Chooses some objects of a set: each by a sigmoid of its utility, which depends on the company.

    ``y`` holds rows of 0 and 1. In `Sets` targets are ranks, as ever: 0 for chosen objects, 1 for the others.

    Examples
    --------
    >>> from entourage import FATE, SubsetChooser
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=200, random_state=0)
    >>> model = SubsetChooser(FATE(width=16), steps=100, random_state=0).fit(X, ranks < 2)
    >>> model.predict(X[:3]).shape
    (3, 5)

    Parameters
    ----------
    threshold : float or "held-out"
        The utility above which an object is chosen; 0 is a probability of one half. "held-out" takes the one with
        the best F1 on the held-out sets, 0 where none are held out.
    """ + _SHARED.partition("----------\n")[2].replace(
        '{"hinge", "logistic", "plackett_luce", "listnet"}', '"binary"'
    )

    @_takes_settings
    def __init__(
        self,
        net: Net | str | None = None,
        *,
        loss: str | Loss = "binary",
        threshold: float | str = "held-out",
        **settings: Any,
    ) -> None:
        super().__init__(net, loss=loss, **settings)
        self.threshold = threshold

    @property
    def task(self) -> SubsetChoice:
        """What a target means."""
        if not isinstance(self.threshold, str):
            return SubsetChoice(threshold=float(self.threshold))
        return SubsetChoice(threshold=getattr(self, "threshold_", 0.0))

    def _check_training_data(self, *arguments: Any, **named: Any) -> Any:
        if self.threshold != "held-out":
            check_number("threshold (unless it is 'held-out')", self.threshold)
        return super()._check_training_data(*arguments, **named)

    def _finish(self, start: Any, outcome: Outcome) -> Any:
        super()._finish(start, outcome)
        self.threshold_ = self.task.threshold if self.threshold != "held-out" else 0.0
        if self.threshold == "held-out" and start.held_out is not None:
            held_out = start.sets[start.held_out]
            weights = None if start.weights is None else start.weights[start.held_out]
            self.threshold_ = self.task.best_threshold(held_out, self._checked_scores(held_out), weights)
        return self

    def predict_proba(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return the probability that each object is chosen, in the form of the input."""
        given = given_sets(self._fitted(), X, situation)
        return given.back(self.task.probabilities(given.sets, self._checked_scores(given.sets)))

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores."""
        probabilities = self.task.probabilities(sets, scores)
        return {"probability": probabilities, "score": scores, "chosen": self.decide(sets, scores)}


#: Every estimator, by the name that model files know it by.
ESTIMATORS: dict[str, type[SetEstimator]] = {
    kind.__name__: kind for kind in (Ranker, DiscreteChooser, SubsetChooser)
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model that ``model.save(path)`` wrote.

    A file that is damaged, cut short, foreign or of another format is an error that says so, and so is one whose
    content is not what a model has: see `entourage.training.model_check`. No path is taken from a file, and no
    device: a loaded model has ``checkpoint=None`` and ``device="auto"``.
    """
    content, tensors = model_file.read(path, "model")
    with refusing(path):
        check_versions(content)
        name = take(content, "estimator", str)
        if name not in ESTIMATORS:  # a choice model: a layer above, imported when first needed
            kept = provided("files of choice models")
            check_choice("estimator", name, [*ESTIMATORS, *kept.MODELS])
            return kept.remake(name, content, tensors)
        return _remake(ESTIMATORS[name], unpack(ESTIMATORS[name], content, tensors))


def _remake(kind: type[SetEstimator], kept: Kept) -> SetEstimator:
    model = kind(kept.net, **kept.params)
    if model.loss is not None:
        check_choice("loss", model.loss, model.task.losses)
    check_choice("precision", model.precision, ["float32", "bfloat16"])
    outcome = Outcome(
        weights=kept.weights,
        optimizer=kept.optimizer,
        history=kept.history,
        best_score=kept.best_score,
        steps=kept.steps,
        interrupted=kept.interrupted,
    )
    model._categories = kept.categories
    model._keep(
        kept.net, kept.scorer, kept.standardise, outcome, seed=kept.seed, partial_fits=kept.partial_fits
    )
    model.table_ = kept.table
    if kept.threshold is not None and isinstance(model, SubsetChooser):
        model.threshold_ = kept.threshold
    return model
