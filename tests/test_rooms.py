"""The house rules: rooms with contracts, small files, nothing reached past what a file names as public."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "entourage"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 500
MOST_ENTRIES = 20
MOST_LAYERS = 10


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {name_of(file): file for file in FILES}


def public_names(module: str) -> set[str]:
    """What a module names as public, read without importing it; what it takes over from another by ``*`` too."""
    tree, found = ast.parse(MODULES[module].read_text()), set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            found |= {item.value for item in node.value.elts if isinstance(item, ast.Constant)}
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found |= public_names(str(node.module))
    return found


def imports_of(file: Path) -> list[tuple[str, str]]:
    """Return (module, name) for each name that a file takes from another file of the package."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "entourage"
        for alias in node.names
    ]


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_file_takes_from_others_only_what_they_name_as_public(file):
    past = [
        f"{module}.{name}"
        for module, name in imports_of(file)
        if name not in ("*", "__all__", "__version__")
        and f"{module}.{name}" not in MODULES
        and name not in public_names(module)
    ]
    assert not past, f"not in __all__: {', '.join(past)}"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_file_is_longer_than_one_can_keep_in_mind(file):
    assert len(file.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("file", [f for f in FILES if f.stem != "__main__"], ids=name_of)
def test_a_file_names_what_is_public(file):
    assert public_names(name_of(file)), "give it an __all__"


def test_the_package_has_few_entries():
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    of_every_package = {"__init__.py", "__main__.py", "py.typed"}
    assert of_every_package <= entries
    rooms = entries - of_every_package
    assert len(rooms) <= MOST_ENTRIES, sorted(rooms)


def test_imports_point_one_way_through_few_layers_without_exceptions():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    assert len(layers["layers"]) <= MOST_LAYERS
    assert not any("ignore_imports" in contract for contract in contracts)
    named = {name.strip() for layer in layers["layers"] for name in re.split("[|:]", layer)}
    assert named == {
        p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    } - {"__init__", "__main__"}  # which starts the command line, nothing more


def test_every_public_module_is_in_the_api_docs():
    text = "".join(
        page.read_text() for page in [ROOT / "docs" / "api.rst", *(ROOT / "docs" / "api").glob("*.rst")]
    )
    documented = set(re.findall(r"^\.\. auto(?:module|class|function|data):: ([\w.]+)", text, re.M))
    covered = {".".join(name.split(".")[:i]) for name in documented for i in range(1, name.count(".") + 2)}
    unnamed = [
        module
        for module in MODULES
        if module not in covered
        and module.split(".")[1:2] not in (["cli"], ["experiments"])  # commands document themselves
        and not any(part.startswith("_") for part in module.split("."))
    ]
    assert not unnamed, f"add to docs/api: {', '.join(unnamed)}"


def test_tests_mirror_the_rooms():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    here = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and any(p.glob("test_*.py"))}
    assert here <= rooms
    assert rooms - here <= {"report"}  # its pages are tested with the commands that write them
