"""What became of each mutant of ``make mutation``: killed by a test, equivalent to the original, or survived.

A mutant that survives is either worth a test, or changes nothing that could be seen. The latter are listed with the
reason in ``equivalent_mutants.json`` beside this file; a mutant is known there by its function and the lines that it
changes, so that the list outlives other changes of the file. Any other survivor is printed, and makes this fail.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "mutation.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
SURVIVED, UNTESTED, UNTRIED = 0, 33, None  # exit codes that mutmut keeps; all others say that a test failed


def change_of(mutant: str) -> tuple[str, str, str]:
    """Return function, lines before and lines after of a mutant, from mutmut's diff."""
    shown = subprocess.run(
        [sys.executable, "-m", "mutmut", "show", mutant], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.splitlines()
    body = [line for line in shown if not line.startswith(("---", "+++", "#", "@@"))]
    before, after = (" ".join(line[1:].strip() for line in body if line.startswith(sign)) for sign in "-+")
    function = mutant.rpartition(".")[2].rpartition("__mutmut_")[0].replace("xǁ", "").removeprefix("x_")
    return function.replace("ǁ", "."), before, after


def main() -> int:
    """Print and keep a row for each file; return 1 where mutants survived that are not known to be equivalent."""
    known = {(own["function"], own["before"], own["after"]) for own in json.loads(EQUIVALENT.read_text())}
    rows, unknown = [], []
    for meta in sorted((ROOT / "mutants" / "src").rglob("*.py.meta")):
        found = json.loads(meta.read_text())["exit_code_by_key"]
        if not found:
            continue
        counts: Counter[str] = Counter()
        for mutant, code in found.items():
            if code is UNTRIED:
                sys.stderr.write(f"{mutant} was not tried: run mutmut to its end.\n")
                return 1
            if code not in (SURVIVED, UNTESTED):
                counts["killed"] += 1
                continue
            change = change_of(mutant)
            counts["equivalent" if change in known else "survived"] += 1
            unknown += [] if change in known else [(mutant, *change)]
        file = str(meta.relative_to(ROOT / "mutants")).removesuffix(".meta").removeprefix("src/entourage/")
        tally = {key: counts[key] for key in ("killed", "equivalent", "survived")}
        rows.append({"file": file, "mutants": len(found), **tally})
    table = Table(*rows[0], title="Mutants, by file")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=100).print(table)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for mutant, function, before, after in unknown:
        print(f"survived: {mutant} ({function})\n  - {before}\n  + {after}")
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
