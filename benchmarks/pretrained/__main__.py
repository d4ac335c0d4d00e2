"""The pretrained net against tuned rivals: ``python -m benchmarks.pretrained``.

Rows are appended to ``results/pretrained.jsonl`` as they come; fits that have a row are not done again, unless
``--again``. Each worker is a process of one thread. Draws go one after another, so that a run that is cut off
(``--seconds``) is balanced. At the end the table is printed; ``--show`` prints it and fits nothing.
"""

import argparse
import os
from pathlib import Path

from benchmarks.pretrained.models import MODELS
from benchmarks.pretrained.run import SETS, list_jobs, read_rows, run_jobs
from benchmarks.pretrained.tables import TABLES, data_folder

__all__ = ["main"]

ROWS = Path(__file__).parents[1] / "results" / "pretrained.jsonl"


def main(given: list[str] | None = None) -> None:
    """Read the options, do the fits that have no row, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pretrained", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="the folder of the data sets")
    parser.add_argument("--table", choices=list(TABLES), action="append")
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--rivals", action="store_true", help="all models but ours")
    parser.add_argument("--sets", default=",".join(map(str, SETS)), help="numbers of labelled sets")
    parser.add_argument("--draws", type=int, default=20, help="so many draws, seeds from 0 on")
    parser.add_argument("--seeds", help="instead of draws, such as 0-4 or 3,7")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="begin no fit after so many seconds")
    parser.add_argument("--rows", type=Path, default=ROWS, help="the file of the rows")
    parser.add_argument("--again", action="store_true", help="do fits anew that have a row")
    parser.add_argument("--show", action="store_true", help="only print the table")
    args = parser.parse_args(given)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the workers
    tables = args.table or list(TABLES)
    models = args.model or [name for name in MODELS if not (args.rivals and name.startswith("pretrained"))]
    sets = [int(n) for n in args.sets.split(",")]
    seeds = _seeds(args.seeds) if args.seeds else list(range(args.draws))
    if not args.show:
        done = set() if args.again else set(read_rows(args.rows))
        jobs = [job for job in list_jobs(tables, sets, seeds, models, args.data) if job not in done]
        run_jobs(jobs, args.data, args.rows, workers=args.workers, seconds=args.seconds)
    from benchmarks.pretrained.show import print_table

    print_table(
        [row for row in read_rows(args.rows).values() if row["table"] in tables and row["sets"] in sets]
    )


def _seeds(text: str) -> list[int]:
    """Read 0-4 or 3,7."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


if __name__ == "__main__":
    main()
