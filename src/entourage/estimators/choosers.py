"""The estimators of choices: discrete choice (one object of a set) and subset choice (some)."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import check_number
from entourage.estimators.base import SubsetPredictor
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.probabilities import CalibratedChooser
from entourage.estimators.setup import Start
from entourage.nets import Net
from entourage.tasks import Choice
from entourage.tasks.losses import Loss
from entourage.training.loop import Outcome

__all__ = ["DiscreteChooser", "SubsetChooser"]


class DiscreteChooser(CalibratedChooser, NetEstimator):
    """Discrete choice: one object of a set, by a softmax over context-dependent utilities.

    ``y`` holds the place of the chosen object in each set, or rows of 0 and 1. In `Sets` targets are always ranks: 0
    for the chosen object, 1 for the others.

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
    net : FATE(), FETA(), SetAttention(), ContextFree(), ..., a name such as "fate", "auto" or "pretrained"; optional
        By default ``FATE()``.
    loss : "nll" or callable
        "nll" is the negative log-likelihood of the choice.
    outside : bool
        Whether there is an outside (no-choice) option: -1 in ``y``, or a row of zeros. It has utility 0.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`entourage.Ranker`.
    """

    def __init__(
        self,
        net: Net | str | None = None,
        *,
        loss: str | Loss = "nll",
        outside: bool = False,
        optimizer: str = "adamw",
        learning_rate: float = 0.003,
        momentum: float = 0.9,
        schedule: str = "cosine",
        warmup: float = 0.1,
        weight_decay: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        steps: int = 4000,
        epochs: float | None = None,
        batch_size: int = 256,
        subset_size: int | tuple[int, int] | None = None,
        subsets_per_set: int = 1,
        clip: float | None = 1.0,
        ema: float | None = 0.999,
        validation: float = 0.1,
        evaluate_every: int | None = None,
        patience: int | None = 20,
        standardize: bool | str = True,
        relative: bool | str | Sequence[str | int] = False,
        monotone: Mapping[str | int, int] | None = None,
        members: int = 1,
        budget: float = 300.0,
        workers: int = 1,
        fine_tune: bool = False,
        categories: Sequence[tuple[int, int]] | None = None,
        device: str = "auto",
        precision: str = "float32",
        compile: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        on_interrupt: str = "raise",
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            net,
            loss=loss,
            optimizer=optimizer,
            learning_rate=learning_rate,
            momentum=momentum,
            schedule=schedule,
            warmup=warmup,
            weight_decay=weight_decay,
            l1=l1,
            l2=l2,
            steps=steps,
            epochs=epochs,
            batch_size=batch_size,
            subset_size=subset_size,
            subsets_per_set=subsets_per_set,
            clip=clip,
            ema=ema,
            validation=validation,
            evaluate_every=evaluate_every,
            patience=patience,
            standardize=standardize,
            relative=relative,
            monotone=monotone,
            members=members,
            budget=budget,
            workers=workers,
            fine_tune=fine_tune,
            categories=categories,
            device=device,
            precision=precision,
            compile=compile,
            checkpoint=checkpoint,
            on_interrupt=on_interrupt,
            verbose=verbose,
            random_state=random_state,
        )
        self.outside = outside

    @property
    def task(self) -> Choice:
        """What a target means."""
        return Choice(outside=self.outside)

    def finish(self, start: Start, outcome: Outcome) -> Self:
        """Keep the results of training, and calibrate on the held-out sets."""
        super().finish(start, outcome)
        self._calibrate_in_fit(start.sets, start.held_out, start.weights)
        return self

    def columns(self, sets: Sets, scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what a table of predictions has a column for, packed, from packed scores.

        With ``outside``, the outside option takes a place of its own among the ranks, so that rank 0 is always what
        is chosen. A column more has the probability that nothing is chosen from the set.
        """
        found = super().columns(sets, scores)
        if self.outside:
            nothing = self.task.probability_of_nothing(sets, scores)
            found["probability_of_nothing"] = np.repeat(nothing, sets.sizes)
        return found


class SubsetChooser(SubsetPredictor, NetEstimator):
    """Subset choice: some objects of a set, each by a sigmoid of its context-dependent utility.

    ``y`` holds rows of 0 and 1. In `Sets` targets are always ranks: 0 for chosen objects, 1 for the others.

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
    net : FATE(), FETA(), SetAttention(), ContextFree(), ..., a name such as "fate", "auto" or "pretrained"; optional
        By default ``FATE()``.
    loss : "binary" or callable
        "binary" is the cross-entropy of each object.
    threshold : float or "held-out"
        The utility above which an object is chosen; 0 is a probability of one half. "held-out" takes the one with
        the best F1 on the held-out sets, 0 where none are held out.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`entourage.Ranker`.
    """

    def __init__(
        self,
        net: Net | str | None = None,
        *,
        loss: str | Loss = "binary",
        threshold: float | str = "held-out",
        optimizer: str = "adamw",
        learning_rate: float = 0.003,
        momentum: float = 0.9,
        schedule: str = "cosine",
        warmup: float = 0.1,
        weight_decay: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        steps: int = 4000,
        epochs: float | None = None,
        batch_size: int = 256,
        subset_size: int | tuple[int, int] | None = None,
        subsets_per_set: int = 1,
        clip: float | None = 1.0,
        ema: float | None = 0.999,
        validation: float = 0.1,
        evaluate_every: int | None = None,
        patience: int | None = 20,
        standardize: bool | str = True,
        relative: bool | str | Sequence[str | int] = False,
        monotone: Mapping[str | int, int] | None = None,
        members: int = 1,
        budget: float = 300.0,
        workers: int = 1,
        fine_tune: bool = False,
        categories: Sequence[tuple[int, int]] | None = None,
        device: str = "auto",
        precision: str = "float32",
        compile: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        on_interrupt: str = "raise",
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            net,
            loss=loss,
            optimizer=optimizer,
            learning_rate=learning_rate,
            momentum=momentum,
            schedule=schedule,
            warmup=warmup,
            weight_decay=weight_decay,
            l1=l1,
            l2=l2,
            steps=steps,
            epochs=epochs,
            batch_size=batch_size,
            subset_size=subset_size,
            subsets_per_set=subsets_per_set,
            clip=clip,
            ema=ema,
            validation=validation,
            evaluate_every=evaluate_every,
            patience=patience,
            standardize=standardize,
            relative=relative,
            monotone=monotone,
            members=members,
            budget=budget,
            workers=workers,
            fine_tune=fine_tune,
            categories=categories,
            device=device,
            precision=precision,
            compile=compile,
            checkpoint=checkpoint,
            on_interrupt=on_interrupt,
            verbose=verbose,
            random_state=random_state,
        )
        self.threshold = threshold

    def _check_training_data(self, *arguments: Any, **named: Any) -> Any:
        if self.threshold != "held-out":
            check_number("threshold (unless it is 'held-out')", self.threshold)
        return super()._check_training_data(*arguments, **named)

    def _learn_from_held_out(
        self, sets: Sets, scores: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> None:
        """Find the threshold of a blend."""
        self.threshold_ = self.task.threshold
        if self.threshold == "held-out":
            self.threshold_ = self.task.best_threshold(sets, scores, weights)

    def keep_reading(self, *arguments: Any, **named: Any) -> None:
        """Keep what the pretrained net has read; where no sets are held out, its threshold is 0."""
        super().keep_reading(*arguments, **named)
        self.threshold_ = self.task.threshold

    def finish(self, start: Start, outcome: Outcome) -> Self:
        """Keep the results of training, and find the threshold on the held-out sets."""
        super().finish(start, outcome)
        self.threshold_ = self.task.threshold if self.threshold != "held-out" else 0.0
        if self.threshold == "held-out" and start.held_out is not None:
            held_out = start.sets[start.held_out]
            weights = None if start.weights is None else start.weights[start.held_out]
            self.threshold_ = self.task.best_threshold(held_out, self._checked_scores(held_out), weights)
        return self
