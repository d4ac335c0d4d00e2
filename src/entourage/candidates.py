"""Which models are compared: some that score each object alone, some that see the company of its set."""

import importlib.util
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from sklearn.base import clone

from entourage.baselines import LambdaMART, RankSVM
from entourage.errors import ParameterError, check_choice, check_number
from entourage.estimators import DiscreteChooser, Ranker, SetEstimator, SubsetChooser
from entourage.nets import FATE, FETA, ContextFree
from entourage.nets.alone import Alone
from entourage.predictor import SetPredictor
from entourage.tasks import task_of

__all__ = ["KINDS", "Candidates", "check_candidates", "default_candidates", "with_outside"]

Candidates: TypeAlias = Mapping[str, tuple[SetPredictor, str]]

#: What a candidate may be: it scores each object alone, or in the company of its set.
KINDS = ("context-free", "context")


def default_candidates(
    n_sets: int, kind: str = "rank", *, outside: bool = False
) -> dict[str, tuple[SetPredictor, str]]:
    """Return the models to compare where none are named, with steps that suit so many sets.

    Context-free are a linear model (RankSVM: convex, so that nothing hangs on a seed or on the number of
    steps), a net, LambdaMART where LightGBM is installed, and the twins of FATE and of FETA: the same
    nets under the same loss, to which every object is shown :class:`~entourage.nets.alone.Alone`. What FATE
    and FETA are worth more than their twins is then worth of context, not of a larger net.

    Nets train in batches of 64 sets for 60 passes through the data, but for 400 steps at least, below
    which they hardly leave their start, and for 4,000 at most, the default of :class:`entourage.Ranker`.
    They stop earlier by a tenth of their training sets that they hold out.

    For choices (``kind`` "choice" or "subset") all are choosers, the linear one a logit model, and there is no
    LambdaMART, whose scores are no utilities. With ``outside`` they may choose nothing, too.

    Examples
    --------
    >>> for name, (model, kind) in default_candidates(1000).items():
    ...     print(name, "|", kind, "|", getattr(model, "steps", ""))
    linear | context-free |
    ContextFree | context-free | 938
    FATE, alone | context-free | 938
    FETA, alone | context-free | 938
    LambdaMART | context-free |
    FATE | context | 938
    FETA | context | 938
    """
    check_number("n_sets", n_sets, least=1, whole=True)
    batch_size = 64
    steps = min(max(math.ceil(60 * n_sets / batch_size), 400), 4000)

    task_of(kind, outside=outside)  # says what doesn't go together

    choosers = {"choice": DiscreteChooser, "subset": SubsetChooser}
    make: type[SetEstimator] = choosers.get(kind, Ranker)
    extra: dict[str, Any] = {"outside": True} if outside else {}

    def net(which: Any) -> SetEstimator:
        return make(which, steps=steps, batch_size=batch_size, **extra)

    candidates: dict[str, tuple[SetPredictor, str]] = {
        "linear": (
            net(ContextFree(depth=0)).set_params(learning_rate=0.05) if kind in choosers else RankSVM(),
            "context-free",
        ),
        "ContextFree": (net(ContextFree()), "context-free"),
        "FATE, alone": (net(Alone(FATE())), "context-free"),
        "FETA, alone": (net(Alone(FETA())), "context-free"),
    }
    if kind not in choosers and importlib.util.find_spec("lightgbm") is not None:
        candidates["LambdaMART"] = (LambdaMART(), "context-free")
    return candidates | {"FATE": (net(FATE()), "context"), "FETA": (net(FETA()), "context")}


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
                f"{type(model).__name__} has no option of choosing nothing, so it can't be judged where a set may end "
                "without a choice"
            )
    missing = set(KINDS) - {sight for _, sight in able.values()}
    if missing:
        reasons = "".join(f" {name} was left out: {why}." for name, why in left_out.items())
        raise ParameterError(
            f"No {' and no '.join(sorted(missing))} candidate is left to compare.{reasons} Add a DiscreteChooser, "
            "or compare without outside."
        )
    return able, left_out
