"""The command ``entourage info``: what a model file holds."""

import json

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
    if not hasattr(loaded, "net_"):  # a choice model
        if as_json:
            typer.echo(json.dumps(content))
        else:
            typer.echo(f"{loaded.summary()}\n\nversions: {versions}")
        return
    net, fitted, table = content["net"], content["fitted"], content.get("table")
    numbers = sum(t.numel() for name, t in tensors.items() if name.startswith("net."))
    held_out, best = score_not_chosen_by(fitted["history"]), fitted["best_score"]
    if as_json:
        typer.echo(
            json.dumps({key: content[key] for key in content if key != "fitted"} | {"numbers": numbers})
        )
        return
    console = Console()
    lines = {
        "estimator": content["estimator"],
        "net": f"{net['name']} {net['params']}",
        "parameters": f"{numbers:,}",
        "loss": loaded.loss,
        "trained": f"{fitted['steps']:,} steps, seed {fitted['seed']}",
        "held-out score": "–" if held_out is None else f"{held_out:.4f} (best of all steps: {best:.4f})",
        "versions": versions,
    }
    if table is not None:
        lines["set id"] = table["set_id"]
        lines["target"] = f"{table['target']} ({table['target_kind']})"
        lines["columns"] = ", ".join(f"{c['name']} ({c['kind']})" for c in table["columns"])
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<20}", "bold"), str(value)), soft_wrap=True)
