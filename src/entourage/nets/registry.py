"""Every net, once: an entry here makes a net known to model files, commands, searches, comparisons and the laws."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from entourage.nets.attention import SetAttention
from entourage.nets.base import Net
from entourage.nets.context_free import ContextFree
from entourage.nets.fate import FATE
from entourage.nets.feta import FETA

__all__ = ["NETS", "REGISTRY", "Choice", "Entry", "Real", "Space", "Whole", "entry_of"]


@dataclass(frozen=True)
class Choice:
    """One of several values. Under a name of several parameters ("a b"), each value is a tuple of theirs."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``; ``log``: all orders of magnitude alike."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``; ``log``: all orders of magnitude alike."""

    low: float
    high: float
    log: bool = False


#: Settings to search, by the names of parameters of an estimator ("net__width").
Space: TypeAlias = dict[str, Choice | Whole | Real]


@dataclass(frozen=True)
class Entry:
    """What the library knows of a net."""

    name: str  # in model files, and of --model
    net: type[Net]
    label: str  # in the tables of the paper
    context: bool  # whether the score of an object depends on the others of its set
    all_pairs: bool = False  # whether its time grows with the square of the size of a set
    space: Space = field(default_factory=dict)  # what `tune` searches, beside the settings of training
    small_space: Space = field(default_factory=dict)  # what is other where there are few sets


_HIDDEN: Space = {
    "net__width": Choice((32, 64, 128, 256)),
    "net__depth": Whole(1, 4),
    "net__activation net__norm": Choice(
        (("relu", "none"), ("relu", "batch"), ("selu", "none"), ("gelu", "layer"))
    ),
}

#: In the order of what they cost.
REGISTRY: tuple[Entry, ...] = (
    Entry("context_free", ContextFree, label="RankNet", context=False, space=_HIDDEN),
    Entry(
        "fate",
        FATE,
        label="FATE-Net",
        context=True,
        space={
            **_HIDDEN,
            "net__embedding_size": Choice((None, 16, 32, 64, 128, 256)),
            "net__embedding_depth": Whole(1, 4),
        },
    ),
    Entry("feta", FETA, label="FETA-Net", context=True, all_pairs=True, space=_HIDDEN),
    Entry(
        "set_attention",
        SetAttention,
        label="SetAttention",
        context=True,
        all_pairs=True,
        space={
            "net__width": Choice((32, 64, 96)),
            "net__rounds": Whole(2, 5),
            "net__heads": Choice((1, 4, 8)),
            "net__depth": Whole(1, 2),
            "net__dropout": Choice((0.0, 0.1, 0.2)),
            "net__norm": Choice(("none", "layer")),
        },
        small_space={"net__depth": Whole(1, 2), "net__rounds": Whole(1, 3)},
    ),
)

#: Every net, by the name that model files and the command line know it by.
NETS: dict[str, type[Net]] = {entry.name: entry.net for entry in REGISTRY}


def entry_of(net: Net) -> Entry | None:
    """Return the entry of a net, or of the class it is derived from; None for one that is not registered.

    Examples
    --------
    >>> entry_of(FATE()).name
    'fate'
    """
    known = {entry.net: entry for entry in REGISTRY}
    return next((known[kind] for kind in type(net).__mro__ if kind in known), None)
