"""Search for settings: Optuna over a declared space, chosen on inner folds, judged on outer ones.

Needs the extra ``[tune]``. A study is a journal on disk to which every trial is appended as it goes. A search
that is killed goes on from there: with one worker, to the same end as if it had never been interrupted.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from sklearn.base import clone

from entourage.data.encoder import TableColumns
from entourage.data.folds import fold_indices
from entourage.data.sets import AnySets, Sets
from entourage.errors import DataError, ParameterError, TrainingError, UserError, check_choice, check_number
from entourage.estimators import SetEstimator
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import training_sets
from entourage.nets import FATE
from entourage.selection.spaces import Space, check_space, distribution, present_choice, settings_of, space_of
from entourage.tasks.evaluate import metric_of_sets
from entourage.training.parallel import Future, first_done, open_pool

__all__ = [
    "Outer",
    "Tuned",
    "nested_cross_validation",
    "tune",
]

STARTUP = 8  # trials at random before the search learns from them, and before it gives up on any


@dataclass
class Tuned:
    """What a search found."""

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
    """Search for the settings of ``model`` that do best on inner folds; ``model`` stays as it is.

    The first trial is the model as it came, so that a search never ends with worse. A trial that is behind
    the median of the others at the same point is given up (pruned). A net is watched while it learns, and by
    what it watches itself, the task's criterion: for rankings 0/1-ranking accuracy, for choices the log-likelihood,
    also where ``metric`` is another.

    Parameters
    ----------
    model : a Ranker, a chooser or a baseline; a DiscreteChooser(outside=True) takes sets that end without a choice
    X, y, situation, table : see :meth:`entourage.Ranker.fit`; a frame with set_id=, target=, ... will do
    space : what to search; by default :func:`space_of` the model
    trials : how many settings to try, those of earlier runs of the same study included
    seconds : stop asking for new trials after so long
    folds : how many inner folds; 1 for a single split, in which a fifth is held out
    groups : one label a set, or a column of a frame; sets of one label are in the same fold
    metric : any of the task's metrics (for rankings :data:`entourage.metrics.METRICS`), higher is better; by default
        0/1-ranking accuracy, for choices of one the log-likelihood, for choices of some F1
    study : a journal file; where it holds a search of the same data and settings, that goes on
    name : of the study within the journal, which can hold several
    workers : trials side by side, in processes of one thread each; several workers are not reproducible
    random_state : seeds the search and the folds
    progress : whether to show a bar

    Examples
    --------
    >>> from entourage.estimators.baselines import RankSVM
    >>> from entourage.data import make_hypervolume
    >>> X, ranks = make_hypervolume(n_sets=100, random_state=0)
    >>> found = tune(RankSVM(), X, ranks, trials=3)
    >>> list(found.params), len(found.trials)
    (['C'], 3)
    """
    optuna = _optuna()
    check_number("trials", trials, least=1, whole=True)
    check_number("workers", workers, least=1, whole=True)
    metric = model.task.searched_by if metric is None else check_choice("metric", metric, model.task.metrics)
    sets, _, groups = training_sets(
        model.task, X, y, situation, groups=groups, table=table, codes=model._level_codes
    )
    default_net: dict[str, Any] = {}
    if isinstance(model, SetEstimator) and model.net is None:
        default_net = {"net": FATE()}  # what None means: its parameters need something to belong to
        model = clone(model).set_params(**default_net)
    space = space_of(model) if space is None else space
    check_space(model, space)
    parts = _inner_folds(sets, folds, groups, random_state)
    objective = _Objective(clone(model), sets, parts, metric)
    if not space:
        return Tuned({}, objective({}, lambda step, score: None), [])
    found = _open(study, name, _identity(objective, space, random_state), random_state)
    search = _Search(found, space, objective, random_state)
    if not found.get_trials(deepcopy=False):
        search.begin_with(present_choice(model, space))
    begin = time.monotonic()
    with _bar(trials, progress) as show:
        show(search.done(), search.best())
        for _ in search.go(trials, workers, None if study is None else Path(study)):
            show(search.done(), search.best())
            search.closed = seconds is not None and time.monotonic() - begin > seconds
    finished = found.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    if not finished:
        errors = {t.user_attrs["error"] for t in found.get_trials(deepcopy=False) if "error" in t.user_attrs}
        raise TrainingError(f"No trial came to an end: {'; '.join(sorted(errors)) or 'there was no time'}.")
    best = max(finished, key=lambda t: (t.value, -t.number))
    rows = [
        {
            "number": t.number,
            "state": t.state.name.lower(),
            "params": settings_of(space, t.params),
            "score": t.value,
            "seconds": None if t.duration is None else round(t.duration.total_seconds(), 2),
        }
        for t in found.get_trials(deepcopy=False)
        if _counts(t)
    ]
    return Tuned(default_net | settings_of(space, best.params), best.value, rows)


@dataclass
class Outer:
    """An outer fold: what was chosen without it, and what that is worth on it."""

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
) -> list[Outer]:
    """Judge ``model`` *with* its tuning: settings are chosen on inner folds, outer folds report.

    No outer fold is seen by the search that it judges, and no group is parted. All searches are kept in one
    journal, ``study``: what was tried is not tried again. Other arguments are those of :func:`tune`, to be
    spent in each outer fold.

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
        model.task, X, y, situation, groups=groups, table=table, codes=model._level_codes
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
        best = clone(model).set_params(**found.params)
        _fit(best, sets[train])
        values = metric_of_sets(best.task.metrics[metric], sets[test], best.predict_scores(sets[test]))
        results.append(Outer(found.params, found.score, _mean(values), test, values))
    return results


# --- the objective ----------------------------------------------------------------------------------


@dataclass
class _Objective:
    """The mean score over the inner folds, told of its progress so that it can be given up.

    All that is told of a trial is of one measure, so that it can be compared with other trials and with itself: the
    criterion where the model reports it while it learns, else the metric of the search.
    """

    model: SetPredictor
    sets: Sets
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    metric: str

    def __call__(self, params: Mapping[str, Any], report: Callable[[int, float], None]) -> float:
        scores: list[float] = []
        told: list[float] = []  # of the folds that are done
        for i, (train, test) in enumerate(self.parts):
            model = clone(self.model).set_params(**params)
            looks = iter(range(i * 1000, i * 1000 + 999))

            def look(
                score: float, looks: Iterator[int] = looks, earlier: tuple[float, ...] = tuple(told)
            ) -> None:
                report(next(looks), float(np.mean([*earlier, score])))

            _fit(model, self.sets[train], look if self.watched else None)
            given = self.sets[test]
            predicted = model.predict_scores(given)
            scores.append(_mean(metric_of_sets(model.task.metrics[self.metric], given, predicted)))
            told.append(
                _mean(metric_of_sets(model.task.criterion, given, predicted)) if self.watched else scores[-1]
            )
            report(i * 1000 + 999, float(np.mean(told)))
        return float(np.mean(scores))

    @property
    def watched(self) -> bool:
        """Whether the model reports its criterion while it learns."""
        return isinstance(self.model, SetEstimator) and bool(self.model.validation)


def _fit(model: SetPredictor, sets: Sets, look: Callable[[float], None] | None = None) -> None:
    if isinstance(model, SetEstimator):
        model.fit(sets, on_evaluation=look)
    else:
        model.fit(sets)


def _mean(values: NDArray[np.float64]) -> float:
    if np.isnan(values).all():
        raise DataError("A fold holds no set for which the metric means anything; take fewer folds.")
    return float(np.nanmean(values))


def _inner_folds(
    sets: Sets, folds: int, groups: ArrayLike | None, seed: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    check_number("folds", folds, least=1, whole=True)
    if folds > 1:
        return fold_indices(len(sets), folds, groups=groups, random_state=seed)
    return fold_indices(len(sets), 5, groups=groups, random_state=seed)[:1]


# --- the search -------------------------------------------------------------------------------------


class _Search:
    """Asks Optuna for settings, has them tried here or by workers, and tells it what came of it."""

    def __init__(self, study: Any, space: Space, objective: _Objective, seed: int) -> None:
        self.study, self.space, self.objective, self.seed = study, space, objective, seed
        self.distributions = {key: distribution(what) for key, what in space.items()}
        self.closed = False  # whether to ask for no more

    def begin_with(self, params: dict[str, Any] | None) -> None:
        """Put the settings of the model as it came first."""
        if params is not None:
            self.study.enqueue_trial(params)

    def best(self) -> float | None:
        """Return the best score so far."""
        values = [t.value for t in self.study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        return max(values) if values else None

    def go(self, trials: int, workers: int, journal: Path | None) -> Iterator[None]:
        """Run until there are so many trials, or until closed; yields whenever one is done."""
        if workers > 1 and journal is None:
            raise ParameterError("Several workers need a study on disk to meet in: give study=PATH.")
        evaluate = _EvaluateTrial(self.objective, self.space, self.study.study_name, journal, self.study)
        running: dict[Future[tuple[str, Any]], Any] = {}
        with open_pool(evaluate, workers) as pool:
            while running or (not self.closed and self.done() < trials):
                while not self.closed and len(running) < workers and self.done() + len(running) < trials:
                    trial = self._ask(self.done() + len(running))
                    running[pool.submit(trial._trial_id)] = trial
                for future in first_done(running):
                    self._tell(running.pop(future), future.result())
                    yield

    def done(self) -> int:
        """Count the trials that were tried to their end."""
        return sum(_counts(t) for t in self.study.get_trials(deepcopy=False))

    def _ask(self, number: int) -> Any:
        """Ask for the next settings, by a sampler seeded for this place in the search."""
        optuna = _optuna()
        seed = int(np.random.default_rng([self.seed, number]).integers(2**31))
        self.study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        return self.study.ask(self.distributions)

    def _tell(self, trial: Any, outcome: tuple[str, Any]) -> None:
        states = _optuna().trial.TrialState
        kind, value = outcome
        if kind == "score":
            self.study.tell(trial, value)
        elif kind == "pruned":
            self.study.tell(trial, state=states.PRUNED)
        else:
            trial.set_user_attr("error", value)
            self.study.tell(trial, state=states.FAIL)


@dataclass
class _EvaluateTrial:
    """Evaluates a trial, by its number in the storage; in a worker it opens the study when it is first called."""

    objective: _Objective
    space: Space
    name: str  # of the study
    journal: Path | None
    study: Any  # None in a worker, until its first trial

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"study": None}

    def __call__(self, trial_id: int) -> tuple[str, Any]:
        """Return a score, that the trial was pruned, or an error."""
        optuna = _optuna()
        if self.study is None and self.journal is not None:
            self.study = optuna.load_study(
                study_name=self.name, storage=_storage(self.journal), pruner=_pruner()
            )
        trial = optuna.trial.Trial(self.study, trial_id)

        def report(step: int, score: float) -> None:
            trial.report(score, step)
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            return "score", self.objective(settings_of(self.space, trial.params), report)
        except optuna.TrialPruned:
            return "pruned", None
        except (TrainingError, ParameterError) as error:  # these settings can't be trained; others may
            return "error", str(error)


# --- the study --------------------------------------------------------------------------------------


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UserError("Tuning needs Optuna: run pip install 'entourage[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _storage(journal: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(journal)))


def _pruner() -> Any:
    return _optuna().pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=9)


def _open(journal: str | os.PathLike[str] | None, name: str, identity: str, seed: int) -> Any:
    """Open or begin a study; trials that were running when it was killed are put aside, to be run again."""
    optuna = _optuna()
    storage = None
    if journal is not None:
        path = Path(journal)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _drop_broken_end(path)
            storage = _storage(path)
            optuna.study.get_all_study_names(storage)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} can't be used as a study: {error}. Move it or name another file."
            ) from error
    study = optuna.create_study(
        study_name=name, storage=storage, direction="maximize", pruner=_pruner(), load_if_exists=True
    )
    known = study.user_attrs.get("identity")
    if known is None:
        study.set_user_attr("identity", identity)
    elif known != identity:
        raise UserError(
            f"{journal} holds a search of that name on other data, with another space or other folds. "
            "Name another file."
        )
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _drop_broken_end(path: Path) -> None:
    """Cut off a last line that was half written when the search was killed."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


def _counts(trial: Any) -> bool:
    """Whether a trial was tried to its end: those that were killed are tried again."""
    return trial.state.name in ("COMPLETE", "PRUNED") or "error" in trial.user_attrs


def _identity(objective: _Objective, space: Space, seed: int) -> str:
    """Tell this search from any other."""
    digest = hashlib.sha256()
    sets = objective.sets
    for array in (
        sets.objects,
        sets.offsets,
        sets.targets,
        sets.situation,
        *(test for _, test in objective.parts),
    ):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    model = clone(objective.model)
    if "device" in model.get_params():
        model.set_params(device="auto", verbose=False)  # where it runs and what it shows is no part of it
    digest.update(repr((model, sorted(space.items(), key=str), objective.metric, seed)).encode())
    task = objective.model.task
    if objective.watched and task.metrics[objective.metric] is not task.criterion:
        digest.update(b"pruned by the criterion")  # studies of earlier versions mixed it with the metric
    return digest.hexdigest()


@contextlib.contextmanager
def _bar(trials: int, visible: bool) -> Iterator[Callable[[int, float | None], None]]:
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as progress:
        bar = progress.add_task("tuning", total=trials)

        def show(done: int, best: float | None) -> None:
            news = "tuning" if best is None else f"tuning, best {best:.4f}"
            progress.update(bar, completed=done, description=news)

        yield show
