"""The table that is printed: means over draws, paired differences with intervals, and the targets of issue 18."""

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.pretrained.models import MODELS
from benchmarks.pretrained.scores import MAIN

__all__ = ["Cells", "cells_of", "paired", "print_table"]

#: By (table, sets) and model: the score of each seed.
Cells = dict[tuple[str, int], dict[str, dict[int, float]]]

OURS = ("pretrained", "pretrained+")
MARGIN = 0.005  # by which ours may be worse than the ridge logit


def cells_of(rows: list[dict[str, Any]], score: str = MAIN) -> Cells:
    """Gather a score by table and number of labelled sets, model and seed."""
    cells: Cells = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if score in row["scores"]:
            cells[row["table"], row["sets"]][row["model"]][row["seed"]] = row["scores"][score]
    return cells


def paired(one: dict[int, float], other: dict[int, float]) -> tuple[float, float, float, int]:
    """Return the mean difference over the seeds that both have, its 95 % interval (t), and how many there are."""
    seeds = sorted(set(one) & set(other))
    differences: NDArray[Any] = np.array([one[seed] - other[seed] for seed in seeds])
    if len(seeds) < 2:
        value = float(differences.mean()) if seeds else float("nan")
        return value, -float("inf"), float("inf"), len(seeds)
    mean = float(differences.mean())
    half = float(student.ppf(0.975, len(seeds) - 1) * differences.std(ddof=1) / np.sqrt(len(seeds)))
    return mean, mean - half, mean + half, len(seeds)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print means, differences and targets."""
    cells = cells_of(rows)
    if not cells:
        print("There are no rows.")
        return
    tables = list(dict.fromkeys(name for name, _ in cells))
    for name in tables:
        sizes = sorted(n for table, n in cells if table == name)
        print(f"\n## {name}: mean held-out log-likelihood over draws (* best)")
        _print_means(cells, name, sizes)
        for ours in OURS:
            _print_differences(cells, name, sizes, ours)
    for other in ("kendall_tau", "ndcg"):
        ranked = cells_of(rows, other)
        for name in dict.fromkeys(table for table, _ in ranked):
            print(f"\n## {name}: mean {other} over draws (* best)")
            _print_means(ranked, name, sorted(n for table, n in ranked if table == name))
    print()
    for line in targets(cells):
        print(line)


def _print_means(cells: Cells, name: str, sizes: list[int]) -> None:
    """Print means over the draws that all models of a cell have, and how many those are."""
    common = {n: set.intersection(*(set(by) for by in cells[name, n].values())) for n in sizes}
    means = {
        n: {model: float(np.mean([by[seed] for seed in common[n]])) for model, by in cells[name, n].items()}
        for n in sizes
        if common[n]
    }
    print(f"{'':18}" + "".join(f"{f'N = {n}':>12}" for n in sizes))
    print(f"{'draws':18}" + "".join(f"{len(common[n]):>12}" for n in sizes))
    for model in MODELS:
        line = f"{model:18}"
        for n in sizes:
            found = means.get(n, {})
            best = "*" if model in found and found[model] >= max(found.values()) else " "
            line += f"{f'{found[model]:.4f}{best}' if model in found else '':>12}"
        if line.strip() != model:
            print(line)


def _print_differences(cells: Cells, name: str, sizes: list[int], ours: str) -> None:
    if not any(ours in cells[name, n] for n in sizes):
        return
    print(f"{ours} minus each rival, paired by draw, 95 % confidence interval")
    for model in MODELS:
        if model == ours or not any(model in cells[name, n] for n in sizes):
            continue
        line = f"  {model:16}"
        for n in sizes:
            cell = cells[name, n]
            if model in cell and ours in cell:
                mean, low, high, _ = paired(cell[ours], cell[model])
                line += f"{f'{mean:+.3f} [{low:+.3f}, {high:+.3f}]':>26}"
            else:
                line += f"{'':26}"
        print(line)


def targets(cells: Cells) -> list[str]:
    """Return one line for each target of issue 18, with the cells that miss it."""
    few = {key: cell for key, cell in cells.items() if key[1] <= 300 and "pretrained" in cell}
    many = {key: cell for key, cell in cells.items() if key[1] == 1000 and "pretrained+" in cell}
    if not few and not many:
        return ["There is no row of the pretrained net yet."]
    rivals = [name for name in MODELS if name not in OURS]

    def behind(key: tuple[str, int], ours: str) -> str | None:
        """Name the rival that is ahead by more than the interval."""
        cell = cells[key]
        for rival in rivals:
            if rival in cell and (found := paired(cell[ours], cell[rival]))[2] < 0:
                return f"{key[0]} N={key[1]}: {rival} {found[0]:+.3f}"
        return None

    late = [missed for key in few if (missed := behind(key, "pretrained"))]
    worse = []
    for key, cell in cells.items():
        if "pretrained" in cell and "ridge" in cell:
            mean, low, high, _ = paired(cell["pretrained"], cell["ridge"])
            if mean < -MARGIN:
                worse.append(f"{key[0]} N={key[1]}: {mean:+.4f} [{low:+.4f}, {high:+.4f}]")
    tuned = [missed for key in many if (missed := behind(key, "pretrained+"))]
    ranked = [key for key in few if not behind(key, "pretrained")]
    ahead = sum(_is_best(cells[key], "pretrained") for key in ranked)
    return [
        _verdict(f"best or level for N ≤ 300 ({len(few)} cells, best in {ahead})", late, len(few)),
        _verdict(f"never worse than ridge by more than {MARGIN}", worse, len(few)),
        _verdict(f"at 1,000 level with the best by fine-tuning ({len(many)} cells)", tuned, len(many)),
    ]


def _is_best(cell: dict[str, dict[int, float]], ours: str) -> bool:
    """Whether its mean is above that of each rival, over the draws that both have."""
    return all(paired(cell[ours], cell[name])[0] > 0 for name in cell if name not in OURS)


def _verdict(target: str, missed: list[str], count: int) -> str:
    if count == 0:
        return f"{target}: no rows yet"
    return f"{target}: " + ("met" if not missed else f"MISSED in {len(missed)}: " + "; ".join(missed))
