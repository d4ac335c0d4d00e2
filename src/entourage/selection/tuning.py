"""Search for settings: Optuna over a declared space, chosen on inner folds, evaluated on outer ones.

Needs the extra ``[tune]``. A study is a journal on disk to which every trial is appended. A search that is killed goes
on from there, to the same end as if it had never been interrupted.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from sklearn.base import clone

from entourage.data.encoder import TableColumns
from entourage.data.resampling import fold_indices
from entourage.data.sets import AnySets
from entourage.errors import ParameterError, TrainingError, check_choice, check_number
from entourage.estimators import NetEstimator
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import training_sets
from entourage.estimators.pretrained_net import is_pretrained
from entourage.estimators.setup import check_net
from entourage.selection.objective import Objective, defined_mean, inner_folds
from entourage.selection.spaces import Space, check_space, present_choice, settings_of, space_of
from entourage.selection.study import Search, is_finished, load_optuna, open_study
from entourage.tasks.evaluate import metric_of_sets

__all__ = ["OuterFold", "Tuned", "nested_cross_validation", "tune"]


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    params: dict[str, Any]  # for model.set_params
    score: float  # the mean over the inner folds
    trials: list[dict[str, Any]] = field(repr=False)  # number, state, params, score, seconds of each


def tune(
    model: SetPredictor,
    X: AnySets,
    y: Any = None,
    *,
    space: Space | None = None,
    trials: int = 40,
    seconds: float | None = None,
    folds: int = 3,
    groups: ArrayLike | str | None = None,
    situation: ArrayLike | Sequence[str] | None = None,
    metric: str | None = None,
    study: str | os.PathLike[str] | None = None,
    name: str = "study",
    workers: int = 1,
    random_state: int = 0,
    progress: bool = False,
    **table: Unpack[TableColumns],
) -> Tuned:
    """Search for the settings of ``model`` with the best mean score over inner folds; ``model`` stays as it is.

    The first trial is the model as it came, so that a search never ends with worse. A trial that is below
    the median of the others at the same point is pruned. Nets are pruned while they train, by the criterion of their
    early stopping: for rankings 0/1-ranking accuracy, for choices the log-likelihood, also where ``metric`` is another.

    Parameters
    ----------
    model : a Ranker, a chooser or a baseline; a DiscreteChooser(outside=True) takes sets in which nothing was chosen
    X, y, situation, table : see :meth:`entourage.Ranker.fit`; a frame with set_id=, target=, ... will do
    space : what to search; by default :func:`space_of` the model
    trials : number of settings to try, those of earlier runs of the same study included
    seconds : begin no new trial after so long
    folds : number of inner folds; 1 for a single split, in which a fifth is held out
    groups : one label a set, or a column of a frame; sets of one label are in the same fold
    metric : any of the task's metrics (for rankings :data:`entourage.metrics.METRICS`), higher is better; by default
        0/1-ranking accuracy, for choices of one the log-likelihood, for choices of some F1
    study : a journal file; where it holds a search of the same data and settings, that goes on
    name : of the study within the journal, which can hold several
    workers : number of trials in parallel, in processes of one thread each. Settings are chosen knowing all trials but
        the ``2 * workers - 2`` before them: the same seed and number of workers give the same search
    random_state : seeds the search and the folds
    progress : whether to show a progress bar

    Examples
    --------
    >>> from entourage.estimators.baselines import RankSVM
    >>> from entourage.data import make_hypervolume
    >>> X, ranks = make_hypervolume(n_sets=100, random_state=0)
    >>> found = tune(RankSVM(), X, ranks, trials=3)
    >>> list(found.params), len(found.trials)
    (['C'], 3)
    """
    load_optuna()  # says what is missing before any long work
    check_number("trials", trials, least=1, whole=True)
    check_number("workers", workers, least=1, whole=True)
    if isinstance(model, NetEstimator) and isinstance(model.net, str) and model.net == "auto":
        raise ParameterError(
            'tune searches for the settings of one model, and "auto" blends several: name one, such as "fate"; or fit '
            '"auto" without tuning.'
        )
    if is_pretrained(model):
        raise ParameterError(
            "tune searches for settings of training, and the pretrained net is not trained: fit it as it is, or name "
            "another, such as fate."
        )
    metric = model.task.searched_by if metric is None else check_choice("metric", metric, model.task.metrics)
    sets, _, groups = training_sets(
        model.task, X, y, situation, groups=groups, table=table, codes=model.level_codes
    )
    default_net: dict[str, Any] = {}
    if isinstance(model, NetEstimator) and (model.net is None or isinstance(model.net, str)):
        default_net = {
            "net": check_net(model.net)
        }  # what it means: its parameters need something to belong to
        model = clone(model).set_params(**default_net)
    space = space_of(model) if space is None else space
    check_space(model, space)
    objective = Objective(clone(model), sets, inner_folds(sets, folds, groups, random_state), metric)
    if not space:
        return Tuned({}, objective({}, lambda number, score: None), [])
    opened = open_study(study, name, objective, space, random_state)
    search = Search(opened, space, objective, present_choice(model, space), random_state)
    begin = time.monotonic()
    with _progress_bar(trials, progress) as show:
        show(search.n_finished(), search.best_score())
        for _ in search.run(trials, workers):
            show(search.n_finished(), search.best_score())
            search.closed = seconds is not None and time.monotonic() - begin > seconds
    finished = [t for t in opened.get_trials(deepcopy=False) if is_finished(t)]
    complete = [t for t in finished if t.state.name == "COMPLETE"]
    if not complete:
        errors = {t.user_attrs["error"] for t in finished if "error" in t.user_attrs}
        raise TrainingError(f"No trial came to an end: {'; '.join(sorted(errors)) or 'there was no time'}.")
    best = max(complete, key=lambda t: (t.value, -t.number))
    rows = [
        {
            "number": t.number,
            "state": t.state.name.lower(),
            "params": settings_of(space, t.params),
            "score": t.value,
            "seconds": t.user_attrs.get("seconds", t.duration and round(t.duration.total_seconds(), 2)),
        }
        for t in finished
    ]
    return Tuned(default_net | settings_of(space, best.params), best.value, rows)


@dataclass(frozen=True)
class OuterFold:
    """An outer fold: the settings chosen without it, and their score on it."""

    params: dict[str, Any]
    inner_score: float
    score: float
    test: NDArray[np.int64] = field(repr=False)  # which sets it holds
    per_set: NDArray[np.float64] = field(repr=False)  # the metric of each of them, NaN where undefined


def nested_cross_validation(
    model: SetPredictor,
    X: AnySets,
    y: Any = None,
    *,
    outer: int = 5,
    folds: int = 3,
    groups: ArrayLike | str | None = None,
    situation: ArrayLike | Sequence[str] | None = None,
    metric: str | None = None,
    random_state: int = 0,
    name: str = "study",
    study: str | os.PathLike[str] | None = None,
    **search: Any,
) -> list[OuterFold]:
    """Evaluate ``model`` *with* its tuning: settings are chosen on inner folds and evaluated on outer ones.

    No search sees the outer fold that it is evaluated on, and no group is split. All searches are kept in one
    journal, ``study``: what was tried is not tried again. Other arguments are those of :func:`tune`, for the search
    of each outer fold.

    Examples
    --------
    >>> from entourage.estimators.baselines import RankSVM
    >>> from entourage.data import make_hypervolume
    >>> X, ranks = make_hypervolume(n_sets=100, random_state=0)
    >>> [fold.score > 0.5 for fold in nested_cross_validation(RankSVM(), X, ranks, outer=2, trials=2)]
    [True, True]
    """
    metric = model.task.searched_by if metric is None else metric
    table: TableColumns = {}
    for key in [key for key in search if key in TableColumns.__annotations__]:
        table[key] = search.pop(key)  # type: ignore[literal-required]
    sets, _, groups = training_sets(
        model.task, X, y, situation, groups=groups, table=table, codes=model.level_codes
    )
    labels = None if groups is None else np.asarray(groups)
    results = []
    for i, (train, test) in enumerate(
        fold_indices(len(sets), outer, groups=labels, random_state=random_state)
    ):
        found = tune(
            model,
            sets[train],
            folds=folds,
            groups=None if labels is None else labels[train],
            metric=metric,
            random_state=random_state + 1 + i,
            study=study,
            name=f"{name}, outer fold {i + 1}",
            **search,
        )
        best: Any = clone(model).set_params(**found.params)
        best.fit(sets[train])
        values = metric_of_sets(best.task.metrics[metric], sets[test], best.predict_scores(sets[test]))
        results.append(OuterFold(found.params, found.score, defined_mean(values), test, values))
    return results


@contextlib.contextmanager
def _progress_bar(trials: int, visible: bool) -> Iterator[Callable[[int, float | None], None]]:
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as progress:
        bar = progress.add_task("tuning", total=trials)

        def show(done: int, best: float | None) -> None:
            description = "tuning" if best is None else f"tuning, best {best:.4f}"
            progress.update(bar, completed=done, description=description)

        yield show
