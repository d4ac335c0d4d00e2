"""Run the tutorials on real data and write what they print into them, or check it.

    python docs/tutorials/run.py --data FOLDER [NAME ...]    # runs docs/tutorials/NAME.md and rewrites what it shows
    python docs/tutorials/run.py --data FOLDER --check       # compares instead; prints a diff and exits 1 if it differs

A tutorial is Markdown. It runs in an empty folder in which ``data`` is a link to FOLDER.

- ``python`` blocks run in order in one namespace; what they print is shown, and the value of a last expression.
- ``console`` blocks have commands after ``$ ``, which run in a shell; after a backslash a line goes on in the next.
- Blocks of other languages don't run: ``py`` is Python for the reader's eyes only.
- What a block printed follows it, below ``<!-- output -->``, in a ``text`` block. Warnings and messages are part of it.
- A picture that a block saves as ``x.png`` is kept in ``images`` if the page shows ``images/x.png``.

A check wants equal words, and numbers that differ by less than 0.02 + 5 % (another CPU trains a little differently).
Times, dates and sizes of files are not compared, nor the pixels of pictures.
"""

import argparse
import ast
import contextlib
import difflib
import io
import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

__all__ = ["TutorialError", "check", "differs", "execute", "main"]

PAGES = Path(__file__).parent
BLOCK = re.compile(
    r"^```(?P<language>python|console)\n(?P<source>.*?)^```\n"
    r"(?:\n*<!-- output -->\n+```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
PICTURE = re.compile(r"!\[[^\]]*\]\(images/([^)]+)\)")
NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+−]?\.\d+")
UNCOMPARED = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|\b\d{1,2}:\d\d(?::\d\d)?\b"  # dates, times of day
    r"|(?:\d[\d,]*(?:\.\d+)?\s?(?:ms|s|sec|seconds?|min|minutes?|h|hours?|[kKMG]i?B)\b(?:,? and |,? )?)+"
)
# the same on every machine: one thread, no colours, a page's width
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "100",
}


class TutorialError(Exception):
    """A block failed, or a page shows a picture that no block saved."""


def run_python(source: str, name: str, namespace: dict) -> None:
    """Run a block as a notebook runs a cell."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        if value is not None:
            print(repr(value))


def run_console(source: str, name: str, tools: Path) -> None:
    """Run the lines after ``$ `` in a shell and print what they print."""
    settings = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    for line in re.sub(r"\\\n(?:> )?", "", source).splitlines():
        if not line.startswith("$ "):
            raise TutorialError(f'{name}: a line of a console block starts with "$ "; got {line!r}')
        ran = subprocess.run(line[2:], shell=True, env=settings, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, encoding="utf-8")  # fmt: skip
        print(ran.stdout, end="")
        if ran.returncode:
            raise TutorialError(f"{name}: {line!r} exits with {ran.returncode}:\n{ran.stdout}")


def execute(page: Path, folder: Path, tools: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """Run a page in ``folder``: return its new text, and (name, shown, printed) of each block."""
    text = page.read_text(encoding="utf-8")
    module = types.ModuleType("tutorial")
    sys.modules["tutorial"] = module  # classes of a tutorial find their module
    parts, results, end = [], [], 0
    for block in BLOCK.finditer(text):
        name = f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}"
        printed = io.StringIO()
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            if block["language"] == "python":
                run_python(block["source"], name, vars(module))
            else:
                run_console(block["source"], name, tools)
        new = "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())
        new = new.replace(f"{folder}{os.sep}", "") + "\n" * bool(new)
        if "```" in new:
            raise TutorialError(f"{name} prints ```, which would end the block that shows it")
        old = block["output"] or ""
        results.append((name, old, new))
        kept = old if masked(old) == masked(new) else new  # a page doesn't change for the seconds in it
        source = f"```{block['language']}\n{block['source']}```\n"
        shown = f"\n<!-- output -->\n```text\n{kept}```\n" if kept else ""
        parts += [text[end : block.start()], source + shown]
        end = block.end()
    return "".join([*parts, text[end:]]), results


def masked(text: str) -> str:
    """Return a text without what is different each time."""
    return UNCOMPARED.sub("… ", text)


def differs(old: str, new: str) -> bool:
    """Say whether two outputs differ in words, or in numbers by more than 0.02 + 5 %."""
    words, numbers = [], []
    for text in (old, new):
        text = re.sub(r"([─━═\-=▁-█]{2,})", " ", masked(text))  # rules and bars are as long as they are wide
        words.append(NUMBER.sub(" # ", text).split())
        numbers.append([float(n.replace("−", "-").replace(",", "")) for n in NUMBER.findall(text)])
    pairs = zip(*numbers, strict=False)
    return words[0] != words[1] or any(abs(a - b) > 0.02 + 0.05 * abs(a) for a, b in pairs)


def check(results: list[tuple[str, str, str]]) -> str:
    """Return a diff of the blocks that print something else than the page shows."""
    return "".join(
        line if line.endswith("\n") else f"{line}\n"
        for name, old, new in results
        if differs(old, new)
        for line in difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), f"{name} shows", f"{name} prints"
        )
    )


def run_page(page: Path, data: Path, only_check: bool) -> str:
    """Run a page and rewrite it with its pictures, or return how it differs."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, tools = Path(scratch).resolve() / "work", Path(scratch).resolve() / "tools"
        folder.mkdir()
        tools.mkdir()
        (folder / "data").symlink_to(data.resolve(), target_is_directory=True)
        (tools / "entourage").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m entourage "$@"\n')
        (tools / "entourage").chmod(0o755)
        text, results = execute(page, folder, tools)
        for picture in PICTURE.findall(text):
            kept = page.parent / "images" / picture
            if not (folder / picture).is_file() or (only_check and not kept.is_file()):
                where = folder if not (folder / picture).is_file() else kept.parent
                raise TutorialError(f"{page.name} shows images/{picture}, which is not in {where}")
            if not only_check:
                kept.parent.mkdir(exist_ok=True)
                shutil.copy(folder / picture, kept)
    if only_check:
        return check(results)
    page.write_text(text, encoding="utf-8")
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Run the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="table for docs/tutorials/table.md; all if none"
    )
    parser.add_argument("--data", type=Path, help="the folder of real data")
    parser.add_argument(
        "--check", action="store_true", help="compare with what the pages show; change nothing"
    )
    options = parser.parse_args(arguments)
    pages = sorted(page for page in PAGES.glob("*.md") if page.stem != "index")
    known = {page.stem: page for page in pages}
    if unknown := [name for name in options.names if name not in known]:
        print(f"No tutorial is called {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    if options.data is None or not options.data.is_dir():
        got = "none was given" if options.data is None else f"{options.data} is no folder"
        print(f"The tutorials need real data, which each page says how to get: pass --data FOLDER ({got}).",
              file=sys.stderr)  # fmt: skip
        return 2
    os.environ.update(SETTINGS)
    failed = False
    for page in [known[name] for name in options.names] or pages:
        before = sum(os.times()[:4])
        try:
            difference = run_page(page, options.data, options.check)
        except TutorialError as error:
            difference = f"{error}\n"
        except Exception:  # of a block: the other pages still run
            difference = traceback.format_exc()
        print(difference, end="")
        print(f"{page.name}: {sum(os.times()[:4]) - before:.0f} CPU seconds", file=sys.stderr)
        failed |= bool(difference)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
