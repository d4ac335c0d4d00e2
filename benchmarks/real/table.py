"""The table that is printed: each model of a task, ours against rivals with intervals, and the target beside it.

Intervals are of the models as they were fitted: people are resampled, fits are not.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real.parts import WITH_POSITION, Target, Task
from benchmarks.real.rows import read_rows, read_values
from benchmarks.real.verdicts import Verdict
from entourage.data.resampling import bootstrap_interval

__all__ = ["difference", "print_table", "print_verdicts"]

LEVEL = 0.05


def print_table(task: Task, folder: Path, *, each: bool = False) -> None:
    """Print what is known of a task, with targets; with ``each``, differences in each part, too."""
    rows = {
        key: row for key, row in read_rows(folder).items() if key[0] == task.name and not row.get("quick")
    }
    if not rows:
        return
    print(f"\n## {task.name}")
    found, parts = joined(task, folder, set(rows))
    best = _best_rival(task, found)
    for name in task.models:
        mine = found.get(name)
        if mine is None:
            continue
        seconds = sum(row["seconds"] for key, row in rows.items() if key[3] == name)
        count = sum(key[3] == name for key in rows)
        wanted = sum(job[2] == name for job in task.jobs())
        figures = [f"{metric} {fold_mean(task, rows, name, metric):.4f}" for metric in task.metrics]
        if task.total:
            figures.append(f"sum {np.nansum(mine[task.metrics[0]]):.1f}")
        if WITH_POSITION in mine:
            figures.append(f"{task.metrics[0]} with the position {np.nanmean(mine[WITH_POSITION]):.4f}")
        if best is not None and name != best:
            mean, low, high = difference(mine, found[best], task.metrics[0])
            figures.append(f"to best rival {mean:+.4f} [{low:+.4f}, {high:+.4f}]")
        missing = "" if count == wanted else f"  ({count} of {wanted} fits)"
        print(f"{name:32} {'  '.join(figures)}  {len(mine['set']):,} sets  {seconds:.0f} s{missing}")
    for target in task.targets:
        if target.model in found:
            print(_judged(task, target, rows, found))
    if len(task.parts) > 1 and found:
        _print_parts(task, found, parts, each)
    print_verdicts(task, rows)


def fold_mean(task: Task, rows: dict[Any, Any], name: str, metric: str) -> float:
    """Return the mean over fits, as the published figures are means over folds."""
    values = [row["metrics"][metric] for key, row in rows.items() if key[3] == name]
    return float(np.mean(values))


def _best_rival(task: Task, found: dict[str, Any]) -> str | None:
    """Name the rival with the best main metric of those that were tested on most sets."""
    rivals = [name for name in found if name in task.models and not task.models[name].ours]
    most = max((len(found[name]["set"]) for name in rivals), default=0)
    whole = [name for name in rivals if len(found[name]["set"]) == most]
    return max(whole, key=lambda name: np.nanmean(found[name][task.metrics[0]]), default=None)


def joined(
    task: Task, folder: Path, known: set[Any]
) -> tuple[dict[str, dict[str, NDArray[Any]]], dict[str, NDArray[Any]]]:
    """Return the values of all test sets of each model, in the order of the sets; and which sets each part has."""
    fits: dict[str, list[dict[str, NDArray[Any]]]] = defaultdict(list)
    parts: dict[str, list[NDArray[Any]]] = defaultdict(list)
    for key, values in read_values(folder, task.name).items():
        if key in known:
            fits[key[3]].append(values)
            if key[1] != "all":
                parts[key[1]].append(values["set"])
    found = {}
    for name, some in fits.items():
        whole = {column: np.concatenate([values[column] for values in some]) for column in some[0]}
        order = np.argsort(whole["set"], kind="stable")
        found[name] = {column: array[order] for column, array in whole.items()}
    return found, {part: np.unique(np.concatenate(some)) for part, some in parts.items()}


def difference(
    ours: dict[str, NDArray[Any]],
    rival: dict[str, NDArray[Any]],
    metric: str,
    sets: NDArray[Any] | None = None,
) -> tuple[float, float, float]:
    """Return the mean difference on the sets that both were tested on, with its 95 % interval by resampling units."""
    both = np.intersect1d(ours["set"], rival["set"])
    if sets is not None:
        both = np.intersect1d(both, sets)
    mine, theirs = np.searchsorted(ours["set"], both), np.searchsorted(rival["set"], both)
    gaps = ours[metric][mine] - rival[metric][theirs]
    low, high = bootstrap_interval(gaps, ours["unit"][mine], level=LEVEL)
    return float(np.nanmean(gaps)), low, high


def _judged(task: Task, target: Target, rows: dict[Any, Any], found: dict[str, Any]) -> str:
    ours = fold_mean(task, rows, target.model, target.metric)
    if target.least is not None:
        word = "ok" if ours >= target.least else "missed"
        return f"target: {target.model} {target.metric} {ours:.4f} >= {target.least}: {word}"
    lines = []
    for rival in target.rivals:
        if rival in found:
            mean, low, high = difference(found[target.model], found[rival], target.metric)
            word = "ok" if mean > 0 else "missed"
            sure = "" if low > 0 or high < 0 else ", interval holds 0"
            gap = f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
            lines.append(f"target: {target.model} − {rival} = {gap} {target.metric}: {word}{sure}")
    return "\n".join(lines)


def _print_parts(task: Task, found: dict[str, Any], parts: dict[str, NDArray[Any]], each: bool) -> None:
    """Print in how many parts ours is above each rival, and by how much."""
    metric = task.metrics[0]
    for target in task.targets:
        for rival in target.rivals:
            if target.model not in found or rival not in found:
                continue
            gaps = [difference(found[target.model], found[rival], metric, sets) for sets in parts.values()]
            print(
                f"{target.model} above {rival} in {sum(gap[0] > 0 for gap in gaps)} of {len(gaps)} parts; interval "
                f"above 0 in {sum(gap[1] > 0 for gap in gaps)}, below 0 in {sum(gap[2] < 0 for gap in gaps)}"
            )
            for part, (mean, low, high) in zip(parts, gaps, strict=True):
                if each:
                    print(f"  {part:28} {mean:+.4f} [{low:+.4f}, {high:+.4f}]")


def print_verdicts(task: Task, rows: dict[Any, Any]) -> None:
    """Print how many parts show a context effect, by each comparison; with Holm's correction too."""
    for name, model in task.models.items():
        if not isinstance(model, Verdict):
            continue
        mine = {key[1]: row for key, row in rows.items() if key[3] == name}
        if not mine:
            continue
        p_values = np.sort([row["metrics"]["p_value"] for row in mine.values()])
        shown = [part for part, row in mine.items() if row["metrics"]["p_value"] <= LEVEL]
        holds = p_values <= LEVEL / np.arange(len(p_values), 0, -1)
        holm = int(np.argmin(np.append(holds, False)))
        print(
            f"{name}: a context effect in {len(shown)} of {len(mine)} parts (p <= {LEVEL}); "
            f"with Holm's correction in {holm}"
        )
        for part in shown:
            print(f"  {part}: {mine[part]['verdict']}")
        if task.name == "aslib":
            word = "ok" if len(mine) == 20 and len(shown) <= 1 else "missed" if len(shown) > 1 else "so far"
            print(
                f"target: no evidence in {len(mine) - len(shown)} of {len(mine)} draws, at least 19 of 20: {word}"
            )
