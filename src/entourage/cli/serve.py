"""The command ``entourage serve``: fitted models over HTTP."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from entourage.cli.options import Device

__all__ = ["serve"]


def serve(
    models: Annotated[
        list[str],
        typer.Argument(help="Model files, or NAME=FILE; the first answers where a request names none."),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen at; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the bearer token that requests need; by default the variable ENTOURAGE_TOKEN."
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 4 * 2**20,
    max_sets: Annotated[int, typer.Option(min=1, help="Sets of a request.")] = 1000,
    max_objects: Annotated[int, typer.Option(min=1, help="Objects of a set.")] = 1000,
    max_total: Annotated[int, typer.Option(min=1, help="Objects of a request.")] = 20_000,
    queue: Annotated[
        int, typer.Option(min=1, help="Requests that may wait for a model; more get 429.")
    ] = 1024,
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds for a request to be answered.")] = 30.0,
    stop_timeout: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds for accepted requests to be answered when the server stops; those that are not get 503, and "
            "the exit code is 3.",
        ),
    ] = 30.0,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared/--plain",
            help="Whether requests that wait share a forward pass; --plain is for comparison.",
        ),
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request.")] = False,
    device: Device = "auto",
) -> None:
    """Answer for fitted models over HTTP: POST /v1/predict, /v1/influence, /v1/whatif; GET /v1/model, /docs, /metrics.

    Only this machine can ask, unless --host says otherwise; then a token is needed. SIGTERM stops the server once all
    accepted requests are answered; SIGHUP, or POST /v1/reload, reads the model files again. Example:

    entourage serve hotels.entourage new=hotels_new.entourage --port 8000
    """
    from entourage.serving import Limits, create_app
    from entourage.serving.models import named_paths
    from entourage.serving.security import check_bind, is_loopback, read_token

    token = read_token(token_file)
    check_bind(host, token)
    limits = Limits(
        body=max_body,
        sets=max_sets,
        objects=max_objects,
        total_objects=max_total,
        queue=queue,
        seconds=timeout,
    )
    paths = named_paths(models)
    app = create_app(
        paths,
        token=token,
        limits=limits,
        share_batches=shared,
        device=device,
        this_machine=is_loopback(host),
    )
    from entourage.serving.run import open_socket, run_server

    listening = open_socket(host, port)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.captureWarnings(True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("entourage.serving").setLevel(logging.WARNING if quiet else logging.INFO)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def say() -> None:
        said = f"Serving {', '.join(paths)} at {address} (its pages: {address}/docs). Stop with Ctrl-C."
        Console(stderr=True).print(said, soft_wrap=True, highlight=False, markup=False)

    run_server(app, listening, stop_seconds=stop_timeout, on_start=say)
