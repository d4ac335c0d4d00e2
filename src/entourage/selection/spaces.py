"""What to search: the declared space of settings of each model, for :mod:`entourage.selection.tuning`."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from entourage.errors import ParameterError, check_choice
from entourage.estimators import NetEstimator
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines import (
    BoostedLogit,
    BoostedSubset,
    ExpectedRankRegression,
    LambdaMART,
    LinearRanker,
    RankBoost,
    RankSVM,
)
from entourage.nets import FATE, NETS, REGISTRY, Entry, entry_of
from entourage.nets.registry import Choice, Real, Space, Whole

__all__ = [
    "SPACES",
    "Choice",
    "Real",
    "Space",
    "Whole",
    "check_space",
    "distribution",
    "few_sets_space",
    "present_choice",
    "settings_of",
    "space_of",
]


_TRAINING: Space = {
    "learning_rate": Real(3e-4, 1e-2, log=True),
    "batch_size": Choice((64, 128, 256, 512, 1024)),
    "weight_decay": Choice((0.0, 0.01, 0.1, 0.3)),
    "l1": Choice((0.0, 1e-6, 1e-5, 1e-4)),
    "l2": Choice((0.0, 1e-6, 1e-5, 1e-4)),
}
_LOSS: Space = {"loss": Choice(("hinge", "logistic", "plackett_luce"))}

_BOOSTED: Space = {  # rounds are chosen by early stopping
    "num_leaves": Choice((None, 4, 7, 15, 31, 63, 127, 255)),
    "learning_rate": Real(0.01, 0.3, log=True),
    "min_child_samples": Whole(5, 200, log=True),
    "reg_lambda": Choice((0.0, 0.1, 1.0, 10.0)),
    "colsample_bytree": Choice((0.3, 0.5, 1.0)),
}


def _space_of_entry(entry: Entry) -> Space:
    """Return what is searched for a net; one without context keeps its loss, which makes RankNet and ListNet two."""
    return entry.space | (_LOSS if entry.context else {}) | _TRAINING


#: What is searched for each net of the library and each classical ranker.
SPACES: dict[type, Space] = {entry.net: _space_of_entry(entry) for entry in REGISTRY} | {
    ExpectedRankRegression: {"alpha": Real(1e-6, 1e3, log=True)},
    RankSVM: {"C": Real(1e-4, 1e2, log=True)},
    RankBoost: {"rounds": Whole(20, 500, log=True), "bins": Choice((16, 64, 256))},
    LinearRanker: {"l2": Choice(("folds", 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0))},
    LambdaMART: _BOOSTED,
    BoostedLogit: _BOOSTED,
    BoostedSubset: _BOOSTED,
}


_FEW_SETS: Space = {
    "steps": Choice((75, 150, 300, 600)),
    "net__width": Choice((8, 16, 32, 64)),
    "net__depth": Whole(0, 2),
    "learning_rate": Real(3e-4, 3e-2, log=True),
    "weight_decay": Choice((0.01, 0.1, 1.0)),
}


def few_sets_space(model: SetPredictor) -> Space:
    """Return a smaller space for nets that learn from little data, in few trials; others keep theirs.

    How large the net is (for the paper's nets a linear one too), how long and how fast it learns, its weight decay
    and, where it sees the context, its loss.
    """
    if not isinstance(model, NetEstimator):
        return space_of(model)
    net = _net_of(model)
    known = clone(model).set_params(net=net).get_params()
    space = {key: what for key, what in _FEW_SETS.items() if key in known}
    entry = entry_of(net)
    in_context = entry is None or entry.context
    return (
        space | ({} if entry is None else entry.small_space) | (_LOSS if in_context and _ranks(model) else {})
    )


def space_of(model: SetPredictor) -> Space:
    """Return the declared space of a model; {} where there is nothing to search.

    Examples
    --------
    >>> from entourage.estimators.baselines import RankSVM
    >>> space_of(RankSVM())
    {'C': Real(low=0.0001, high=100.0, log=True)}
    """
    if isinstance(model, NetEstimator):
        space = _space_of_net(_net_of(model))
        return space if _ranks(model) else {key: what for key, what in space.items() if key != "loss"}
    return SPACES.get(type(model), {})


def _net_of(model: NetEstimator) -> Any:
    """Return the net that is trained: by default FATE, and that which a name stands for."""
    net: Any = FATE() if model.net is None else model.net
    return NETS[net]() if isinstance(net, str) and net in NETS else net


def _space_of_net(net: Any) -> Space:
    entry = entry_of(net)
    return _TRAINING if entry is None or entry.net is not type(net) else _space_of_entry(entry)


def _ranks(model: NetEstimator) -> bool:
    """Whether there are several losses to choose from: a chooser has one."""
    return len(model.task.losses) > 1


def _label(value: Any) -> Any:
    """Return a form of a choice that Optuna can keep: tuples as text."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def distribution(what: Choice | Whole | Real) -> Any:
    """Return what Optuna draws it from."""
    from optuna import distributions

    if isinstance(what, Choice):
        return distributions.CategoricalDistribution([_label(value) for value in what.values])
    if isinstance(what, Whole):
        return distributions.IntDistribution(what.low, what.high, log=what.log)
    return distributions.FloatDistribution(what.low, what.high, log=what.log)


def settings_of(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Turn what Optuna chose into arguments of set_params."""
    settings: dict[str, Any] = {}
    for key, what in space.items():
        value = params[key]
        if isinstance(what, Choice):
            value = next(v for v in what.values if _label(v) == value)
        names = key.split()
        settings |= {key: value} if len(names) == 1 else dict(zip(names, value, strict=True))
    return settings


def present_choice(model: SetPredictor, space: Space) -> dict[str, Any] | None:
    """Return the settings of a model as Optuna would have chosen them; None where they are outside."""
    params = model.get_params()
    found: dict[str, Any] = {}
    for key, what in space.items():
        names = key.split()
        value = params[key] if len(names) == 1 else tuple(params[name] for name in names)
        if key == "net__embedding_depth" and value is None:
            value = params["net__depth"]  # what None means
        if isinstance(what, Choice):
            inside = value in what.values
        else:
            inside = isinstance(value, (int, float)) and what.low <= value <= what.high
        if not inside:
            return None
        found[key] = _label(value)
    return found


def check_space(model: SetPredictor, space: Space) -> None:
    """See that a space is about parameters that the model has."""
    names = model.get_params()
    for key, what in space.items():
        for name in key.split():
            check_choice("A parameter of the space", name, names)
        if isinstance(what, Choice) and len(key.split()) > 1:
            for value in what.values:
                if not isinstance(value, tuple) or len(value) != len(key.split()):
                    raise ParameterError(
                        f"{key!r} names {len(key.split())} parameters; {value!r} does not fit."
                    )
