"""What a model answers: predictions of many requests at once, the influence within a set, and what-if."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from entourage.data.sets import Sets
from entourage.decisions import Market, what_if
from entourage.effects import influence_matrix
from entourage.errors import UserError
from entourage.serving.schema import Request, Schema

__all__ = ["LEAST_INFLUENCE", "answer_influence", "answer_predictions", "answer_what_if", "has_probabilities"]

#: Objects of a set of which one can be left out.
LEAST_INFLUENCE = 3

_NAMES = {"score": "scores", "rank": "ranks", "probability": "probabilities"}
_OF_A_SET = "probability_of_nothing"  # the same for all objects of a set


def answer_predictions(model: Any, schema: Schema, requests: Sequence[Request]) -> list[list[dict[str, Any]]]:
    """Return for each request what is predicted for each of its sets, from one pass over all of them."""
    sets = schema.sets_of(requests)
    scores = model.predict_scores(sets)
    columns = {
        _NAMES.get(name, name): np.asarray(values).tolist()
        for name, values in model.columns(sets, scores).items()
    }
    starts = sets.offsets.tolist()
    answers: list[list[dict[str, Any]]] = []
    i = 0
    for request in requests:
        own = []
        for _ in request.sizes:
            begin, end = starts[i], starts[i + 1]
            own.append(
                {
                    name: values[begin] if name == _OF_A_SET else values[begin:end]
                    for name, values in columns.items()
                }
            )
            i += 1
        answers.append(own)
    return answers


def answer_influence(model: Any, sets: Sets) -> dict[str, Any]:
    """Return how the presence of each object changes the utility of each other, for one set."""
    matrix = influence_matrix(model, sets)[0]
    scores = np.asarray(model.predict_scores(sets))
    return {
        "scores": scores.tolist(),
        "influence": [[None if value != value else value for value in row] for row in matrix.tolist()],
        "mean_absolute_influence": np.nanmean(np.abs(matrix), axis=0).tolist(),
    }


def answer_what_if(model: Any, sets: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Return probabilities before and after a change, object by object in each set, and the shares by role."""
    found = what_if(model, sets, intervals="none", **changes)
    rows: list[list[dict[str, Any]]] = [[] for _ in found.ids]
    before, after = found.before.value.tolist(), found.after.value.tolist()
    for row, owner in enumerate(found.set_of_row.tolist()):
        rows[owner].append(
            {"role": found.roles[row], "before": _number(before[row]), "after": _number(after[row])}
        )
    answers: list[dict[str, Any]] = [{"objects": objects} for objects in rows]
    if found.outside is not None:
        for side, estimate in zip(("before", "after"), found.outside, strict=True):
            for answer, value in zip(answers, np.asarray(estimate.value).tolist(), strict=True):
                answer[f"nothing_{side}"] = value
    shares = [
        {"role": one.group, "before": _number(one.before.value), "after": _number(one.after.value)}
        for one in found.shifts
    ]
    surplus = None if found.surplus is None else _number(found.surplus.value)
    return {"sets": answers, "shares": shares, "surplus": surplus, "notes": list(found.notes)}


def has_probabilities(model: Any) -> bool:
    """Whether a model has an answer to what-if: not where it has scores alone."""
    try:
        Market(model)
    except UserError:
        return False
    return True


def _number(value: Any) -> float | None:
    """Return a number, or None where an object is not offered."""
    number = float(value)
    return None if number != number else number
