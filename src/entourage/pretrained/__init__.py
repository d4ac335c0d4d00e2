"""The pretrained net: it reads labelled sets and scores new ones, without being trained on them."""

from entourage.pretrained.reading import Reading
from entourage.pretrained.verdict import InstantVerdict

__all__ = ["InstantVerdict", "Reading"]
