"""A search by Optuna: its journal on disk, its trials here or in workers. Needs the extra ``[tune]``.

The journal belongs to the process that searches; workers are sent settings and return scores. Trials are told in the
order in which they were asked for, and each is asked for when the same number of them is known. So a search depends on
its seed and its number of workers alone, not on where they are or which is faster. One that is killed goes on from its
journal, to the same end as if it had never been interrupted.
"""

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from entourage.errors import ParameterError, TrainingError, UserError
from entourage.selection.objective import Objective
from entourage.selection.pruning import STARTUP, Pruned, Reports, medians_of
from entourage.selection.spaces import Space, distribution, settings_of
from entourage.training.parallel import Future, open_pool

__all__ = ["Search", "is_finished", "load_optuna", "open_study"]


class Search:
    """Asks Optuna for settings, has them evaluated here or by workers, and tells it the scores.

    Parameters
    ----------
    study : of :func:`open_study`
    space, objective : what to search, and what to maximise
    first : what to try first, if anything
    random_state : seeds the search
    """

    def __init__(
        self,
        study: Any,
        space: Space,
        objective: Objective,
        first: dict[str, Any] | None,
        random_state: int,
    ) -> None:
        self.study, self.space, self.objective = study, space, objective
        self.first, self.random_state = first, random_state
        self.distributions = {key: distribution(what) for key, what in space.items()}
        self.closed = False  # whether to begin no more

    def best_score(self) -> float | None:
        """Return the best score so far."""
        values = [t.value for t in self._finished() if t.state.name == "COMPLETE"]
        return max(values) if values else None

    def n_finished(self) -> int:
        """Count the trials that came to an end."""
        return len(self._finished())

    def run(self, trials: int, workers: int) -> Iterator[None]:
        """Run until so many trials are finished, or until closed; yields whenever one is."""
        ahead = 2 * workers - 1  # so that few workers wait for the one whose trial is to be told next
        left = deque(self._begun())
        running: deque[tuple[Any, Future[_Outcome]]] = deque()
        with open_pool(_EvaluateTrial(self.objective, self.space), workers) as pool:
            while True:
                while not self.closed and len(running) < ahead:
                    place = self.n_finished() + len(running)
                    if place >= trials:
                        break
                    trial = left.popleft() if left else self._ask(place)
                    job = _Trial(trial.params, self._medians(max(0, place + 1 - ahead)))
                    running.append((trial, pool.submit(job)))
                if not running:
                    return
                trial, future = running.popleft()
                self._tell(trial, future.result())
                yield

    def _finished(self) -> list[Any]:
        return [t for t in self.study.get_trials(deepcopy=False) if is_finished(t)]

    def _begun(self) -> list[Any]:
        """Return the trials that were running when the search was killed."""
        optuna = load_optuna()
        begun = self.study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING])
        return [optuna.trial.Trial(self.study, t._trial_id) for t in begun]

    def _medians(self, known: int) -> dict[int, float]:
        """Return what a trial is compared with that begins when so many are known."""
        told = self._finished()[:known]
        return medians_of(t.intermediate_values for t in told if t.state.name == "COMPLETE")

    def _ask(self, place: int) -> Any:
        """Ask for the next settings, by a sampler seeded for this place in the search."""
        optuna = load_optuna()
        waiting = [optuna.trial.TrialState.WAITING]  # where the search was killed just after the next line
        if place == 0 and self.first is not None and not self.study.get_trials(False, waiting):
            self.study.enqueue_trial(self.first)
        seed = int(np.random.default_rng([self.random_state, place]).integers(2**31))
        self.study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        return self.study.ask(self.distributions)

    def _tell(self, trial: Any, outcome: "_Outcome") -> None:
        states = load_optuna().trial.TrialState
        known = self.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        for number, score in outcome.reports.items():
            if number not in known:  # it may have been killed between two of them
                trial.report(score, number)
        trial.set_user_attr("seconds", round(outcome.seconds, 2))
        if outcome.error is not None:
            trial.set_user_attr("error", outcome.error)
            self.study.tell(trial, state=states.FAIL)
        elif outcome.score is None:
            self.study.tell(trial, state=states.PRUNED)
        else:
            self.study.tell(trial, outcome.score)


@dataclass(frozen=True)
class _Trial:
    """What a worker needs to know of a trial."""

    params: dict[str, Any]  # as Optuna has them
    medians: dict[int, float]


@dataclass(frozen=True)
class _Outcome:
    """What came of a trial: a score, or an error; neither if it was pruned."""

    score: float | None
    error: str | None
    reports: dict[int, float]
    seconds: float


@dataclass(frozen=True)
class _EvaluateTrial:
    """Evaluates a trial; carries all that a worker needs."""

    objective: Objective
    space: Space

    def __call__(self, trial: _Trial) -> _Outcome:
        begin = time.monotonic()
        report = Reports(trial.medians)
        score = error = None
        try:
            score = self.objective(settings_of(self.space, trial.params), report)
        except Pruned:
            pass
        except (TrainingError, ParameterError) as reason:  # these settings can't be trained; others may
            error = str(reason)
        return _Outcome(score, error, report.scores, time.monotonic() - begin)


def is_finished(trial: Any) -> bool:
    """Whether a trial came to an end; those that were killed are run again."""
    state = trial.state.name
    return state in ("COMPLETE", "PRUNED") or (state == "FAIL" and "error" in trial.user_attrs)


def open_study(
    journal: str | os.PathLike[str] | None, name: str, objective: Objective, space: Space, random_state: int
) -> Any:
    """Open or begin a study; a trial that was killed before it had all its settings is put aside."""
    optuna = load_optuna()
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
        study_name=name,
        storage=storage,
        direction="maximize",
        pruner=optuna.pruners.NopPruner(),  # workers prune, by what they are sent
        load_if_exists=True,
    )
    identity, known = _identity(objective, space, random_state), study.user_attrs.get("identity")
    if known is None:
        study.set_user_attr("identity", identity)
    elif known != identity:
        raise UserError(
            f"{journal} holds a search of that name on other data, with another space or other folds. "
            "Name another file."
        )
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        if trial.params.keys() < space.keys():  # it was killed while it asked
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def load_optuna() -> Any:
    """Import Optuna, or say how to install it."""
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


def _drop_broken_end(path: Path) -> None:
    """Cut off a last line that was half written when the search was killed."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


def _identity(objective: Objective, space: Space, random_state: int) -> str:
    """Tell this search from any other."""
    digest = hashlib.sha256()
    sets = objective.sets
    for array in (
        sets.objects,
        sets.offsets,
        sets.targets,
        sets.situation,
        *(test for _, test in objective.folds),
    ):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    if sets.position is not None:
        digest.update(repr(sets.position.tolist()).encode())
    model = clone(objective.model)
    if "device" in model.get_params():
        model.set_params(device="auto", verbose=False)  # where it runs and what it shows is no part of it
    digest.update(repr((model, sorted(space.items(), key=str), objective.metric, random_state)).encode())
    task = objective.model.task
    if objective.reports_criterion and task.metrics[objective.metric] is not task.criterion:
        digest.update(b"pruned by the criterion")  # studies of earlier versions mixed it with the metric
    return digest.hexdigest()
