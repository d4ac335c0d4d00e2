"""A server in this process: uvicorn, signals, and a stop that loses no request.

SIGTERM and SIGINT stop the server: the listening socket is closed, requests that were accepted are answered, the last
answer on a connection says that it closes, and the process ends with code 0. What is not answered in time gets 503; the
process then ends with code 3, whatever a model is still at work on. SIGHUP reads the model files again.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI

from entourage.errors import UserError
from entourage.serving.models import Models
from entourage.serving.refusal import Refusal

__all__ = ["open_socket", "run_server"]

logger = logging.getLogger("entourage.serving")

SWITCH_SECONDS = 0.0005  # after which the thread of a model gets its turn, and the event loop gets its back
BACKLOG = 2048  # connections that wait to be accepted
QUIET_SECONDS = 1.0  # without a request, after which a stopping server closes the connections that are left
LAST_SECONDS = 1.0  # for refusals to be sent, once the time of a stop is over
REFUSED = 3  # the exit code where accepted requests were refused, or a second signal cut the stop short


class _Server(uvicorn.Server):
    """A server that lets clients finish before it closes their connections; signals are handled outside."""

    def __init__(self, config: uvicorn.Config, state: Any, models: Models, seconds: float) -> None:
        super().__init__(config)
        self._gate, self._models, self._most_seconds = state, models, seconds
        self.refused = 0  # accepted requests, for lack of time

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.stopping = True  # answers say from now on that the connection closes
        for server in self.servers:
            server.close()
        state, deadline = self.server_state, time.monotonic() + self._most_seconds
        quiet, seen = time.monotonic() + QUIET_SECONDS, state.total_requests
        while state.connections and not self.force_exit and time.monotonic() < deadline:
            if state.total_requests != seen or state.tasks:
                quiet, seen = time.monotonic() + QUIET_SECONDS, state.total_requests
            if time.monotonic() > quiet:
                break
            await asyncio.sleep(0.01)
        if state.tasks:
            said = "The server stops, and there was no time left for this request. Send it again."
            self.refused = self._models.refuse_rest(Refusal(503, said, headers={"Retry-After": "1"}))
            deadline = time.monotonic() + LAST_SECONDS
            while state.tasks and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
        await super().shutdown(sockets)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only where the protocol is named; without it an answer waits 40 ms for an ACK
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"Can't listen at {host}, port {port}: {reason}. Try another --port.") from None
    return listening


def run_server(
    app: FastAPI,
    listening: socket.socket,
    *,
    connections: int = 2048,
    stop_seconds: float = 30.0,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP reads the model files again.

    Parameters
    ----------
    app : of :func:`entourage.serving.create_app`
    listening : of `open_socket`
    connections : at most, open at once; further requests are answered with 503
    stop_seconds : for accepted requests to be answered once the server stops; those that are not get 503, and the
        process ends with code 3
    on_start : called when requests are taken
    """
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what is loaded stays: to look through it for garbage stopped all answers for 0.4 to 0.8 s
    config = uvicorn.Config(
        app,
        http=_protocol(),
        access_log=False,
        log_config=None,
        server_header=False,
        ws="none",
        backlog=BACKLOG,
        limit_concurrency=connections,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,  # `shutdown` below has waited before
        lifespan="on",
    )
    server = _Server(config, app.state.gate, app.state.service.models, stop_seconds)
    asyncio.run(_serve(server, app, listening, on_start))
    gc.unfreeze()  # or libraries complain at the end of what they think is left
    if server.refused or server.force_exit:
        raise SystemExit(REFUSED)


def _protocol() -> Any:
    """Return what reads HTTP: httptools with a bound on heads, else h11, which has one."""
    try:
        from entourage.serving.protocol import BoundedProtocol
    except ModuleNotFoundError:
        return "h11"
    return BoundedProtocol


async def _serve(
    server: _Server, app: FastAPI, listening: socket.socket, on_start: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    def stop() -> None:
        if server.should_exit:
            server.force_exit = True
        server.should_exit = True

    def reload() -> None:
        task = loop.create_task(_reload(app))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)
    serving = loop.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    if server.started:
        on_start()
    await serving
    if app.state.service.models.busy:  # a thread that can't be ended, which Python would wait for
        if server.refused:
            logger.warning("%d requests were not answered in time, and got 503", server.refused)
        logging.shutdown()
        os._exit(REFUSED if server.refused or server.force_exit else 0)


async def _reload(app: FastAPI) -> None:
    with contextlib.suppress(Refusal):  # the log says it
        await app.state.service.models.reload()
