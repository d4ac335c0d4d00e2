"""What a comparison will do, in words, and about how long it will take."""

from typing import TYPE_CHECKING, Any

from entourage.data.sets import Sets
from entourage.estimators import NetEstimator
from entourage.estimators.pretrained_net import is_pretrained
from entourage.nets.context_ablated import ContextAblated
from entourage.nets.registry import entry_of
from entourage.training.progress import in_words

if TYPE_CHECKING:
    from entourage.selection.candidates import Candidates

__all__ = ["describe_plan", "expected_seconds"]

STEP, OBJECT, PAIR = (
    2.5e-3,
    4e-6,
    3e-6,
)  # seconds on a core: of a step, of an object in it, of a pair of objects
TRAINED = 0.7  # of its steps, until a net stops early
OTHER = 3e-5  # seconds that a model without a net takes for a number


def describe_plan(
    candidates: "Candidates",
    folds: int,
    inner: int | None,
    fits: int,
    sets: Sets,
    workers: int,
    budget: float | None,
) -> str:
    """Return in words which models are fitted how often, and in which time."""
    each = sum(expected_seconds(model, sets) for model, _ in candidates.values())
    about = each * fits / len(candidates) / workers
    how = {None: "", 0: ", a fifth of its training sets set aside to choose by"}.get(
        inner, f", each with {inner} inner fold{'s' * (inner != 1)} to choose by"
    )
    limit = "" if budget is None else f", at most {in_words(budget)}"
    return (
        f"{fits} fits of {len(candidates)} models ({', '.join(candidates)}) in {folds} folds of {len(sets):,} sets"
        f"{how}: about {in_words(about if budget is None else min(about, budget))}{limit}."
    )


def expected_seconds(model: Any, sets: Sets) -> float:
    """Estimate how long a fit takes, on one core of a usual machine."""
    objects = len(sets.objects)
    if not isinstance(model, NetEstimator) or is_pretrained(model):
        return 1.0 + OTHER * objects * sets.n_features
    mean, pairs = objects / len(sets), float((sets.sizes.astype(float) ** 2).mean())
    net = model.net.net if isinstance(model.net, ContextAblated) else model.net
    entry = None if net is None or isinstance(net, str) else entry_of(net)
    quadratic = entry is not None and entry.all_pairs
    work = OBJECT * model.batch_size * mean + quadratic * PAIR * model.batch_size * pairs
    return TRAINED * model.steps * (STEP + work)
