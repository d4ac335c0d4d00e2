"""Gradient-boosted trees by LightGBM, stopped early on held-out sets: what all boosted models share.

Needs the extra ``[boost]`` to learn, and nothing to score: see :mod:`entourage.estimators.baselines.trees`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.sets import Sets
from entourage.errors import UserError, check_number
from entourage.estimators.baselines.base import Baseline, features_of
from entourage.estimators.baselines.trees import Trees
from entourage.estimators.validation_split import FEWEST_TO_HOLD_OUT, hold_out
from entourage.tasks import mean_over_sets
from entourage.tasks.ranking_metrics import Metric
from entourage.training.deadline import time_is_up
from entourage.training.file_checks import Arrays, take

__all__ = ["Boosted", "Gradients"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]
Gradients: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]  # of packed scores; also second derivatives

FEW_OBJECTS = 20_000  # up to which, by default,
FOLDS = 5  # so many models are grown,
FEW_LEAVES, MANY_LEAVES = 7, 31  # of small trees; above it one model of larger ones
TREES_WITHOUT_HELD_OUT = 100  # at most, where there are too few sets to hold some out
EVERY = 5  # rounds between two evaluations of the held-out sets


class Boosted(Baseline):
    """Boosted trees for one task; a subclass says what their gradients are.

    With ``folds`` of 2 or more, so many models are grown side by side, each without one fold of the informative sets.
    The number of rounds is the one that is best on all sets, each scored by the model that has not seen it, and the
    score is the mean of the models. With one fold, a share ``validation`` is held out of one model.

    Parameters
    ----------
    n_estimators : int
        How many rounds at most. Where fewer than 20 sets are informative none are held out, and there are at most
        100 rounds.
    num_leaves : int, optional
        Of a tree; by default 7 for up to 20,000 objects, above that 31.
    learning_rate, min_child_samples, reg_lambda, colsample_bytree : as in LightGBM
    validation : float
        The share of the sets held out to stop early, with one fold; 0 holds out none, whatever the folds, and then all
        rounds are used.
    folds : int, optional
        By default 5 for up to 20,000 objects, above that 1.
    patience : int
        Stop after so many rounds without a better score of the held-out sets, which are evaluated in every fifth.
    relative : bool, "all", or list of columns or places
        Which numbers are also seen relative to their set (:mod:`entourage.data.relative`).
    n_jobs : int
        Threads.
    random_state : int
        Draws the held-out sets; ``groups`` of `fit` stay together.

    Attributes
    ----------
    trees_ : the trees of all folds
    n_rounds_ : how many rounds were kept
    best_score_ : the criterion of the task on the held-out sets after them, None where there are none; the rounds were
        selected by it, so it is slightly optimistic
    converged_ : whether the held-out score stopped rising before the rounds, or the time, ran out
    """

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        num_leaves: int | None = None,
        learning_rate: float = 0.05,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        colsample_bytree: float = 1.0,
        validation: float = 0.1,
        folds: int | None = None,
        patience: int = 50,
        relative: bool | str | Sequence[str | int] = False,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.colsample_bytree = colsample_bytree
        self.validation = validation
        self.folds = folds
        self.patience = patience
        self.relative = relative
        self.n_jobs = n_jobs
        self.random_state = random_state

    # --- what a subclass says -----------------------------------------------------------------------

    @abstractmethod
    def _criterion(self, sets: Sets) -> Metric:
        """Return the metric by which rounds are chosen; higher is better."""

    def _base(self, sets: Sets, weights: Floats) -> float:
        """Return the score that all objects start from."""
        return 0.0

    def _rows(self, sets: Sets) -> NDArray[np.bool_]:
        """Which objects are learnt from."""
        return np.ones(len(sets.objects), dtype=bool)

    @abstractmethod
    def _labels(self, sets: Sets) -> tuple[Floats, dict[str, Any]]:
        """Return the label of each object of all training sets, and LightGBM's parameters for such labels."""

    def _gradients(self, sets: Sets, weights: Floats) -> Gradients | None:
        """Return what computes gradients of packed scores; None where LightGBM knows the objective."""
        return None

    def _finish(self, sets: Sets, scores: Floats | None, weights: Floats) -> None:
        """Learn what else there is from held-out sets and their scores; None where none were held out."""

    # --- the same for all ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number("n_estimators", self.n_estimators, least=1, whole=True)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("min_child_samples", self.min_child_samples, least=1, whole=True)
        check_number("reg_lambda", self.reg_lambda, least=0)
        check_number("colsample_bytree", self.colsample_bytree, above=0, most=1)
        check_number("validation", self.validation, least=0, below=1)
        check_number("patience", self.patience, least=1, whole=True)
        check_number("n_jobs", self.n_jobs, least=1, whole=True)
        check_number("random_state", self.random_state, least=0, most=2**31 - 1, whole=True)
        for name, least in (("num_leaves", 2), ("folds", 1)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=least, whole=True)

    def _learn(self, sets: Sets, weights: Floats) -> None:
        self._check_parameters()
        lightgbm = _lightgbm(type(self).__name__)
        held_out = self._held_out_sets(sets)
        labels, extra = self._labels(sets)
        base = self._base(sets, weights)
        settings = self._settings(len(sets.objects)) | extra
        features = features_of(sets)
        members = [
            self._member(lightgbm, sets, features, labels, weights, base, out, settings | {"seed": seed})
            for seed, out in enumerate(held_out, start=self.random_state)
        ]
        most = self.n_estimators
        evaluation = None
        if len(held_out[0]):
            chosen = np.concatenate(held_out)
            evaluation = _HeldOut(sets[chosen], weights[chosen], self._criterion(sets))
        elif self.validation:
            most = min(most, TREES_WITHOUT_HELD_OUT)
        grown = _grow(members, most, self.patience, evaluation)
        self.n_rounds_, self.best_score_, self.converged_ = grown.rounds, grown.score, grown.converged
        self.trees_ = Trees.mean([Trees.of(m.booster, grown.rounds) for m in members], base)
        if evaluation is None:
            self._finish(sets, None, weights)
        else:
            self._finish(evaluation.sets, grown.scores, evaluation.weights)

    def _held_out_sets(self, sets: Sets) -> list[Index]:
        """Return which sets each model does not see."""
        folds = self.folds
        if folds is None:
            folds = FOLDS if len(sets.objects) <= FEW_OBJECTS else 1
        if not self.validation or int(self.task.informative(sets).sum()) < FEWEST_TO_HOLD_OUT:
            return [np.empty(0, dtype=np.int64)]
        if folds > 1:
            return self._folds(sets, folds, self.random_state)
        if self._units is not None:
            return self._folds(sets, max(2, round(1 / self.validation)), self.random_state)[:1]
        held_out = hold_out(self.task, sets, self.validation, self.random_state)[1]
        return [np.empty(0, dtype=np.int64) if held_out is None else held_out]

    def _settings(self, n_objects: int) -> dict[str, Any]:
        """Return the parameters of LightGBM."""
        by_default = FEW_LEAVES if n_objects <= FEW_OBJECTS else MANY_LEAVES
        return {
            "num_leaves": by_default if self.num_leaves is None else self.num_leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_child_samples,
            "lambda_l2": self.reg_lambda,
            "feature_fraction": self.colsample_bytree,
            "num_threads": self.n_jobs,
            "use_missing": False,  # there are none, so that every split is x <= threshold
            "feature_pre_filter": False,
            "deterministic": True,
            "force_row_wise": True,
            "metric": "None",
            "verbose": -1,
        }

    def _member(
        self,
        lightgbm: Any,
        sets: Sets,
        features: Floats,
        labels: Floats,
        weights: Floats,
        base: float,
        out: Index,
        settings: dict[str, Any],
    ) -> "_Member":
        """Return a booster that has no tree yet, of all sets but those that are held ``out``."""
        of_set = np.ones(len(sets), dtype=bool)
        of_set[out] = False
        learnt = np.repeat(of_set, sets.sizes) & self._rows(sets)
        groups = np.add.reduceat(learnt, sets.offsets[:-1])
        data = lightgbm.Dataset(
            features[learnt],
            labels[learnt],
            weight=np.repeat(weights, sets.sizes)[learnt],
            group=groups[groups > 0],
            init_score=np.full(int(learnt.sum()), base) if base else None,
            params=settings,
        )
        booster = lightgbm.Booster(settings, data)
        if len(out):
            own = sets[out]
            rows = features[np.repeat(~of_set, sets.sizes)]
            start = np.full(len(rows), base) if base else None
            held = data.create_valid(
                rows, np.zeros(len(rows)), group=own.sizes, init_score=start, params=settings
            )
            booster.add_valid(held, "held out")
        return _Member(booster, self._gradients(sets[of_set], weights[of_set]))

    def _score(self, sets: Sets) -> NDArray[Any]:
        return self.trees_.score(features_of(sets))

    def facts(self) -> dict[str, str]:
        """Say in a few words what was learnt, for ``entourage info``."""
        score = "–" if self.best_score_ is None else f"{self.best_score_:.4f} (of the best round)"
        ended = "stopped early" if self.converged_ else "not converged: rounds, sets or time ran out"
        trees = f"{self.trees_.count:,} trees of {len(self.trees_.value):,} leaves in all"
        return {"trained": f"{self.n_rounds_:,} rounds, {ended}", "trees": trees, "held-out score": score}

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted = {
            "n_rounds_": self.n_rounds_,
            "best_score_": self.best_score_,
            "converged_": self.converged_,
        }
        return fitted, self.trees_.tensors()

    def _restore(self, fitted: Any, arrays: Arrays) -> None:
        self._check_parameters()
        self.n_rounds_ = take(fitted, "n_rounds_", int, least=0)
        self.best_score_ = take(fitted, "best_score_", float | None)
        self.converged_ = take(fitted, "converged_", bool)
        self.trees_ = Trees.taken_from(arrays, self.n_columns + self.n_situation_features_in_)


@dataclass
class _Member:
    """A model that grows, and the gradients it follows."""

    booster: Any
    gradients: Gradients | None

    def update(self) -> bool:
        """Add a tree; return whether none could be added."""
        if self.gradients is None:
            return bool(self.booster.update())
        found = self.gradients
        return bool(self.booster.update(fobj=lambda scores, _: found(scores)))

    def held_out_scores(self) -> Floats:
        """Return the scores of the held-out objects."""
        kept: list[Floats] = []

        def keep(scores: Floats, _: Any) -> tuple[str, float, bool]:
            kept.append(scores.astype(np.float64))
            return "kept", 0.0, True

        self.booster.eval_valid(keep)
        return kept[0]


class _HeldOut:
    """Held-out sets, padded in few groups of similar sizes, so that an evaluation takes few calls."""

    def __init__(self, sets: Sets, weights: Floats, metric: Metric) -> None:
        self.sets, self.weights, self.metric = sets, weights, metric
        kind = np.ceil(np.log2(sets.sizes)).astype(np.int64)
        self.parts = []
        row = np.arange(len(sets.objects))
        for some in np.unique(kind):
            chosen = np.flatnonzero(kind == some)
            mine = np.repeat(kind == some, sets.sizes)
            part = sets[chosen]
            targets: NDArray[Any] = part.targets  # type: ignore[assignment]
            self.parts.append((chosen, row[mine], part, part.pad(targets)))

    def __call__(self, scores: Floats) -> float:
        values = np.empty(len(self.sets))
        for chosen, rows, part, targets in self.parts:
            values[chosen] = self.metric(part.pad(scores[rows]), targets, per_set=True)
        return mean_over_sets(values, self.weights)


@dataclass
class _Grown:
    """How growing ended."""

    rounds: int
    score: float | None
    scores: Floats | None  # of the held-out objects, after these rounds
    converged: bool


def _grow(members: list[_Member], most: int, patience: int, evaluate: _HeldOut | None) -> _Grown:
    """Add trees to all members, round by round, until the held-out score has stopped rising."""
    best = _Grown(0, None, None, False)
    rounds = 0
    while rounds < most:
        finished = [member.update() for member in members]
        if all(finished):
            best.converged = True
            break
        rounds += 1
        late = time_is_up()
        if evaluate is not None and (rounds % EVERY == 0 or rounds in (1, most) or late):
            scores = np.concatenate([member.held_out_scores() for member in members])
            score = evaluate(scores)
            if best.score is None or score > best.score:
                best = _Grown(rounds, score, scores, False)
            elif rounds - best.rounds >= patience:
                best.converged = True
                break
        if late:
            break
    if evaluate is None:
        return _Grown(rounds, None, None, best.converged)
    return best


def _lightgbm(name: str) -> Any:
    try:
        import lightgbm
    except ImportError:
        raise UserError(f"{name} needs LightGBM: run pip install 'entourage[boost]'.") from None
    return lightgbm
