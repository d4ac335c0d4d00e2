"""All that context effects need of a model: the utilities of the objects of sets."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Sets
from entourage.errors import DataError, ShapeError

__all__ = ["Model", "utilities_of"]

Floats: TypeAlias = NDArray[np.float64]

_TYPICAL = 0.75  # quantile of the sizes of utilities: not the median, since A and B may be two of three
_ROUNDING = 64  # units in the last place: a smaller change of a utility is rounding


class Model(Protocol):
    """Anything that returns packed utilities of the objects of `Sets`: every estimator and baseline."""

    def predict_scores(self, X: Any, /) -> Any:
        """Return one utility for each object."""


def utilities_of(model: Model, sets: Sets) -> tuple[Floats, Floats]:
    """Return packed utilities and, for each set, the size up to which a change of them is rounding.

    That is relative to the largest utility of the set, or to a typical one where all of a set are small: a net adds up
    terms of that size, and their errors stay when the terms cancel.
    """
    scores = np.asarray(model.predict_scores(sets))
    if scores.shape != (len(sets.objects),):
        raise ShapeError(
            f"predict_scores must return one utility for each of the {len(sets.objects)} objects of Sets; "
            f"it returned shape {scores.shape}."
        )
    if not np.isfinite(scores).all():
        raise DataError("predict_scores must return finite utilities; some are NaN or infinite.")
    exact = scores.dtype if scores.dtype.kind == "f" else np.float64
    utilities = scores.astype(np.float64)
    sizes = np.abs(utilities)
    largest = np.maximum(np.maximum.reduceat(sizes, sets.offsets[:-1]), np.quantile(sizes, _TYPICAL))
    return utilities, _ROUNDING * float(np.finfo(exact).eps) * largest
