"""A time limit for whatever trains: it is asked while training, and training then ends with what it has learnt.

The limit is a property of the context, not of an estimator: it holds for every fit inside, however deep.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from entourage.errors import check_number

__all__ = ["time_is_up", "time_left", "time_limit"]

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let every fit inside end after so many seconds, infinite for none; an outer limit that is earlier stays.

    Examples
    --------
    >>> with time_limit(60):
    ...     time_left() <= 60, time_is_up()
    (True, False)
    >>> time_left()
    inf
    """
    if seconds != math.inf:
        check_number("seconds", seconds, least=0)
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def time_left() -> float:
    """Return the seconds until the limit; infinite where there is none."""
    deadline = _deadline.get()
    return math.inf if deadline == math.inf else deadline - time.monotonic()


def time_is_up() -> bool:
    """Whether the limit has passed."""
    return time_left() <= 0
