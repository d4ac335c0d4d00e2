"""Decisions from fitted models of choice: what if, at what price, which set to offer."""

from entourage.decisions.assortment import Assortment, best_assortment
from entourage.decisions.intervals import Estimate, intervals_of, refit_people
from entourage.decisions.market import Market
from entourage.decisions.prices import Prices, best_prices
from entourage.decisions.what_if import what_if  # the function; the module is in sys.modules alone
from entourage.decisions.what_if_result import Shift, WhatIf

__all__ = [
    "Assortment",
    "Estimate",
    "Market",
    "Prices",
    "Shift",
    "WhatIf",
    "best_assortment",
    "best_prices",
    "intervals_of",
    "refit_people",
    "what_if",
]
