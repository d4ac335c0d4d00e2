"""What an installed Entourage can do: run by the Python of an environment that has nothing but the wheel and an extra.

``environments.py`` starts it, outside of the checkout: ``python installed.py core`` or the name of an extra. It uses
the standard library and Entourage alone. It ends with code 0, or with the first thing that didn't work.
"""

import argparse
import csv
import importlib
import importlib.metadata
import json
import pkgutil
import random
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

BIN = Path(sys.executable).parent
MODULES = {  # of each extra, beyond what the core brings
    "boost": ["lightgbm"],
    "hypervolume": ["numba"],
    "tune": ["optuna"],
    "image": ["PIL", "skimage"],
    "report": ["jinja2", "matplotlib"],
    "onnx": ["onnx", "onnxruntime", "onnxscript"],
    "serve": ["fastapi", "httptools", "prometheus_client", "uvicorn"],
    "test": ["beartype", "httpx", "hypothesis", "jaxtyping", "pandas", "polars", "pytest", "schemathesis"],
    "ray": ["ray"],
    "browser": ["playwright"],
    "mutation": ["mutmut"],
    "check": ["importlinter", "mypy"],
    "docs": ["furo", "myst_parser", "sphinx", "sphinx_gallery"],
}
ROLES = ["--set-id", "race", "--target", "place"]


def command(*arguments: str | Path, folder: Path) -> str:
    """Run a command of the environment and return what it printed; fail with what it said."""
    name, *others = map(str, arguments)
    done = subprocess.run([BIN / name, *others], capture_output=True, text=True, cwd=folder, check=False)
    need(
        done.returncode == 0, f"{name} {' '.join(others)}: code {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def need(holds: bool, message: str) -> None:
    if not holds:
        raise SystemExit(message)


def write_table(path: Path, sets: int = 80, objects: int = 5) -> None:
    """Write races of which the runner next to the mean of the two features wins: a table that a net can learn."""
    numbers = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["race", "speed", "weight", "team", "place"])
        for race in range(sets):
            rows = [(numbers.random(), numbers.random()) for _ in range(objects)]
            middle = [sum(row[i] for row in rows) / objects for i in range(2)]
            gaps = [sum((a - b) ** 2 for a, b in zip(row, middle, strict=True)) for row in rows]
            for row, gap in zip(rows, gaps, strict=True):
                place = 1 + sum(other < gap for other in gaps)
                table.writerow([race, *row, numbers.choice(["red", "blue"]), place])


def core(folder: Path) -> None:
    """Import everything, then fit, predict, evaluate, info, save and load on a small table."""
    import entourage

    place = Path(entourage.__file__).resolve()
    need(
        Path(sys.prefix).resolve() in place.parents,
        f"Entourage comes from {place}, not from the environment.",
    )
    installed = importlib.metadata.version("entourage")
    need(entourage.__version__ == installed, f"{entourage.__version__} is installed as {installed}.")
    need((place.parent / "py.typed").exists(), "py.typed is missing.")
    for name in entourage.__all__:
        getattr(entourage, name)
    import_all(entourage.__path__)

    need(
        "in the company they keep" in " ".join(command("entourage", "--help", folder=folder).split()),
        "--help",
    )
    need(command("entourage", "--version", folder=folder).strip() == installed, "--version")
    table, model, ranked = folder / "races.csv", folder / "races.entourage", folder / "ranked.csv"
    fit = ["--model", "fate", "--steps", "100", "--device", "cpu"]
    command("entourage", "fit", table, *ROLES, "-o", model, *fit, folder=folder)
    command("entourage", "predict", model, table, "-o", ranked, "--device", "cpu", folder=folder)
    said = command("entourage", "evaluate", model, table, "--json", folder=folder)
    accuracy = json.loads(said)["metrics"]["ranking_accuracy"]
    need(
        accuracy > 0.7,
        f"A net of 100 steps should have learnt the table; its ranking accuracy is {accuracy}.",
    )
    need("place (rank)" in command("entourage", "info", model, folder=folder), "info")
    again = folder / "again.entourage"
    loaded = entourage.load(model)
    loaded.save(again)
    need(again.read_bytes() == model.read_bytes(), "A model that is loaded and saved is another file.")
    with ranked.open(encoding="utf-8") as file:
        need(len(list(csv.DictReader(file))) == 400, "predict should write 400 rows.")


def import_all(folders: list[str]) -> None:
    """Import every module; one that an extra is missing for must be missing just that."""
    extras = {module for modules in MODULES.values() for module in modules} | {"starlette", "triton"}
    for module in pkgutil.walk_packages(folders, "entourage."):
        if module.name == "entourage.__main__":
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            need(str(error.name).split(".")[0] in extras, f"import {module.name}: {error}")


def boost(folder: Path) -> None:
    from entourage.baselines import LambdaMART
    from entourage.data import make_medoid

    X, ranks = make_medoid(60, random_state=0)
    model = LambdaMART(random_state=0).fit(X, ranks)
    model.save(folder / "trees.entourage")
    from entourage import load

    scores = load(folder / "trees.entourage").predict_scores(X)
    need((scores == model.predict_scores(X)).all(), "Trees score otherwise when they are loaded.")


def hypervolume(folder: Path) -> None:
    from entourage.data import make_fronts

    made = make_fronts(3, 3, random_state=0, sizes=(5, 10), population=500)
    need(bool((made.contributions > 0).all()), "A point of a front contributes nothing.")


def tune(folder: Path) -> None:
    out = folder / "tuned.entourage"
    options = ["--trials", "2", "--folds", "1", "--steps", "20", "--device", "cpu"]
    command("entourage", "tune", folder / "races.csv", *ROLES, "-o", out, *options, folder=folder)
    need(out.exists(), "tune writes no model.")


def image(folder: Path) -> None:
    import numpy as np

    from entourage.data.photographs import describe, superpixels

    picture = np.random.default_rng(0).integers(0, 255, (60, 80, 3)).astype(np.uint8)
    regions = superpixels(picture, count=20)
    need(len(describe(picture, regions)) == regions.count, "describe")


def report(folder: Path) -> None:
    small_model(folder)
    page = folder / "effects.html"
    options = ["--report", page, "--refits", "0", "--draws", "19", "--device", "cpu", "--most-sets", "20"]
    command("entourage", "effects", "races.entourage", "races.csv", *options, folder=folder)
    need("<svg" in page.read_text(encoding="utf-8"), "The page has no picture.")


def onnx(folder: Path) -> None:
    small_model(folder)
    command("entourage", "export", "races.entourage", "-o", "races.onnx", folder=folder)
    command("entourage", "explore", "races.entourage", "races.csv", "-o", "explorer.html", folder=folder)
    need((folder / "explorer.html").stat().st_size > 4_000_000, "The explorer lacks its runtime.")


def serve(folder: Path) -> None:
    small_model(folder)
    server = subprocess.Popen(
        [BIN / "entourage", "serve", "races.entourage", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = server.stdout.readline()
            need(bool(line), f"serve ended: {said}")
            said += line
        with urllib.request.urlopen(f"{found[0]}/v1/model", timeout=60) as answer:
            need(json.load(answer)["task"] == "ranking", "/v1/model")
    finally:
        server.terminate()
        server.communicate(timeout=60)
    need(server.returncode == 0, f"serve ended with code {server.returncode}.")


def small_model(folder: Path) -> None:
    fit = ["-o", "races.entourage", "--model", "fate", "--steps", "20", "--device", "cpu"]
    command("entourage", "fit", "races.csv", *ROLES, *fit, folder=folder)


RUNS = {
    "core": core,
    "boost": boost,
    "hypervolume": hypervolume,
    "tune": tune,
    "image": image,
    "report": report,
    "onnx": onnx,
    "serve": serve,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extra", nargs="+", choices=["core", *MODULES])
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "races.csv")
        for extra in parser.parse_args().extra:
            for module in MODULES.get(extra, []):
                importlib.import_module(module)
            if extra in RUNS:
                RUNS[extra](Path(folder))


if __name__ == "__main__":
    main()
