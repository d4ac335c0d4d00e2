"""The differences that ``python -m benchmarks.real --show`` prints, as rows for the pages of the documentation.

``python -m benchmarks.real.figures`` writes them to ``results/real_differences.json`` with the checksum of what
they are of; a test says when they are out of date.
"""

import hashlib
import json
from itertools import permutations
from pathlib import Path
from typing import Any

from benchmarks.real.rows import ROWS, VALUES, read_rows
from benchmarks.real.run import TASKS
from benchmarks.real.table import difference, fold_mean, joined

__all__ = ["DIFFERENCES", "against_rivals", "checksum", "write"]

RESULTS = Path(__file__).parents[1] / "results"
DIFFERENCES = RESULTS / "real_differences.json"


def checksum() -> str:
    """Return the SHA-256 of the rows and values that the differences are of."""
    return hashlib.sha256((RESULTS / ROWS).read_bytes() + (RESULTS / VALUES).read_bytes()).hexdigest()


def against_rivals() -> list[dict[str, Any]]:
    """Return a row for each of our models, each rival and each metric of a task.

    ``ours`` and ``theirs`` are means over fits, as the table prints them; ``difference`` is a mean over the sets that
    both were tested on, with its 95 % interval, ``low`` to ``high``, by resampling people; ``above`` says in how many
    parts ours is better, ``surely_above`` and ``surely_below`` in how many the interval says so.
    """
    found = []
    for task in TASKS.values():
        rows = {k: row for k, row in read_rows(RESULTS).items() if k[0] == task.name and not row.get("quick")}
        values, parts = joined(task, RESULTS, set(rows))
        for model, rival in permutations((name for name in task.models if name in values), 2):
            if not task.models[model].ours or task.models[rival].ours:
                continue
            for metric in task.metrics:
                mean, low, high = difference(values[model], values[rival], metric)
                each = []
                if len(parts) > 1 and metric == task.metrics[0]:
                    each = [difference(values[model], values[rival], metric, sets) for sets in parts.values()]
                found.append(
                    {
                        "task": task.name,
                        "model": model,
                        "rival": rival,
                        "metric": metric,
                        "ours": fold_mean(task, rows, model, metric),
                        "theirs": fold_mean(task, rows, rival, metric),
                        "difference": mean,
                        "low": low,
                        "high": high,
                        "parts": len(each),
                        "above": sum(gap[0] > 0 for gap in each),
                        "surely_above": sum(gap[1] > 0 for gap in each),
                        "surely_below": sum(gap[2] < 0 for gap in each),
                    }
                )
    return found


def write() -> None:
    """Write the rows."""
    rows = [
        {key: round(value, 9) if isinstance(value, float) else value for key, value in row.items()}
        for row in against_rivals()
    ]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    DIFFERENCES.write_text(f'{{"of": "{checksum()}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    write()
