"""Context effects: pairwise influence, preference reversals, IIA and regularity violations, decoys."""

from entourage.effects.context_test import ContextTest, context_test
from entourage.effects.decoys import Decoy, DecoyMap, DecoysFound, best_decoy, decoy_map, decoys_among
from entourage.effects.estimate import Estimate
from entourage.effects.intervals import calibrated_intervals, from_refits
from entourage.effects.leave_one_out import (
    Regularity,
    effects_report,
    iia_violation,
    influence_matrix,
    regularity_violation,
    reversal_rate,
)
from entourage.effects.menus import repeated_menus
from entourage.effects.observed import NaturalEffects, natural_effects
from entourage.effects.refits import Refits, refit_resampled
from entourage.effects.triples import (
    ContextEffect,
    attraction,
    compromise,
    context_effect,
    of_three,
    similarity,
)
from entourage.effects.utilities import utilities_of

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
