"""The command ``entourage info``: what a model file holds."""

import json
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from entourage.cli.options import AsJson, ModelPath

__all__ = ["info"]


def info(model: ModelPath, as_json: AsJson = False) -> None:
    """Describe a model file: net, settings, columns, versions, and how training went."""
    from entourage import load
    from entourage.training import tensor_file
    from entourage.training.held_out import score_not_chosen_by

    loaded = load(model)  # checks all that is shown below
    content, tensors = tensor_file.read(model, "model")
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    if not hasattr(loaded, "net_"):  # a choice model or a baseline
        if as_json:
            typer.echo(json.dumps(content))
        elif hasattr(loaded, "summary"):
            typer.echo(f"{loaded.summary()}\n\nversions: {versions}")
        else:
            params = ", ".join(f"{name}={value}" for name, value in content["params"].items())
            what = {"estimator": content["estimator"], "settings": params} | loaded.facts()
            _show(what | {"versions": versions} | _table_lines(content["fitted"].get("table_")))
        return
    net, fitted, table = content["net"], content["fitted"], content.get("table")
    numbers = sum(t.numel() for name, t in tensors.items() if name.startswith("net."))
    held_out, best = score_not_chosen_by(fitted["history"]), fitted["best_score"]
    if as_json:
        typer.echo(
            json.dumps({key: content[key] for key in content if key != "fitted"} | {"numbers": numbers})
        )
        return
    lines = {
        "estimator": content["estimator"],
        "net": f"{net['name']} {net['params']}",
        "parameters": f"{numbers:,}",
        "loss": loaded.loss,
        "trained": f"{fitted['steps']:,} steps, seed {fitted['seed']}",
        "held-out score": "–" if held_out is None else f"{held_out:.4f} (best of all steps: {best:.4f})",
        "versions": versions,
    }
    _show(lines | _table_lines(table))


def _table_lines(table: dict[str, Any] | None) -> dict[str, str]:
    """Say what is known of the table that a model learnt from."""
    if table is None:
        return {}
    return {
        "set id": table["set_id"],
        "target": f"{table['target']} ({table['target_kind']})",
        "columns": ", ".join(f"{c['name']} ({c['kind']})" for c in table["columns"]),
    }


def _show(lines: dict[str, Any]) -> None:
    console = Console()
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<20}", "bold"), str(value)), soft_wrap=True)
