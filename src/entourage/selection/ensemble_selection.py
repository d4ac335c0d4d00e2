"""Greedy ensemble selection: weights for a blend of models, from scores of sets that none of them learnt from.

Models are added one at a time, with replacement, whichever makes the blend best (Caruana et al., 2004). On few sets
that fits noise, so it begins with up to three of the best, is done on several bootstrap samples of the sets, and the
weights are averaged.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.training.deadline import time_is_up

__all__ = ["select_weights"]

Floats: TypeAlias = NDArray[np.float64]

SAMPLES = 12  # bootstrap samples of the sets
ROUNDS = 8  # models in a blend, at most
START = 3  # of them at its beginning, at most
LEAST_WEIGHT = 0.04  # a model of less is left out: it costs more than it adds


def select_weights(
    contributions: Mapping[str, Floats],
    evaluate: Callable[[Floats], Floats],
    weights: Floats,
    random_state: int = 0,
) -> dict[str, float]:
    """Return the weights of the models that are worth having; they sum to 1.

    Parameters
    ----------
    contributions : of each model, what it adds to a mix, on sets that it did not learn from
    evaluate : a mix to a value for each set, higher is better, NaN where it has none
    weights : one a set
    random_state : draws the samples

    Examples
    --------
    >>> truth = np.random.default_rng(0).normal(size=200)
    >>> good, bad = truth + np.random.default_rng(1).normal(size=200) / 9, -truth
    >>> select_weights({"good": good, "bad": bad}, lambda mix: -((mix - truth) ** 2), np.ones(200))
    {'good': 1.0}
    """
    names = list(contributions)
    singles = {name: evaluate(contributions[name]) for name in names}
    rng = np.random.default_rng([random_state, 1])
    totals = dict.fromkeys(names, 0.0)
    for sample in range(SAMPLES):
        drawn = rng.multinomial(len(weights), np.full(len(weights), 1 / len(weights))) * weights
        if sample and time_is_up():
            break
        for name, share in _one_sample(contributions, evaluate, singles, drawn).items():
            totals[name] += share
    sum_of_all = sum(totals.values())
    kept = {name: total for name, total in totals.items() if total >= LEAST_WEIGHT * sum_of_all}
    whole = sum(kept.values())
    return {name: total / whole for name, total in sorted(kept.items(), key=lambda pair: (-pair[1], pair[0]))}


def _one_sample(
    contributions: Mapping[str, Floats],
    evaluate: Callable[[Floats], Floats],
    singles: Mapping[str, Floats],
    drawn: Floats,
) -> dict[str, float]:
    """Add models one at a time; return the shares in the best blend on the way."""

    def mean(values: Floats) -> float:
        known = ~np.isnan(values) & (drawn > 0)
        return float(np.average(values[known], weights=drawn[known])) if known.any() else -np.inf

    ranked = sorted(singles, key=lambda name: -mean(singles[name]))[:START]
    firsts = [ranked[:count] for count in range(1, len(ranked) + 1)]  # begin with the best one, two or three
    means = [mean(evaluate(np.mean([contributions[name] for name in names], axis=0))) for names in firsts]
    chosen, best = list(firsts[int(np.argmax(means))]), max(means)
    mix = np.sum([contributions[name] for name in chosen], axis=0)
    for count in range(len(chosen) + 1, ROUNDS + 1):
        tried = {name: mean(evaluate((mix + own) / count)) for name, own in contributions.items()}
        name = max(tried, key=lambda one: tried[one])
        if not tried[name] > best or time_is_up():
            break
        best, mix = tried[name], mix + contributions[name]
        chosen.append(name)
    return {name: chosen.count(name) / len(chosen) for name in dict.fromkeys(chosen)}
