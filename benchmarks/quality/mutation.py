"""Mutation testing of losses, metrics, tasks and of the statistics behind the verdict: ``make mutation``.

mutmut writes the mutants: copies of each function with one operator, number, name or argument changed. Tests are
collected and run once, to see which functions each of them calls and how long it takes. Then each mutant gets a process
of its own, forked from that one, in which the tests that call its function run, the quick ones first, until one fails;
a process a core at a time.

A mutant that survives is either worth a test, or changes nothing that could be seen. The latter are listed with the
reason in ``equivalent_mutants.json`` beside this file; a mutant is known there by its function and the lines that it
changes, so that the list outlives other changes of a file. Any other survivor is printed, and makes this fail.

    python -m benchmarks.quality.mutation                  # all files of [tool.mutmut] in pyproject.toml
    python -m benchmarks.quality.mutation tasks/losses.py  # some of them
"""

import gc
import json
import os
import resource
import shutil
import sys
import time
from collections import Counter, defaultdict
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from mutmut.__main__ import create_mutants
from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "mutation.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
MOST_EXAMPLES = 5  # of a law of Hypothesis; drawn alike for each mutant
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # which example fails first is of no interest
SLOWER = (
    20  # a mutant that takes so many times the time of its tests, and ten seconds, hangs: a test has found it
)
MEMORY = 3 << 30  # bytes; a mutant that no longer refuses huge sets would take all there is


class Mutants:
    """A plugin of pytest that runs tests once for each mutant instead of once.

    Parameters
    ----------
    names : mutants, as mutmut calls them
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.calling: dict[str, list[Any]] = defaultdict(list)  # tests of each function
        self.seconds: dict[str, float] = {}
        self.killed: dict[str, bool] = {}
        self.running: dict[int, str] = {}  # by process
        self.failed = False

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Take few examples of each law, and the same ones each time."""
        for item in items:
            own = getattr(item.function, "_hypothesis_internal_use_settings", None)
            if own is not None:
                few = min(own.max_examples, MOST_EXAMPLES)
                item.function._hypothesis_internal_use_settings = settings(
                    own, max_examples=few, derandomize=True, database=None, phases=PHASES
                )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note whether a test failed."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests as they are, then those of each mutant's function against the mutant."""
        set_mutant_under_test("stats")
        for item in session.items:
            state()._stats.clear()
            began = time.process_time()
            self.run(item)
            self.seconds[item.nodeid] = time.process_time() - began
            for function in state()._stats:
                self.calling[function].append(item)
            if self.failed:
                raise session.Failed(f"{item.nodeid} fails without any mutation.")
        for tests in self.calling.values():
            tests.sort(key=lambda item: self.seconds[item.nodeid])
        session.config.option.tbstyle = "no"  # of a test that fails nobody reads why
        gc.collect()
        gc.freeze()  # so that memory is shared with the forks
        for name in self.names:
            if len(self.running) == (os.cpu_count() or 1):
                self.wait()
            self.running[self.start(name)] = name
        while self.running:
            self.wait()
        return True

    def wait(self) -> None:
        """Wait until one mutant is done, and note whether it was killed."""
        process, status = os.wait()
        name = self.running.pop(process, None)
        if name is None:  # a child of a test
            return
        self.killed[name] = status != 0
        if len(self.killed) % 50 == 0:
            alive = sum(not killed for killed in self.killed.values())
            sys.__stderr__.write(f"{len(self.killed):,} of {len(self.names):,} mutants, {alive} survived\n")

    @staticmethod
    def run(item: Any) -> None:
        """Run one test, with all hooks."""
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)

    def start(self, name: str) -> int:
        """Start the tests of a mutant in a process, which fails if one of them does or takes far too long."""
        tests = self.calling[name.rpartition("__mutmut_")[0]]
        usual = sum(self.seconds[item.nodeid] for item in tests)
        child = os.fork()
        if child == 0:
            limit = ceil(time.process_time() + 10 + SLOWER * usual)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1), os.dup2(silent, 2)
            for item in tests[:1]:
                item.config.pluginmanager.unregister(name="terminalreporter")
            set_mutant_under_test(name)
            try:
                for item in tests:
                    self.run(item)
                    if self.failed:
                        os._exit(1)
            except BaseException:  # what a mutant may raise, pytest's own exits too
                os._exit(1)
            os._exit(0)
        return child


def write_mutants() -> dict[str, list[str]]:
    """Have mutmut write its mutants below ``mutants``; return their names, by file."""
    shutil.rmtree("mutants", ignore_errors=True)
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir()
    for step in (copy_src_dir, copy_also_copy_files, setup_source_paths):
        step()
    create_mutants(1)
    found = {}
    for meta in sorted(Path("mutants/src").rglob("*.py.meta")):
        names = list(json.loads(meta.read_text())["exit_code_by_key"])
        if names:
            found[meta.as_posix().removeprefix("mutants/src/entourage/").removesuffix(".meta")] = names
    return found


def change_of(mutant: str) -> dict[str, str]:
    """Return function, lines before and lines after of a mutant, from mutmut's diff."""
    lines = get_diff_for_mutant(mutant).splitlines()
    body = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    before, after = (" ".join(line[1:].strip() for line in body if line.startswith(sign)) for sign in "-+")
    module, _, own = mutant.rpartition(".")
    function = own.rpartition("__mutmut_")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return {"function": f"{module}.{function}", "before": before, "after": after}


def main() -> int:
    """Print and keep a row for each file; return 1 where mutants survived that are not known to be equivalent."""
    os.chdir(ROOT)
    config()
    by_file = write_mutants()
    some = {file: names for file, names in by_file.items() if file in (sys.argv[1:] or by_file)}
    plugin = Mutants([name for names in some.values() for name in names])
    os.chdir("mutants")
    status = pytest.main(
        [*config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection], plugins=[plugin]
    )
    os.chdir(ROOT)
    if status != 0 or not plugin.killed:
        return 1
    known = [
        {key: own[key] for key in ("function", "before", "after")}
        for own in json.loads(EQUIVALENT.read_text())
    ]
    survivors = {name: change_of(name) for name, killed in plugin.killed.items() if not killed}
    kept = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    rows = {row["file"]: row for row in kept if row["file"] in by_file}
    for file, names in some.items():
        alive = [survivors[name] for name in names if name in survivors]
        counts = Counter("equivalent" if change in known else "survived" for change in alive)
        tally = {"equivalent": counts["equivalent"], "survived": counts["survived"]}
        rows[file] = {"file": file, "mutants": len(names), "killed": len(names) - len(alive)} | tally
    table = Table("file", "mutants", "killed", "equivalent", "survived", title="Mutants, by file")
    for row in sorted(rows.values(), key=lambda row: row["file"]):
        table.add_row(*map(str, row.values()))
    Console(width=100).print(table)
    RESULTS.write_text("".join(json.dumps(rows[file]) + "\n" for file in sorted(rows)))
    unknown = {name: change for name, change in survivors.items() if change not in known}
    for name, change in unknown.items():
        print(f"survived: {name}\n  - {change['before']}\n  + {change['after']}")
    (ROOT / "mutants" / "survivors.json").write_text(json.dumps(unknown, indent=1))
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
