"""The command ``entourage export``: a model as an ONNX graph."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from entourage.cli.options import AsJson, ModelPath
from entourage.cli.outputs import check_output

__all__ = ["export"]


def export(
    model: ModelPath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write, such as model.onnx.")],
    tolerance: Annotated[
        float,
        typer.Option(
            help="What scores may differ from the model's by, relative to their size where that is above 1."
        ),
    ] = 1e-5,
    as_json: AsJson = False,
) -> None:
    """Write a model as an ONNX graph, which runs without Python and torch.

    The graph takes cells of a table, or features where the model was fitted to arrays, and returns scores and
    probabilities, for any number of sets of any size. Before it is written, it is compared with the model on random
    sets of 1 to 1,000 objects. Names of columns and levels of text are in its metadata. A blend (auto) of dozens of
    models takes a minute or two. Example:

    entourage export model.entourage -o model.onnx
    """
    check_output(out, model)

    from entourage import load
    from entourage.serving.onnx import to_onnx

    fitted = load(model)
    with Console(stderr=True).status("tracing the model, some seconds for each net in it"):
        written = to_onnx(fitted, out, tolerance=tolerance)
    if as_json:
        typer.echo(json.dumps(asdict(written)))
        return
    console = Console()
    for what, values in (("Input", written.inputs), ("Output", written.outputs)):
        for name, shape in values.items():
            console.print(f"{what} {name}: {shape}", soft_wrap=True, markup=False)
    console.print(
        f"Scores differ from the model's by {written.deviation:.1g} at most, relative to their size where that is "
        "above 1, on random sets of 1 to 1,000 objects.",
        soft_wrap=True,
    )
    console.print(f"{written.size / 1e6:,.2f} MB: {out}", soft_wrap=True, markup=False)
