"""Whether nets were still improving when their training ended: then speed of learning can look like context."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["learning_curve", "still_improving"]

Floats: TypeAlias = NDArray[np.float64]

LATE_FALL = (
    0.06  # the share of a loss's fall in the last third of the steps from which a training was too short
)


def learning_curve(model: Any) -> Floats:
    """Return steps, training loss and held-out score, (evaluations, 3); no rows where no sets are held out."""
    history = [row for row in getattr(model, "history_", []) if "score" in row]
    return np.array([[row["step"], row["loss"], row["score"]] for row in history]).reshape(-1, 3)


def still_improving(curves: Mapping[str, Sequence[Floats]]) -> dict[str, int]:
    """Return the models that were still improving when their training ended, and after how many steps that was.

    Both must hold: in two fifths of a model's fits, more than by chance, the best held-out score came in the last third
    of the steps, so they don't overfit yet; and the training loss fell there by a share of its whole fall that
    matters, and that is beyond noise: more than two standard errors over the fits. A held-out score alone is too
    noisy, since small data hold out a handful of sets.

    Parameters
    ----------
    curves : of each model, one :func:`learning_curve` a fit; those of fewer than six evaluations are left out

    Examples
    --------
    >>> steps = np.arange(10, 110, 10.0)
    >>> falling = np.stack([steps, 1 - steps / 200, steps / 200], axis=1)
    >>> settled = np.stack([steps, np.exp(-steps / 5), -np.abs(steps - 30)], axis=1)
    >>> still_improving({"short": [falling, falling], "long enough": [settled, settled]})
    {'short': 100}
    """
    found = {}
    for name, all_curves in curves.items():
        long = [curve for curve in all_curves if len(curve) >= 6]
        if len(long) < 2:
            continue
        late, falls = [], []
        for steps, losses, scores in (curve.T for curve in long):
            part = steps / steps[-1]
            late.append(part[scores.argmax()] > 2 / 3)
            before, after = losses[(part > 1 / 2) & (part <= 2 / 3)], losses[part > 5 / 6]
            whole = losses[0] - after.mean()
            falls.append((before.mean() - after.mean()) / whole if len(before) and whole > 0 else 0.0)
        error = float(np.std(falls, ddof=1)) / math.sqrt(len(falls))
        if np.mean(late) >= 0.4 and np.mean(falls) > max(2 * error, LATE_FALL):
            found[name] = int(max(curve[-1, 0] for curve in long))
    return found
