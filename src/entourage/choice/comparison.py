"""Choice models side by side: information criteria, and likelihood-ratio tests of nested ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.cross_nested import CrossNestedLogit
from entourage.choice.linear_context import LinearContextLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit
from entourage.choice.regret import RandomRegret
from entourage.errors import ParameterError

__all__ = ["LikelihoodRatio", "LogitComparison", "LogitRow", "compare_logits", "likelihood_ratio_test"]

BOUNDARY = "A standard deviation of 0 is on the boundary: p is too large, of a single one twice as large."
CLUSTERED = "Choices of a group are taken for independent: where they are not, p is too small."


@dataclass(frozen=True)
class LogitRow:
    """A fitted model in the table."""

    name: str
    model: str
    log_likelihood: float
    n_parameters: float
    rho_squared: float
    aic: float
    bic: float


@dataclass(frozen=True)
class LikelihoodRatio:
    """A likelihood-ratio test: twice the difference of the log-likelihoods, chi-squared under the restricted model."""

    restricted: str
    full: str
    statistic: float
    degrees: float
    p_value: float
    note: str = ""

    def __str__(self) -> str:
        p = f"p = {self.p_value:.3g}" if self.p_value > 0 else "p < 1e-300"
        return (
            f"{self.full} against {self.restricted}: χ² = {self.statistic:.2f}, df = {self.degrees:g}, "
            f"{p}" + (f" ({self.note})" if self.note else "")
        )


@dataclass(frozen=True)
class LogitComparison:
    """Fitted models of the same choices, and the tests of those that are nested; see `compare_logits`.

    Attributes
    ----------
    rows : the models
    tests : of those that are nested
    n_units : what BIC counts, the same for all models: people where one of them is a panel, otherwise sets
    """

    rows: tuple[LogitRow, ...]
    tests: tuple[LikelihoodRatio, ...]
    n_units: int

    def to_frame(self) -> pa.Table:
        """Return the models as an Arrow table, a row each."""
        return pa.Table.from_pylist([vars(row) for row in self.rows])

    def __str__(self) -> str:
        width = max(5, *(len(row.name) for row in self.rows))
        head = f"{'model':{width}}  {'log-likelihood':>14}  {'parameters':>10}  {'rho squared':>11}"
        lines = [f"{head}  {'AIC':>12}  {'BIC':>12}"]
        lines += [
            f"{r.name:{width}}  {r.log_likelihood:14.3f}  {r.n_parameters:10g}  {r.rho_squared:11.4f}  "
            f"{r.aic:12.2f}  {r.bic:12.2f}"
            for r in self.rows
        ]
        tests = ["", "Likelihood-ratio tests:", *map(str, self.tests)] if self.tests else []
        return "\n".join([*lines, f"BIC counts {self.n_units:,} sets or, of a panel, people.", *tests])


def compare_logits(
    models: Mapping[str, ChoiceModel], *, nested: Sequence[tuple[str, str]] = ()
) -> LogitComparison:
    """Compare models that were fitted to the same choices: AIC and BIC of all, tests of those that are nested.

    Which models are nested is found where it is certain: a multinomial logit is a restricted `NestedLogit`,
    `MixedLogit`, `ContextualLogit` or `LinearContextLogit` of the same columns, and one of some columns of a table is a
    restricted one of more. Latent classes are never tested (the number of classes has no χ² test), nor are penalised
    models. BIC counts the same for all models: people where one of them is a panel with ``groups``, otherwise sets. So
    it may differ from ``bic_`` of a model that was fitted without.

    Parameters
    ----------
    models : fitted models by name
    nested : further pairs of names, restricted and full, that you know to be nested; the full one needs more
        identified parameters

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import LinearContextLogit, MultinomialLogit, compare_logits
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3, 1))
    >>> y = (X[..., 0] + rng.gumbel(size=(500, 3))).argmax(1)
    >>> found = compare_logits({"mnl": MultinomialLogit().fit(X, y), "lcl": LinearContextLogit().fit(X, y)})
    >>> found.tests[0].degrees, bool(found.tests[0].p_value > 0.05)
    (1.0, True)
    """
    if len(models) < 1:
        raise ParameterError("compare_logits needs fitted models by name; got none.")
    for name in (name for pair in nested for name in pair):
        if name not in models:
            raise ParameterError(
                f"nested names {name!r}, which is not among the models: {', '.join(models)}."
            )
    first = next(iter(models.values()))
    for name, model in models.items():
        if not isinstance(model, ChoiceModel):
            raise ParameterError(
                f"{name!r} is a {type(model).__name__}; models of entourage.choice are compared."
            )
        reason = _other_data(first, model)
        if reason:
            raise ParameterError(f"{name!r} can't be compared with {next(iter(models))!r}: {reason}")
    units = min(model.n_units for model in models.values())
    rows = tuple(
        LogitRow(
            name,
            type(model).__name__,
            model.log_likelihood_,
            model.n_parameters_,
            model.rho_squared_,
            model.aic_,
            float(np.log(units)) * model.n_parameters_ - 2 * model.log_likelihood_,
        )
        for name, model in models.items()
    )
    for a, b in nested:
        if models[b].n_parameters_ <= models[a].n_parameters_ + 0.5:
            raise ParameterError(
                f"nested says that {a!r} is a restricted {b!r}, which has no more identified parameters "
                f"({models[a].n_parameters_:g} and {models[b].n_parameters_:g}). Swap the two, or leave them out."
            )
    tests = [
        _test(a, models[a], b, models[b])
        for a in models
        for b in models
        if a != b and ((a, b) in nested or not _not_nested(models[a], models[b]))
    ]
    return LogitComparison(rows, tuple(tests), units)


def likelihood_ratio_test(restricted: ChoiceModel, full: ChoiceModel) -> LikelihoodRatio:
    """Test a restricted model against a full one that contains it; others are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from entourage.choice import MultinomialLogit, RandomRegret
    >>> X, y = np.random.default_rng(0).normal(size=(90, 3, 1)), np.arange(90) % 3
    >>> likelihood_ratio_test(MultinomialLogit().fit(X, y), RandomRegret().fit(X, y))
    Traceback (most recent call last):
        ...
    entourage.errors.ParameterError: These models can't be tested by their likelihood ratio: ...
    """
    reason = _other_data(restricted, full) or _not_nested(restricted, full)
    if reason:
        raise ParameterError(f"These models can't be tested by their likelihood ratio: {reason}")
    return _test(type(restricted).__name__, restricted, type(full).__name__, full)


def _test(a: str, restricted: ChoiceModel, b: str, full: ChoiceModel) -> LikelihoodRatio:
    statistic = max(2 * (full.log_likelihood_ - restricted.log_likelihood_), 0.0)
    degrees = float(round(full.n_parameters_ - restricted.n_parameters_))
    notes = [BOUNDARY] * isinstance(full, MixedLogit) + [CLUSTERED] * full.clustered
    return LikelihoodRatio(a, b, statistic, degrees, float(chi2.sf(statistic, degrees)), " ".join(notes))


def _other_data(one: ChoiceModel, other: ChoiceModel) -> str:
    """Say why two models can't have learnt from the same choices; nothing where they may have."""
    same = np.isclose(one.null_log_likelihood_, other.null_log_likelihood_, rtol=1e-9)
    if one.n_sets_ == other.n_sets_ and same:
        return ""
    return (
        f"they learnt from other choices ({one.n_sets_:,} sets with null log-likelihood "
        f"{one.null_log_likelihood_:.3f}; {other.n_sets_:,} with {other.null_log_likelihood_:.3f})."
    )


def _not_nested(restricted: Any, full: Any) -> str:
    """Say why the one is not known to be a restricted form of the other; nothing where it is."""
    for model in (restricted, full):
        if getattr(model, "l2", 0.0):
            return f"{type(model).__name__} has a penalty."
    if full.n_parameters_ <= restricted.n_parameters_ + 0.5:
        return "the second has no more parameters than the first."
    contained: dict[type, tuple[type, ...]] = {
        MultinomialLogit: (NestedLogit, CrossNestedLogit, MixedLogit, ContextualLogit, LinearContextLogit),
        RandomRegret: (RandomRegret,),
    }
    kinds = (type(restricted), type(full))
    if kinds not in ((MultinomialLogit,) * 2, (RandomRegret,) * 2) and kinds[1] not in contained.get(
        kinds[0], ()
    ):
        return f"{kinds[0].__name__} is not known to be a restricted {kinds[1].__name__}."
    if kinds == (RandomRegret,) * 2 and (restricted.scale, full.scale) != (1.0, "estimated"):
        return "their scales are not 1 and estimated."
    if any(getattr(m, "alternatives", None) for m in (restricted, full)):
        return "alternatives without features are written in different ways."
    if any(law.fixed is not None for law in getattr(full, "laws", ())):
        return "a fixed distribution is not one coefficient for all."
    if any(law.sign for law in getattr(full, "laws", ())):
        return "a lognormal coefficient has a sign, that of a logit has not."
    tables = [model.table_ is not None for model in (restricted, full)]
    if any(tables) != all(tables):
        return "one learnt from a table and the other did not."
    mine, theirs = (set(model.every_column) for model in (restricted, full))  # they may have other bases
    if isinstance(full, NestedLogit):
        if not all(tables):
            return "their columns are not known to be the same."
        theirs = {name for name in theirs if full.intercepts or not name.startswith(f"{full.alternative}=")}
    positions = getattr(restricted, "positions_", None), getattr(full, "positions_", None)
    if positions[0] != positions[1]:
        return "one has effects of positions and the other has not."
    if not all(tables) and len(mine) != len(theirs):
        return "columns of arrays have no names, so that theirs must be the same."
    return "" if mine <= theirs else f"the second lacks {', '.join(sorted(mine - theirs)[:3])}."
