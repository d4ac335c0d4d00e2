"""Nets: generalised utilities U(x, C), one score for each object of a set."""

from entourage.nets.attention import SetAttention
from entourage.nets.base import Net, Scorer
from entourage.nets.context_ablated import ContextAblated
from entourage.nets.context_free import ContextFree
from entourage.nets.fate import FATE
from entourage.nets.feta import FETA
from entourage.nets.laws import check_net
from entourage.nets.registry import NETS, REGISTRY, Entry, entry_of, register

__all__ = [
    "FATE",
    "FETA",
    "NETS",
    "REGISTRY",
    "ContextAblated",
    "ContextFree",
    "Entry",
    "Net",
    "Scorer",
    "SetAttention",
    "check_net",
    "entry_of",
    "register",
]
