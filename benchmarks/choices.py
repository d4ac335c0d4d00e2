"""What choosers are worth on tasks of choosing: ``python -m benchmarks.choices``.

10,000 training sets of 10 objects, judged on 10,000 fresh ones: how often the right object is chosen (medoid,
hypervolume, nearest neighbour), F1 of the chosen ones (Pareto, digits; pictures of test sets were never seen). Rows
are kept in ``results/choices.jsonl`` as they come.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from entourage import FATE, ContextFree, DiscreteChooser, SetAttention, SubsetChooser, __version__
from entourage.data import make_choice, make_digits, make_pareto
from entourage.data.synthetic.choices import CHOICE_TASKS

RESULTS = Path(__file__).parent / "results"
NETS = {
    "ContextFree": ContextFree(),
    "FATE": FATE(),
    "SetAttention": SetAttention(rounds=3, features="linear"),
}
TARGETS = {"medoid": 0.881, "hypervolume": 0.769, "pareto": 0.942}
TASKS = [*CHOICE_TASKS, "pareto", "digits mode", "digits unique"]


def data_of(task: str, part: str) -> tuple[Any, Any]:
    seed = 0 if part == "train" else 1
    if task == "pareto":
        return make_pareto(random_state=seed)
    if task.startswith("digits"):
        return make_digits(task.split()[1], part=part, random_state=seed)
    return make_choice(task, random_state=seed)


def run(task: str, name: str, steps: int, device: str) -> dict[str, Any]:
    make = DiscreteChooser if task in CHOICE_TASKS else SubsetChooser
    model = make(NETS[name], steps=steps, random_state=0, device=device)
    start = time.perf_counter()
    model.fit(*data_of(task, "train"))
    return {
        "task": task,
        "net": name,
        "metric": model.task.main,
        "value": model.score(*data_of(task, "test")),
        "fit_seconds": round(time.perf_counter() - start, 1),
        "estimator": " ".join(repr(model).split()),
        "versions": {"entourage": __version__, "torch": torch.__version__},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--net", choices=list(NETS), action="append")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=RESULTS / "choices.jsonl")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(row["task"], row["net"]) for row in rows}
    for task in args.task or TASKS:
        for name in args.net or NETS:
            if (task, name) not in done:
                rows.append(run(task, name, args.steps, args.device))
                with args.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            row = next(row for row in rows if (row["task"], row["net"]) == (task, name))
            print(
                f"{task:15} {name:13} {row['metric']:9} {row['value']:.4f}  {row['fit_seconds']} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
