"""The description of the interface (OpenAPI), made from the models' own columns: schemas, and examples that work."""

from typing import Any

from entourage import __version__
from entourage.serving.answers import LEAST_INFLUENCE, has_probabilities
from entourage.serving.models import Models, Served

__all__ = ["describe_api"]

_ERRORS = {
    "401": "A token is needed.",
    "404": "There is no such model.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body needs to be JSON.",
    "421": "The server answers to this machine alone.",
    "422": "The body, with the place and a sentence.",
    "429": "Too many requests wait; see Retry-After.",
    "503": "The server stops, or took too long; see Retry-After.",
}
_NUMBERS = {"type": "array", "items": {"type": "number"}}


def describe_api(models: Models, needs_token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of the models that are served now."""
    paths: dict[str, Any] = {}
    first = models[None]
    for served in [models[name] for name in models.names]:
        prefix = f"/v1/models/{served.name}"
        bases = ["/v1", prefix] if served is first else [prefix]
        for base in bases:
            paths |= _paths_of(served, base)
        paths[prefix] = _get("Task, columns, kinds, levels and version of this model.", "Model")
        paths[f"{prefix}/reload"] = _reload("Read the file of this model again.")
    paths |= {
        "/v1/model": _get("Task, columns, kinds, levels and version of the first model.", "Model"),
        "/v1/models": _get("All models.", "Models"),
        "/v1/reload": _reload("Read the files of all models again; where one fails, all stay as they were."),
        "/healthz": _get("Whether the server is alive.", "Status"),
        "/readyz": _get("Whether the server takes requests.", "Status"),
        "/metrics": {
            "get": {
                "summary": "Metrics for Prometheus.",
                "responses": {"200": {"description": "Text.", "content": {"text/plain": {}}}},
            }
        },
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Entourage",
            "version": __version__,
            "description": "Predictions for sets of objects, each in the company of the others of its set.",
        },
        "paths": paths,
        "components": {"schemas": _shared_schemas()},
    }
    if needs_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _paths_of(served: Served, base: str) -> dict[str, Any]:
    one, shared = served.schema.json_schema()
    example = served.schema.example()
    a_set: dict[str, Any] = {
        "type": "object",
        "properties": {"objects": {"type": "array", "items": one, "minItems": 1}},
        "required": ["objects"],
        "additionalProperties": False,
    }
    if shared is not None:
        a_set["properties"]["situation"] = shared
        a_set["required"] = ["objects", "situation"]
    body: dict[str, Any] = {
        "type": "object",
        "properties": {
            "sets": {"type": "array", "items": a_set, "minItems": 1},
            "model": {"const": served.name},
        },
        "required": ["sets"],
        "additionalProperties": False,
    }
    texts = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    more = {
        "change": texts,
        "where": {"type": "string"},
        "remove": {"type": "string"},
        "add": {"type": "array", "items": one, "minItems": 1},
    }
    *others, last = example["objects"]  # to be added: no alternative may be there twice
    added = {"sets": [example | {"objects": others or [last]}], "add": [last]}
    paths = {
        f"{base}/predict": _post(
            f"Scores, ranks and probabilities of sets, by {served.name}.",
            body,
            {"sets": [example]},
            "Predictions",
        )
    }
    if len(example["objects"]) >= LEAST_INFLUENCE:
        paths[f"{base}/influence"] = _post(
            f"How the presence of object j changes the utility of object i, for one set, by {served.name}.",
            body,
            {"sets": [example]},
            "Influence",
        )
    if has_probabilities(served.model):
        paths[f"{base}/whatif"] = _post(
            f"Probabilities before and after a change, such as 'price *= 1.1', by {served.name}.",
            body | {"properties": body["properties"] | more},
            added,
            "WhatIf",
        )
    return paths


def _post(summary: str, body: dict[str, Any], example: dict[str, Any], answer: str) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": body, "example": example}},
            },
            "responses": {"200": _answer(answer)} | _errors(*_ERRORS),
        }
    }


def _reload(summary: str) -> dict[str, Any]:
    failed = {"409": _error("The file can't be used; the model in use stays.")}
    return {
        "post": {"summary": summary, "responses": {"200": _answer("Models")} | failed | _errors("401", "421")}
    }


def _get(summary: str, answer: str) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": _answer(answer)} | _errors("401", "421", "503")}}


def _answer(name: str) -> dict[str, Any]:
    return {
        "description": "What was asked for.",
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
    }


def _errors(*statuses: str) -> dict[str, Any]:
    return {status: _error(_ERRORS[status]) for status in statuses}


def _error(description: str) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    return {"description": description, "content": {"application/json": {"schema": reference}}}


def _shared_schemas() -> dict[str, Any]:
    name = {"type": "string"}
    share = {"type": ["number", "null"]}
    a_set = {
        "type": "object",
        "properties": {
            "scores": _NUMBERS | {"description": "Utilities; higher is better."},
            "ranks": {"type": "array", "items": {"type": "integer"}, "description": "0 is best."},
            "probabilities": _NUMBERS | {"description": "Of being chosen, or of the first place."},
            "probability_of_nothing": {"type": "number", "description": "Of the outside option."},
            "chosen": {"type": "array", "items": {"enum": [0, 1]}, "description": "Of subset choice."},
        },
        "required": ["scores"],
    }
    before_after = {"type": "object", "properties": {"role": name, "before": share, "after": share}}
    return {
        "Predictions": _object({"model": name, "sets": {"type": "array", "items": a_set}}),
        "Influence": _object(
            {
                "model": name,
                "scores": _NUMBERS,
                "influence": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": ["number", "null"]}},
                    "description": "Row i, column j; null on the diagonal. Each column sums to 0.",
                },
                "mean_absolute_influence": _NUMBERS,
            }
        ),
        "WhatIf": _object(
            {
                "model": name,
                "sets": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"objects": {"type": "array", "items": before_after}},
                    },
                },
                "shares": {"type": "array", "items": before_after},
                "surplus": share,
                "notes": {"type": "array", "items": name},
            }
        ),
        "Model": _object({"name": name, "task": name, "estimator": name, "version": name}),
        "Models": _object({"models": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}),
        "Status": _object({"status": name}),
        "Error": _object(
            {
                "error": {
                    "type": "object",
                    "properties": {"message": name, "path": name},
                    "required": ["message"],
                }
            }
        ),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
