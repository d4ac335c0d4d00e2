"""The program that runs the tutorials, on pages of its own; and every tutorial, where the real data are."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from data_files import REAL, written

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
SOURCE = FOLDER / "run.py"
PAGES = sorted(page.stem for page in FOLDER.glob("*.md") if page.stem != "index")
MOST_CPU_SECONDS = 600  # at most 220 on the machine of the pages

spec = importlib.util.spec_from_file_location("tutorials_run", SOURCE)
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)


@pytest.fixture
def tutorial(tmp_path, monkeypatch):
    """Return a function that writes a tutorial, runs it and returns (exit code, its text)."""
    for name, value in runner.SETTINGS.items():
        monkeypatch.setenv(name, value)  # put back after the test
    monkeypatch.setattr(runner, "PAGES", tmp_path / "pages")
    written(tmp_path / "data" / "races" / "a.csv", "place\n1\n")

    def run(text=None, *options):
        page = tmp_path / "pages" / "mine.md"
        if text is not None:
            written(page, text)
        code = runner.main(["--data", str(tmp_path / "data"), *options])
        return code, page.read_text()

    return run


def test_a_block_shows_what_it_prints_and_its_last_value(tutorial):
    text = "# T\n```python\na = 2\nprint('one')\na + 1\n```\nThen\n```python\na = a * 5\n```\n```python\na\n```\n"
    code, text = tutorial(text)
    assert code == 0
    assert text == (
        "# T\n```python\na = 2\nprint('one')\na + 1\n```\n\n<!-- output -->\n```text\none\n3\n```\n"
        "Then\n```python\na = a * 5\n```\n```python\na\n```\n\n<!-- output -->\n```text\n10\n```\n"
    )
    assert tutorial() == (0, text), "a second run changes nothing"
    assert tutorial(None, "--check") == (0, text)


def test_commands_run_where_data_is_and_entourage_is_this_one(tutorial):
    code, text = tutorial(
        "```console\n$ cat data/races/a.csv \\\n> data/races/a.csv\n"
        "$ command -v entourage > /dev/null && echo here\n```\n"
    )
    assert code == 0
    assert text.endswith("```text\nplace\n1\nplace\n1\nhere\n```\n")


def test_entourage_is_the_one_of_this_interpreter(tutorial):
    code, text = tutorial('```console\n$ cat "$(command -v entourage)"\n```\n')
    assert code == 0
    assert f"exec {sys.executable} -m entourage" in text


def test_other_blocks_do_not_run(tutorial):
    text = "```py\nraise SystemExit\n```\n```text\nas it is\n```\n"
    assert tutorial(text) == (0, text)


def test_old_output_goes_where_nothing_is_printed_any_more(tutorial):
    code, text = tutorial("```python\na = 1\n```\n\n<!-- output -->\n```text\n1\n```\nend\n")
    assert (code, text) == (0, "```python\na = 1\n```\nend\n")


def test_a_check_reports_a_changed_word_and_leaves_the_page_alone(tutorial, capsys):
    _, text = tutorial("```python\nprint('a context effect')\n```\n")
    stale = text.replace("a context effect\n", "no context effect\n")
    assert tutorial(stale, "--check") == (1, stale)
    printed = capsys.readouterr().out
    assert "-no context effect\n+a context effect\n" in printed
    assert "mine.md:1 shows" in printed


@pytest.mark.parametrize(
    ("old", "new", "different"),
    [
        ("accuracy 0.700", "accuracy 0.754", False),  # 0.02 + 5 % of 0.7 = 0.055
        ("accuracy 0.700", "accuracy 0.756", True),
        ("accuracy 0.700", "precision 0.700", True),
        ("gain −0.008", "gain 0.010", False),
        ("gain 0.10", "gain −0.10", True),
        ("7 alternatives", "8 alternatives", True),
        ("1,000 sets", "1,040 sets", False),
        ("1,000 sets", "1,100 sets", True),
        ("1e-3", "1e3", True),
        ("a 1 2", "a 1", True),
        ("took 3 s", "took 1 minute and 5 seconds", False),
        ("took 1 minute 5 seconds, wrote 3.2 MB", "took 9.25 s, wrote 15 kB", False),
        ("on 2026-11-18 12:30:01", "on 2027-01-02 01:02:03", False),
        ("x   1.0\n────\ny  2", "x 1.01\n──────\ny 2", False),
        ("3 sets", "9 sets", True),  # an s of its own is a second; this is none
    ],
)
def test_numbers_may_differ_a_little_words_may_not_and_times_are_not_compared(old, new, different):
    assert runner.differs(old, new) is different


def test_a_page_is_not_rewritten_for_the_seconds_in_it(tutorial):
    shown = "```python\nprint('took 2 seconds')\n```\n\n<!-- output -->\n```text\ntook 1 seconds\n```\n"
    assert tutorial(shown) == (0, shown)


def test_pictures_on_the_page_are_kept_and_a_missing_one_is_an_error(tutorial, tmp_path, capsys):
    page = "```python\nfrom pathlib import Path\n_ = Path('x.png').write_bytes(b'picture')\n```\n![A](images/x.png)\n"
    assert tutorial(page, "--check")[0] == 1  # none is kept yet
    assert tutorial(page)[0] == 0
    assert (tmp_path / "pages" / "images" / "x.png").read_bytes() == b"picture"
    assert tutorial(page, "--check")[0] == 0
    capsys.readouterr()
    assert tutorial("![A](images/y.png)\n")[0] == 1
    assert "shows images/y.png" in capsys.readouterr().out


def test_a_failing_block_fails_the_run_and_says_where(tutorial, capsys):
    text = "# T\n\n```python\na = 1\na / 0\n```\n"
    assert tutorial(text) == (1, text)
    printed = capsys.readouterr().out
    assert 'mine.md:3", line 2' in printed
    assert "a / 0" in printed
    text = "```console\n$ echo to be seen; exit 3\n```\n"
    assert tutorial(text) == (1, text)
    assert "exits with 3:\nto be seen" in capsys.readouterr().out


def test_a_line_without_a_prompt_is_an_error(tutorial, capsys):
    assert tutorial("```console\necho 1\n```\n")[0] == 1
    assert "starts with" in capsys.readouterr().out


def test_without_data_it_says_what_is_needed(tmp_path, capsys):
    assert runner.main([]) == 2
    assert "--data FOLDER (none was given)" in capsys.readouterr().err
    assert runner.main(["--data", str(tmp_path / "nowhere")]) == 2
    assert "is no folder" in capsys.readouterr().err


def test_an_unknown_page_is_named(tutorial, capsys):
    assert tutorial("# T\n", "yours")[0] == 2
    assert "No tutorial is called yours; there are mine." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_prints_what_it_shows(name):
    if not REAL.is_dir():
        pytest.skip(f"the real data are not on this machine: {REAL} is missing")
    before = sum(os.times()[2:4])
    ran = subprocess.run(
        [sys.executable, SOURCE, "--data", REAL, "--check", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert sum(os.times()[2:4]) - before < MOST_CPU_SECONDS
