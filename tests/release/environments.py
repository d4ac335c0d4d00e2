"""Install the wheel of ``dist/`` into empty environments, try what it can do there, and print what ran.

    python tests/release/environments.py                       # every Python that is here, the core and each extra
    python tests/release/environments.py --python 3.11 --extra core --no-tests
    python tests/release/environments.py --lowest              # the oldest dependencies that pyproject.toml allows
    python tests/release/environments.py --python 3.12 --cuda  # also where torch is a CUDA build: gigabytes

Pythons are looked for on PATH, among pyenv's and among uv's; none is downloaded. What is not here, or would need a
CUDA build of torch, is named in the table, with the reason. ``installed.py`` is what runs in each environment; after
it, with the core, some of the tests run against the wheel. Exits with code 1 if anything failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PYTHONS = ["3.11", "3.12", "3.13"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in ("dev", "package")]
USED = [
    "boost",
    "hypervolume",
    "image",
    "onnx",
    "report",
    "serve",
    "tune",
]  # what users ask for; Ray's clusters apart
TOOLS = ["beartype", "httpx", "hypothesis", "jaxtyping", "pandas", "polars", "pytest", "pytest-xdist"]
TESTS = [  # of the core, in half a minute of one core
    "tests/data/test_sets.py",
    "tests/data/test_encoder.py",
    "tests/data/test_ranks.py",
    "tests/data/test_table_files.py",
    "tests/tasks",
    "tests/nets/test_nets.py",
    "tests/training/test_training.py",
    "tests/estimators/test_ranker.py",
    "tests/estimators/test_model_file.py",
    "tests/choice/test_choice_models.py",
    "tests/cli/test_table_commands.py",
]
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@dataclass
class Cell:
    """What came of one Python and one extra."""

    status: str = "not run"
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.status} {self.seconds:.0f} s" if self.seconds else self.status


def interpreter(version: str) -> Path | None:
    """Return a Python of this machine, such as 3.12: of pyenv, on PATH, or of uv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places: list[Path | str | None] = sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)
    for place in filter(None, [*places, shutil.which(f"python{version}")]):
        asked = run([place, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if asked.returncode == 0 and asked.stdout.strip() == version:  # pyenv's shims may lead nowhere
            return Path(place)
    asked = run([UV, "python", "find", "--no-python-downloads", "--no-project", version])
    return Path(asked.stdout.strip()) if asked.returncode == 0 else None


def run(command: list[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def surroundings(folder: Path) -> dict[str, str]:
    """Return the variables of all that is started: nothing of this checkout, and bytecode that is made only once."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    if "UV_FIND_LINKS" not in kept:  # uv doesn't read pip's settings
        asked = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
        kept["UV_FIND_LINKS"] = ",".join((kept.get("PIP_FIND_LINKS") or run(asked).stdout).split())
    return kept | {
        "OMP_NUM_THREADS": "1",  # small tables: more threads only wait for each other
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONSAFEPATH": "1",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }


def torch_for(python: Path, version: str | None, variables: dict[str, str]) -> tuple[str, bool]:
    """Return the torch that this Python would get, and whether it brings CUDA's packages."""
    wanted, limits = (f"torch=={version}", []) if version else ("torch", ["-c", ROOT / "constraints.txt"])
    plan = run(
        [UV, "pip", "compile", "--quiet", "--python", python, *limits, "-"], env=variables, input=wanted
    )
    found = re.search(r"^torch==\S+", plan.stdout, re.M)
    if found is None:
        raise SystemExit(f"torch can't be had for {python}:\n{plan.stderr}")
    return found[0], bool(re.search(r"^(nvidia|cuda)-", plan.stdout, re.M))


class Environment:
    """An empty environment, in the place of the one before, so that compiled bytecode serves again."""

    def __init__(self, python: Path, folder: Path, variables: dict[str, str]) -> None:
        self.folder, self.variables = folder, variables
        self.python = folder / "bin" / "python"
        shutil.rmtree(folder, ignore_errors=True)
        self.uv("venv", "--quiet", "--python", str(python), str(folder))

    def uv(self, *arguments: str) -> None:
        done = run([UV, *arguments], env=self.variables | {"VIRTUAL_ENV": str(self.folder)})
        if done.returncode:
            raise Failure(f"uv {' '.join(arguments)}\n{done.stdout}{done.stderr}")

    def install(self, *arguments: str) -> None:
        self.uv("pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), *arguments)

    def call(self, *arguments: str | Path, cwd: Path) -> str:
        done = run([self.python, *arguments], env=self.variables, cwd=cwd)
        if done.returncode:
            raise Failure(f"python {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def try_extras(self, *extras: str) -> None:
        self.call(HERE / "installed.py", *extras, cwd=self.folder)

    def test(self, paths: list[str], *options: str) -> str:
        """Run tests of the checkout against what is installed; return the last line."""
        where = "import entourage; print(entourage.__file__)"
        place = self.call("-c", where, cwd=ROOT).strip()
        if not place.startswith(str(self.folder)):
            raise Failure(f"The tests would run against {place}.")
        marks = ["-m", "not heavy and not browser and not ray"]
        plain = ["-o", "addopts=", "-p", "no:cacheprovider", "-q", *marks]
        said = self.call("-m", "pytest", *plain, *options, *paths, cwd=ROOT)
        return said.strip().splitlines()[-1].strip("= ")


class Failure(Exception):
    """Something that should work doesn't."""


def try_one(environment: Environment, wheel: Path, extra: str, tests: list[str]) -> list[str]:
    """Install the wheel with an extra into an empty environment, and try it."""
    environment.install(f"{wheel}[{extra}]" if extra != "core" else str(wheel))
    environment.try_extras(extra)
    if extra != "core" or not tests:
        return []
    environment.install(*TOOLS)
    return [environment.test(tests)]


def try_lowest(environment: Environment, wheel: Path, torch: str, tests: list[str]) -> list[str]:
    """Install the oldest versions that are allowed, of the core and of what users add, with the torch that is given."""
    frozen = environment.folder.with_suffix(".frozen")
    override = environment.folder.with_suffix(".override")
    override.write_text(torch)
    lowest = ["--resolution", "lowest-direct", "--override", str(override)]
    environment.uv("pip", "install", "--quiet", *lowest, f"{wheel}[{','.join(USED)}]")
    variables = environment.variables | {"VIRTUAL_ENV": str(environment.folder)}
    lines = run([UV, "pip", "freeze"], env=variables).stdout.split("\n")
    frozen.write_text("\n".join(line for line in lines if "==" in line))
    notes = direct_ones(frozen)
    environment.try_extras("core", *USED)
    if tests:
        environment.uv("pip", "install", "--quiet", "-c", str(frozen), *TOOLS)
        notes.append(environment.test(tests))
    return notes


def direct_ones(frozen: Path) -> list[str]:
    """Return what is installed of the packages that pyproject.toml names."""
    named = PROJECT["dependencies"] + [one for name in USED for one in PROJECT["optional-dependencies"][name]]
    names = {re.split(r"[<>=;\[ ]", one)[0] for one in named}
    lines = frozen.read_text().split()
    return [", ".join(line.replace("==", " ") for line in lines if line.split("==")[0] in names)]


def print_table(cells: dict[tuple[str, str], Cell], versions: list[str], extras: list[str]) -> None:
    width = max(len(extra) for extra in extras) + 2
    columns = [max(len(str(cells[version, extra])) for extra in extras) + 2 for version in versions]
    columns = [max(column, len(version) + 9) for column, version in zip(columns, versions, strict=True)]
    heads = [f"Python {version}".ljust(column) for version, column in zip(versions, columns, strict=True)]
    print("".ljust(width) + "".join(heads))
    for extra in extras:
        row = [
            str(cells[version, extra]).ljust(column)
            for version, column in zip(versions, columns, strict=True)
        ]
        print(extra.ljust(width) + "".join(row))
    print()
    for version in versions:
        for note in dict.fromkeys(note for extra in extras for note in cells[version, extra].notes):
            print(f"{version}: {note}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", choices=PYTHONS, help="by default all")
    parser.add_argument("--extra", action="append", choices=["core", *EXTRAS], help="by default all")
    parser.add_argument("--lowest", action="store_true", help="the oldest dependencies instead of the newest")
    parser.add_argument("--torch", help="with --lowest: such as 2.7.0, by default that of constraints.txt")
    parser.add_argument("--cuda", action="store_true", help="also where torch comes with CUDA")
    parser.add_argument("--no-tests", action="store_true", help="installed.py alone")
    options = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1 or UV is None:
        raise SystemExit("This needs uv, and one wheel in dist/: run make dist.")
    versions = options.python or (PYTHONS[:1] if options.lowest else PYTHONS)
    extras = ["lowest"] if options.lowest else options.extra or ["core", *EXTRAS]
    tests = [] if options.no_tests else TESTS
    cells = {(version, extra): Cell() for version in versions for extra in extras}
    failures = []
    for version in versions:
        with tempfile.TemporaryDirectory(prefix="entourage-") as name:
            folder = Path(name)
            variables = surroundings(folder)
            python = interpreter(version)
            torch, cuda = torch_for(python, options.torch, variables) if python else ("", False)
            why = "" if python else "no such Python in pyenv, on PATH or in uv"
            if cuda and not options.cuda:
                why = f"{torch} for this Python is a CUDA build here, gigabytes to download: --cuda takes it"
            for extra in extras:
                cell = cells[version, extra]
                if why or python is None:
                    cell.notes.append(f"not run: {why}")
                    continue
                start = time.monotonic()
                try:
                    environment = Environment(python, folder / "environment", variables)
                    if options.lowest:
                        cell.notes += try_lowest(environment, wheels[0], torch, tests)
                    else:
                        cell.notes += try_one(environment, wheels[0], extra, tests)
                    cell.status = "works"
                except Failure as failure:
                    cell.status = "FAILED"
                    failures.append(f"Python {version}, {extra}: {failure}")
                cell.seconds = time.monotonic() - start
                print(f"Python {version}, {extra}: {cell}", flush=True)
    print()
    print_table(cells, versions, extras)
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
