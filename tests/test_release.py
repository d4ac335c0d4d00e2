"""What a release says of itself: one version, workflows whose targets exist, extras that are documented."""

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import entourage

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "release"))
import contents  # noqa: E402  scripts, not modules of the tests
import environments  # noqa: E402
import installed  # noqa: E402

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))


def jobs_of(workflow):
    return yaml.safe_load(workflow.read_text())["jobs"]


def commands_of(job):
    """The shell lines of a job, one for each value of its matrix."""
    for step in job["steps"]:
        text = step.get("run", "")
        values = [
            v
            for name, vs in job.get("strategy", {}).get("matrix", {}).items()
            for v in vs
            if f"matrix.{name}" in text
        ]
        for value in values or [""]:
            yield re.sub(r"\$\{\{ matrix\.\w+ \}\}", str(value), text)


def test_the_version_stands_in_one_place_and_what_repeats_it_agrees():
    assert "version" not in PYPROJECT["project"]
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert str(cited) == newest == entourage.__version__


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_targets_that_the_makefile_has(workflow):
    lines = [line for job in jobs_of(workflow).values() for line in commands_of(job)]
    called = {target for line in lines for target in re.findall(r"\bmake (\S+)", line)}
    assert called
    assert called <= TARGETS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_pin_their_actions_and_may_do_little(workflow):
    text, content = workflow.read_text(), yaml.safe_load(workflow.read_text())
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used)
    assert content["permissions"] in ({}, {"contents": "read"})
    given = {name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job}
    assert all(what in ({"contents": "read"}, {"id-token": "write"}) for what in given.values())
    assert [name for name, what in given.items() if "id-token" in what] == (
        ["publish"] if "publish" in given else []
    )
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert all("timeout-minutes" in job for job in content["jobs"].values())


def test_pythons_that_are_claimed_are_those_that_are_tried():
    claimed = [
        one.split(" :: ")[-1] for one in PYPROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", one)
    ]
    matrix = jobs_of(ROOT / ".github" / "workflows" / "ci.yml")["test"]["strategy"]["matrix"]
    assert claimed == environments.PYTHONS == matrix["python"]
    assert PYPROJECT["project"]["requires-python"] == f">={claimed[0]}"


def test_every_extra_is_documented_and_tried():
    page = (ROOT / "docs" / "releases.md").read_text()
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in page] == []
    assert set(environments.EXTRAS) == set(installed.MODULES) == set(extras) - {"dev", "package"}
    assert all((ROOT / path).exists() for path in environments.TESTS)


def test_the_wheel_takes_all_figures_of_the_paper_along():
    taken = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    there = sorted(file.name for file in (ROOT / "paper").glob("*.toml"))
    assert taken == {f"paper/{name}": f"entourage/paper/{name}" for name in there}


def test_a_wheel_that_lacks_a_file_or_has_a_stray_one_is_found(tmp_path):
    wheel = tmp_path / "entourage-1.0-py3-none-any.whl"
    files = contents.expected() - {"entourage/py.typed"} | {"entourage/__pycache__/cli.cpython-311.pyc"}
    with zipfile.ZipFile(wheel, "w") as file:
        for name in files | {f"entourage-1.0.dist-info/licenses/{one}" for one in contents.LICENCES[1:]}:
            file.writestr(name, "")
    assert contents.wheel_errors(wheel) == [
        "the wheel lacks entourage/py.typed",
        "the wheel has entourage/__pycache__/cli.cpython-311.pyc, which is not of the package",
        "the wheel should have entourage/py.typed",
        "the wheel lacks entourage-1.0.dist-info/licenses/LICENSE",
    ]
