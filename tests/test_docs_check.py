"""The check of the built pages finds what is wrong with them."""

import importlib.util
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[1] / "docs" / "check.py"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("docs_check", CHECK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pages(tmp_path):
    """Two pages that need nothing from elsewhere, and whose links lead somewhere."""
    (tmp_path / "style.css").write_text("body { background: url(data:image/png;base64,AA) }")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><link rel="canonical" href="https://example.org/">'
        '<h1 id="top">A</h1><a href="other.html#part">B</a><a href="https://example.org/">C</a><a href="#top">D</a>'
    )
    (tmp_path / "other.html").write_text('<h2 id="part">E</h2>')
    return tmp_path


def test_pages_without_faults_pass(check, pages):
    assert check.lost_links(pages) == []
    assert check.foreign_assets(pages) == []


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('<a class="x" href="gone.html">', "gone.html is not there"),
        ('<a href="other.html#gone">', "other.html#gone has no such anchor"),
        ('<a href="#gone">', "#gone has no such anchor"),
        ('<img alt="" src="gone.png">', "gone.png is not there"),
        ('<iframe src="explorers/gone.html">', "gone.html is not there"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(check, pages, added, problem):
    page = pages / "index.html"
    page.write_text(page.read_text() + added)
    (found,) = check.lost_links(pages)
    assert found.endswith(problem)


@pytest.mark.parametrize(
    "added",
    [
        '<script async="async" src="https://cdn.jsdelivr.net/npm/mathjax@4/tex-mml-chtml.js"></script>',
        '<link rel="preload stylesheet" href="//fonts.example.org/a.css">',
        '<link href="https://fonts.example.org" rel="preconnect">',
        '<img alt="" src="http://example.org/badge.svg">',
        '<iframe title="x" src="https://example.org/">',
    ],
)
def test_what_a_page_takes_from_elsewhere_is_found(check, pages, added):
    page = pages / "index.html"
    page.write_text(page.read_text() + added)
    assert len(check.foreign_assets(pages)) == 1


@pytest.mark.parametrize("style", ["@import 'https://a.org/b.css'", "a { src: url('//a.org/font.woff2') }"])
def test_what_a_style_takes_from_elsewhere_is_found(check, pages, style):
    (pages / "style.css").write_text(style)
    assert len(check.foreign_assets(pages)) == 1


def test_links_of_markdown_lead_to_files_and_headings(check, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(
        "# Title\n\n## How `x` is *done*, twice\n\n```\n# no heading\n```\n"
    )
    good = "[a](docs/a.md) [b](docs/a.md#how-x-is-done-twice) [c](https://example.org) `[d](code.md)`"
    (tmp_path / "README.md").write_text(good)
    assert check.lost_in_markdown(tmp_path, ("README.md",)) == []
    (tmp_path / "README.md").write_text(good + " [e](docs/b.md) [f](docs/a.md#no-heading) [g](#gone)")
    assert len(check.lost_in_markdown(tmp_path, ("README.md",))) == 3


def test_a_public_name_that_the_reference_lacks_is_found(check, tmp_path):
    package = tmp_path / "entourage"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text("__all__ = ['Top', '__version__']")
    (package / "room" / "__init__.py").write_text("__all__ = ['inside', 'CONSTANT', 'part']")
    api = tmp_path / "api.html"
    api.write_text(
        '<dt id="entourage.Top"><dt id="entourage.room.part.inside"><span id="module-entourage.room.part">'
    )
    (found,) = check.undocumented(tmp_path, package)
    assert found == "the reference has no CONSTANT, which entourage.room names as public"


def test_links_of_the_readme_lead_somewhere(check):
    assert check.lost_in_markdown(check.ROOT) == []
