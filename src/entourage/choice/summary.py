"""The table of estimates."""

from collections.abc import Sequence
from typing import Any

__all__ = ["table"]


def table(model: Any, names: Sequence[str], notes: Sequence[str] = ()) -> str:
    """Return a fitted choice model as plain text: goodness of fit, then a line a parameter."""
    z_of = "robust z" if model.clustered else "z"
    width = max(9, *map(len, names)) if names else 9
    head = f"{'':{width}}  {'estimate':>12}  {'std. error':>12}  {'robust':>12}  {z_of:>8}"
    rows = [
        f"{name:{width}}  {estimate:12.5g}  {error:12.4g}  {robust:12.4g}  {z:8.2f}"
        for name, estimate, error, robust, z in zip(
            names,
            model.coef_,
            model.standard_errors_,
            model.robust_standard_errors_,
            model.z_values_,
            strict=True,
        )
    ]
    grouped = "" if model.n_groups_ == model.n_sets_ else f" in {model.n_groups_:,} groups"
    return "\n".join(
        [
            f"{type(model).__name__}: {model.n_sets_:,} sets{grouped}, {model.n_parameters_:g} parameters"
            + ("" if model.converged_ else ", NOT CONVERGED"),
            f"log-likelihood {model.log_likelihood_:.3f} (null {model.null_log_likelihood_:.3f}), "
            f"rho squared {model.rho_squared_:.4f}, AIC {model.aic_:.2f}, BIC {model.bic_:.2f}",
            "",
            head,
            *rows,
            *notes,
        ]
    )
