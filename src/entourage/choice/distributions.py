"""Distributions of random coefficients: from uniform draws to coefficients, and which of their parameters are free."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from entourage.choice.likelihood import Floats
from entourage.errors import ParameterError, check_choice, check_number

__all__ = ["KINDS", "Law", "law_of", "laws_of"]

KINDS = ("normal", "lognormal", "-lognormal", "triangular", "uniform")

LARGEST = 50.0  # of the logarithm of a lognormal coefficient


@dataclass(frozen=True, eq=False)
class Law:
    """The distribution of a coefficient: ``mean + spread * draw``, or ± the exponential of that.

    Attributes
    ----------
    kind : of :data:`KINDS`, or "own" for a function of the user's
    fixed : the mean and the spread, where they are not estimated
    own : the quantile function of the user's, of a standardised distribution
    """

    kind: str
    fixed: tuple[float, float] | None = None
    own: Callable[[Floats], Any] | None = None

    @property
    def sign(self) -> float:
        """Return 1 or -1 for a lognormal one, else 0."""
        return {"lognormal": 1.0, "-lognormal": -1.0}.get(self.kind, 0.0)

    @property
    def can_correlate(self) -> bool:
        """Whether it is normal, but for an exponential, and estimated."""
        return self.kind in ("normal", "lognormal", "-lognormal") and self.fixed is None

    @property
    def words(self) -> tuple[str, str]:
        """What the two parameters are called."""
        inside = {1.0: "log of ", -1.0: "log of minus "}.get(self.sign, "")
        spread = "sd" if self.sign or self.kind == "normal" else "half-width"
        return f"mean of {inside}", f"{'spread' if self.kind == 'own' else spread} of {inside}"

    def draws(self, uniform: Floats) -> Floats:
        """Turn uniform draws into standardised ones: of mean 0 and standard deviation, or half-width, 1."""
        if self.own is not None:
            found = np.asarray(self.own(uniform), dtype=np.float64)
            if found.shape != uniform.shape or not np.isfinite(found).all():
                raise ParameterError(
                    "A distribution of your own turns an array of numbers between 0 and 1 into one of finite numbers "
                    f"of the same shape, {uniform.shape}; it returned shape {found.shape}."
                )
            return found
        if self.kind == "uniform":
            return 2 * uniform - 1
        if self.kind == "triangular":
            low = np.sqrt(2 * np.minimum(uniform, 0.5)) - 1
            return np.asarray(np.where(uniform < 0.5, low, 1 - np.sqrt(2 * (1 - np.maximum(uniform, 0.5)))))
        return np.asarray(ndtri(uniform))

    def coefficients(self, drawn: Floats) -> Floats:
        """Return coefficients from ``mean + spread * draw``."""
        return np.asarray(self.sign * np.exp(np.minimum(drawn, LARGEST)) if self.sign else drawn)


def law_of(given: Any) -> Law:
    """Return what a user says of a coefficient: a kind, ``(kind, mean, spread)``, or a quantile function."""
    if callable(given):
        return Law("own", own=given)
    if isinstance(given, str):
        return Law(check_choice("distribution", given, KINDS))
    if isinstance(given, Sequence) and len(given) == 3:
        check_choice("distribution", given[0], KINDS)
        check_number("The mean of a fixed distribution", given[1])
        check_number("The spread of a fixed distribution", given[2], least=0)
        return Law(given[0], (float(given[1]), float(given[2])))
    raise ParameterError(
        f"A distribution is one of {', '.join(KINDS)}, one of these with a fixed mean and spread such as "
        f'("normal", -1.0, 0.5), or a quantile function; got {given!r}.'
    )


def laws_of(random: Any) -> dict[Any, Law]:
    """Return the distribution of each random column."""
    named = isinstance(random, str) or not hasattr(random, "__len__") or len(random) == 0
    if named:
        raise ParameterError(
            f"random is a list of columns, or a dict of columns to distributions; got {random!r}. "
            "Where no coefficient is random, MultinomialLogit."
        )
    kinds = dict(random) if isinstance(random, Mapping) else dict.fromkeys(random, "normal")
    return {column: law_of(kind) for column, kind in kinds.items()}
