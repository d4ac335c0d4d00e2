"""The reliability diagram: probabilities against what came true."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from entourage.tasks.reliability import expected_calibration_error, reliability_bins

__all__ = ["reliability_picture"]

Figure: TypeAlias = Any  # of matplotlib, which is imported only when something is drawn

INK, MARK, SOFT = "#1c2430", "#1f5fbf", "#8a94a3"


def reliability_picture(
    probabilities: ArrayLike, chosen: ArrayLike, *, bins: int = 10, outcome: str = "chosen"
) -> Figure:
    """Draw a reliability diagram: the share that was chosen among objects of about the same probability.

    Above, each point is a bin of about as many objects (their number is in the title) with the 95 % confidence
    interval of its share; on the diagonal, probabilities are what they say. Below, how many objects have which
    probability.

    Parameters
    ----------
    probabilities : predicted, one an object, of any shape; NaN (padding) is left out
    chosen : whether each object was chosen, or came first
    bins : how many, at most
    outcome : what came true, for the axis: "chosen", "first"

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> figure = reliability_picture(p, rng.random(1000) < p)
    >>> len(figure.axes)
    2
    """
    from matplotlib.figure import Figure

    found = reliability_bins(probabilities, chosen, bins)
    error = expected_calibration_error(probabilities, chosen, bins)
    counts = [own.count for own in found]
    least, most = min(counts), max(counts)
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    figure = Figure(figsize=(5.2, 5.6), dpi=140, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    values = np.asarray(probabilities, dtype=np.float64).ravel()
    values = values[~np.isnan(values)]
    end = min(1.0, 1.05 * max(float(values.max()), *(own.high for own in found)))
    above.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle="dashed", label="calibrated")
    for own in found:
        above.plot(
            [own.probability] * 2, [own.low, own.high], color=MARK, linewidth=2, solid_capstyle="round"
        )
    above.scatter(
        [own.probability for own in found], [own.share for own in found], s=34, color=MARK, zorder=3,
        label="bins, 95 % intervals",
    )  # fmt: skip
    above.set_xlim(0, end)
    above.set_ylim(0, end)
    above.set_ylabel(f"share {outcome}")
    above.set_title(
        f"expected calibration error {error:.4f}; {len(found)} bin{'s' * (len(found) > 1)} of {each} objects",
        fontsize=9,
        color=INK,
    )
    above.legend(frameon=False, loc="upper left", fontsize=9)
    below.hist(values, bins=np.linspace(0, end, 31), color=SOFT)
    below.set_xlabel("predicted probability")
    below.set_ylabel("objects")
    for axis in (above, below):
        axis.spines[["top", "right"]].set_visible(False)
    return figure
