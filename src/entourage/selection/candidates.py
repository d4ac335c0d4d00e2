"""Which models are compared: some that score each object alone, some that see the company of its set."""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sklearn.base import clone

from entourage.choice import MultinomialLogit
from entourage.errors import ParameterError, check_choice, check_number
from entourage.estimators import DiscreteChooser, NetEstimator, estimator_class
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines import LambdaMART, RankSVM
from entourage.nets import REGISTRY, ContextAblated, ContextFree
from entourage.tasks import task_of

__all__ = [
    "KINDS",
    "Candidates",
    "LinearLogit",
    "check_candidates",
    "default_candidates",
    "missing_by_default",
    "with_outside",
]

Candidates: TypeAlias = Mapping[str, tuple[SetPredictor, str]]

#: What a candidate may be: it scores each object alone, or in the company of its set.
KINDS = ("context-free", "context")


class LinearLogit(MultinomialLogit):
    """The multinomial logit as one candidate among others: on any fold it gives finite estimates, without warnings.

    The penalty, as if each coefficient were normally distributed with one over its feature's standard deviation,
    keeps estimates finite where a fold is separable or doesn't identify them. Situation features, equal for all
    objects of a set, cancel in a linear utility and are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(2000, 4, 2))
    >>> y = (X @ [1.0, -2.0] + rng.gumbel(size=(2000, 4))).argmax(1)
    >>> LinearLogit().fit(X, y, situation=rng.normal(size=(2000, 1))).coef_.round(1)
    array([ 1., -2.])
    """

    drops_situation = True

    def __init__(self, *, l2: float = 1.0, relative: bool | str | Sequence[str | int] = False) -> None:
        super().__init__(l2=l2, relative=relative)

    def _warn(self) -> None:
        """Say nothing of what the data don't identify: the penalty holds it near 0."""


def default_candidates(
    n_sets: int,
    kind: str = "rank",
    *,
    outside: bool = False,
    steps: int | None = None,
    device: str = "auto",
) -> dict[str, tuple[SetPredictor, str]]:
    """Return the models to compare where none are named, with steps that suit so many sets.

    Context-free are a linear model (convex, so that nothing hangs on a seed or on the number of steps), a net,
    LambdaMART where LightGBM is installed, and the context-ablated controls of FATE and of FETA: the same nets under
    the same loss, in which every object has the same fixed context
    (:class:`~entourage.nets.context_ablated.ContextAblated`). What FATE and FETA gain over their controls is then due
    to context, not to a larger net.

    Nets train in batches of 64 sets for 60 passes through the data, but for 400 steps at least, below
    which they hardly leave their start, and for 4,000 at most, the default of :class:`entourage.Ranker`; or for
    ``steps``. They stop earlier by a tenth of their training sets that they hold out.

    For choices (``kind`` "choice" or "subset") all are choosers, the linear one a logit model, and there is no
    LambdaMART, whose scores are no utilities. With ``outside`` they may choose nothing, too.

    Examples
    --------
    >>> for name, (model, kind) in default_candidates(1000).items():
    ...     print(name, "|", kind, "|", getattr(model, "steps", ""))
    linear | context-free |
    ContextFree | context-free | 938
    FATE ablated | context-free | 938
    FETA ablated | context-free | 938
    LambdaMART | context-free |
    FATE | context | 938
    FETA | context | 938
    """
    check_number("n_sets", n_sets, least=1, whole=True)
    batch_size = 64
    if steps is None:
        steps = min(max(math.ceil(60 * n_sets / batch_size), 400), 4000)

    task_of(kind, outside=outside)  # says what doesn't go together

    make, chooses = estimator_class(kind), kind in ("choice", "subset")
    extra: dict[str, Any] = {"outside": True} if outside else {}

    def net(which: Any) -> NetEstimator:
        return make(which, steps=steps, batch_size=batch_size, device=device, **extra)

    def linear() -> SetPredictor:
        if not chooses:
            return RankSVM()
        if kind == "choice" and not outside:
            return LinearLogit()
        # The same optimum by gradient descent: the penalty of LinearLogit, l2 / 2, is on a sum over sets, this one on
        # a mean. Choices of some hold sets out, since their threshold is found there.
        convex = {"learning_rate": 0.05, "weight_decay": 0.0, "l2": 0.5 / n_sets, "patience": None}
        found: NetEstimator = net(ContextFree(depth=0)).set_params(**convex)
        return found.set_params(validation=0.0) if outside else found

    compared = [entry.net for entry in REGISTRY if entry.compared]
    candidates: dict[str, tuple[SetPredictor, str]] = {
        "linear": (linear(), "context-free"),
        "ContextFree": (net(ContextFree()), "context-free"),
    }
    candidates |= {f"{of.__name__} ablated": (net(ContextAblated(of())), "context-free") for of in compared}
    if not chooses and not missing_by_default(kind):
        candidates["LambdaMART"] = (LambdaMART(), "context-free")
    return candidates | {of.__name__: (net(of()), "context") for of in compared}


def missing_by_default(kind: str) -> dict[str, str]:
    """Return which of the default candidates can't take part on this machine, and why."""
    if kind in ("choice", "subset") or importlib.util.find_spec("lightgbm") is not None:
        return {}
    return {"LambdaMART": "LightGBM is not installed: run pip install 'entourage[boost]'"}


def check_candidates(candidates: Candidates) -> None:
    """See that every candidate is an estimator with its kind, and that both kinds are there."""
    for name, entry in candidates.items():
        if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], SetPredictor)):
            raise ParameterError(
                f"Candidate {name!r} needs an estimator and its kind, such as (Ranker(FATE()), "
                f"'context'); got {entry!r}."
            )
        check_choice(f"the kind of {name!r}", entry[1], KINDS)
    missing = set(KINDS) - {kind for _, kind in candidates.values()}
    if missing:
        raise ParameterError(
            f"A comparison needs a candidate of either kind; there is no "
            f"{' and no '.join(sorted(missing))} one. Add it to candidates."
        )


def with_outside(candidates: Candidates) -> tuple[Candidates, dict[str, str]]:
    """Return the candidates that can choose nothing, with that option, and why the others are left out."""
    able: dict[str, tuple[SetPredictor, str]] = {}
    left_out = {}
    for name, (model, sight) in candidates.items():
        if isinstance(model, DiscreteChooser):
            able[name] = clone(model).set_params(outside=True), sight
        elif getattr(model.task, "outside", False):
            able[name] = model, sight
        else:
            left_out[name] = (
                f"{type(model).__name__} has no option of choosing nothing, so it can't be evaluated where a set "
                "may end without a choice"
            )
    missing = set(KINDS) - {sight for _, sight in able.values()}
    if missing:
        reasons = "".join(f" {name} was left out: {why}." for name, why in left_out.items())
        raise ParameterError(
            f"No {' and no '.join(sorted(missing))} candidate is left to compare.{reasons} Add a DiscreteChooser, "
            "or compare without outside."
        )
    return able, left_out
