"""Numbers in text files, as features can hold them."""

import numpy as np

__all__ = ["LARGEST", "read_number"]

LARGEST = float(np.finfo(np.float32).max)  # features are kept as float32


def read_number(word: str | bytes) -> float | None:
    """Return the number that a word says; None where it says none, or one that no feature can hold.

    Examples
    --------
    >>> read_number("0.5"), read_number("1e39"), read_number("nan"), read_number("x")
    (0.5, None, None, None)
    """
    try:
        value = float(word)
    except ValueError:
        return None
    return value if abs(value) <= LARGEST else None
