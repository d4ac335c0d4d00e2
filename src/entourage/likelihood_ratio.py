r"""Does the company move choices? A likelihood-ratio test from choices alone; no net is needed.

Two logit models meet on the same choices. Without context the utility is the object's own,
:math:`u_i = b^\top x_i + x_i^\top Q x_i`; with context it also is
:math:`\sum_{j \neq i} x_j^\top A x_i`. Both are linear in their parameters, so one Newton fit serves both.

What the test takes for granted:

- Choices are independent given what is on offer. Those of one person are not where tastes differ from
  person to person: then choices can depend on the rest of the set though nobody's do.
- The utility of an object by itself is at most quadratic. Were it linear in the model and curved in truth, a
  curve could be taken for context, most of all where sets differ in what they offer: of 100 simulated data
  sets of 200 choices without context, but of curved utility, ``own="linear"`` finds context in 90 at the 5 %
  level, ``own="quadratic"`` in 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from entourage.errors import DataError, check_choice, check_number
from entourage.sets import AnySets, Seed, Sets
from entourage.tasks import Choice

__all__ = ["ContextTest", "context_test"]

Floats: TypeAlias = NDArray[np.float64]

RIDGE = 1e-4  # beside an information of about the number of sets; keeps separable choices finite
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded
_ITERATIONS = 100
_SHARED = 12  # of them at most with the curvature of the start


@dataclass(frozen=True)
class ContextTest:
    """What a likelihood-ratio test of context found.

    Attributes
    ----------
    statistic : twice what context adds to the log-likelihood
    degrees : how many parameters context adds
    p_value : by choices simulated from the model without context; the one to report
    p_chi2 : by the chi-square distribution, which is right for many sets
    without_context, with_context : the two log-likelihoods
    n_sets, draws : how many choices there were, and how often they were simulated
    own, interaction : what the two models were
    null : the statistics of the simulated choices
    """

    statistic: float
    degrees: int
    p_value: float
    p_chi2: float
    without_context: float
    with_context: float
    n_sets: int
    draws: int
    own: str
    interaction: str
    null: list[float] = field(default_factory=list, repr=False)


def context_test(
    sets: AnySets,
    y: Any = None,
    *,
    own: str = "quadratic",
    interaction: str = "auto",
    draws: int = 199,
    random_state: Seed = 0,
) -> ContextTest:
    """Test whether choices depend on the rest of the set; the module says what that takes for granted.

    Choices are simulated ``draws`` times from the fitted model without context, on the same sets, and both
    models are fitted to each: p is ``(b + 1) / (draws + 1)`` for the ``b`` draws whose statistic reaches that of
    the data. Sets of one object take no part, and features of the situation neither.

    Parameters
    ----------
    sets : with targets 0 for what was chosen and 1 for the rest, or with ``y``, as for `DiscreteChooser`
    own : {"quadratic", "linear"}
        What the utility of an object by itself may be.
    interaction : {"auto", "full", "diagonal"}
        Whether each feature of the others acts on every feature or on the same one only; "auto" is "full" where
        there are at least ten sets for each of its parameters.
    draws : how often to simulate
    random_state : seed or Generator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3, 1))
    >>> nearest = np.abs(X - X.mean(1, keepdims=True))[:, :, 0].argmin(1)  # people choose the middle
    >>> context_test(X, nearest, draws=19).p_value
    0.05
    """
    check_choice("own", own, ["quadratic", "linear"])
    check_choice("interaction", interaction, ["auto", "full", "diagonal"])
    check_number("draws", draws, least=1, whole=True)
    task = Choice()
    given = task.check(task.sets_of(sets, y))
    if not (given.sizes >= 2).any():
        raise DataError("No set has two objects, so nothing was chosen. Give sets of at least two.")
    given = given[given.sizes >= 2]
    if interaction == "auto":
        interaction = "full" if 10 * given.n_features**2 <= len(given) else "diagonal"
    plain, company = _features(given, own=own, interaction=interaction)
    both = np.concatenate([plain, company], axis=1)
    chosen: NDArray[Any] = given.targets == 0  # type: ignore[assignment]
    without, weights = _fit(plain, given, chosen[None])
    start = np.concatenate([weights, np.zeros((1, company.shape[1]))], axis=1)
    with_context, _ = _fit(both, given, chosen[None], start)
    statistic = 2 * float(with_context[0] - without[0])

    rng = np.random.default_rng(_own_stream(random_state))
    utilities = plain @ weights[0]
    null: list[float] = []
    for count in _chunks(draws, len(both)):
        simulated = _simulate(utilities, given, count, rng)
        gains = _fit(both, given, simulated, start)[0] - _fit(plain, given, simulated, weights)[0]
        null += (2 * gains).tolist()
    return ContextTest(
        statistic=statistic,
        degrees=company.shape[1],
        p_value=(sum(value >= statistic - 1e-7 for value in null) + 1) / (draws + 1),
        p_chi2=float(chdtrc(company.shape[1], max(statistic, 0.0))),
        without_context=float(without[0]),
        with_context=float(with_context[0]),
        n_sets=len(given),
        draws=draws,
        own=own,
        interaction=interaction,
        null=null,
    )


def _features(sets: Sets, *, own: str, interaction: str) -> tuple[Floats, Floats]:
    """Return what the two models see of each object: independent columns, the second beside the first."""
    raw = sets.objects.astype(np.float64)
    spread = raw.std(0)
    x = (raw - raw.mean(0)) / np.where(spread > 0, spread, 1.0)
    starts = sets.offsets[:-1]
    others = np.repeat(np.add.reduceat(x, starts), sets.sizes, axis=0) - x  # (objects, d)

    def products(left: Floats, right: Floats) -> Floats:
        if interaction == "diagonal":
            return left * right
        return (left[:, :, None] * right[:, None]).reshape(len(left), -1)

    def basis(values: Floats, beside: Floats | None = None) -> Floats:
        """Return orthogonal columns of mean square 1 that span the values, or what they add beside others."""
        means = np.add.reduceat(values, starts) / sets.sizes[:, None]
        within = values - np.repeat(means, sets.sizes, axis=0)  # what all objects of a set share cancels
        if beside is not None:
            within -= beside @ (beside.T @ within) / len(within)
        left, sizes, _ = np.linalg.svd(within, full_matrices=False)
        return np.asarray(left[:, sizes > 1e-7 * np.linalg.norm(values)] * np.sqrt(len(values)))

    plain = basis(np.concatenate([x, products(x, x)], axis=1) if own == "quadratic" else x)
    if plain.shape[1] == 0:
        raise DataError("The objects of each set are alike in all features, so these can't explain a choice.")
    company = basis(products(x, others), beside=plain)
    if company.shape[1] == 0:
        raise DataError(
            "What the others add can't be told from an object's own features here. Larger sets, sets of "
            "several sizes or more features are needed."
        )
    return plain, company


def _fit(
    features: Floats, sets: Sets, chosen: NDArray[Any], start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Fit a logit to each row of choices (r, objects) by Newton's method; return log-likelihoods and weights.

    Rows that begin at a ``start`` (1, p) share the curvature there for some steps: where they were simulated from
    it, theirs is nearly that.
    """
    starts, sizes = sets.offsets[:-1], sets.sizes
    observed = chosen.astype(np.float64) @ features  # (r, p): the features of what was chosen, summed
    r, p = observed.shape
    weights = np.zeros((r, p)) if start is None else np.repeat(start, r, axis=0)

    def evaluate(at: Floats, rows: NDArray[Any]) -> tuple[Floats, Floats]:
        utilities = at @ features.T  # (r, objects)
        highest = np.maximum.reduceat(utilities, starts, axis=1)
        powers = np.exp(utilities - np.repeat(highest, sizes, axis=1))
        totals = np.add.reduceat(powers, starts, axis=1)
        value = (at * observed[rows]).sum(1) - (highest + np.log(totals)).sum(1)
        value -= 0.5 * RIDGE * np.square(at).sum(1)
        return value, powers / np.repeat(totals, sizes, axis=1)

    def curvature(chance: Floats) -> Floats:
        weighted = chance[:, None] * features
        means = np.add.reduceat(weighted, starts)  # (n, p)
        return np.asarray(weighted.T @ features - means.T @ means + RIDGE * np.eye(p))

    values, chances = evaluate(weights, np.arange(r))
    shared = None if start is None else np.linalg.inv(curvature(chances[0]))
    live = np.arange(r)
    for iteration in range(_ITERATIONS):
        gradient = observed[live] - chances[live] @ features - RIDGE * weights[live]
        if shared is not None and iteration < _SHARED:
            step = gradient @ shared
        else:
            each = zip(live, gradient, strict=True)
            step = np.stack([np.linalg.solve(curvature(chances[i]), slope) for i, slope in each])
        promise = (gradient * step).sum(1)
        live, step = live[promise > 1e-9], step[promise > 1e-9]
        if len(live) == 0:
            break
        trying = np.arange(len(live))
        for halving in range(30):
            rows = live[trying]
            moved = weights[rows] + 0.5**halving * step[trying]
            value, chance = evaluate(moved, rows)
            good = value > values[rows] - 1e-12
            values[rows[good]], chances[rows[good]] = value[good], chance[good]
            weights[rows[good]] = moved[good]
            trying = trying[~good]
            if len(trying) == 0:
                break
    return values, weights


def _simulate(utilities: Floats, sets: Sets, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose from each set ``count`` times, by the logit of the utilities."""
    noisy = utilities + rng.gumbel(size=(count, len(utilities)))
    best = np.maximum.reduceat(noisy, sets.offsets[:-1], axis=1)
    return np.asarray(noisy == np.repeat(best, sets.sizes, axis=1))


def _own_stream(random_state: Seed) -> Any:
    """Return a seed whose numbers are not those of the same seed elsewhere.

    Features drawn by ``default_rng(0)`` would else meet themselves in the noise of choices simulated by seed 0.
    """
    return [int(random_state), 0x6E756C6C] if isinstance(random_state, int | np.integer) else random_state


def _chunks(draws: int, numbers: int) -> Iterator[int]:
    step = max(1, _CHUNK // numbers)
    return (min(step, draws - begin) for begin in range(0, draws, step))
