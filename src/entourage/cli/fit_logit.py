"""The choice models of ``entourage fit``: their options, the fit, and the table of estimates."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from entourage.cli.options import TrainingTable
from entourage.errors import UserError, check_choice

__all__ = ["LOGIT_OPTIONS", "fit_logit", "logit_of"]

LOGIT_OPTIONS = ("--nest", "--alternative", "--random", "--base", "--param")


def logit_of(
    name: str,
    *,
    nest: Sequence[str] | None = None,
    alternative: str | None = None,
    random: Sequence[str] | None = None,
    base: Sequence[str] | None = None,
    param: Sequence[str] | None = None,
    relative: bool | list[str] = False,
    seed: int = 0,
) -> Any:
    """Make the choice model that options describe.

    Examples
    --------
    >>> logit_of("mixed_logit", random=["time", "cost=-lognormal"], param=["draws=100"])
    MixedLogit(draws=100, random={'cost': '-lognormal', 'time': 'normal'})
    """
    import inspect

    from entourage.choice.registry import LOGITS

    kind = LOGITS[name].kind
    known = inspect.signature(kind).parameters
    given: dict[str, Any] = {}
    if nest:
        given["nests"] = [[_number(one) for one in text.split(",")] for text in nest]
    if alternative is not None:
        given["alternative"] = _number(alternative)
    if random:
        given["random"] = dict(_pair(text, "normal") for text in random)
    if base:
        given["base"] = dict(_pair(text, None, "--base") for text in base)
    for text in param or ():
        key, value = _pair(text, None, "--param")
        given[key] = _value(value)
    options = {"nests": "--nest", "alternative": "--alternative", "random": "--random", "base": "--base"}
    for key in given:
        if key not in known:
            if key in options:
                raise UserError(f"{options[key]} is no option of {name}, which has {', '.join(known)}.")
            check_choice("--param", key, known)
    for key in LOGITS[name].needs:
        if key not in given:
            raise UserError(
                f"{name} needs {options[key]}: the alternatives of a nest with commas between, once a nest, as in "
                "--nest train,car --alternative mode."
            )
    given |= {"relative": relative} if relative else {}
    given |= {"random_state": seed} if "random_state" in known and seed else {}
    return kind(**given)


def fit_logit(
    model: Any, name: str, training: TrainingTable, group: str | None, out: Path, as_json: bool
) -> None:
    """Fit a choice model to a table, write it and print its estimates."""
    from entourage.data.grouping import group_labels

    groups = None
    if group is not None:
        groups = np.array(group_labels(training.frame, group))[training.groups]
    sets = training.packed.sets
    model.fit(sets, groups=groups)
    model.save(out)
    if as_json:
        estimates = zip(
            model.parameter_names_,
            model.coef_,
            model.standard_errors_,
            model.robust_standard_errors_,
            strict=True,
        )
        result = {
            "model": name,
            "file": str(out),
            "sets": len(sets),
            "objects": len(sets.objects),
            "features": sets.n_features,
            "log_likelihood": model.log_likelihood_,
            "aic": model.aic_,
            "bic": model.bic_,
            "converged": bool(model.converged_),
            "estimates": [
                {"name": n, "estimate": _finite(b), "standard_error": _finite(s), "robust": _finite(r)}
                for n, b, s, r in estimates
            ],
        }
        typer.echo(json.dumps(result))
        return
    console = Console()
    console.print(model.summary(), soft_wrap=True, markup=False, highlight=False)
    console.print(f"Model: {out}", soft_wrap=True)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(text: str) -> int | str:
    text = text.strip()
    return int(text) if text.isdigit() else text


def _pair(text: str, default: str | None, option: str = "--random") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or (not equals and default is None) or (equals and not value):
        raise UserError(f"{option} needs a name, an equals sign and a value, such as mode=car; got {text!r}.")
    return name.strip(), value.strip() if equals else str(default)


def _value(text: str) -> Any:
    """Read a value as JSON where it is some, otherwise as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)
