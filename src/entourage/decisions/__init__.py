"""Decisions from fitted models of choice: what if, at what price, which set to offer."""

from entourage.decisions.intervals import Estimate, intervals_of, refit_people
from entourage.decisions.market import Market

__all__ = ["Estimate", "Market", "intervals_of", "refit_people"]
