"""Errors that a user can act on, and checks of parameters.

Everything here derives from :class:`UserError`: the command line prints such an error as one plain sentence and exits
with code 2. Any other exception is a bug, and keeps its traceback.
"""

import difflib
import math
from collections.abc import Iterable
from numbers import Integral

__all__ = [
    "CheckpointError",
    "DataError",
    "DataWarning",
    "ModelFileError",
    "NetError",
    "ParameterError",
    "ShapeError",
    "TrainingError",
    "UserError",
    "check_choice",
    "check_number",
]


class UserError(ValueError):
    """An error that the user can correct; the message says how."""


class ShapeError(UserError):
    """An array has the wrong shape."""


class DataError(UserError):
    """The values of the data can't be used as they are."""


class DataWarning(UserWarning):
    """The data can be used, but may not be what was intended."""


class ParameterError(UserError):
    """A parameter has an invalid value."""


class TrainingError(UserError):
    """Training diverged: a loss or a score became infinite or NaN."""


class NetError(UserError):
    """A net of one's own breaks a law that training and scoring rely on."""


class ModelFileError(UserError):
    """A model file can't be read: not a model file, truncated, changed or of another version."""


class CheckpointError(UserError):
    """A checkpoint folder belongs to another run."""


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``; otherwise raise an error that lists them.

    Examples
    --------
    >>> check_choice("norm", "bach", ["batch", "layer"])
    Traceback (most recent call last):
        ...
    entourage.errors.ParameterError: norm='bach' is not known; did you mean 'batch'? Choose from ...
    """
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    options = ", ".join(repr(choice) for choice in known)
    raise ParameterError(f"{name}={value!r} is not known{hint} Choose from {options}.")


def check_number(
    name: str,
    value: object,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> None:
    """Raise a :class:`ParameterError` unless ``value`` is a number in the range.

    Examples
    --------
    >>> check_number("width", 0, least=1, whole=True)
    Traceback (most recent call last):
        ...
    entourage.errors.ParameterError: width needs a whole number of at least 1; got 0.
    """
    kind = "a whole number" if whole else "a number"
    bounds = [
        text
        for limit, text in [
            (least, f"of at least {least}"),
            (above, f"above {above}"),
            (most, f"of at most {most}"),
            (below, f"below {below}"),
        ]
        if limit is not None
    ]
    needed = " ".join([kind, " and ".join(bounds)]).strip()
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} needs {needed}; got {value!r}.") from None
    fits = (
        not isinstance(value, (bool, str))
        and math.isfinite(number)
        and (not whole or isinstance(value, Integral))
        and (least is None or number >= least)
        and (above is None or number > above)
        and (most is None or number <= most)
        and (below is None or number < below)
    )
    if not fits:
        raise ParameterError(f"{name} needs {needed}; got {value!r}.")
