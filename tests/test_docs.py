"""Pages of the documentation: their examples run, command lines name options that there are, links find headings."""

import hashlib
import itertools
import json
import re
import runpy
import shlex
from pathlib import Path

import matplotlib as mpl
import pytest
import typer
from commands import run
from docs_data import SHORTER, given_to, write_files

from entourage.cli.program import app
from entourage.estimators.net_estimator import NetEstimator

ROOT = Path(__file__).parents[1]
PAGES = {page.stem: page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))}
TUTORIALS = {page.stem: page.read_text() for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
EXAMPLES = re.compile(r"(<!-- not run: (?P<why>[^>]+) -->\n)?^```python\n(?P<code>.*?)^```", re.M | re.S)
COMMANDS = typer.main.get_command(app).commands
OF_PHOTOGRAPHS = {"cues", "depth"}  # which are not here
STEPS = 3  # of training, in examples
HEAVY = {"assortment", "automatic", "effects", "explorer", "export", "tuning", "verdict"}  # take seconds


def examples_of(page):
    """Return the examples of a page that are run, one below the other."""
    return [match["code"] for match in EXAMPLES.finditer(PAGES[page]) if not match["why"]]


WITH_EXAMPLES = [page for page in PAGES if examples_of(page) and page not in OF_PHOTOGRAPHS]


def quick_and_heavy(pages):
    return [pytest.param(page, marks=pytest.mark.heavy if page in HEAVY else ()) for page in pages]


@pytest.fixture
def short_training(monkeypatch):
    """Let nets train for a few steps only: examples are to run, not to learn."""
    prepare = NetEstimator.prepare

    def prepared(self, *given, **named):
        steps, self.steps = self.steps, min(self.steps, STEPS)
        try:
            return prepare(self, *given, **named)
        finally:
            self.steps = steps

    monkeypatch.setattr(NetEstimator, "prepare", prepared)


@pytest.mark.filterwarnings("ignore")  # three steps are too few for anything
@pytest.mark.parametrize("page", quick_and_heavy(WITH_EXAMPLES))
def test_the_examples_of_a_page_run_in_order(page, short_training, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    names = given_to(page)
    for code in examples_of(page):
        for long, short in SHORTER.items():
            code = code.replace(long, short)
        exec(compile(code, f"{page}.md", "exec"), names)


def lines_of(text):
    """Return the command lines in a text, those that are continued joined."""
    blocks = re.findall(r"^```(?:bash|console|sh)\n(.*?)^```", text, re.M | re.S)
    blocks += re.findall(r"(?:^(?: {4}|\t).*\n)+", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    whole = re.sub(r"\\\n>?", " ", "\n".join(blocks))
    found = re.findall(r"^\s*(?:\$ )?(?:torchrun .*? -m )?entourage (.*)$", whole, re.M)
    return [line for line in found if not line.startswith("─")]


def check_line(line):
    """Parse a command line as the program would, without running it."""
    words = shlex.split(line, comments=True)
    words = list(itertools.takewhile(lambda word: word not in ("|", "||", "&&", ";", ">", "2>"), words))
    assert words[0] in COMMANDS or words == ["--help"], f"no command {words[0]!r} in: entourage {line}"
    if words[0] in COMMANDS and "..." not in words:
        COMMANDS[words[0]].make_context(words[0], words[1:])


COMMAND_LINES = [
    pytest.param(line, id=f"{name}: {line[:60]}")
    for name, text in ({"README": (ROOT / "README.md").read_text()} | PAGES | TUTORIALS).items()
    for line in lines_of(text)
]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_line_names_what_there_is(line):
    check_line(line)


def test_a_wrong_option_and_a_lacking_one_are_noticed():
    for line in ("fit a.csv --set-id a --target b -o c --modle fate", "fit a.csv --target b -o c"):
        with pytest.raises(Exception, match=r"No such option|Missing (option|parameter)") as caught:
            check_line(line)
        assert "UsageError" in [kind.__name__ for kind in type(caught.value).__mro__]


INLINE = sorted(
    {line for text in PAGES.values() for line in re.findall(r"(?<!`)`entourage ([a-z][^`\n]*)`(?!`)", text)}
)


@pytest.mark.parametrize("line", INLINE)
def test_a_command_in_a_sentence_has_options_that_there_are(line):
    words = line.split()
    assert words[0] in COMMANDS
    known = {option for given in COMMANDS[words[0]].params for option in (*given.opts, *given.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}


OF_HELP = [
    pytest.param(" ".join(words.split()), id=" ".join(words.split()[:4]))
    for command in COMMANDS.values()
    for words in re.findall(r"^\s*entourage (.+?)(?:\n\s*\n|\Z)", command.help or "", re.M | re.S)
]
BRIEFLY = {  # what an example of --help is also given here, so that it takes a second or two
    "fit races": "--budget 4 --workers 1",
    "compare": "--models linear,FATE --folds 2 --workers 1",
    "effects": "--refits 0 --draws 9 --most-sets 20",
    "info": "--repeats 1",
    "tune": "--trials 1 --folds 1 --model context_free",
}


def test_a_command_has_an_example_in_its_help():
    without = set(COMMANDS) - {param.values[0].split()[0] for param in OF_HELP}
    assert without == {"demo"}  # which needs nothing


@pytest.mark.parametrize("line", OF_HELP)
def test_an_example_of_the_help_of_a_command_parses(line):
    check_line(line)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", [p for p in OF_HELP if not p.values[0].startswith("serve")])
def test_an_example_of_the_help_of_a_command_runs(
    line, short_training, capsys, monkeypatch, folder_of_commands
):
    monkeypatch.chdir(folder_of_commands)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    more = next((words for begin, words in BRIEFLY.items() if line.startswith(begin)), "")
    code, _, said = run(capsys, *shlex.split(f"{line} {more}"))
    assert code == 0, said
    for name in re.findall(r"-o (\S+)", line):
        assert Path(name).stat().st_size > 100


@pytest.fixture(scope="module")
def folder_of_commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("help")
    write_files(folder)
    return folder


def test_a_link_to_a_page_or_one_of_its_headings_finds_it():
    broken = []
    sources = PAGES | {"README": (ROOT / "README.md").read_text().replace("(docs/", "(")}
    for name, text in sources.items():
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        for page, anchor in re.findall(r"\]\((?:([a-z]+)\.md)?(?:#([^)]+))?\)", prose):
            target = page or name
            if target not in PAGES or (anchor and anchor not in anchors_of(PAGES[target])):
                broken.append(f"{name}: {page}#{anchor}")
    assert not broken


def anchors_of(text):
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_differences_on_real_tables_are_those_of_the_rows():
    results = ROOT / "benchmarks" / "results"
    rows = (results / "real_tables.jsonl").read_bytes() + (results / "real_values.jsonl").read_bytes()
    written = json.loads((results / "real_differences.json").read_text())
    assert written["of"] == hashlib.sha256(rows).hexdigest(), "run python -m benchmarks.real.figures"


def test_the_reference_of_commands_shows_what_is_typed_as_it_is_typed():
    """As code: else a page makes one dash of two, and curls quotes."""
    shown = runpy.run_path(str(ROOT / "docs" / "_ext" / "commands_page.py"))["markdown"]
    assert (
        shown("With --engine ray, [bold]-o scores/[/bold], as ---.")
        == "With `--engine` ray, `-o scores/`, as `---`."
    )
    assert shown("""Such as 'price*=1.1' or 'brand="x"'.""") == """Such as `'price*=1.1'` or `'brand="x"'`."""
    assert shown("the model's own, and others' ranks") == "the model's own, and others' ranks"
