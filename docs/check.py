"""Check the built pages, offline.

python docs/check.py docs/_build/html

- Every link in the pages, and in README.md, CONTRIBUTING.md and CHANGELOG.md, leads to something that is there, with
  its anchor.
- A page needs no network: no script, style, font, picture or frame is taken from elsewhere.
- The reference has every public name of every room.

Prints what is wrong, and exits with 1.
"""

from __future__ import annotations

import ast
import html
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

__all__ = ["foreign_assets", "lost_in_markdown", "lost_links", "main", "public_names", "undocumented"]

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "entourage"
MARKDOWN = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
GENERATED = ("_modules", "_static", "_sources", "explorers")  # their own links are of Sphinx's making
ASSETS = re.compile(
    r"<(?:script|img|iframe|source|embed|audio|video)\b[^>]*?\s(?:src|srcset|poster)=\"([^\"]*)\""
    r"|<object\b[^>]*?\sdata=\"([^\"]*)\""
    r"|<link\b(?=[^>]*rel=\"[^\"]*(?:stylesheet|icon|preload|preconnect|dns-prefetch|modulepreload)[^\"]*\")[^>]*?href=\"([^\"]*)\"",
    re.IGNORECASE,
)
IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", re.IGNORECASE)


def foreign_assets(folder: Path) -> list[str]:
    """Return what pages and styles would fetch from elsewhere."""
    found = []
    for file in sorted([*folder.rglob("*.html"), *folder.rglob("*.css")]):
        pattern = IN_STYLES if file.suffix == ".css" else ASSETS
        for match in pattern.finditer(file.read_text(encoding="utf-8")):
            target = html.unescape(next(filter(None, match.groups()), ""))
            if ELSEWHERE.match(target) and not target.startswith("data:"):
                found.append(f"{file.relative_to(folder)} takes {target} from elsewhere")
    return found


@cache
def _anchors(file: Path) -> frozenset[str]:
    text = file.read_text(encoding="utf-8")
    return frozenset(html.unescape(name) for name in re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text))


def lost_links(folder: Path) -> list[str]:
    """Return the links of pages that lead nowhere."""
    lost = []
    for file in sorted(folder.rglob("*.html")):
        if file.relative_to(folder).parts[0] in GENERATED:
            continue
        text = file.read_text(encoding="utf-8")
        for raw in dict.fromkeys(re.findall(r"<(?:a|img|iframe)\b[^>]*?\s(?:href|src)=\"([^\"]*)\"", text)):
            link = html.unescape(raw)
            if ELSEWHERE.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            if not target.exists():
                lost.append(f"{file.relative_to(folder)}: {link} is not there")
            elif anchor and target.suffix == ".html" and unquote(anchor) not in _anchors(target):
                lost.append(f"{file.relative_to(folder)}: {link} has no such anchor")
    return lost


def _slugs(text: str) -> set[str]:
    """Return the anchors that GitHub gives to headings."""
    found: set[str] = set()
    for heading in re.findall(
        r"^#{1,6} +(.+?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M
    ):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def lost_in_markdown(root: Path, names: tuple[str, ...] = MARKDOWN) -> list[str]:
    """Return the relative links of Markdown files that lead nowhere."""
    lost = []
    for name in names:
        text = re.sub(
            r"^```.*?^```|`[^`\n]*`", "", (root / name).read_text(encoding="utf-8"), flags=re.M | re.S
        )
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if ELSEWHERE.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = root / unquote(path) if path else root / name
            if not target.exists():
                lost.append(f"{name}: {link} is not there")
            elif (
                anchor and target.suffix == ".md" and anchor not in _slugs(target.read_text(encoding="utf-8"))
            ):
                lost.append(f"{name}: {link} has no such heading")
    return lost


def public_names(package: Path) -> Iterator[tuple[str, str]]:
    """Yield (room, name) of what each room, and the package itself, names as public; nothing is imported."""
    for file in [
        package / "__init__.py",
        *sorted(package.glob("*/__init__.py")),
        *sorted(package.glob("*.py")),
    ]:
        if file.parent == package and file.stem == "__main__":
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and any(
                getattr(one, "id", "") == "__all__" for one in node.targets
            ):
                for item in getattr(node.value, "elts", []):
                    if isinstance(item, ast.Constant) and not str(item.value).startswith("__"):
                        yield file.parent.name if file.stem == "__init__" else file.stem, str(item.value)


def undocumented(folder: Path, package: Path) -> list[str]:
    """Return the public names that the reference lacks."""
    pages = [*folder.glob("api.html"), *folder.glob("api/*.html")]
    anchors = frozenset[str]().union(*map(_anchors, pages))
    known = {anchor.rpartition(".")[2] for anchor in anchors if anchor.startswith("entourage.")} | {
        anchor.removeprefix("module-").rpartition(".")[2]
        for anchor in anchors
        if anchor.startswith("module-")
    }
    commands = ("cli", "experiments")  # docs/commands.md is their reference
    return [
        f"the reference has no {name}, which entourage.{room} names as public"
        for room, name in dict.fromkeys(public_names(package))
        if room not in commands and name not in known
    ]


def main(folder: Path) -> int:
    """Print what is wrong."""
    if not (folder / "index.html").exists():
        print(f"No pages in {folder}: make pages builds them.")
        return 1
    wrong = [
        *lost_links(folder),
        *foreign_assets(folder),
        *lost_in_markdown(ROOT),
        *undocumented(folder, PACKAGE),
    ]
    print("\n".join(wrong) or "Links, assets and the reference are complete.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "_build" / "html")))
