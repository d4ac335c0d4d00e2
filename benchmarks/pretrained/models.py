"""The pretrained net and its rivals: each learns from the labelled sets of a draw, and gives utilities of test sets."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from benchmarks.pretrained.draws import inner_folds
from benchmarks.pretrained.ridge import Stages, fit_ridge
from benchmarks.pretrained.scores import main_values
from benchmarks.pretrained.tables import Table
from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SetAttention
from entourage.data.relative import LINEAR_STANDINGS, Relative
from entourage.data.sets import Sets
from entourage.estimators.baselines import BoostedLogit, LambdaMART

__all__ = ["MODELS", "PENALTIES", "Scored", "Skipped", "linear_view", "unavailable"]

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

PENALTIES = tuple(round(float(l2), 3) for l2 in np.logspace(-1, 3, 9))
NET_FOLDS = 3
#: (steps, width, weight decay); those of the nets that inner folds choose from.
NET_GRID = ((100, 16, 1.0), (100, 32, 0.01), (400, 16, 0.01), (400, 32, 1.0))


class Skipped(Exception):
    """A model that can't take part here, and why."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Utilities of the test sets, packed, and the settings that were chosen."""

    utilities: Floats
    settings: dict[str, Any] = field(default_factory=dict)


Model = Callable[[Table, Index, Index, int], Scored]


def uniform(table: Table, train: Index, test: Index, seed: int) -> Scored:
    """Give every object the same utility."""
    return Scored(np.zeros(int(table.sets.sizes[test].sum())))


# --- linear models ----------------------------------------------------------------------------------


def linear_view(table: Table, view: str, train: Index) -> Sets:
    """Return the columns of a linear model.

    "ridge": those of the objects. "ridge contextual": also z-score and rank of numbers within their set. "ridge
    interacted": also alternatives and types times the situation, standardised by the labelled sets.
    """
    sets = table.sets
    columns = np.asarray(sets.objects, dtype=np.float64)
    if view == "ridge contextual":
        columns = np.column_stack([columns, Relative(table.numbers(), LINEAR_STANDINGS).of(sets)])
    if view == "ridge interacted":
        if sets.situation is None or not table.indicators:
            raise Skipped(f"{table.name} has no situation to multiply alternatives with")
        about = np.asarray(sets.situation, dtype=np.float64)
        mean, spread = about[train].mean(0), about[train].std(0)
        about = np.clip((about - mean) / np.where(spread > 0, spread, 1.0), -5, 5) * (spread > 0)
        own = np.repeat(about, sets.sizes, axis=0)
        crossed = [columns[:, [place]] * own for place in table.indicators]
        columns = np.column_stack([columns, *crossed])
    return sets.with_features(columns, None)


def ridge(table: Table, train: Index, test: Index, seed: int, *, view: str) -> Scored:
    """Fit a ridge logit; five inner folds choose the penalty."""
    sets = linear_view(table, view, train)
    stages = Stages.of(sets[train], table.kind)
    place_of = np.empty(len(sets), dtype=np.int64)
    place_of[train] = np.arange(len(train))
    totals = np.zeros(len(PENALTIES))
    by_object = stages.mask.sum(1) if table.kind == "rank" else np.ones(len(stages))
    for inside, outside in inner_folds(table, train, 5, seed):
        held_out = stages[place_of[outside]]
        for i, w in enumerate(fit_ridge(stages[place_of[inside]], PENALTIES)):
            totals[i] += (held_out.log_likelihood(held_out.values @ w) / by_object[place_of[outside]]).sum()
    best = PENALTIES[int(np.argmax(totals))]
    (w,) = fit_ridge(stages, (best,))
    return Scored(
        np.asarray(sets[test].objects @ w), {"l2": best, "inner": round(float(totals.max()) / len(train), 4)}
    )


# --- nets -------------------------------------------------------------------------------------------


def net(table: Table, train: Index, test: Index, seed: int, *, name: str) -> Scored:
    """Fit a net; three inner folds choose steps, width, weight decay, and a scale of utilities."""
    folds = inner_folds(table, train, NET_FOLDS, seed)
    held_out = table.sets[np.concatenate([outside for _, outside in folds])]
    inner = []
    for setting in NET_GRID:
        fitted = [_net(name, table.kind, setting, seed).fit(table.sets[inside]) for inside, _ in folds]
        scores = [
            model.predict_scores(table.sets[outside])
            for model, (_, outside) in zip(fitted, folds, strict=True)
        ]
        inner.append(best_scale(table.kind, held_out, np.concatenate(scores).astype(np.float64)))
    best = max(range(len(inner)), key=lambda which: inner[which][1])
    model = _net(name, table.kind, NET_GRID[best], seed).fit(table.sets[train])
    steps, width, decay = NET_GRID[best]
    scale, value = inner[best]
    return Scored(
        scale * np.asarray(model.predict_scores(table.sets[test]), dtype=np.float64),
        {
            "steps": steps,
            "width": width,
            "weight_decay": decay,
            "scale": round(scale, 4),
            "inner": round(value, 4),
        },
    )


def _net(name: str, kind: str, setting: tuple[int, int, float], seed: int) -> Any:
    steps, width, decay = setting
    made = {
        "FATE": partial(FATE, width=width),
        "SetAttention": partial(SetAttention, width=width, rounds=2, dropout=0.1, features="linear"),
        "ContextFree": partial(ContextFree, width=width),
    }[name]()
    given = {
        "steps": steps,
        "weight_decay": decay,
        "batch_size": 16 if kind == "rank" else 32,
        "validation": 0.0,
        "device": "cpu",
        "random_state": seed,
    }
    return DiscreteChooser(made, **given) if kind == "choice" else Ranker(made, loss="plackett_luce", **given)


# --- boosted trees ----------------------------------------------------------------------------------


def boosted(table: Table, train: Index, test: Index, seed: int) -> Scored:
    """Grow boosted trees, with and without the set-relative view; inner folds choose, and find the scale of rankings.

    Trees hold folds of their own out, to find the number of rounds.
    """
    if importlib.util.find_spec("lightgbm") is None:
        raise Skipped("LightGBM is not installed")
    folds = inner_folds(table, train, 2, seed)
    held_out = table.sets[np.concatenate([outside for _, outside in folds])]
    inner = {}
    for relative in (False, "all"):
        out = np.concatenate(
            [
                _trees(table, inside, relative, seed).predict_scores(table.sets[outside])
                for inside, outside in folds
            ]
        ).astype(np.float64)
        inner[relative] = best_scale(table.kind, held_out, out)
    relative = max(inner, key=lambda which: inner[which][1])
    scale, value = inner[relative]
    model = _trees(table, train, relative, seed)
    return Scored(
        scale * np.asarray(model.predict_scores(table.sets[test]), dtype=np.float64),
        {
            "relative": bool(relative),
            "scale": round(scale, 4),
            "rounds": model.n_rounds_,
            "inner": round(value, 4),
        },
    )


def best_scale(kind: str, sets: Sets, utilities: Floats) -> tuple[float, float]:
    """Return the factor on utilities under which held-out sets are most likely, and their mean log-likelihood.

    Models of choices give probabilities already, and few sets overfit: the factor is at most 1 there.
    """

    def value(log_scale: float) -> float:
        return float(main_values(kind, sets, np.exp(log_scale) * utilities).mean())

    found = minimize_scalar(
        lambda at: -value(at), bounds=(-6.0, 0.0 if kind == "choice" else 2.0), method="bounded"
    )
    return float(np.exp(found.x)), value(float(found.x))


def _trees(table: Table, places: Index, relative: bool | str, seed: int) -> Any:
    kind = BoostedLogit if table.kind == "choice" else LambdaMART
    made = kind(
        300,
        relative=relative,
        colsample_bytree=0.5 if relative else 1.0,
        min_child_samples=10,
        patience=25,
        folds=3,
        random_state=seed,
    )
    return made.fit(table.sets[places], groups=table.groups()[places])


# --- ours -------------------------------------------------------------------------------------------


def pretrained(table: Table, train: Index, test: Index, seed: int, *, fine_tune: bool = False) -> Scored:
    """Read the labelled sets with the pretrained net; nothing is fitted, unless it is fine-tuned.

    Scores of rankings are divided by the temperature that the model learnt from its own held-out readings: these are
    the utilities of ``predict_places``. The rivals' utilities have a scale from inner folds, too.
    """
    reason = unavailable()
    if reason is not None:
        raise Skipped(reason)
    estimator: Any = DiscreteChooser if table.kind == "choice" else Ranker
    given = {"fine_tune": True} if fine_tune else {}
    model = estimator("pretrained", device="cpu", random_state=seed, **given)
    model.fit(table.sets[train], groups=table.groups()[train])
    found = model.calibration_
    temperature = 1.0 if found is None or found.place_temperature is None else found.place_temperature
    utilities = np.asarray(model.predict_scores(table.sets[test]), dtype=np.float64) / temperature
    return Scored(utilities, {"temperature": round(temperature, 4)})


def unavailable() -> str | None:
    """Say why the pretrained net can't be used yet; None where it can."""
    if importlib.util.find_spec("entourage.pretrained") is None:
        return "this version has no entourage.pretrained"
    return None


#: Every model by name; ours last, quick ones first.
MODELS: dict[str, Model] = {
    "uniform": uniform,
    **{view: partial(ridge, view=view) for view in ("ridge", "ridge contextual", "ridge interacted")},
    "boosted": boosted,
    **{name: partial(net, name=name) for name in ("ContextFree", "FATE", "SetAttention")},
    "pretrained": pretrained,
    "pretrained+": partial(pretrained, fine_tune=True),
}
