"""Every net, once: an entry here makes a net known to model files, commands, searches, comparisons and the laws.

A net of your own joins by `register`, called in the module that defines it.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from entourage.errors import ParameterError
from entourage.nets.attention import SetAttention
from entourage.nets.base import Net
from entourage.nets.context_free import ContextFree
from entourage.nets.fate import FATE
from entourage.nets.feta import FETA

__all__ = ["NETS", "REGISTRY", "Choice", "Entry", "Real", "Space", "Whole", "entry_of", "register"]


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
    label: str = ""  # in the tables of the paper
    context: bool = True  # whether the score of an object depends on the others of its set
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

#: Those of the library, in the order of what they cost.
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

#: Every net, by the name that model files and the command line know it by; with those of `register`.
NETS: dict[str, type[Net]] = {entry.name: entry.net for entry in REGISTRY}

_ENTRIES: dict[type[Net], Entry] = {entry.net: entry for entry in REGISTRY}  # with those of `register`
_OWN = (*NETS, "auto", "pretrained", "pretrained_ablated")  # names that are taken


def register(entry: Entry) -> None:
    """Make a net of your own known by its name: to model files, ``Ranker("name")``, ``--model name`` and `tune`.

    A model file holds no code, so whoever loads a model of this net must have imported the module that registers it.
    A command imports a module ``my_nets`` when it is started by
    ``python -c "import my_nets; from entourage.cli import main; main()"`` instead of ``entourage``.
    Check the net first: :func:`entourage.nets.laws.check_net`.

    Parameters
    ----------
    entry : the name, the class, whether it sees the context, and what `tune` searches

    Examples
    --------
    >>> register(Entry("fate", FATE))
    Traceback (most recent call last):
        ...
    entourage.errors.ParameterError: 'fate' can't be the name of a net of yours: it is taken.
    """
    if not (inspect.isclass(entry.net) and issubclass(entry.net, Net)):
        raise ParameterError(f"register needs the class of a net, derived from Net; got {entry.net!r}.")
    if entry.name in _OWN or not entry.name.isidentifier():
        why = "it is taken." if entry.name in _OWN else "letters, digits and _ are needed, such as max_pool."
        raise ParameterError(f"{entry.name!r} can't be the name of a net of yours: {why}")
    parameters = inspect.signature(entry.net).parameters.values()
    bare = [
        p.name for p in parameters if p.annotation is inspect.Parameter.empty or isinstance(p.annotation, str)
    ]
    if bare:
        raise ParameterError(
            f"The constructor of {entry.net.__name__} needs an annotation for {', '.join(bare)}, as in width: int = "
            "64, and its module no 'from __future__ import annotations': values in a model file are checked against "
            "them."
        )
    before = NETS.get(entry.name)
    if before is not None:  # a notebook's cell that is run again defines its class anew
        if (before.__module__, before.__qualname__) != (entry.net.__module__, entry.net.__qualname__):
            raise ParameterError(
                f"{entry.name!r} is registered already, for {before.__name__}; take another name."
            )
        del _ENTRIES[before]
    NETS[entry.name], _ENTRIES[entry.net] = entry.net, entry


def entry_of(net: Net) -> Entry | None:
    """Return the entry of a net, or of the class it is derived from; None for one that is not registered.

    Examples
    --------
    >>> entry_of(FATE()).name
    'fate'
    """
    return next((_ENTRIES[kind] for kind in type(net).__mro__ if kind in _ENTRIES), None)
