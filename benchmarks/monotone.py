"""What ``monotone=`` costs and cures on real choices: ``python -m benchmarks.monotone [--data FOLDER] [--steps 1000]``.

Five folds of people: Swissmetro (time and cost, -1) and choices among six cars (price, -1). Every net is fitted without
and with the constraint, all else equal. A row of benchmarks/results/monotone.jsonl has the mean log-likelihood of a
held-out choice under both, their difference with a 95 % interval over people, and the share of held-out objects whose
own probability rises, by more than 1e-6, when their own time, cost or price does: by 1 %, by 10 %, by one standard
deviation.

``--audit``: instead, fit once without and once with the constraint to the people of four folds, and print
the economic audit of those of the first; rows in benchmarks/results/audit.jsonl.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.real import car_choice, swissmetro
from entourage import FATE, FETA, ContextFree, DiscreteChooser, SetAttention
from entourage.data.sets import Sets
from entourage.decisions import audit

RESULTS = Path(__file__).parent / "results" / "monotone.jsonl"
AUDITS = Path(__file__).parent / "results" / "audit.jsonl"
TABLES = {"swissmetro": (swissmetro, {"time": 3, "cost": 4}), "car_choice": (car_choice, {"price": 0})}
NETS = {
    "ContextFree": ContextFree(),
    "FATE": FATE(),
    "SetAttention": SetAttention(width=32, rounds=2, features="linear"),
    "FETA": FETA(),
}
ROUNDING = 1e-6


def moves(column: NDArray[Any], sd: float) -> dict[str, NDArray[Any]]:
    """Return what is added to a column."""
    return {"+1 %": 0.01 * column, "+10 %": 0.1 * column, "+1 sd": np.full_like(column, sd)}


def rises(model: DiscreteChooser, sets: Sets, place: int, sd: float) -> dict[str, NDArray[Any]]:
    """Return for each object by how much its own probability changes with its own column."""
    before = np.asarray(model.predict_proba(sets))
    found = {}
    for name, added in moves(sets.objects[:, place], sd).items():
        change = np.zeros(len(before))
        for at in range(int(sets.sizes.max())):  # one object of every set at a time
            rows = sets.offsets[:-1][sets.sizes > at] + at
            objects = sets.objects.copy()
            objects[rows, place] += added[rows]
            change[rows] = np.asarray(model.predict_proba(sets.with_features(objects, sets.situation)))[rows]
            change[rows] -= before[rows]
        found[name] = change
    return found


def run(table: str, net: str, data: Path, steps: int) -> dict[str, Any]:
    """Fit a net without and with the constraint, fold by fold."""
    module, columns = TABLES[table]
    part = module.load(data)
    sets = part.views["features"]
    people = np.arange(len(sets)) if part.people is None else part.people
    spread = {name: float(sets.objects[:, place].std()) for name, place in columns.items()}
    monotone = dict.fromkeys(columns.values(), -1)
    gains = {False: np.zeros(len(sets)), True: np.zeros(len(sets))}
    changes: dict[tuple[bool, str, str], list[NDArray[Any]]] = {}
    seconds = {False: 0.0, True: 0.0}
    for train, test in part.folds:
        held = sets[test]
        for kept in (False, True):
            begin = time.perf_counter()
            model = DiscreteChooser(
                NETS[net], steps=steps, monotone=monotone if kept else None, device="cpu", random_state=0
            ).fit(sets[train], groups=people[train])
            seconds[kept] += time.perf_counter() - begin
            gains[kept][test] = np.log(np.asarray(model.predict_proba(held))[held.targets == 0])
            for name, place in columns.items():
                for move, change in rises(model, held, place, spread[name]).items():
                    changes.setdefault((kept, name, move), []).append(change)
    difference = gains[True] - gains[False]
    low, high = interval(difference, people)
    shares: dict[str, Any] = {}
    for (kept, name, move), found in changes.items():
        share = float((np.concatenate(found) > ROUNDING).mean())
        shares.setdefault(f"{name} {move}", {})["monotone" if kept else "free"] = share
    return {
        "table": table,
        "net": net,
        "steps": steps,
        "sets": len(sets),
        "free": float(gains[False].mean()),
        "monotone": float(gains[True].mean()),
        "difference": float(difference.mean()),
        "interval": [low, high],
        "rises": shares,
        "largest_rise_monotone": max(float(np.max(c)) for key, f in changes.items() if key[0] for c in f),
        "seconds": [round(seconds[False], 1), round(seconds[True], 1)],
    }


def audits(table: str, net: str, data: Path, steps: int) -> list[dict[str, Any]]:
    """Audit a net without and with the constraint on people it has not seen."""
    module, columns = TABLES[table]
    part = module.load(data)
    sets = part.views["features"]
    people = np.arange(len(sets)) if part.people is None else part.people
    train, test = part.folds[0]
    held, signs = sets[test], dict.fromkeys(columns.values(), -1)
    pairs = [(columns["time"], columns["cost"])] if "cost" in columns else []
    rows = []
    for kept in (False, True):
        settings: dict[str, Any] = {"steps": steps, "device": "cpu", "random_state": 0}
        model = DiscreteChooser(NETS[net], monotone=signs if kept else None, **settings)
        model.fit(sets[train], groups=people[train])
        found = audit(model, held, signs, pairs, most_sets=None)
        gain = model.log_likelihood(held)
        print(f"{table}, {net}, {'monotone' if kept else 'free'}: log-likelihood {gain:.4f}\n{found}\n")
        shares = {
            name: {rule: getattr(one, rule).share for rule in ("gradient", "move", "monotone")}
            for name, one in zip(columns, found.signs, strict=True)
        }
        rows.append(
            {"table": table, "net": net, "steps": steps, "monotone": kept, "log_likelihood": gain}
            | {"objects": found.objects, "signs_passed": all(one.passed for one in found.signs)}
            | {"violations": shares}
            | {"trade_offs": [one.implausible.share for one in found.trade_offs]}
            | {"wrong_sign": [one.wrong_sign for one in found.trade_offs]}
        )
    return rows


def interval(values: NDArray[Any], people: NDArray[Any], draws: int = 2000) -> tuple[float, float]:
    """Return a 95 % percentile interval of the mean over resampled people."""
    _, who = np.unique(people, return_inverse=True)
    sums, counts = np.bincount(who, values), np.bincount(who)
    drawn = np.random.default_rng(0).integers(len(sums), size=(draws, len(sums)))
    low, high = np.quantile(sums[drawn].sum(1) / counts[drawn].sum(1), [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Run what the command asks for, and write a row for each net and table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ENTOURAGE_DATA", "../shared/data")))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--table", choices=list(TABLES), action="append")
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--net", choices=list(NETS), action="append")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for table in given.table or TABLES:
        for net in given.net or NETS:
            work, path = (audits, AUDITS) if given.audit else (run, RESULTS)
            found = work(table, net, given.data, given.steps)
            for row in found if isinstance(found, list) else [found]:
                print(json.dumps(row), flush=True)
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
