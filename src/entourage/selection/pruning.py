"""When a trial is given up: its reports are compared with those of the trials that were complete when it began.

That history is known beforehand and small, so it is sent along with a trial: a worker needs no study, wherever it is,
and what becomes of a trial does not depend on which others happen to be done in the meantime.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["STARTUP", "Pruned", "Reports", "medians_of"]

STARTUP = 8  # trials that are complete before any is pruned
WARMUP = 9  # reports of a trial before it is pruned


class Pruned(Exception):
    """A trial is given up."""


@dataclass
class Reports:
    """Takes the reports of a trial; raises :class:`Pruned` once its best score is below the median of the others.

    Parameters
    ----------
    medians : of the trials before it, by number of the report

    Examples
    --------
    >>> report = Reports({1000: 0.6})
    >>> report(999, 0.5)
    >>> report(1000, 0.4)
    Traceback (most recent call last):
    ...
    entourage.selection.pruning.Pruned
    """

    medians: Mapping[int, float]
    scores: dict[int, float] = field(default_factory=dict)

    def __call__(self, number: int, score: float) -> None:
        """Take a report."""
        self.scores[number] = score
        best = max((score for score in self.scores.values() if not math.isnan(score)), default=math.nan)
        if number >= WARMUP and number in self.medians and not best >= self.medians[number]:
            raise Pruned


def medians_of(complete: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return the median of each report over the complete trials; {} where those are too few to prune by.

    Examples
    --------
    >>> medians_of([{999: i / 10} for i in range(9)])
    {999: 0.4}
    """
    trials = list(complete)
    if len(trials) < STARTUP:
        return {}
    known: dict[int, list[float]] = {}
    for reports in trials:
        for number, score in reports.items():
            if not math.isnan(score):
                known.setdefault(number, []).append(score)
    return {number: float(np.percentile(scores, 50)) for number, scores in known.items()}
