"""Real data, ours against the rivals, with the targets of issue 17: ``python -m benchmarks.real``.

Rows are written to ``results/real_tables.jsonl`` as they come, with seconds, settings and versions. Fits that have a
row are not done again (``--again`` does them anew). Each worker is a process of one thread. At the end the table is
printed; ``--show`` prints it and fits nothing.
"""

import argparse
import os
from pathlib import Path

from benchmarks.real.rows import read_rows
from benchmarks.real.run import TASKS, run_jobs
from benchmarks.real.table import print_table

__all__ = ["data_folder", "main"]

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Read the options, do the fits that have no row, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="the folder of the data sets")
    parser.add_argument("--task", choices=list(TASKS), action="append")
    parser.add_argument("--model", action="append", help="names of models; see --list")
    parser.add_argument("--part", action="append", help="domains of ranch, draws of aslib")
    parser.add_argument("--fold", type=int, action="append")
    parser.add_argument("--budget", type=float, help="seconds that auto has for a fit")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="few sets and steps: does it run? Rows are marked"
    )
    parser.add_argument("--again", action="store_true", help="do fits anew that have a row")
    parser.add_argument("--list", action="store_true", help="say which fits there are to do")
    parser.add_argument("--show", action="store_true", help="only print the table")
    parser.add_argument("--each", action="store_true", help="show differences in each part (domain) too")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the rows")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tasks = [TASKS[name] for name in args.task or TASKS]
    known = {name for task in tasks for name in task.models}
    for name in args.model or []:
        if name not in known:
            parser.error(f"--model {name!r} is none of {', '.join(sorted(known))}")
    rows = read_rows(args.out)
    done = {key for key, row in rows.items() if args.quick or not row.get("quick")}
    jobs = [
        (task.name, part, fold, model)
        for task in tasks
        for part, fold, model in task.jobs()
        if (not args.model or model in args.model)
        and (not args.part or part in args.part)
        and (not args.fold or fold in args.fold)
        and (args.again or (task.name, part, fold, model) not in done)
    ]
    if args.list:
        print("\n".join(" | ".join(map(str, job)) for job in jobs))
        return
    if not args.show:
        run_jobs(jobs, args.data, args.out, budget=args.budget, workers=args.workers, quick=args.quick)
    for task in tasks:
        print_table(task, args.out, each=args.each)


def data_folder() -> Path:
    """Return where the data are: beside the repository, or carried along to a second machine."""
    folders = [Path("../shared/data"), Path(".carry/data"), Path("../../shared/data")]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


if __name__ == "__main__":
    main()
