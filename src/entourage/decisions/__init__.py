"""Decisions from fitted models of choice: what if, at what price, which set to offer."""

from entourage.decisions.intervals import Estimate, intervals_of, refit_people
from entourage.decisions.market import Market
from entourage.decisions.what_if import what_if  # the function; the module is in sys.modules alone
from entourage.decisions.what_if_result import Shift, WhatIf

__all__ = ["Estimate", "Market", "Shift", "WhatIf", "intervals_of", "refit_people", "what_if"]
