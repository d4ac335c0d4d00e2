"""Nets: generalised utilities U(x, C), one score for each object of a set."""

from entourage.nets.attention import SetAttention
from entourage.nets.base import Net, Scorer
from entourage.nets.context_free import ContextFree
from entourage.nets.fate import FATE
from entourage.nets.feta import FETA

__all__ = ["FATE", "FETA", "NETS", "ContextFree", "Net", "Scorer", "SetAttention"]

#: Every net, by the name that model files and the command line know it by.
NETS: dict[str, type[Net]] = {
    "context_free": ContextFree,
    "fate": FATE,
    "feta": FETA,
    "set_attention": SetAttention,
}
