"""Context effects: pairwise influence, preference reversals, IIA and regularity violations, decoys."""

from entourage.effects.context_test import ContextTest, context_test
from entourage.effects.decoys import (
    ContextEffect,
    Decoy,
    DecoyMap,
    DecoysFound,
    attraction,
    best_decoy,
    compromise,
    context_effect,
    decoy_map,
    decoys_among,
    similarity,
)
from entourage.effects.leave_one_out import (
    Estimate,
    Regularity,
    effects_report,
    from_refits,
    iia_violation,
    influence_matrix,
    of_three,
    regularity_violation,
    reversal_rate,
    utilities_of,
)
from entourage.effects.menus import repeated_menus
from entourage.effects.observed import NaturalEffects, natural_effects
from entourage.effects.resampled import Refits, calibrated_intervals, refit_resampled

__all__ = [
    "ContextEffect",
    "ContextTest",
    "Decoy",
    "DecoyMap",
    "DecoysFound",
    "Estimate",
    "NaturalEffects",
    "Refits",
    "Regularity",
    "attraction",
    "best_decoy",
    "calibrated_intervals",
    "compromise",
    "context_effect",
    "context_test",
    "decoy_map",
    "decoys_among",
    "effects_report",
    "from_refits",
    "iia_violation",
    "influence_matrix",
    "natural_effects",
    "of_three",
    "refit_resampled",
    "regularity_violation",
    "repeated_menus",
    "reversal_rate",
    "similarity",
    "utilities_of",
]
