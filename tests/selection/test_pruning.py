"""Pruning: by the history that is sent along with a trial, as Optuna would have with its journal."""

import numpy as np
import optuna
import pytest

from entourage.selection.pruning import Pruned, Reports, medians_of


def reports_of(rng):
    """Some reports of one or two folds, the first of which may be cut short; some may be undefined."""
    numbers = [*range(rng.integers(1, 15)), 999, *range(1000, 1000 + rng.integers(0, 15)), 1999]
    level = rng.normal()
    return {n: float(rng.choice([level + rng.normal(), np.nan], p=[0.95, 0.05])) for n in numbers}


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")  # of Optuna's
@pytest.mark.parametrize("seed", range(8))
def test_trials_are_pruned_where_the_median_pruner_of_optuna_would(seed):
    rng = np.random.default_rng(seed)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=8, n_warmup_steps=9)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    complete, pruned = [], 0
    for _ in range(30):
        mine, theirs = Reports(medians_of(complete)), study.ask()
        for number, score in reports_of(rng).items():
            theirs.report(score, number)
            if theirs.should_prune():
                with pytest.raises(Pruned):
                    mine(number, score)
                study.tell(theirs, state=optuna.trial.TrialState.PRUNED)
                pruned += 1
                break
            mine(number, score)
        else:
            study.tell(theirs, 0.0)
            complete.append(mine.scores)
    assert 0 < pruned < 22
