"""Choices from every menu of two to five of five objects, in 32 domains; 1,042 people saw one menu of each domain.

Five folds of people, the same in all domains. Objects are ids within their domain: one-hot of five. Each domain is a
part; in the part "all" one net learns from all domains, from ids that differ between domains. The order on the screen
is known (``position``). The verdict asks in each domain whether there is a context effect.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real.csv_file import one_hot, read_columns
from benchmarks.real.parts import Fit, Part, Target, Task, folds_of
from benchmarks.real.rivals import auto, net, one, penalised
from benchmarks.real.verdicts import Verdict
from entourage.choice import ContextualLogit, MultinomialLogit
from entourage.data.coerce import offsets_of
from entourage.data.sets import Sets

__all__ = ["DOMAINS", "TASK", "load"]

DOMAINS = (
    *(
        "Aboriginal art",
        "Beer",
        "Cars",
        "Charity",
        "Coffee",
        "Colour Combinations",
        "Colours",
        "Dots",
        "Events",
    ),
    *(
        "Female stars",
        "Films",
        "Flight layovers",
        "Future payments",
        "Hotel rooms",
        "Impressionist art",
        "Juices",
    ),
    *("Latitude", "Male stars", "Marijuana", "Musical artists", "Phone plans", "Pizzas", "Population"),
    *("Radio formats", "Restaurants", "Sentences", "Star pairs", "Surface area", "Televisions", "Travel"),
    *("Triangles", "Two-flight itineraries"),
)
OBJECTS = ("a", "b", "c", "d", "e")


@cache
def _table(data: Path) -> dict[str, NDArray[Any]]:
    c = read_columns(data / "ranch_mms_2019" / "choices_long.csv.gz")
    order = np.argsort(c["menu"], kind="stable")
    return {name: column[order] for name, column in c.items()}


@cache
def load(data: Path, part: str = "all") -> Part:
    """Read the 33,344 choices, or the 1,042 of a domain."""
    c = _table(data)
    if part != "all":
        kept = c["domain"] == part
        c = {name: column[kept] for name, column in c.items()}
    menus, first, sizes = np.unique(c["menu"], return_index=True, return_counts=True)
    offsets, targets, people = offsets_of(sizes), 1.0 - c["chosen"], c["subject"][first]
    object_id = np.searchsorted(OBJECTS, c["object"].astype(str))
    domain_id = np.searchsorted(DOMAINS, c["domain"].astype(str))

    def view(columns: NDArray[Any]) -> Sets:
        return Sets(columns.astype(np.float64), offsets, targets, worst=1.0)

    views = {
        "features": view(one_hot(object_id, tuple(range(5)))),
        "alternatives": view(object_id[:, None] + 1),
        "ids": view((5 * domain_id + object_id)[:, None] + 1),
    }
    return Part(views, folds_of(len(menus), people), people, menus, c["position"].astype(np.float64))


SHARED = {"categories": [(0, 160)]}  # an embedding for each object of each domain
LOGITS = {
    "MultinomialLogit": (MultinomialLogit(l2=1.0), "context-free"),
    "ContextualLogit": (ContextualLogit(l2=1.0), "context"),
    "ContextualLogit, l2=10": (ContextualLogit(l2=10.0), "context"),
}
TASK = Task(
    name="ranch",
    kind="choice",
    metrics=("log_likelihood", "accuracy"),
    load=load,
    parts=(*DOMAINS, "all"),
    budget=30.0,
    total=True,
    models={
        "MultinomialLogit": Fit(one(lambda: MultinomialLogit(5)), "alternatives"),
        "ContextualLogit": Fit(one(lambda: ContextualLogit(alternatives=5)), "alternatives"),
        "ContextualLogit, penalised": Fit(
            penalised(lambda l2: ContextualLogit(l2=l2), (1.0, 3.0, 10.0, 30.0, 100.0)), "features"
        ),
        "logits, verdict": Verdict(lambda: LOGITS),
        "verdict": Verdict(),
    }
    | {name: Fit(net("choice", name), ours=True) for name in ("FATE, small", "SetAttention, small")}
    | {
        f"{name}, shared": Fit(net("choice", name, **SHARED), "ids", ours=True, only=("all",))
        for name in ("ContextFree", "FATE", "SetAttention")
    }
    | {
        "MultinomialLogit, shared": Fit(one(lambda: MultinomialLogit(160)), "ids", only=("all",)),
        "MultinomialLogit, shared, position": Fit(
            one(lambda: MultinomialLogit(160)), "ids", position=True, only=("all",)
        ),
    }
    | {
        f"{name}, shared, position": Fit(
            net("choice", name, **SHARED), "ids", position=True, ours=True, only=("all",)
        )
        for name in ("ContextFree", "FATE")
    }
    | {
        "auto": Fit(auto("choice"), ours=True),
        "auto, shared": Fit(auto("choice", **SHARED), "ids", panel=True, ours=True, only=("all",)),
    },
    targets=(
        Target(
            "auto",
            "log_likelihood",
            rivals=("MultinomialLogit", "ContextualLogit", "ContextualLogit, penalised"),
        ),
        Target(
            "auto, shared",
            "log_likelihood",
            rivals=("MultinomialLogit", "ContextualLogit", "ContextualLogit, penalised"),
        ),
    ),
)
