"""Train the pretrained net: ``python -m entourage.pretraining train`` (on a GPU), ``evaluate``, ``keep``."""

import hashlib
import json
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from entourage.nets.prior_fitted import PriorFittedNet
from entourage.pretrained.weights import CHECKSUM, FILE, read_weights, write_weights
from entourage.pretraining.evaluate import evaluate as evaluate_net
from entourage.pretraining.loop import Plan, append_line, pretrain
from entourage.training.device import find_device

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Out = Annotated[Path, typer.Option(help="Folder of what is written: weights.safetensors, log.jsonl.")]
Start = Annotated[Path | None, typer.Option(help="Weights to go on from; otherwise a new net.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto.")]


@app.command()
def train(
    out: Out,
    seconds: Annotated[float, typer.Option(help="How long to train.")] = 540.0,
    start: Start = None,
    width: int = 256,
    blocks: int = 6,
    cell_width: int = 64,
    learning_rate: float = 6e-4,
    objects: Annotated[int, typer.Option(help="Objects in one step, at most.")] = 48_000,
    decay: Annotated[
        float, typer.Option(help="Part of the time in which the learning rate falls to 0.")
    ] = 0.0,
    muon: Annotated[bool, typer.Option(help="Muon for matrices, instead of AdamW.")] = False,
    seed: Annotated[
        int, typer.Option(help="Another one for each call, or the same worlds are drawn again.")
    ] = 0,
    device: Device = "auto",
) -> None:
    """Train for some time, from nothing or from weights of an earlier call."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    net = PriorFittedNet(width, blocks, cell_width) if start is None else read_weights(start)
    plan = Plan(seconds, objects=objects, learning_rate=learning_rate, decay=decay, muon=muon, seed=seed)
    count = sum(p.numel() for p in net.parameters())
    typer.echo(f"{count:,} parameters; {seconds:.0f} s of training, then a few seconds to write {out}")

    def tell(row: dict[str, Any]) -> None:
        append_line(out / "log.jsonl", {"parameters": count, "seed": seed, **row})
        typer.echo(json.dumps(row))

    weights = pretrain(net, plan, find_device(device), tell)
    write_weights(out / "weights.safetensors", net.settings, weights, torch.bfloat16)


@app.command()
def evaluate(
    weights: Path,
    out: Annotated[Path | None, typer.Option(help="A file for the rows, JSON lines.")] = None,
    worlds: Annotated[int, typer.Option(help="Of each number of labelled sets.")] = 512,
    device: Device = "auto",
) -> None:
    """Measure on fixed worlds which part of the oracle's gain the net reaches: by sets, families and context."""
    started = time.perf_counter()
    for row in evaluate_net(read_weights(weights), worlds, find_device(device)):
        typer.echo(json.dumps(row))
        if out is not None:
            append_line(out, row)
    typer.echo(f"{time.perf_counter() - started:.0f} s")


@app.command()
def keep(weights: Path) -> None:
    """Make these the weights of the package."""
    read_weights(weights)
    content = weights.read_bytes()
    FILE.write_bytes(content)
    CHECKSUM.write_text(f"{hashlib.sha256(content).hexdigest()}  {FILE.name}\n")
    typer.echo(f"{FILE}: {len(content) / 2**20:.1f} MiB")


if __name__ == "__main__":
    app()
