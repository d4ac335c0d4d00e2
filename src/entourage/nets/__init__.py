"""Nets: generalised utilities U(x, C), one score for each object of a set."""

from entourage.nets.attention import SetAttention
from entourage.nets.base import Net, Scorer
from entourage.nets.context_ablated import Alone
from entourage.nets.context_free import ContextFree
from entourage.nets.fate import FATE
from entourage.nets.feta import FETA
from entourage.nets.registry import NETS, REGISTRY, Entry, entry_of

__all__ = [
    "FATE",
    "FETA",
    "NETS",
    "REGISTRY",
    "Alone",
    "ContextFree",
    "Entry",
    "Net",
    "Scorer",
    "SetAttention",
    "entry_of",
]
