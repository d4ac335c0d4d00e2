"""What a data set of the table consists of: parts with views, people and folds; models; targets."""

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.data.resampling import fold_indices
from entourage.data.sets import Sets
from entourage.estimators import NetEstimator
from entourage.estimators.baselines import Baseline
from entourage.tasks import TASKS
from entourage.tasks.evaluate import mean_over_sets, metric_of_sets

__all__ = ["WITH_POSITION", "Fit", "Outcome", "Part", "Settings", "Target", "Task", "folds_of"]

Index = NDArray[np.int64]
#: The main metric where the effect of the known position is added to a score.
WITH_POSITION = "with_position"


@dataclass(frozen=True)
class Settings:
    """What the command says of a fit."""

    budget: float
    seed: int
    quick: bool = False


@dataclass(frozen=True, eq=False)
class Part:
    """Sets that are learnt from and tested together.

    Attributes
    ----------
    views : the same sets in the same order, with the features that a model needs
    folds : pairs of places of training and of test sets
    people : who answered, one a set; None where every set has an answerer of its own
    ids : a number a set, unique within the task, by which results of models are paired
    position : the place on the screen, one an object, packed
    """

    views: Mapping[str, Sets]
    folds: list[tuple[Index, Index]]
    people: Index | None = None
    ids: Index | None = None
    position: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.views.values())))

    def positions(self, places: Index) -> list[Index]:
        """Return the place on the screen of each object of some sets."""
        offsets = next(iter(self.views.values())).offsets
        shown = np.asarray(self.position, dtype=np.int64)
        return [shown[offsets[i] : offsets[i + 1]] for i in places]

    def set_ids(self) -> Index:
        """Return the number of each set."""
        return np.arange(len(self)) if self.ids is None else self.ids


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one fit: metrics, their value for each test set, and the estimator as it was fitted."""

    metrics: dict[str, float]
    seconds: float
    estimator: str
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """A model of the table: fitted to the training sets of a fold, tested on the others.

    Parameters
    ----------
    make : returns the estimators to choose from, by name; where there are several, three inner folds of the training
        sets choose (people are not parted)
    view : the features it takes
    panel : whether a logit's ``fit`` is given the people as ``groups``; models that hold sets out always are
    position : whether ``fit`` is given the place on the screen; see `Part`
    ours : whether it is what Entourage would have a user take; others are rivals
    only : the parts it is for; by default all but "all"
    """

    make: Callable[[Settings], Mapping[str, Any]]
    view: str = "features"
    panel: bool = False
    position: bool = False
    ours: bool = False
    only: tuple[str, ...] | None = None

    def run(self, task: "Task", part: Part, fold: int, settings: Settings) -> Outcome:
        """Fit to the training sets of a fold, and evaluate on its test sets."""
        train, test = part.folds[fold]
        if settings.quick:
            train, test = train[:: max(1, len(train) // 300)], test[:: max(1, len(test) // 100)]
        start = time.perf_counter()
        candidates, extra = dict(self.make(settings)), {}
        name = next(iter(candidates))
        if len(candidates) > 1:
            inner = {key: self._inner(task, part, train, key, settings) for key in candidates}
            name = max(inner, key=lambda key: inner[key])
            extra = {"chosen": name, "inner": inner}
        model = self._fitted(candidates[name], part, train)
        seconds = time.perf_counter() - start
        values = self._values(task, model, part, test)
        if hasattr(model, "tried_"):
            extra["tried"] = [str(row) for row in model.tried_]
        return Outcome(
            {key: mean_over_sets(found) for key, found in values.items()},
            seconds,
            " ".join(repr(model).split()),
            {
                "set": part.set_ids()[test],
                "unit": (part.set_ids() if part.people is None else part.people)[test],
            }
            | values,
            extra
            | {
                "n_train": len(train),
                "n_test": len(test),
                "predict_seconds": round(time.perf_counter() - start - seconds, 2),
            },
        )

    def _inner(self, task: "Task", part: Part, train: Index, name: str, settings: Settings) -> float:
        groups = None if part.people is None else part.people[train]
        found = []
        for inside, outside in fold_indices(len(train), 3, groups=groups):
            model = self._fitted(dict(self.make(settings))[name], part, train[inside])
            found.append(self._values(task, model, part, train[outside])[task.metrics[0]])
        return float(np.nanmean(np.concatenate(found)))

    def _fitted(self, model: Any, part: Part, train: Index) -> Any:
        sets, given = part.views[self.view], {}
        grouped = self.panel or isinstance(
            model, NetEstimator | Baseline
        )  # these hold people out to stop early
        if grouped and part.people is not None and "groups" in inspect.signature(model.fit).parameters:
            given["groups"] = part.people[train]
        if self.position:
            given["position"] = part.positions(train)
        return model.fit(sets[train], **given)

    def _values(self, task: "Task", model: Any, part: Part, test: Index) -> dict[str, NDArray[Any]]:
        """Return each metric for each test set; a subset chooser's own threshold counts."""
        sets = part.views[self.view][test]
        scores = model.predict_scores(sets)
        known = task.metric_functions(model)
        found = {name: metric_of_sets(known[name], sets, scores) for name in task.metrics}
        if self.position:  # predictions leave positions out; here is what it adds to know them
            effects = model.position_effects_
            shown = np.array([effects[place] for row in part.positions(test) for place in row.tolist()])
            found[WITH_POSITION] = metric_of_sets(known[task.metrics[0]], sets, scores + shown)
        return found


@dataclass(frozen=True)
class Target:
    """What issue 17 asks of ours: a value of at least ``least``, or more than each of ``rivals``."""

    model: str
    metric: str
    least: float | None = None
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A data set of the table.

    Attributes
    ----------
    kind : what targets are, "rank", "choice" or "subset"
    metrics : the metrics of a row; the first one chooses
    parts : the names of the parts
    load : reads one part from the folder of the data
    budget : seconds that ``auto`` has for a fit, unless ``--budget`` says otherwise
    total : whether the table shows sums over sets beside means
    """

    name: str
    kind: str
    metrics: tuple[str, ...]
    load: Callable[[Path, str], Part]
    models: Mapping[str, Any]
    parts: tuple[str, ...] = ("",)
    n_folds: int = 5
    budget: float = 120.0
    total: bool = False
    targets: tuple[Target, ...] = ()

    def metric_functions(self, model: Any) -> Mapping[str, Any]:
        """Return the metrics by name; a subset chooser has them at its own threshold."""
        if self.kind == "rank":
            from entourage.metrics import METRICS

            return METRICS
        own = model.task if hasattr(model, "task") else TASKS[self.kind]
        return own.metrics

    def jobs(self) -> list[tuple[str, int, str]]:
        """Return (part, fold, model) of every row."""
        return [
            (part, fold, name)
            for name, model in self.models.items()
            for part in (self.parts if model.only is None else model.only)
            if model.only is not None or part != "all"
            for fold in range(getattr(model, "n_folds", self.n_folds))
        ]


def folds_of(
    n_sets: int, people: Index | None = None, folds: int = 5, seed: int = 0
) -> list[tuple[Index, Index]]:
    """Return folds that keep people together, the same for every model."""
    return fold_indices(n_sets, folds, groups=people, random_state=seed)
