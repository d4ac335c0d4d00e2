"""Fitted models of every kind that can be exported, small and quickly made."""

import warnings

import numpy as np
import pyarrow as pa

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.baselines import (
    BestColumn,
    BestColumnLogit,
    BestColumnSubset,
    BoostedLogit,
    BoostedSubset,
    LambdaMART,
    LinearRanker,
    RankSVM,
)
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.data.encoder import TableEncoder
from entourage.data.sets import Sets
from entourage.estimators.blend import Blend, Part, sets_for
from entourage.nets.context_ablated import ContextAblated
from entourage.selection.candidates import LinearLogit

QUICK = {"steps": 3, "random_state": 0, "compile": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4, 3)) * [1.0, 20.0, 0.01] + [0.0, 100.0, 5.0]
HEAVY = np.exp(2 * RNG.normal(size=(60, 4, 2)))
SITUATION = RNG.normal(size=(60, 2)) * [1.0, 1000.0]
CHOICES = RNG.integers(0, 4, size=60)
RANKS = RNG.random((60, 4)).argsort(1)
SOME = RNG.random((60, 4)) < 0.4
IDS = np.concatenate([np.tile([1.0, 2.0, 3.0, 4.0], (60, 1))[..., None], X], axis=2)
NESTS = [[1, 2], [3, 4]]


def table(n=80, seed=0, *, target="choice", missing=True):
    """Sets of 2 to 6 rows with numbers, a flag, text of few and of many levels, and a column of the situation."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, n)
    trip = np.repeat(np.arange(n), sizes)
    rows = len(trip)
    price = np.round(np.exp(rng.normal(3, 1.5, rows)), 2)
    stops = rng.integers(0, 3, rows).astype(object)
    mode = rng.choice(["train", "bus", "car"], rows).astype(object)
    town = np.array([f"town {i}" for i in rng.integers(0, 40, rows) ** 2 // 40 + rng.integers(0, 40, rows)])
    quiet = (rng.random(rows) < 0.5).astype(object)
    if missing:
        for column in (stops, mode, quiet):
            column[rng.random(rows) < 0.1] = None
    chosen = np.zeros(rows, dtype=int)
    chosen[(np.cumsum(sizes) - sizes) + rng.integers(0, sizes)] = 1
    if target == "rank":
        chosen = np.concatenate([rng.permutation(m) for m in sizes])
    if target == "subset":
        chosen = (rng.random(rows) < 0.4).astype(int)
    weather = rng.choice(["sun", "rain"], n)
    return pa.table(
        {
            "trip": trip,
            "price": price,
            "stops": pa.array(stops.tolist(), pa.float64()),
            "mode": pa.array(mode.tolist(), pa.string()),
            "town": town,
            "quiet": pa.array(quiet.tolist(), pa.bool_()),
            "weather": weather[trip],
            "hour": rng.integers(0, 24, n)[trip],
            "chosen": chosen,
        }
    )


def _fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps on random data
        return model.fit(*args, **kwargs)


def on_table(model, target="choice", **kwargs):
    frame = table(target=target)
    roles = {"set_id": "trip", "target": "chosen", "target_kind": target} | kwargs
    return _fit(model, frame, **roles)


def net(net, kind=Ranker, y=RANKS, x=X, **kwargs):
    fitted = {key: kwargs.pop(key) for key in ("situation",) if key in kwargs}
    return _fit(kind(net, **QUICK | kwargs), x, y, **fitted)


def blend(kind, codes):
    """A blend of a net, a linear model and trees, made by hand."""
    if codes:
        frame = table(target=kind)
        encoder = TableEncoder.fit(frame, set_id="trip", target="chosen", target_kind=kind, codes=True)
        sets = encoder(frame).sets
    else:
        sets = Sets.of(X, RANKS if kind == "rank" else np.where(SOME, 0.0, 1.0))
    members = {
        "rank": (Ranker(FATE(width=8), **QUICK), LinearRanker(), LambdaMART(5)),
        "choice": (DiscreteChooser(FATE(width=8), **QUICK), LinearLogit(), BoostedLogit(5)),
        "subset": (SubsetChooser(FATE(width=8), **QUICK), BestColumnSubset(), BoostedSubset(5)),
    }[kind]
    whole = _fit(type(members[0])(FATE(width=8), **QUICK), sets)
    models = [_fit(one, sets_for(one, sets, whole.categories_)) for one in members]
    parts = [
        Part(f"p{i}", w, [one], [w]) for i, (w, one) in enumerate(zip((0.5, 0.3, 0.2), models, strict=True))
    ]
    whole.blend_ = Blend(whole.task, parts, whole.categories_)
    return whole


def blend_of_folds():
    """A blend as a search makes it: two models of each of two architectures; the numbers of trees differ."""
    frame = table(target="rank")
    encoder = TableEncoder.fit(
        frame, set_id="trip", target="chosen", target_kind="rank", codes=True, situation=["weather", "hour"]
    )
    sets = encoder(frame).sets
    whole = _fit(Ranker(FATE(width=4), **QUICK), sets)
    makes = {
        "nets": [Ranker(FATE(width=4), relative=True, **QUICK | {"random_state": seed}) for seed in (0, 1)],
        "trees": [LambdaMART(trees, min_child_samples=5) for trees in (3, 9)],
    }
    parts = []
    for name, models in makes.items():
        fitted = [_fit(model, sets_for(model, sets, whole.categories_)) for model in models]
        parts.append(Part(name, 0.5, fitted, [0.7, 1.3]))
    whole.blend_ = Blend(whole.task, parts, whole.categories_)
    return whole


def trees(kind, **kwargs):
    y = {LambdaMART: RANKS, BoostedLogit: CHOICES, BoostedSubset: SOME}[kind]
    return _fit(kind(8, min_child_samples=5, **kwargs), X, y, situation=SITUATION)


def logit(model, x=X, **kwargs):
    return _fit(model, x, CHOICES, **kwargs)


CHOOSER = {"kind": DiscreteChooser, "y": CHOICES}
SUBSET = {"kind": SubsetChooser, "y": SOME}
OUTSIDE = np.where(CHOICES == 3, -1, CHOICES)

#: Every kind of model, by a name; each is made when it is called.
MODELS = {
    "fate": lambda: net(FATE(width=8)),
    "context free": lambda: net(ContextFree(width=8), standardize=False),
    "feta": lambda: net(FETA(width=8), x=HEAVY, relative=True),
    "set attention": lambda: net(SetAttention(width=8), situation=SITUATION, **CHOOSER),
    "set attention, points": lambda: net(SetAttention(width=8, points=3), **SUBSET),
    "ensemble": lambda: net(FATE(width=8, include_self=False), members=3, x=HEAVY, standardize="quantiles"),
    "context-ablated": lambda: net(ContextAblated(SetAttention(width=8, rounds=1)), standardize="piecewise"),
    "monotone": lambda: net(FATE(width=8), monotone={1: -1}, relative=True, **CHOOSER),
    "outside option": lambda: net(FATE(width=8), kind=DiscreteChooser, y=OUTSIDE, outside=True),
    "codes of an array": lambda: net(FATE(width=8), x=IDS, categories=[(0, 4)], **CHOOSER),
    "table, ranker": lambda: on_table(
        Ranker(FATE(width=8), relative=["price"], **QUICK), "rank", situation=["weather", "hour"]
    ),
    "table, ensemble": lambda: on_table(SubsetChooser(FETA(width=8), members=2, **QUICK), "subset"),
    "table, marks": lambda: on_table(DiscreteChooser(FATE(width=8), **QUICK), missing=["2", "car"]),
    "table, trees": lambda: on_table(LambdaMART(5, relative="all"), "rank", situation=["hour"]),
    "table, logit": lambda: on_table(MultinomialLogit(), ignore=["weather", "hour"]),
    "table, nests": lambda: _fit(
        NestedLogit([["train", "bus"]], alternative="mode"),
        table(missing=False),
        set_id="trip",
        target="chosen",
        target_kind="choice",
        features=["mode", "price", "quiet"],
    ),
    "blend, ranker": lambda: blend("rank", codes=True),
    "blend, chooser": lambda: blend("choice", codes=True),
    "blend, subset": lambda: blend("subset", codes=False),
    "blend, of folds": blend_of_folds,
    "rank svm": lambda: _fit(RankSVM(relative=True), X, RANKS, situation=SITUATION),
    "linear ranker": lambda: _fit(LinearRanker(), HEAVY, RANKS),
    "best column": lambda: _fit(BestColumn(), X, RANKS),
    "best column, logit": lambda: _fit(BestColumnLogit(), HEAVY, CHOICES),
    "best column, subset": lambda: _fit(BestColumnSubset(), X, SOME),
    "lambdamart": lambda: trees(LambdaMART, relative=True),
    "boosted logit": lambda: trees(BoostedLogit),
    "boosted subset": lambda: trees(BoostedSubset),
    "multinomial logit": lambda: logit(MultinomialLogit(relative=[1])),
    "logit of alternatives": lambda: logit(MultinomialLogit(4), IDS[..., :1]),
    "linear logit": lambda: logit(LinearLogit(), situation=SITUATION),
    "nested logit": lambda: logit(NestedLogit(NESTS), IDS),
    "nested logit, no intercepts": lambda: logit(NestedLogit([[2, 3]], intercepts=False), IDS),
    "cross-nested logit": lambda: logit(CrossNestedLogit([[1, 2, 3], [3, 4]]), IDS),
    "mixed logit": lambda: logit(MixedLogit({0: "normal", 1: "-lognormal"}, draws=50)),
    "latent class": lambda: logit(LatentClassLogit(2, restarts=2), situation=SITUATION),
    "latent class, no situation": lambda: logit(LatentClassLogit(3, restarts=1)),
    "random regret": lambda: logit(RandomRegret(scale=0.7, linear=[2])),
    "contextual logit": lambda: logit(ContextualLogit()),
    "contextual logit, rank": lambda: logit(ContextualLogit(1)),
    "contextual logit of alternatives": lambda: logit(ContextualLogit(alternatives=4), IDS[..., :1]),
    "linear context logit": lambda: logit(LinearContextLogit()),
}
