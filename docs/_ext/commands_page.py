"""The page of commands, from what ``entourage COMMAND --help`` says.

In a Markdown page the line ``%%commands%%`` becomes a section a command: its text, its arguments, its options.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["markdown", "sections", "setup"]

MARK = "%%commands%%"
EXAMPLE = re.compile(r"entourage [a-z]+ ")
TYPED = re.compile(r"\[bold\](.+?)\[/bold\]|(?<![\w'-])('(?=[^' ]*[*=;])[^']+'|--[a-z][\w-]*|---)(?![\w'])")


def markdown(text: str) -> str:
    """Return the text of a help as Markdown: what is typed, such as --group, as code, and examples as blocks."""
    blocks = [block.replace("\n", " ") for block in inspect.cleandoc(text).split("\n\n")]
    return "\n\n".join(
        f"    {block}" if EXAMPLE.match(block) else TYPED.sub(lambda m: f"`{m[1] or m[2]}`", block)
        for block in blocks
    )


def _kind(annotation: Any) -> str:
    """Return the type of an option in a word."""
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return _kind(parts[0])
    if typing.get_origin(annotation) is list:
        return f"{_kind(parts[0])}, may be repeated"
    return {bool: "", str: "text", Path: "path", int: "whole number", float: "number"}.get(annotation, "text")


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any, bool]]:
    """Yield (name, kind, typer's description, default, whether it is an option)."""
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        annotation, info = typing.get_args(hints[name])[:2]
        yield name, annotation, info, parameter.default, type(info).__name__ == "OptionInfo"


def _cell(text: object) -> str:
    return str(text).replace("\n", " ").replace("|", "\\|")


def _option(name: str, annotation: Any, info: Any, default: Any) -> str:
    declared = (info.default, *(info.param_decls or ()))  # typer takes the first name for a default at first
    given = [one for one in declared if isinstance(one, str) and one.startswith("-")]
    given = given or [f"--{name.replace('_', '-')}"]
    kind = _kind(annotation)
    said = markdown(info.help or "")
    if default is inspect.Parameter.empty or default is ...:
        said += " **Required.**"
    elif default is not None and kind and default != []:
        said += f" Default: `{default}`."
    return f"| {', '.join(f'`{one}`' for one in given)} | {kind} | {_cell(said)} |"


def sections() -> str:
    """Return a section for each command, in the order of ``entourage --help``."""
    from entourage.cli.program import app

    made = []
    for registered in app.registered_commands:
        command = registered.callback
        assert command is not None
        parameters = list(_parameters(command))
        arguments = [one for one in parameters if not one[4] and not one[2].hidden]
        options = [one for one in parameters if one[4] and not one[2].hidden]
        name = registered.name or command.__name__
        usage = " ".join(
            one[0].upper() if one[3] is inspect.Parameter.empty else f"[{one[0].upper()}]"
            for one in arguments
        )
        made.append(f"## {name}\n")
        made.append("    " + " ".join(filter(None, ["entourage", name, usage, "[OPTIONS]"])) + "\n")
        made.append(markdown(registered.help or command.__doc__ or "") + "\n")
        if arguments:
            made.append("| argument | |\n| --- | --- |")
            made += [f"| `{one[0].upper()}` | {_cell(markdown(one[2].help or ''))} |" for one in arguments]
            made.append("")
        if options:
            made.append("| option | takes | |\n| --- | --- | --- |")
            made += [_option(*one[:4]) for one in options]
            made.append("")
    return "\n".join(made)


def _on_read(app: Any, name: str, source: list[str]) -> None:
    if MARK in source[0]:
        app.env.note_reread()
        source[0] = source[0].replace(MARK, sections())


def setup(app: Any) -> dict[str, bool]:
    """Fill the page in when it is read."""
    app.connect("source-read", _on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
