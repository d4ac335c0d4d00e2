"""Commands, run as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

from entourage import __version__


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("entourage")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_help_tells_the_story_without_waiting_for_torch():
    result = run("--help")
    assert result.returncode == 0
    assert "in the company they keep" in " ".join(result.stdout.split())
    assert "demo" in result.stdout
    code = "import entourage.cli, sys; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_the_packages():
    assert run("--version").stdout.strip() == __version__


def test_the_demo_prints_a_table_beside_the_papers_figures_and_writes_a_report(tmp_path):
    quick = ["--train-sets", "300", "--test-sets", "1000", "--steps", "60"]
    result = run("demo", "--out", "here", *quick, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for figure in ("0.682", "0.759", "0.901", "0.443"):  # the paper's
        assert figure in result.stdout
    assert "turn round" in result.stdout
    page = (tmp_path / "here" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page, "self-contained: nothing is loaded from elsewhere"
    assert (tmp_path / "here" / "reversal.png").read_bytes().startswith(b"\x89PNG")


def test_a_users_mistake_is_a_plain_sentence_and_exit_code_2(tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    result = run(
        "demo", "--out", "taken", "--train-sets", "300", "--test-sets", "1000", "--steps", "1", cwd=tmp_path
    )
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "taken" in result.stderr
    assert (tmp_path / "taken").read_text() == "a file, not a folder"
    assert run("demo", "--train-sets", "many").returncode == 2
    assert run("dmeo").returncode == 2


def test_brackets_in_an_error_are_printed(monkeypatch, capsys):
    import entourage.cli.program
    from entourage.errors import UserError

    def fail():
        raise UserError("run pip install 'entourage[report]'")

    monkeypatch.setattr("entourage.cli.program.app", fail)
    with pytest.raises(SystemExit) as stop:
        entourage.cli.main()
    assert stop.value.code == 2
    assert "entourage[report]" in capsys.readouterr().err


def test_what_a_report_needs_is_said_before_the_long_work(monkeypatch):
    from entourage.errors import UserError
    from entourage.report import page

    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"entourage\[report\]"):
        page.require_report()
