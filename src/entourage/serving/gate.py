"""What every request passes first and last: may it come in, what is said when it fails, one line in the log."""

import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from entourage.errors import UserError
from entourage.serving.metrics import Metrics
from entourage.serving.refusal import Refusal
from entourage.serving.security import check_host, check_token

__all__ = ["Gate", "State"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

logger = logging.getLogger("entourage.serving")

_OPEN = frozenset({"/healthz", "/readyz", "/docs"})  # need no token: they say nothing of the models
_ROUTES = frozenset(
    {
        "/v1/predict",
        "/v1/influence",
        "/v1/whatif",
        "/v1/model",
        "/v1/models",
        "/v1/reload",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
    }
)
_OF_A_MODEL = ("predict", "influence", "whatif", "reload")


class State:
    """What the server knows of itself: whether it stops, and how requests are let in.

    Parameters
    ----------
    token : that requests need; None for none
    this_machine : whether only names of this machine are answered to
    """

    def __init__(self, token: str | None, *, this_machine: bool) -> None:
        self.token, self.this_machine = token, this_machine
        self.stopping = False


class Gate:
    """An ASGI middleware: admits requests, turns failures into answers that tell nothing, counts and logs."""

    def __init__(self, app: App, state: State, metrics: Metrics) -> None:
        self.app, self.state, self.metrics = app, state, metrics

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.state.stopping:  # no request comes after this one on its connection
                    message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        try:
            try:
                self._admit(scope)
                await self.app(scope, receive, answer)
            except Refusal as refusal:
                await _refuse(answer, refusal)
            except UserError as error:  # what the model can't do with this request
                await _refuse(answer, Refusal(422, str(error)))
            except Exception:
                logger.exception("a request to %s failed", label_of(scope["path"]))
                if status:
                    raise  # an answer has begun: nothing but closing the connection is left
                await _refuse(answer, Refusal(500, "Something went wrong in the server; its log says what."))
        finally:
            seconds, route = time.perf_counter() - begin, label_of(scope["path"])
            self.metrics.count(route, status, seconds)
            logger.info("%s %s %d %.1f ms", scope["method"][:16], route, status, 1000 * seconds)

    def _admit(self, scope: MutableMapping[str, Any]) -> None:
        token = self.state.token
        if scope["path"] in _OPEN:
            return
        if token is None and not self.state.this_machine:
            return
        headers = dict(scope["headers"])
        if token is not None:
            check_token(headers.get(b"authorization"), token)
        else:
            check_host(headers.get(b"host"), headers.get(b"origin"))


def label_of(path: str) -> str:
    """Return the route of a path, for the log and for metrics: nothing that a client made up.

    Examples
    --------
    >>> label_of("/v1/models/hotels/predict"), label_of("/etc/passwd")
    ('/v1/models/{name}/predict', 'other')
    """
    if path in _ROUTES:
        return path
    parts = path.split("/")
    if parts[:3] == ["", "v1", "models"]:
        if len(parts) == 4:
            return "/v1/models/{name}"
        if len(parts) == 5 and parts[4] in _OF_A_MODEL:
            return f"/v1/models/{{name}}/{parts[4]}"
    return "other"


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = json.dumps(refusal.content()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
