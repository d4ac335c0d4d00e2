"""A search by Optuna: its journal on disk, its trials here or in workers. Needs the extra ``[tune]``.

A search that is killed goes on from its journal: with one worker, to the same end as if it had never been interrupted.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from entourage.errors import ParameterError, TrainingError, UserError
from entourage.selection.objective import Objective
from entourage.selection.spaces import Space, distribution, settings_of
from entourage.training.parallel import Future, first_done, open_pool

__all__ = ["Search", "is_finished", "load_optuna", "open_study"]

STARTUP = 8  # trials at random before the search learns from them, and before it prunes any


class Search:
    """Asks Optuna for settings, has them evaluated here or by workers, and tells it the scores."""

    def __init__(self, study: Any, space: Space, objective: Objective, random_state: int) -> None:
        self.study, self.space, self.objective, self.random_state = study, space, objective, random_state
        self.distributions = {key: distribution(what) for key, what in space.items()}
        self.closed = False  # whether to ask for no more

    def best_score(self) -> float | None:
        """Return the best score so far."""
        values = [t.value for t in self.study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        return max(values) if values else None

    def n_finished(self) -> int:
        """Count the trials that came to an end."""
        return sum(is_finished(t) for t in self.study.get_trials(deepcopy=False))

    def run(self, trials: int, workers: int, journal: Path | None) -> Iterator[None]:
        """Run until so many trials are finished, or until closed; yields whenever one is."""
        if workers > 1 and journal is None:
            raise ParameterError("Several workers need a study on disk to meet in: give study=PATH.")
        evaluate = _EvaluateTrial(self.objective, self.space, self.study.study_name, journal, self.study)
        running: dict[Future[tuple[str, Any]], Any] = {}
        with open_pool(evaluate, workers) as pool:
            while running or (not self.closed and self.n_finished() < trials):
                while not self.closed and len(running) < workers:
                    number = self.n_finished() + len(running)
                    if number >= trials:
                        break
                    trial = self._ask(number)
                    running[pool.submit(trial._trial_id)] = trial
                for future in first_done(running):
                    self._tell(running.pop(future), future.result())
                    yield

    def _ask(self, number: int) -> Any:
        """Ask for the next settings, by a sampler seeded for this place in the search."""
        seed = int(np.random.default_rng([self.random_state, number]).integers(2**31))
        self.study.sampler = load_optuna().samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        return self.study.ask(self.distributions)

    def _tell(self, trial: Any, outcome: tuple[str, Any]) -> None:
        states = load_optuna().trial.TrialState
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

    objective: Objective
    space: Space
    name: str  # of the study
    journal: Path | None
    study: Any  # None in a worker, until its first trial

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"study": None}

    def __call__(self, trial_id: int) -> tuple[str, Any]:
        """Return a score, that the trial was pruned, or an error."""
        optuna = load_optuna()
        if self.study is None and self.journal is not None:
            self.study = optuna.load_study(
                study_name=self.name, storage=_storage(self.journal), pruner=_pruner()
            )
        trial = optuna.trial.Trial(self.study, trial_id)

        def report(number: int, score: float) -> None:
            trial.report(score, number)
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            return "score", self.objective(settings_of(self.space, trial.params), report)
        except optuna.TrialPruned:
            return "pruned", None
        except (TrainingError, ParameterError) as error:  # these settings can't be trained; others may
            return "error", str(error)


def is_finished(trial: Any) -> bool:
    """Whether a trial came to an end; those that were killed are run again."""
    return trial.state.name in ("COMPLETE", "PRUNED") or "error" in trial.user_attrs


def open_study(
    journal: str | os.PathLike[str] | None, name: str, objective: Objective, space: Space, random_state: int
) -> Any:
    """Open or begin a study; trials that were running when it was killed are put aside, to be run again."""
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
        study_name=name, storage=storage, direction="maximize", pruner=_pruner(), load_if_exists=True
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


def _pruner() -> Any:
    return load_optuna().pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=9)


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
