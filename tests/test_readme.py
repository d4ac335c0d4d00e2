"""What the README shows is run: Python, commands as they are typed; its table is what the rows say."""

import gzip
import json
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from commands import run
from data_files import real

from entourage import Ranker

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_run(tmp_path, monkeypatch):
    """With few training steps and sets: what is shown is the use, not the result."""
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(Ranker.__init__.__kwdefaults__, "steps", 20)
    names = {"__name__": "readme"}
    exec(compile(code.replace("n_sets=10_000", "n_sets=300"), "README.md", "exec"), names)
    assert names["model"].predict(names["X_new"]).shape == (1000, 8)
    assert (tmp_path / "medoid.entourage").stat().st_size > 1000


def commands_of(text):
    """Return the lines of indented blocks that call entourage, without their comments."""
    lines = re.findall(r"^    (entourage (?:.*\\\n)*.*)", text, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " "), comments=True)[1:] for line in lines]


def make_races(path, n_sets, seed):
    rng = np.random.default_rng(seed)
    lines = ["race,driver_age,team,place"]
    for race in range(n_sets):
        ages = rng.uniform(20, 40, size=5)
        places = (ages + rng.normal(0, 3, size=5)).argsort().argsort() + 1
        teams = rng.choice(["red", "blue"], size=5)
        lines += [
            f"{race},{age:.1f},{team},{place}" for age, team, place in zip(ages, teams, places, strict=True)
        ]
    path.write_text("\n".join(lines))


@pytest.mark.heavy
def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_races(tmp_path / "races.csv", 60, seed=0)
    make_races(tmp_path / "next.csv", 10, seed=1)
    commands = [one for one in commands_of(README) if {"races.csv", "next.csv"} & set(one)]
    commands = [one for one in commands if "race_id" not in one]  # the verdict's table is a real one
    assert [one[0] for one in commands] == ["compare", "fit", "predict", "explore"]
    quick = {
        "compare": ["--steps", "20", "--workers", "1", "--models", "linear,FATE,FATE ablated"],
        "fit": ["--budget", "5"],
    }
    for command in commands:
        code, out, err = run(capsys, *command, *quick.get(command[0], []))
        assert code == 0, err
        if command[0] == "compare":
            assert "context effect" in out
    assert len((tmp_path / "ranked.csv").read_text().splitlines()) == 51
    assert "</html>" in (tmp_path / "explorer.html").read_text()[-200:]


def test_the_command_of_the_verdict_names_columns_of_the_real_table():
    (command,) = [one for one in commands_of(README) if "race_id" in one]
    named = [value for option, value in pairwise(command) if option.startswith("--")]
    table = next(real("f1_races").glob("*.csv.gz"))
    columns = gzip.decompress(table.read_bytes()).decode().partition("\n")[0].split(",")
    assert len(named) == 10
    assert set(named) <= set(columns)


def table_below(text, heading):
    """Return the cells of the first table below a heading, by the first cell of each line."""
    lines = re.search(r"(?:^\|.*\n)+", text[text.index(heading) :], re.MULTILINE)[0].splitlines()[2:]
    return {
        cells[0]: cells[1:]
        for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    }


def test_the_table_of_the_readme_is_what_the_rows_say():
    names = {
        "expected rank regression": "ERR",
        "FETA": "FETA-Net",
        "FATE": "FATE-Net",
    }
    shown = table_below(README, "## The paper, reproduced")
    lines = (ROOT / "paper" / "results" / "table1" / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    best = [
        json.loads(line) for line in (ROOT / "benchmarks" / "results" / "best.jsonl").read_text().splitlines()
    ]
    paper = tomllib.loads((ROOT / "paper" / "table1.toml").read_text())["tasks"]

    def ours(values):
        assert len(values) in (5, 10)
        return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"

    for label, cells in shown.items():
        model = names.get(label, label)
        for i, task in enumerate(("medoid", "hypervolume")):
            if label.startswith("SetAttention"):
                task = {"hypervolume": "hypervolume-2"}.get(task, task)
                expected = ours([row["ensemble"]["ranking_accuracy"] for row in best if row["task"] == task])
                assert cells[2 * i : 2 * i + 2] == [f"**{expected}**", "—"]
                continue
            mine = [row for row in rows if row["model"] == model and row["task"] == task]
            assert cells[2 * i] == ours([row["metrics"]["ranking_accuracy"] for row in mine]), (label, task)
            published = paper[task]["published"]["ranking_accuracy"].get(model)
            assert cells[2 * i + 1] == (f"{published['mean']:.3f}" if published else "—"), (label, task)
    assert len(shown) == 9
