"""Context effects: pairwise influence, preference reversals, IIA and regularity violations, decoys; importance."""

from entourage.effects.context_test import (  # the function; the module is in sys.modules alone
    ContextTest,
    FirstChoiceTest,
    context_test,
    first_choice_test,
)
from entourage.effects.decoys import (
    Decoy,
    DecoyMap,
    DecoysFound,
    PairDecoys,
    best_decoy,
    decoy_map,
    decoys_among,
    decoys_of_pair,
)
from entourage.effects.estimate import Estimate
from entourage.effects.importance import ColumnImportance, Importance, importance
from entourage.effects.instant_verdict import (
    instant_verdict,  # the function; the module is in sys.modules alone
)
from entourage.effects.intervals import Quantity, calibrated_intervals
from entourage.effects.leave_one_out import (
    Regularity,
    iia_violation,
    influence_matrix,
    regularity_violation,
    reversal_rate,
)
from entourage.effects.menus import Menu, Share, repeated_menus
from entourage.effects.observed import NaturalEffects, natural_effects
from entourage.effects.refits import Refits, refit_resampled
from entourage.effects.report import EffectsReport, InfluentialObject, effects_report
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
    "ColumnImportance",
    "ContextEffect",
    "ContextTest",
    "Decoy",
    "DecoyMap",
    "DecoysFound",
    "EffectsReport",
    "Estimate",
    "FirstChoiceTest",
    "Importance",
    "InfluentialObject",
    "Menu",
    "NaturalEffects",
    "PairDecoys",
    "Quantity",
    "Refits",
    "Regularity",
    "Share",
    "attraction",
    "best_decoy",
    "calibrated_intervals",
    "compromise",
    "context_effect",
    "context_test",
    "decoy_map",
    "decoys_among",
    "decoys_of_pair",
    "effects_report",
    "first_choice_test",
    "iia_violation",
    "importance",
    "influence_matrix",
    "instant_verdict",
    "natural_effects",
    "of_three",
    "refit_resampled",
    "regularity_violation",
    "repeated_menus",
    "reversal_rate",
    "similarity",
    "utilities_of",
]
