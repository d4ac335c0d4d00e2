"""Which models are tried: the one list that ``auto`` and ``compare`` share.

There are three tiers. A *context-free* model scores each object alone. A *relative* one also sees its standing in the
set, column by column (:mod:`entourage.data.relative`). A *context* model is a net of the whole set: interactions.
"""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from entourage.choice import MultinomialLogit
from entourage.data.relative import find_places
from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, check_choice, check_number
from entourage.estimators import DiscreteChooser, NetEstimator, estimator_class
from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines import (
    BestColumn,
    BestColumnLogit,
    BestColumnSubset,
    BoostedLogit,
    BoostedSubset,
    LambdaMART,
    LinearRanker,
)
from entourage.estimators.pretrained_net import is_pretrained
from entourage.nets import FATE, FETA, Net, SetAttention
from entourage.nets.context_ablated import ContextAblated
from entourage.nets.context_free import ContextFree
from entourage.pretrained.weights import available, check_available
from entourage.selection.logits import logit_candidates
from entourage.tasks import task_of

__all__ = [
    "KINDS",
    "TIERS",
    "Candidate",
    "Candidates",
    "LinearLogit",
    "candidate_names",
    "check_candidates",
    "default_candidates",
    "list_candidates",
    "missing_by_default",
    "sees_numbers",
    "with_outside",
]

Candidates: TypeAlias = Mapping[str, tuple[SetPredictor, str]]

#: What a candidate may be: it scores each object alone, by its standing in the set, or in the context of its set.
KINDS = ("context-free", "relative", "context")

#: What a kind is called where the three are compared.
TIERS = {"context-free": "alone", "relative": "relative", "context": "net"}

BATCH_PAIRS = 16_000  # pairs of objects in a batch, about; of 16 to 64 sets
FEWEST_STEPS, MOST_STEPS = 400, 2000
MANY_SETS = 1500  # from which the larger SetAttention is worth its time
PRETRAINED_MOST = (
    1000,
    50_000,
)  # sets, and pairs of objects, up to which the pretrained net is tried: with more, nets
# that are trained are ahead, and its control scores each object in sets as large as its own
PASSES = 60  # through the data, within these numbers of steps


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


@dataclass(frozen=True)
class Candidate:
    """A model to try.

    Attributes
    ----------
    name : in tables and options
    model : not fitted
    kind : of :data:`KINDS`
    compared : whether `compare` tries it by default
    blended : whether ``auto`` tries it
    """

    name: str
    model: SetPredictor
    kind: str
    compared: bool = True
    blended: bool = True


def list_candidates(
    n_sets: int,
    kind: str = "rank",
    *,
    pairs: float = 100.0,
    outside: bool = False,
    relative: bool = True,
    graded: bool = False,
    steps: int | None = None,
    base: NetEstimator | None = None,
    device: str = "auto",
) -> list[Candidate]:
    """Return every model to try, those that are quick and strong first.

    Parameters
    ----------
    n_sets : to learn from: nets train in batches of 16 to 64 sets for 60 passes through the data, but for 400 steps
        at least, below which they hardly leave their start, and for 2,000 at most. They stop earlier by a tenth of
        their training sets that they hold out. The pretrained net is tried up to 1,000 sets and 50,000 pairs of objects
    pairs : the mean square of the sizes of sets: batches of large sets have fewer of them
    kind, outside : of the task, see :data:`entourage.tasks.TASKS`
    relative : whether there are numbers to see relative to their set
    graded : whether ranks came from relevance grades, for which there are trees of their own
    steps : of nets, instead
    base : an estimator whose other settings the nets take; by default one of defaults
    device : of nets, where there is no ``base``
    """
    check_number("n_sets", n_sets, least=1, whole=True)
    task_of(kind, outside=outside)  # says what doesn't go together
    batch_size = int(min(max(BATCH_PAIRS / max(pairs, 1.0), 16), 64))
    if steps is None:
        steps = min(max(math.ceil(PASSES * n_sets / batch_size), FEWEST_STEPS), MOST_STEPS)
    extra: dict[str, Any] = {"outside": True} if outside else {}
    plain = estimator_class(kind)(device=device, **extra) if base is None else base
    columns = plain.relative or True
    training = {"steps": steps, "epochs": None, "batch_size": batch_size, "patience": 12, "verbose": False}

    def net(which: Net, *, standing: bool = False, **other: Any) -> NetEstimator:
        made: NetEstimator = clone(plain)
        return made.set_params(net=which, relative=columns if standing else False, **training | other)  # type: ignore[no-any-return]

    def reader(which: str) -> NetEstimator:
        kept = {"device", "categories", "outside", "threshold"} & set(plain.get_params(deep=False))
        # of choices of some, a threshold is found on sets held out; nothing else is calibrated
        share: dict[str, Any] = {} if kind == "subset" else {"validation": 0.0}
        return estimator_class(kind)(which, **share | {name: getattr(plain, name) for name in kept})

    def linear(standing: bool) -> SetPredictor:
        if kind not in ("choice", "subset"):
            return LinearRanker(relative=columns if standing else False, max_pairs=100_000)
        if kind == "choice" and not outside:
            return LinearLogit(relative=columns if standing else False)
        # The same optimum by gradient descent: the penalty of LinearLogit, l2 / 2, is on a sum over sets, this one on
        # a mean. Choices of some hold sets out, since their threshold is found there.
        convex = {"learning_rate": 0.05, "weight_decay": 0.0, "l2": 0.5 / n_sets, "patience": None}
        return net(
            ContextFree(depth=0), standing=standing, **convex | ({"validation": 0.0} if outside else {})
        )

    found = [Candidate("linear", linear(False), "context-free")]
    if not outside:
        single = {"choice": BestColumnLogit, "subset": BestColumnSubset}.get(kind, BestColumn)
        found.insert(0, Candidate("best column", single(), "context-free"))
    if relative:
        found.append(Candidate("linear relative", linear(True), "relative"))
    if not outside and not missing_by_default(kind):
        boosted: Any = {"choice": BoostedLogit, "subset": BoostedSubset}.get(kind, LambdaMART)
        name = boosted.__name__
        found.append(Candidate(name, boosted(), "context-free"))
        if relative:
            # each number comes six times, so a tree sees half of them
            trees = boosted(relative=columns, colsample_bytree=0.5)
            found.append(Candidate(f"{name} relative", trees, "relative"))
            if graded:
                listwise = LambdaMART(objective="xendcg", relative=columns, colsample_bytree=0.5)
                found.append(Candidate("XE-NDCG relative", listwise, "relative", compared=False))
    small_table = n_sets <= PRETRAINED_MOST[0] and n_sets * pairs <= PRETRAINED_MOST[1]
    if available():
        pretrained = Candidate("pretrained", reader("pretrained"), "context", small_table, small_table)
        found.insert(next(i for i, one in enumerate(found) if one.name == "linear") + 1, pretrained)
    small = SetAttention(width=32, rounds=2, dropout=0.1, features="linear")
    found.append(Candidate("ContextFree", net(ContextFree()), "context-free"))
    if relative:
        found.append(
            Candidate("ContextFree relative", net(ContextFree(), standing=True), "relative", compared=False)
        )
        found.append(Candidate("SetAttention relative", net(small, standing=True), "context"))
    found += [
        Candidate("FATE", net(FATE()), "context"),
        Candidate("SetAttention", net(small), "context"),
        Candidate("FATE ablated", net(ContextAblated(FATE())), "context-free", blended=False),
        Candidate("SetAttention ablated", net(ContextAblated(small)), "context-free", blended=False),
        Candidate("FATE small", net(FATE(width=32)), "context", compared=False),
        Candidate("FETA", net(FETA()), "context", compared=False, blended=False),
        Candidate("FETA ablated", net(ContextAblated(FETA())), "context-free", compared=False, blended=False),
    ]
    if relative:
        control = net(ContextAblated(small), standing=True)
        found.append(Candidate("SetAttention relative ablated", control, "relative", blended=False))
        found.append(Candidate("FATE relative", net(FATE(), standing=True), "context", compared=False))
    if available():
        control = reader("pretrained_ablated")
        found.append(Candidate("pretrained ablated", control, "context-free", small_table, blended=False))
    large = Candidate(
        "SetAttention large",
        net(SetAttention(rounds=3, features="linear")),
        "context",
        compared=False,
        blended=n_sets >= MANY_SETS,
    )
    if kind == "choice" and not outside:
        found += [Candidate(*logit, compared=False, blended=False) for logit in logit_candidates()]
    return [*found, large]


def default_candidates(
    n_sets: int,
    kind: str = "rank",
    *,
    pairs: float = 100.0,
    outside: bool = False,
    relative: bool = True,
    steps: int | None = None,
    device: str = "auto",
    names: Sequence[str] | None = None,
) -> dict[str, tuple[SetPredictor, str]]:
    """Return the models that `compare` tries, by name: each with its kind.

    Context-free are the best single column, a linear model (convex, so that nothing hangs on a seed or on the number
    of steps), early-stopped boosted trees where LightGBM is installed, a net, and the context-ablated controls of FATE
    and of SetAttention: the same nets under the same loss, in which every object has the same fixed context
    (:class:`~entourage.nets.context_ablated.ContextAblated`). What these nets gain over their controls is then due to
    context, not to a larger net. Relative are the linear model, the trees and the control of SetAttention, with the
    standing of each number in its set. The pretrained net, which is not fitted, is a candidate up to 1,000 sets and
    50,000 pairs of objects, beside its own context-ablated control.

    For choices (``kind`` "choice" or "subset") all are choosers, the linear one a logit model. With ``outside`` they
    may choose nothing, too; the single column and the trees can't.

    Parameters
    ----------
    n_sets, kind, pairs, outside, relative, steps, device : see `list_candidates`
    names : which of all, also of those that are not tried by default; see `candidate_names`

    Examples
    --------
    >>> for name, (model, kind) in default_candidates(1000).items():
    ...     if not name.startswith("pretrained"):
    ...         print(name, "|", kind, "|", getattr(model, "steps", ""))
    best column | context-free |
    linear | context-free |
    linear relative | relative |
    LambdaMART | context-free |
    LambdaMART relative | relative |
    ContextFree | context-free | 938
    SetAttention relative | context | 938
    FATE | context | 938
    SetAttention | context | 938
    FATE ablated | context-free | 938
    SetAttention ablated | context-free | 938
    SetAttention relative ablated | relative | 938
    """
    every = list_candidates(
        n_sets, kind, pairs=pairs, outside=outside, relative=relative, steps=steps, device=device
    )
    if names is None:
        return {one.name: (one.model, one.kind) for one in every if one.compared}
    by_name = {one.name: (one.model, one.kind) for one in every}
    for name in names:
        if name in ("pretrained", "pretrained ablated"):
            check_available()
        check_choice("models", name, by_name)
    return {name: by_name[name] for name in names}


def candidate_names(kind: str = "rank") -> list[str]:
    """Return the names of all models that can be asked for by name."""
    return [one.name for one in list_candidates(100, kind)]


def sees_numbers(sets: Sets, codes: Sequence[int] = ()) -> bool:
    """Whether there are numbers to see relative to their set: columns of more than two values."""
    try:
        places = find_places(True, sets, codes) or ()
    except DataError:
        return False
    some = sets.objects[:20_000]
    return any(len(np.unique(some[:, place])) > 2 for place in places)


def missing_by_default(kind: str) -> dict[str, str]:
    """Return which of the default candidates can't take part on this machine, and why."""
    if importlib.util.find_spec("lightgbm") is not None:
        return {}
    name = {"choice": "BoostedLogit", "subset": "BoostedSubset"}.get(kind, "LambdaMART")
    return {name: "LightGBM is not installed: run pip install 'entourage[boost]'"}


def check_candidates(candidates: Candidates) -> None:
    """See that every candidate is an estimator with its kind, and that some are context-free and some are not."""
    for name, entry in candidates.items():
        if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], SetPredictor)):
            raise ParameterError(
                f"Candidate {name!r} needs an estimator and its kind, such as (Ranker(FATE()), "
                f"'context'); got {entry!r}."
            )
        check_choice(f"the kind of {name!r}", entry[1], KINDS)
        if is_pretrained(entry[0]):
            check_available()
    missing = _missing_kinds(candidates)
    if missing:
        raise ParameterError(
            f"A comparison needs a candidate of either kind; there is no {missing} one. Add it to candidates."
        )


def _missing_kinds(candidates: Candidates) -> str:
    kinds = {kind for _, kind in candidates.values()}
    missing = ["context-free"] * ("context-free" not in kinds)
    missing += ["relative or context"] * (not kinds & {"relative", "context"})
    return " and no ".join(missing)


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
    missing = _missing_kinds(able)
    if missing:
        reasons = "".join(f" {name} was left out: {why}." for name, why in left_out.items())
        raise ParameterError(
            f"No {missing} candidate is left to compare.{reasons} Add a DiscreteChooser, or compare without outside."
        )
    return able, left_out
