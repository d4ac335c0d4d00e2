r"""A score test of context dependence in the choices themselves; no net is needed.

The null hypothesis is a logit model in which each object has a utility of its own, :math:`u_i = f(x_i)`. The function
:math:`f` is flexible: of each feature the feature, its square and a natural cubic spline of its normal scores
:math:`z = \Phi^{-1}(\text{rank})`, which can follow a logarithm, a threshold and a heavy tail; and products of pairs of
features. The alternative hypothesis adds context, :math:`\bar z_{-i}^\top A z_i`, where :math:`\bar z_{-i}` is the
mean of the other objects of the set. Rao's score test of :math:`A = 0` fits the null only:

.. math:: T = S^\top V^{-1} S, \qquad S = U_A - I_{A\theta} I_{\theta\theta}^{-1} U_\theta,

with the score :math:`U` and the information :math:`I`. It is calibrated by choices simulated from the fitted null.

Taste heterogeneity looks like context: a mixture of logits violates independence of irrelevant alternatives although
no single person does. With ``groups`` (who chose) the null is therefore a mixed logit: the tastes for :math:`z` are
normal between people. Their covariance :math:`\Sigma` is fitted by simulated maximum likelihood (Revelt and Train
1998) with a boundary-avoiding prior (Chung et al. 2013). :math:`S` is then also orthogonal to the scores of
:math:`\Sigma`, so that errors of its estimate cancel to first order. T is divided by the overdispersion of people's
scores (Rao and Scott 1981).

``python -m benchmarks.calibration.context_test`` measures the type I error and the power.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtri

from entourage.data.resampling import labels_of
from entourage.data.sets import AnySets, Seed, Sets
from entourage.effects.null_models import Panel, logit_test
from entourage.errors import DataError, check_choice, check_number
from entourage.tasks import Choice

__all__ = ["ContextTest", "FirstChoiceTest", "context_test", "first_choice_test"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_IDENTIFIED = 1e-2  # of a context column's length must be left once the own utility is projected out


@dataclass(frozen=True)
class ContextTest:
    """The result of :func:`context_test`.

    Attributes
    ----------
    statistic : the score statistic; about twice the gain in log-likelihood by context
    degrees : degrees of freedom: the number of parameters of context
    p_value : by choices simulated from the null model; the one to report
    p_chi2 : by the chi-square distribution, valid for many sets
    without_context : log-likelihood of the null model
    n_sets, n_groups : the number of choices, and of people (None if not given)
    draws : the number of simulations
    own, interaction : the form of the own utility, and of context
    assumptions : sentences to print with the p-value; where one fails, p may be small without context
    null : the statistics of the simulated choices
    """

    statistic: float
    degrees: int
    p_value: float
    p_chi2: float
    without_context: float
    n_sets: int
    n_groups: int | None
    draws: int
    own: str
    interaction: str
    assumptions: tuple[str, ...]
    null: list[float] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class FirstChoiceTest:
    """The result of :func:`first_choice_test`.

    Attributes
    ----------
    result : None where the test can't be done
    failed : why not, else None
    left_out : the number of excluded sets by reason: they have "one_object", "nothing" was chosen or ranked, or
        "several" were chosen or share the first place
    """

    result: ContextTest | None
    failed: str | None
    left_out: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON; where the test can't be done, why."""
        if self.result is None:
            return {"failed": self.failed, "left_out": self.left_out}
        return vars(self.result) | {"assumptions": list(self.result.assumptions), "left_out": self.left_out}


def context_test(
    sets: AnySets,
    y: Any = None,
    *,
    groups: ArrayLike | None = None,
    own: str = "spline",
    interaction: str = "auto",
    draws: int = 199,
    random_state: Seed = 0,
) -> ContextTest:
    """Test whether choices depend on the rest of the choice set; see ``assumptions`` of the result.

    Choices are simulated ``draws`` times from the fitted null model, on the same sets: p is ``(b + 1) / (draws + 1)``
    for the ``b`` draws whose statistic reaches that of the data. Sets of one object and features of the situation are
    not used. The order of sets, and of objects in them, makes no difference.

    ``from entourage.effects import context_test`` is this function; its module has the same name.

    Parameters
    ----------
    sets : with targets 0 for what was chosen and 1 for the rest, or with ``y``, as for `DiscreteChooser`
    groups : one label a set: who chose. Needed where people chose several times, since their tastes may differ
    own : {"spline", "quadratic", "linear"}
        The form of the own utility of an object.
    interaction : {"auto", "full", "diagonal"}
        Whether each feature of the others interacts with every feature or with the same one only. "auto" is "full"
        where there are at least ten sets (and, with ``groups``, four people) for each of its parameters.
    draws : the number of simulations
    random_state : seed or Generator

    Notes
    -----
    1,500 choices of 2 to 4 features take 1 to 4 seconds on one core, with groups or without.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3, 1))
    >>> nearest = np.abs(X - X.mean(1, keepdims=True))[:, :, 0].argmin(1)  # people choose the middle
    >>> found = context_test(X, nearest, draws=19)
    >>> found.p_value
    0.05
    >>> print(found.assumptions[2])
    Everyone has the same tastes: taste heterogeneity looks like context unless groups are given.
    """
    check_choice("own", own, ["spline", "quadratic", "linear"])
    check_choice("interaction", interaction, ["auto", "full", "diagonal"])
    check_number("draws", draws, least=1, whole=True)
    task = Choice()
    given = task.check(task.sets_of(sets, y))
    people = np.zeros(len(given), dtype=np.int64) if groups is None else labels_of(groups, len(given))
    large = given.sizes >= 2
    if not large.any():
        raise DataError("No set has two objects, so there was no choice. Give sets of at least two.")
    given, people = _in_order(given[large], people[large])
    n, d, n_people = len(given), given.n_features, int(people[-1]) + 1
    differ = n_people > 1  # one person has one taste
    if interaction == "auto":
        most = min(n / 10, n_people / 4) if differ else n / 10
        interaction = "full" if d**2 <= most else "diagonal"

    x, z = _standardized(given)
    columns, words = _own_utility(x, z, own, most=n / 10)
    plain = _basis(_within(columns, given))
    if plain.shape[1] == 0:
        raise DataError("The objects of each set are alike in all features, so no utility is identified.")
    z = z if own == "spline" else x
    context = _basis(_within(_context(z, given, interaction), given), given=plain)
    if context.shape[1] == 0:
        raise DataError(
            "Context is not identified here: it is collinear with the objects' own features. Larger sets, sets of "
            "several sizes or more features are needed."
        )
    chosen = np.flatnonzero(given.targets == 0)
    rng = np.random.default_rng(_own_stream(random_state))
    if differ:
        panel = Panel(plain, context, _tastes(z, given), given, people)
        log_likelihood, statistic, null = panel.test(chosen, draws, rng)
    else:
        log_likelihood, statistic, null = logit_test(plain, context, given, chosen, draws, rng)
    return ContextTest(
        statistic=statistic,
        degrees=context.shape[1],
        p_value=(sum(value >= statistic - 1e-7 for value in null) + 1) / (draws + 1),
        p_chi2=float(chdtrc(context.shape[1], max(statistic, 0.0))),
        without_context=log_likelihood,
        n_sets=n,
        n_groups=None if groups is None else n_people,
        draws=draws,
        own=own,
        interaction=interaction,
        assumptions=_assumptions(words, None if groups is None else n_people),
        null=null,
    )


def first_choice_test(
    sets: Sets, *, groups: ArrayLike | None = None, draws: int = 199, random_state: Seed = 0
) -> FirstChoiceTest:
    """Run :func:`context_test` on choices or, of rankings, on first places.

    Sets without a single chosen or first object are excluded and counted.

    Parameters
    ----------
    sets : with targets
    groups, draws, random_state : see :func:`context_test`
    """
    chosen, informative, left_out = _first_choices(sets)
    people = None if groups is None else labels_of(groups, len(sets))[informative]
    try:
        if not informative.any():
            raise DataError(
                "The test needs sets of at least two objects, of which one was chosen or came first; there is none."
            )
        found = context_test(chosen[informative], groups=people, draws=draws, random_state=random_state)
    except DataError as error:
        return FirstChoiceTest(None, str(error), left_out)
    return FirstChoiceTest(found, None, left_out)


def _first_choices(sets: Sets) -> tuple[Sets, NDArray[np.bool_], dict[str, int]]:
    """Return sets with target 0 for what was chosen or came first, which of them are usable, and why others aren't."""
    starts = sets.offsets[:-1]
    targets: Floats = sets.targets  # type: ignore[assignment]
    known = targets >= 0  # NaN and -1: not ranked
    places = np.where(known, targets, np.inf)
    best = np.minimum.reduceat(places, starts)  # ranks may begin at 1, and later where grades are few
    first = known & (places == np.repeat(best, sets.sizes))
    several = np.add.reduceat(first, starts, dtype=np.int64) > 1
    nothing = np.isinf(best)
    if np.isin(targets, (0.0, 1.0)).all():  # choices: what was not chosen has rank 1
        nothing |= best == 1
    single = sets.sizes == 1
    left_out = {
        "one_object": int(single.sum()),
        "nothing": int((nothing & ~single).sum()),
        "several": int((several & ~nothing & ~single).sum()),
    }
    chosen = sets.with_targets(np.where(first, 0.0, 1.0))
    informative = ~(single | nothing | several)
    return chosen, informative, {reason: count for reason, count in left_out.items() if count}


def _assumptions(own_utility: str, n_groups: int | None) -> tuple[str, ...]:
    errors = "Random utilities are independent between alternatives and of equal variance (logit)."
    if n_groups is None:
        return (
            own_utility,
            "Choices are independent between sets; if one person chose several times, give groups.",
            "Everyone has the same tastes: taste heterogeneity looks like context unless groups are given.",
            errors,
        )
    if n_groups == 1:
        return (own_utility, "The one group has the same tastes in all sets.", errors)
    return (
        own_utility,
        f"Tastes for the features are normally distributed between the {n_groups:,} groups, and constant within each.",
        errors,
    )


# --- columns of the models ------------------------------------------------------------------------


def _in_order(sets: Sets, people: Index) -> tuple[Sets, Index]:
    """Sort objects within sets, and sets by person and content, so that p doesn't depend on the order of rows."""
    raw: Floats = sets.objects.astype(np.float64)
    targets: Floats = sets.targets  # type: ignore[assignment]
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    rows = np.lexsort((targets, *raw.T[::-1], owner))
    order = np.lexsort(raw.T[::-1])
    code = np.empty(len(raw), dtype=np.int64)  # objects that are alike have the same
    code[order] = np.append(0, np.cumsum((np.diff(raw[order], axis=0) != 0).any(1)))
    content = np.full((len(sets), int(sets.sizes.max())), -1)
    content[owner, np.arange(len(raw)) - np.repeat(sets.offsets[:-1], sets.sizes)] = code[rows]
    by = np.lexsort((code[targets == 0], *content.T[::-1], people))
    return Sets(raw[rows], sets.offsets, targets[rows])[by], np.unique(people[by], return_inverse=True)[1]


def _standardized(sets: Sets) -> tuple[Floats, Floats]:
    """Return the features with mean 0 and variance 1, as they are and by their normal scores."""
    raw: Floats = sets.objects.astype(np.float64)

    def standard(values: Floats) -> Floats:
        centred = values - values.mean(0)
        spread = centred.std(0)
        return np.asarray(centred / np.where(spread > 0, spread, 1.0))

    ranked = []
    for column in raw.T:
        _, where, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranked.append(ndtri((np.cumsum(counts) - counts / 2) / len(column))[where])
    return standard(raw), standard(np.stack(ranked, axis=1))


def _own_utility(x: Floats, z: Floats, own: str, most: float) -> tuple[Floats, str]:
    """Return columns that span the own utility, ``most`` if possible, and a sentence on them."""
    first, second = np.triu_indices(x.shape[1], 1)
    if own == "linear":
        return x, "An object's own utility is linear in the features."
    if own == "quadratic":
        columns = np.concatenate([x, x**2, x[:, first] * x[:, second]], axis=1)
        return columns, "An object's own utility is quadratic in the features."
    finest = int(np.clip(round((10 * most) ** (1 / 3)), 4, 10))
    for knots, products in [
        (k, with_products) for with_products in (True, False) for k in range(finest, 2, -1)
    ]:
        parts = [_curve(x[:, j], z[:, j], knots) for j in range(x.shape[1])]
        parts += [z[:, first] * z[:, second]] * products
        columns = np.concatenate(parts, axis=1)
        if columns.shape[1] <= most:
            break
    apart = " and additive" if len(first) else ""
    apart += ", but for products of pairs of features" if len(first) and products else ""
    return (
        columns,
        f"An object's own utility is smooth in each feature (cubic splines of {knots} knots){apart}.",
    )


def _curve(x: Floats, z: Floats, knots: int) -> Floats:
    """Return columns for one feature: a dummy for each value if these are few, otherwise x, x² and a spline of z."""
    values = np.unique(z)
    if len(values) <= knots + 2:
        return np.asarray((z[:, None] == values[1:]).astype(np.float64))
    at = np.quantile(values, np.linspace(0.02, 0.98, knots))  # of the distinct ones, as many may be 0

    def cubed(knot: float) -> Floats:
        return np.asarray(np.maximum(z - knot, 0) ** 3)

    def bent(knot: float) -> Floats:
        return np.asarray((cubed(knot) - cubed(at[-1])) / (at[-1] - knot))

    return np.stack([x, x**2, z, *[bent(knot) - bent(at[-2]) for knot in at[:-2]]], axis=1)


def _context(z: Floats, sets: Sets, interaction: str) -> Floats:
    """Return the products of each object's features with the mean of the others'."""
    sizes = np.repeat(sets.sizes, sets.sizes)[:, None]
    others = (np.repeat(np.add.reduceat(z, sets.offsets[:-1]), sets.sizes, axis=0) - z) / (sizes - 1)
    if interaction == "diagonal":
        return z * others
    return np.asarray((z[:, :, None] * others[:, None]).reshape(len(z), -1))


def _within(values: Floats, sets: Sets) -> Floats:
    """Return columns centred within sets and scaled to length 1, without those that are constant there."""
    means = np.add.reduceat(values, sets.offsets[:-1]) / sets.sizes[:, None]
    within = values - np.repeat(means, sets.sizes, axis=0)
    lengths = np.linalg.norm(within, axis=0)
    kept = lengths > 1e-9 * np.linalg.norm(values, axis=0)
    return np.asarray(within[:, kept] / lengths[kept])


def _basis(within: Floats, given: Floats | None = None) -> Floats:
    """Return orthogonal columns of mean square 1 that span these, once ``given`` ones are projected out."""
    if given is not None:
        within = within - given @ (given.T @ within) / len(within)
    if within.shape[1] == 0:
        return within
    left, lengths, _ = np.linalg.svd(within, full_matrices=False)
    kept = lengths > (1e-6 if given is None else _IDENTIFIED)
    return np.asarray(left[:, kept] * np.sqrt(len(within)))


def _tastes(z: Floats, sets: Sets) -> Floats:
    """Return the columns with random tastes, of mean square 1 within sets."""
    within = _within(z, sets)
    alike = np.abs(np.triu(within.T @ within, 1)).max(0) > 1 - 1e-9
    return np.asarray(within[:, ~alike] * np.sqrt(len(z)))


def _own_stream(random_state: Seed) -> Any:
    """Return a seed of a stream of its own.

    Features drawn by ``default_rng(0)`` would otherwise equal the noise of choices simulated by seed 0.
    """
    return [int(random_state), 0x6E756C6C] if isinstance(random_state, int | np.integer) else random_state
