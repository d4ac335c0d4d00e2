"""Decisions from fitted models of choice: what if, at what price, which set to offer."""

from entourage.decisions.assortment import Assortment, best_assortment
from entourage.decisions.auditing import Audit, audit
from entourage.decisions.demand import DemandCurve, demand_curve
from entourage.decisions.diversion_ratios import Diversion, diversion
from entourage.decisions.elasticity import Elasticities, elasticities
from entourage.decisions.intervals import Estimate, intervals_of, refit_people
from entourage.decisions.market import Market
from entourage.decisions.prices import Prices, best_prices
from entourage.decisions.trade_offs import WillingnessToPay, value_of_time, willingness_to_pay
from entourage.decisions.what_if import what_if  # the function; the module is in sys.modules alone
from entourage.decisions.what_if_result import Shift, WhatIf

__all__ = [
    "Assortment",
    "Audit",
    "DemandCurve",
    "Diversion",
    "Elasticities",
    "Estimate",
    "Market",
    "Prices",
    "Shift",
    "WhatIf",
    "WillingnessToPay",
    "audit",
    "best_assortment",
    "best_prices",
    "demand_curve",
    "diversion",
    "elasticities",
    "intervals_of",
    "refit_people",
    "value_of_time",
    "what_if",
    "willingness_to_pay",
]
