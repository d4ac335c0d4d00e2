"""The command line as a whole: help at once, a user's mistake in one sentence."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run
from rich.text import Text
from typer.main import get_command

from entourage import __version__
from entourage.cli import app, main
from entourage.errors import UserError
from entourage.nets.registry import REGISTRY

COMMANDS = [
    "demo",
    "reproduce",
    "fit",
    "predict",
    "evaluate",
    "info",
    "tune",
    "compare",
    "effects",
    "whatif",
    "elasticities",
    "audit",
    "assort",
    "prices",
    "export",
    "explore",
    "serve",
]


def run_script(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the console script, as a user does."""
    command = [str(Path(sys.executable).with_name("entourage")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_help_tells_the_story():
    result = run_script("--help")
    assert result.returncode == 0
    assert "in the company they keep" in " ".join(result.stdout.split())
    assert "demo" in result.stdout


def test_the_version_is_the_packages(capsys):
    assert run(capsys, "--version")[1].strip() == __version__


def test_every_command_is_registered():
    assert list(get_command(app).commands) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_character_that_was_written(name):
    """Rich takes [onnx] for a style and :-1: for a picture, and shows neither."""
    command = get_command(app).commands[name]
    for text in (command.help, *(getattr(parameter, "help", None) for parameter in command.params)):
        written = re.sub(r"\[/?bold\]", "", text or "")
        assert Text.from_markup(text or "").plain == written


@pytest.mark.parametrize("name", COMMANDS)
def test_a_paragraph_of_a_help_is_broken_by_the_terminal_alone(name):
    """Rich keeps the line ends of a docstring, and its own breaks then leave single words on a line."""
    assert all("\n" not in block for block in get_command(app).commands[name].help.split("\n\n"))


def test_what_a_command_writes_is_named_by_o_everywhere():
    """The long name is --out; --report where a page is written without being asked for."""
    long = {
        name: next(word for word in option.opts if word.startswith("--"))
        for name, command in get_command(app).commands.items()
        for option in command.params
        if "-o" in option.opts
    }
    assert set(COMMANDS) - set(long) == {"demo", "reproduce", "evaluate", "info", "serve"}
    assert {name for name, option in long.items() if option != "--out"} == {"compare", "effects"}


def test_no_help_waits_for_heavy_imports():
    """In a process of its own, since this one has imported them all."""
    code = f"""
import json, sys
from typer.testing import CliRunner
from entourage.cli import app
codes = [CliRunner().invoke(app, [*command, "--help"]).exit_code for command in [[], *({[[c] for c in COMMANDS]!r})]]
heavy = ["torch", "sklearn", "pyarrow", "numpy", "scipy", "narwhals", "matplotlib", "optuna", "jinja2"]
loaded = [name for name in heavy if name in sys.modules]
loaded += [name for name in sys.modules if name.startswith(("entourage.experiments", "entourage.data"))]
print(json.dumps([codes, loaded]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == [[0] * (1 + len(COMMANDS)), []]


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_the_help_of_model_names_every_registered_net(command):
    options = {option.name: option for option in get_command(app).commands[command].params}
    words = options["model"].help.replace(",", " ").replace(".", " ").replace(":", " ").split()
    assert {entry.name for entry in REGISTRY} <= set(words)


def test_a_users_mistake_is_a_plain_sentence_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file, not a folder")
    few = ("--train-sets", "100", "--test-sets", "1000", "--steps", "1")
    code, _, err = run(capsys, "demo", "--out", tmp_path / "taken", *few)
    assert code == 2
    assert "Traceback" not in err
    assert "taken" in err
    assert (tmp_path / "taken").read_text() == "a file, not a folder"
    assert run(capsys, "demo", "--train-sets", "many")[0] == 2
    assert run(capsys, "dmeo")[0] == 2


def test_the_console_script_exits_with_2_as_well(tmp_path):
    result = run_script("predict", "m.entourage", "t.csv", "-o", "t.csv", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: t.csv can't be written: it is also an input (t.csv)")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UserError("run pip install 'entourage[report]'"), 2, "Error: run pip install 'entourage[report]'"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_errors_are_printed_with_their_brackets_and_interrupts_are_no_mistake(
    monkeypatch, capsys, error, code, words
):
    def fail():
        raise error

    monkeypatch.setattr("entourage.cli.program.app", fail)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == code
    assert capsys.readouterr().err.strip() == words
