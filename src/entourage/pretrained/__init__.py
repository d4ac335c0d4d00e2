"""STUB, until the pretrained net is there: the same form, with a ridge logit behind it."""

from entourage.pretrained.reading import Reading
from entourage.pretrained.verdict import InstantVerdict

__all__ = ["InstantVerdict", "Reading"]
