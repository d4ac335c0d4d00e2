"""Selection: models compared, tuned and cross-validated; the verdict on context."""

from entourage.selection.comparison import (
    KINDS,
    Candidates,
    Comparison,
    compare,
    default_candidates,
    refit_chosen,
    verdict,
    warnings_of,
)
from entourage.selection.cross_validation import CrossValidation, cross_validate
from entourage.selection.tuning import Tuned, nested_cross_validation, tune

__all__ = [
    "KINDS",
    "Candidates",
    "Comparison",
    "CrossValidation",
    "Tuned",
    "compare",
    "cross_validate",
    "default_candidates",
    "nested_cross_validation",
    "refit_chosen",
    "tune",
    "verdict",
    "warnings_of",
]
