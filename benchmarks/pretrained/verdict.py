"""Is the instant verdict what it says? ``python -m benchmarks.pretrained.verdict``.

On simulated worlds with other seeds than pretraining: is context of little account (a share of the gain below 2 %) in
as many worlds as the net says, do 90 % intervals hold the true share in 90 %, is each effect there as often as said?
On ASlib, where a runtime can't depend on which other solvers ran: in how many draws of sub-sets is context claimed?
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.pretrained.tables import data_folder
from benchmarks.real import aslib
from entourage.nets.prior_fitted import EFFECTS, Verdict
from entourage.pretrained.reading import Reading
from entourage.pretrained.verdict import verdict_of
from entourage.pretrained.weights import pretrained_net
from entourage.pretraining.loop import Lesson
from entourage.pretraining.prior import Shape, draw_worlds
from entourage.report.reliability import reliability_picture
from entourage.tasks import Ranking
from entourage.tasks.reliability import reliability_bins

SEED = 1_900_000_000
SHAPES = ((3, 2), (3, 6), (4, 4), (5, 10), (6, 16), (8, 6))  # objects, columns
LABELLED = (32, 100, 300)
ROWS = Path(__file__).parents[1] / "results" / "pretrained_verdict.jsonl"
LITTLE = 0.02  # a share of context that plays no part
ALARM = 0.05  # context is claimed where the probability of none is below


@torch.no_grad()
def simulated(worlds: int) -> list[dict[str, Any]]:
    """Return a row a world: what is true, and what the net says."""
    net, rows = pretrained_net(), []
    total = len(SHAPES) * 2 * len(LABELLED)
    for i, (m, d) in enumerate(SHAPES):
        for task in ("choice", "ranking"):
            for n in LABELLED:
                generator = torch.Generator().manual_seed(SEED + i)
                for _ in range(-(-worlds // 16)):
                    drawn = draw_worlds(Shape(16, n + 1, m, d, task), generator)
                    said = Lesson.of(drawn, task, n).read_by(net).memory.verdict
                    for j in range(16):
                        one = verdict_of([Verdict(said.share[j : j + 1], said.effects[j : j + 1])])
                        rows.append(
                            {
                                "what": "simulated",
                                "task": task,
                                "sets": n,
                                "objects": m,
                                "columns": d,
                                "true_share": round(float(drawn.share[j]), 4),
                                "none": round(one.none, 4),
                                "share": round(one.share, 4),
                                "low": round(one.interval[0], 4),
                                "high": round(one.interval[1], 4),
                                "true_effects": drawn.effects[j].tolist(),
                                "effects": [round(p, 4) for p in one.effects.values()],
                            }
                        )
                print(f"{len(rows)} of {total * 16 * -(-worlds // 16)} worlds", flush=True)
    return rows


def control(data: Path, draws: int) -> list[dict[str, Any]]:
    """Return a row a draw of sub-sets of solvers."""
    rows = []
    for draw in range(draws):
        sets = aslib.load(data, f"draw {draw}").views["features"]
        said = Reading.read(sets, Ranking()).verdict()
        rows.append(
            {"what": "aslib", "draw": draw, "none": round(said.none, 4), "share": round(said.share, 4)}
        )
        print(rows[-1], flush=True)
    return rows


def show(rows: list[dict[str, Any]], solvers: list[dict[str, Any]], picture: Path | None) -> None:
    """Print how often what is said is true."""
    none = np.array([row["none"] for row in rows])
    little = np.array([row["true_share"] < LITTLE for row in rows])
    share = np.array([row["true_share"] for row in rows])
    print(f"{len(rows)} worlds; context of little account in {little.mean():.3f}")
    print("said P(none), came true (95 %), worlds")
    for own in reliability_bins(none, little):
        print(f"  {own.probability:.3f}  {own.share:.3f} ({own.low:.3f} to {own.high:.3f})  {own.count}")
    inside = np.array([row["low"] <= row["true_share"] <= row["high"] for row in rows])
    for n in LABELLED:
        of = np.array([row["sets"] == n for row in rows])
        strong = of & (share > 0.2)
        print(
            f"N = {n}: 90 % intervals hold {inside[of].mean():.3f}; false alarms "
            f"{(none[of & little] < ALARM).mean():.4f}; found where the share is above 0.2 "
            f"{(none[strong] < ALARM).mean():.3f}"
        )
    for k, name in enumerate(EFFECTS):
        said = np.array([row["effects"][k] for row in rows])
        true = np.array([row["true_effects"][k] for row in rows])
        bins = reliability_bins(said, true, 5)
        print(f"{name}: " + ", ".join(f"{own.probability:.2f}: {own.share:.2f}" for own in bins))
    if solvers:
        alarms = sum(row["none"] < ALARM for row in solvers)
        print(f"ASlib: context claimed in {alarms} of {len(solvers)} draws; least P(none) ", end="")
        print(f"{min(row['none'] for row in solvers):.3f}")
    if picture is not None:
        reliability_picture(none, little, outcome="of little account").savefig(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=64, help="of each shape, task and number of sets")
    parser.add_argument("--draws", type=int, default=20, help="of ASlib; 0 for none")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--rows", type=Path, default=ROWS, help="the file of the rows, written anew")
    given = parser.parse_args()
    rows = simulated(given.worlds)
    solvers = control(given.data, given.draws) if given.draws else []
    show(rows, solvers, given.picture)
    given.rows.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *solvers]))


if __name__ == "__main__":
    main()
