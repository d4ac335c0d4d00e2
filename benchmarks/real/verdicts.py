"""The verdict of `compare` as a row of the table."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.real.parts import Outcome, Part, Settings, Task
from entourage.selection import compare, verdict, warnings_of

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Ask `compare` whether there is a context effect; of all sets of a part, so there is one row a part.

    Parameters
    ----------
    candidates : what to compare; by default what `compare` takes by itself
    """

    candidates: Callable[[], Any] | None = None
    only: tuple[str, ...] | None = None
    ours: bool = False
    n_folds: int = 1

    def run(self, task: Task, part: Part, fold: int, settings: Settings) -> Outcome:
        """Compare on all sets of the part."""
        sets = part.views["features"]
        people = part.people
        short: dict[str, Any] = {}
        if settings.quick:
            sets = sets[:60]
            people = None if people is None else people[:60]
            short = {"folds": 2, "inner": 1, "steps": 5}
        start = time.perf_counter()
        found = compare(
            sets,
            None if self.candidates is None else self.candidates(),
            metrics=(),
            kind=task.kind,
            groups=people,
            random_state=settings.seed,
            device="cpu",
            **short,
        )
        low, high = found.interval
        return Outcome(
            {"p_value": found.p_value, "gain": found.gain, "low": low, "high": high},
            time.perf_counter() - start,
            "compare",
            extra={
                "verdict": verdict(found),
                "warnings": warnings_of(found),
                "means": {name: means[found.metric] for name, means in found.means.items()},
            },
        )
