"""Decisions from fitted models of choice: what if, at what price, which set to offer."""

from entourage.decisions.assortment import Assortment, best_assortment
from entourage.decisions.intervals import Estimate, intervals_of, refit_people
from entourage.decisions.market import Market
from entourage.decisions.prices import Prices, best_prices

__all__ = [
    "Assortment",
    "Estimate",
    "Market",
    "Prices",
    "best_assortment",
    "best_prices",
    "intervals_of",
    "refit_people",
]
