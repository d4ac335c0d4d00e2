"""Rows of calibration in the form in which docs/trust.md shows them: one a model, one a quantity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmark_rows import read_rows

__all__ = ["context_test", "effects", "logits", "quantities"]


CONTEXT = (
    "compromise",
    "strong_compromise",
    "distance_to_mean",
    "attraction",
    "similarity",
    "reference_price",
    "panel_compromise",
    "panel_distance",
)


def context_test() -> Iterator[dict[str, Any]]:
    """One row a data set, and whether there is a context effect in it."""
    for row in read_rows("calibration-context-test.jsonl"):
        yield row | {"context": row["scenario"] in CONTEXT}


def logits() -> Iterator[dict[str, Any]]:
    """One row an estimate: whether its interval of 1.96 standard errors holds the true parameter."""
    for row in read_rows("calibration-logits.jsonl"):
        for i, away in enumerate(row["away"]):
            yield {
                "world": row["world"],
                "seed": row["seed"],
                "parameter": i,
                "parameters": len(row["away"]),
                "held": away is not None and abs(away) < 1.96,
            }


def quantities() -> Iterator[dict[str, Any]]:
    """One row an interval of a context effect: whether it excludes 0, and whether it covers the truth."""
    for row in read_rows("calibration-effects.jsonl"):
        for name, found in row["quantities"].items():
            low, high = found["interval"][0] - 1e-12, found["interval"][1] + 1e-12
            yield {
                "scenario": row["scenario"],
                "seed": row["seed"],
                "quantity": name,
                "excludes_0": not low <= 0 <= high,
                "covers": low <= found["truth"] <= high,
                "truth": found["truth"],
                "estimate": found["estimate"],
            }


def effects() -> Iterator[dict[str, Any]]:
    """One row a data set: the shares of its seven intervals, which are not independent."""
    found = list(quantities())
    for scenario, seed in dict.fromkeys((one["scenario"], one["seed"]) for one in found):
        mine = [one for one in found if (one["scenario"], one["seed"]) == (scenario, seed)]
        yield {
            "scenario": scenario,
            "excludes_0": float(np.mean([one["excludes_0"] for one in mine])),
            "covers": float(np.mean([one["covers"] for one in mine])),
        }
