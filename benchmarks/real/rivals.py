"""The models that several data sets share: nets by name, ``auto``, logits whose penalty is chosen on training sets."""

import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import parent_process
from typing import Any

from benchmarks.real.parts import Fit, Settings
from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser, baselines
from entourage.nets import Net

__all__ = ["CHOOSERS", "SHORT", "auto", "baselines_of", "net", "nets_of", "one", "penalised"]

CHOOSERS = {"rank": Ranker, "choice": DiscreteChooser, "subset": SubsetChooser}
#: For few sets, which are soon overfitted, and for large ones.
SHORT = {"steps": 300, "batch_size": 32, "weight_decay": 1.0}
BASELINES = {
    "rank": ("BestColumn", "RankSVM", "LinearRanker", "LambdaMART"),
    "choice": ("BestColumnLogit", "BoostedLogit"),
    "subset": ("BestColumnSubset", "BoostedSubset"),
}
NETS: dict[str, Callable[[], Net]] = {
    "ContextFree": ContextFree,
    "FATE": FATE,
    "FATE, small": lambda: FATE(width=16),
    "SetAttention": lambda: SetAttention(rounds=3, features="linear"),
    "SetAttention, small": lambda: SetAttention(width=16, rounds=3, features="linear"),
}


def auto(kind: str, **given: Any) -> Callable[[Settings], Mapping[str, Any]]:
    """Return ``auto`` with the budget of the command."""

    def make(settings: Settings) -> dict[str, Any]:
        budget = 1.0 if settings.quick else settings.budget
        short = {"steps": 20} if settings.quick else {}
        return {
            "auto": CHOOSERS[kind](
                "auto",
                budget=budget,
                workers=1 if parent_process() else os.cpu_count() or 1,
                device="cpu",
                random_state=settings.seed,
                **short,
                **given,
            )
        }

    return make


def net(kind: str, name: str, **given: Any) -> Callable[[Settings], Mapping[str, Any]]:
    """Return a named net at the defaults of its estimator, but for what is given."""

    def make(settings: Settings) -> dict[str, Any]:
        changed = given | ({"steps": 20} if settings.quick else {})
        return {name: CHOOSERS[kind](NETS[name](), device="cpu", random_state=settings.seed, **changed)}

    return make


def baselines_of(kind: str) -> dict[str, Fit]:
    """Return the baselines of a kind of target that this version has, alone and, where they take it, relative."""
    found = {}
    for name in BASELINES[kind]:
        made = getattr(baselines, name, None)
        if made is None:
            continue
        takes = inspect.signature(made).parameters
        seed = {"random_state": 0} if "random_state" in takes else {}
        found[name] = Fit(one(partial(made, **seed)))
        if "relative" in takes and not name.startswith("BestColumn"):
            found[f"{name}, relative"] = Fit(one(partial(made, relative="all", **seed)))
    return found


def one(make: Callable[[], Any]) -> Callable[[Settings], Mapping[str, Any]]:
    """Return a single estimator without settings."""
    return lambda settings: {"": make()}


def penalised(
    make: Callable[[float], Any], penalties: tuple[float, ...] = (0.1, 1.0, 10.0)
) -> Callable[[Settings], Mapping[str, Any]]:
    """Return an estimator for each penalty; inner folds of the training sets choose."""
    return lambda settings: {f"l2={penalty:g}": make(penalty) for penalty in penalties}


def nets_of(
    kind: str, names: tuple[str, ...] = ("ContextFree", "FATE", "SetAttention"), **given: Any
) -> dict[str, Fit]:
    """Return the named nets of a task, by name; with features that are numbers, also with the relative view."""
    found = {name: Fit(net(kind, name, **given), ours=name != "ContextFree") for name in names}
    if "categories" not in given:
        relative = {name: net(kind, name, relative="all", **given) for name in names}
        found |= {f"{name}, relative": Fit(make, ours=True) for name, make in relative.items()}
    return found
