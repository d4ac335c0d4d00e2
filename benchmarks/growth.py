"""How cost grows: ``python -m benchmarks.growth``, on a CPU.

Seconds of training and of scoring by the number of sets, objects and features, and the memory that scoring one set
takes by its size; the slopes are those of straight lines through the logarithms of the larger half of the sizes (1
is linear, 2 quadratic). Results in ``results/growth.json``, the picture in ``docs/growth.png``.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.measure import extra_memory
from entourage import FATE, FETA, ContextFree, Ranker, SetAttention, __version__
from entourage.data import make_medoid

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parents[1] / "docs" / "growth.png"
INK = {
    "ContextFree": "#8a94a3",
    "FATE": "#b3261e",
    "FETA": "#1f5fbf",
    "SetAttention": "#0b6e4f",
    "points": "#5fae94",
}
NETS = {
    "ContextFree": ContextFree(),
    "FATE": FATE(),
    "FETA": FETA(),
    "SetAttention": SetAttention(rounds=3, features="linear"),
    "points": SetAttention(rounds=3, points=16, features="linear"),
}
SETS = [1_000, 3_000, 10_000, 30_000]
OBJECTS = {
    "points": [300, 1_000, 3_000, 10_000],
    "FETA": [100, 300, 1_000, 3_000],
    "FATE": [1_000, 10_000, 100_000],
}
OBJECTS |= {"ContextFree": OBJECTS["FATE"], "SetAttention": OBJECTS["FETA"]}
FEATURES = [10, 100, 300, 1_000]


def timed(work: Callable[[], object], repeats: int = 3) -> float:
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def slope(sizes: list[int], costs: list[float]) -> float:
    half = len(sizes) // 2
    x, y = np.log(sizes[half - 1 :]), np.log(costs[half - 1 :])
    return round(float(np.polyfit(x, y, 1)[0]), 2)


def epoch(net, n: int) -> float:
    """Train through so many sets of 5 once."""
    X, ranks = make_medoid(n, random_state=0)
    model = Ranker(net, epochs=1, validation=0, random_state=0, device="cpu")
    return timed(lambda: model.fit(X, ranks))


def scoring(net, m: int, d: int) -> float:
    scorer = net.build(d, torch.Generator().manual_seed(0)).eval()
    objects = torch.randn(1, m, d, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return timed(lambda: scorer(objects))


def measure() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def keep(what: str, net: str, sizes: list[int], costs: list[float], unit: str) -> None:
        row = {"what": what, "net": net, "sizes": sizes, "unit": unit, "slope": slope(sizes, costs)}
        rows.append(row | {"costs": [round(cost, 5) for cost in costs]})
        print(f"{what}, {net}: slope {rows[-1]['slope']}  {rows[-1]['costs']} {unit}", flush=True)

    for name, net in NETS.items():
        keep("training epoch by sets", name, SETS, [epoch(net, n) for n in SETS], "s")
        sizes = OBJECTS[name]
        keep("scoring one set by objects", name, sizes, [scoring(net, m, 16) for m in sizes], "s")
        keep(
            "scoring 1,000 objects by features",
            name,
            FEATURES,
            [scoring(net, 1_000, d) for d in FEATURES],
            "s",
        )
    for name, job, sizes in (
        ("FATE", "fate", [100_000, 300_000, 1_000_000]),
        ("FETA", "feta", [3_000, 10_000, 30_000]),
    ):
        keep("extra memory by objects", name, sizes, [extra_memory(job, m)["megabytes"] for m in sizes], "MB")
    return rows


def draw(rows: list[dict[str, Any]]) -> None:
    whats = list(dict.fromkeys(row["what"] for row in rows))
    figure = Figure(figsize=(3.9 * len(whats), 5.0), dpi=120, layout="constrained")
    for axis, what in zip(figure.subplots(1, len(whats)), whats, strict=True):
        for row in (row for row in rows if row["what"] == what):
            label = "SetAttention, 16 points" if row["net"] == "points" else row["net"]
            axis.loglog(
                row["sizes"],
                row["costs"],
                "o-",
                color=INK[row["net"]],
                label=f"{label}: slope {row['slope']}",
            )
        axis.set_title(what.rpartition(" by ")[0], loc="left", fontsize=11)
        axis.set_ylabel("megabytes" if "memory" in what else "seconds")
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlabel(what.rpartition(" by ")[2])
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    figure.savefig(PICTURE)


def main() -> None:
    rows = measure()
    draw(rows)
    content = {
        "command": "python -m benchmarks.growth",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "versions": {"entourage": __version__, "torch": torch.__version__},
        "rows": rows,
    }
    (RESULTS / "growth.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
