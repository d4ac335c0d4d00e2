"""Selection: models compared, tuned and cross-validated; the verdict on context."""

from entourage.selection.candidates import KINDS, Candidates, default_candidates
from entourage.selection.comparison import Comparison, compare, refit_chosen
from entourage.selection.cross_validation import CrossValidation, cross_validate
from entourage.selection.held_out_fit import fit_best_held_out
from entourage.selection.tuning import Tuned, nested_cross_validation, tune
from entourage.selection.verdict import headline, verdict, warnings_of

__all__ = [
    "KINDS",
    "Candidates",
    "Comparison",
    "CrossValidation",
    "Tuned",
    "compare",
    "cross_validate",
    "default_candidates",
    "fit_best_held_out",
    "headline",
    "nested_cross_validation",
    "refit_chosen",
    "tune",
    "verdict",
    "warnings_of",
]
