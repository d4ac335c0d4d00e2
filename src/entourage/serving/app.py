"""The HTTP interface of fitted models; see :func:`create_app`."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from entourage import __version__
from entourage.serving.answers import LEAST_INFLUENCE, answer_influence, answer_what_if
from entourage.serving.api_page import api_page, headers_of_page
from entourage.serving.cells import say_type
from entourage.serving.gate import Gate, State
from entourage.serving.json_body import read_json
from entourage.serving.limits import Limits
from entourage.serving.metrics import Metrics
from entourage.serving.models import Models, Served
from entourage.serving.openapi import describe_api
from entourage.serving.refusal import Refusal
from entourage.serving.schema import Request, check_keys
from entourage.serving.security import check_strength, read_body
from entourage.serving.what_if_body import read_changes

__all__ = ["Service", "create_app"]

_LARGE = 2**16  # bytes of a body that is read in a thread of its own, so that others need not wait


def create_app(
    models: Any,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    share_batches: bool = True,
    device: str = "auto",
    this_machine: bool = False,
) -> FastAPI:
    """Return an ASGI app that answers for fitted models; ``entourage serve`` runs it.

    Requests that come at the same time share a forward pass (:mod:`entourage.serving.batching`).

    Parameters
    ----------
    models : a fitted model, the path of a model file, or a dict of names to such; the first is meant where a
        request names none
    token : a bearer token that all requests but ``/healthz``, ``/readyz`` and the page ``/docs`` need
    limits : on requests
    share_batches : whether requests share forward passes
    device : where nets from files run: "cpu", "cuda", or "auto"
    this_machine : whether only requests to 127.0.0.1, ::1 and localhost are answered where there is no token

    Examples
    --------
    >>> import asyncio, httpx
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3, 2))
    >>> y = (X @ [1.0, -1.0] + rng.gumbel(size=(200, 3))).argmax(1)
    >>> app = create_app(MultinomialLogit().fit(X, y))
    >>> async def ask(body):
    ...     async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
    ...         return (await client.post("/v1/predict", json=body)).json()
    >>> asyncio.run(ask({"sets": [{"objects": [[1.0, 0.0], [0.0, 1.0]]}]}))["sets"][0]["ranks"]
    [0, 1]
    """
    sources: Mapping[str, Any] = models if isinstance(models, Mapping) else {_name_of(models): models}
    service = Service(sources, limits or Limits(), share=share_batches, device=device)
    if token is not None:
        check_strength(token, "token")
    state = State(token, this_machine=this_machine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        state.stopping = True
        await service.models.close()

    app = FastAPI(
        title="Entourage",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy with TLS, a redirect would lead to where there is none
    )
    app.state.service, app.state.gate = service, state
    app.add_middleware(Gate, state=state, metrics=service.metrics)
    app.add_exception_handler(HTTPException, _say_http_error)
    for kind, handler in (
        ("predict", service.predict),
        ("influence", service.influence),
        ("whatif", service.what_if),
    ):
        app.add_route(f"/v1/{kind}", handler, methods=["POST"])
        app.add_route(f"/v1/models/{{name}}/{kind}", handler, methods=["POST"])
    app.add_route("/v1/reload", service.reload, methods=["POST"])
    app.add_route("/v1/models/{name}/reload", service.reload, methods=["POST"])
    app.add_route("/v1/model", service.describe, methods=["GET"])
    app.add_route("/v1/models", service.list_models, methods=["GET"])
    app.add_route("/v1/models/{name}", service.describe, methods=["GET"])
    app.add_route("/docs", _show_page, methods=["GET"])
    app.add_route("/healthz", _say_alive, methods=["GET"])
    app.add_route("/readyz", _readiness(state), methods=["GET"])
    app.add_route("/metrics", service.show_metrics, methods=["GET"])
    app.openapi = lambda: describe_api(service.models, token is not None)  # type: ignore[method-assign]
    return app


class Service:
    """What answers requests: the models, and the handlers of the routes.

    Parameters
    ----------
    sources : models or paths by name
    limits : on requests
    share : whether requests share forward passes
    device : where nets run
    """

    def __init__(self, sources: Mapping[str, Any], limits: Limits, *, share: bool, device: str) -> None:
        self.limits, self.metrics = limits, Metrics()
        self.models = Models(sources, limits=limits, share=share, device=device, metrics=self.metrics)

    async def predict(self, request: HttpRequest) -> Response:
        """Answer ``POST /v1/predict``: scores, ranks and probabilities of many sets."""
        _, served, sets = await self._read(request, frozenset({"sets", "model"}))
        return _json({"model": served.name, "sets": await served.batcher.predict(sets)})

    async def influence(self, request: HttpRequest) -> Response:
        """Answer ``POST /v1/influence``: leave-one-out influence within one set."""
        _, served, sets = await self._read(request, frozenset({"sets", "model"}))
        if len(sets.sizes) != 1:
            raise Refusal(422, f"Influence is of one set at a time; got {len(sets.sizes)}.", "sets")
        if not LEAST_INFLUENCE <= sets.sizes[0] <= self.limits.influence_objects:
            raise Refusal(
                422,
                f"Influence needs a set of {LEAST_INFLUENCE} to {self.limits.influence_objects} objects; got "
                f"{sets.sizes[0]}.",
                "sets[0].objects",
            )
        found = await served.batcher.call(
            sets, lambda: answer_influence(served.model, served.schema.sets_of([sets]))
        )
        return _json({"model": served.name} | found)

    async def what_if(self, request: HttpRequest) -> Response:
        """Answer ``POST /v1/whatif``: probabilities before and after a change."""
        known = frozenset({"sets", "model", "change", "where", "add", "remove"})
        body, served, sets = await self._read(request, known)
        changes = read_changes(body, served.schema, sets, self.limits)

        def run() -> dict[str, Any]:
            try:
                return answer_what_if(served.model, served.schema.frame_of(sets), changes)
            except (RecursionError, OverflowError):
                raise Refusal(
                    422, "A condition or change is nested too deeply, or has a number that is too large."
                ) from None

        return _json({"model": served.name} | await served.batcher.call(sets, run))

    async def reload(self, request: HttpRequest) -> Response:
        """Answer ``POST /v1/reload``: read model files again."""
        fresh = await self.models.reload(request.path_params.get("name"))
        return _json({"models": [served.describe() for served in fresh]})

    async def describe(self, request: HttpRequest) -> Response:
        """Answer ``GET /v1/model``: task, columns, kinds, levels, version."""
        return _json(self.models[request.path_params.get("name")].describe())

    async def list_models(self, request: HttpRequest) -> Response:
        """Answer ``GET /v1/models``: the description of each model."""
        return _json({"models": [self.models[name].describe() for name in self.models.names]})

    async def show_metrics(self, request: HttpRequest) -> Response:
        """Answer ``GET /metrics``."""
        return Response(self.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _read(self, request: HttpRequest, known: frozenset[str]) -> tuple[Any, Served, Request]:
        raw = await read_body(request.receive, request.scope["headers"], self.limits)
        name = request.path_params.get("name")
        if len(raw) > _LARGE:
            return await asyncio.to_thread(self._checked, raw, name, known)
        return self._checked(raw, name, known)

    def _checked(self, raw: bytes, name: str | None, known: frozenset[str]) -> tuple[Any, Served, Request]:
        """Read and check a body; return it, the model that it asks for, and its sets."""
        body = read_json(raw)
        if type(body) is not dict:
            raise Refusal(422, f"The body is an object with sets in it; got {say_type(body)}.")
        if not body.keys() <= known:
            check_keys(body, known, "")
        if "model" in body:
            own = body["model"]
            if type(own) is not str or (name is not None and own != name):
                raise Refusal(
                    422, "model is the name of a model, the same as in the path if there is one.", "model"
                )
            name = own
        served = self.models[name]
        return body, served, served.schema.read(body, self.limits)


def _name_of(source: Any) -> str:
    return Path(source).stem if isinstance(source, str | os.PathLike) else "model"


def _json(content: Any) -> Response:
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, media_type="application/json")


async def _show_page(request: HttpRequest) -> Response:
    return Response(api_page(), media_type="text/html; charset=utf-8", headers=headers_of_page())


async def _say_alive(request: HttpRequest) -> Response:
    return _json({"status": "alive"})


def _readiness(state: State) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def say_ready(request: HttpRequest) -> Response:
        if state.stopping:
            raise Refusal(503, "The server is stopping.")
        return _json({"status": "ready"})

    return say_ready


async def _say_http_error(request: HttpRequest, error: Exception) -> Response:
    """Say that there is no such route, or no such method, in the form of all other errors."""
    status = getattr(error, "status_code", 500)
    said = {404: "There is nothing at this path.", 405: "This path takes another method."}
    refusal = Refusal(status, said.get(status, "The request can't be answered."))
    response = Response(json.dumps(refusal.content()), status, media_type="application/json")
    response.headers.update(getattr(error, "headers", None) or {})
    return response
