"""The verdict of a comparison in one sentence, and what a reader must know besides.

:func:`headline` says whether there is a context effect; :func:`verdict` states it as the field does: estimate,
confidence interval, p-value, sample size.
:func:`warnings_of` names candidates that took no part and candidates whose training was too short.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from entourage.selection.tiers import ANY_CONTEXT
from entourage.tasks.ranking_metrics import LOWER_IS_BETTER

if TYPE_CHECKING:
    from entourage.selection.comparison import Comparison

__all__ = ["headline", "verdict", "warnings_of"]

_METRICS = {  # the name of a metric in a sentence, and what a gain of it means, per 100
    "ranking_accuracy": ("0/1-ranking accuracy", "of 100 pairs about {:.1f} more are ordered rightly"),
    "ranking_loss": ("0/1-ranking loss", "of 100 pairs about {:.1f} fewer are ordered wrongly"),
    "zero_one_accuracy": ("0/1-accuracy", "of 100 sets about {:.1f} more are ordered all rightly"),
    "top1_accuracy": ("top-1 accuracy", "in about {:.1f} more of 100 sets the best object comes first"),
    "spearman": ("Spearman correlation", ""),
    "kendall_tau": ("Kendall's tau", ""),
    "ndcg": ("NDCG", ""),
    "ndcg@10": ("NDCG@10", ""),
    "reciprocal_rank": ("reciprocal rank", ""),
    "expected_reciprocal_rank": ("expected reciprocal rank", ""),
    "average_precision": ("average precision", ""),
    "accuracy": ("accuracy", "of 100 choices about {:.1f} more are foreseen"),
    "log_likelihood": ("log-likelihood of a choice", ""),
    "f1": ("F1", ""),
    "subset_accuracy": ("subset accuracy", "of 100 subsets about {:.1f} more are all right"),
    "hamming_accuracy": ("share of objects", "of 100 objects about {:.1f} more are rightly chosen or left"),
    "informedness": ("informedness", ""),
}
_WORSE = "models with context predict worse here"


def verdict(comparison: "Comparison") -> str:
    """Say whether there is a significant context effect, how large, how sure that is, and what each tier adds.

    Examples
    --------
    >>> from entourage.data import Sets, make_hypervolume
    >>> from entourage.estimators.baselines import RandomRanker, RankSVM
    >>> from entourage.selection import compare
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> candidates = {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}
    >>> print(verdict(compare(sets, candidates)))
    No significant context effect (models with context predict worse here): B − A = ..., 95 % CI [...], p = 0.99...
    """
    c = comparison
    significant = c.p_value <= c.level
    low, high = (_signed(end) for end in c.interval)
    name, meaning = _METRICS[c.metric]
    p = "p < 0.001" if c.p_value < 0.001 else f"p = {c.p_value:.3f}"
    with_context = _most_frequent([fold[ANY_CONTEXT] for fold in c.chosen])
    without = _most_frequent([fold["context-free"] for fold in c.chosen])
    n = f"n = {int((~np.isnan(c.differences)).sum()):,} sets"
    if c.n_groups is not None:
        n += f" in {c.n_groups:,} groups"
    lower = ", by which it is lower" if c.metric in LOWER_IS_BETTER else ""
    narrow = significant and c.interval[0] <= 0
    narrowly = " (narrowly: the interval is two-sided, the test one-sided)" if narrow else ""
    if not significant and c.interval[0] > 0:  # of few units a bootstrap interval is too narrow
        narrowly = " (by the test, although the interval excludes 0)"
    elif c.interval[1] < 0:
        narrowly = f" ({_WORSE})"
    gained = f": {meaning.format(100 * c.gain)}" if significant and meaning else ""
    return (
        f"{'Significant' if significant else 'No significant'} context effect{narrowly}: {with_context} − {without} = "
        f"{_signed(c.gain, plus=True)}, {100 * (1 - c.level):g} % CI [{low}, {high}], {p}, {n} ({name}{lower}){gained}."
        f"{_steps(c)}"
    )


def headline(comparison: "Comparison") -> str:
    """Say in one plain sentence whether there is a significant context effect, and how large it is.

    Examples
    --------
    >>> from entourage.data import Sets, make_hypervolume
    >>> from entourage.estimators.baselines import RandomRanker, RankSVM
    >>> from entourage.selection import compare
    >>> sets = Sets.of(*make_hypervolume(100, random_state=0))
    >>> candidates = {"A": (RankSVM(), "context-free"), "B": (RandomRanker(), "context")}
    >>> print(headline(compare(sets, candidates)))
    No significant context effect (models with context predict worse here): models that see the other objects change ...
    """
    c = comparison
    name, meaning = _METRICS[c.metric]
    lower = c.metric in LOWER_IS_BETTER
    gain, (low, high), level = c.gain, c.interval, f"{100 * (1 - c.level):g} % CI"
    if c.p_value > c.level:
        change, ends = (-gain, (-high, -low)) if lower else (gain, (low, high))
        although = (
            " by the test, although the interval excludes 0" if low > 0 else f" ({_WORSE})" * (high < 0)
        )
        return (
            f"No significant context effect{although}: models that see the other objects change {name} by "
            f"{_signed(change, plus=True)} ({level} {_signed(ends[0])} to {_signed(ends[1])})."
        )
    return (
        f"Significant context effect{', narrowly' * (low <= 0)}: models that see the other objects "
        f"{'lower' if lower else 'raise'} {name} by {_signed(gain)} ({level} {_signed(low)} to {_signed(high)})"
        f"{f': {meaning.format(100 * gain)}' if meaning else ''}."
    )


_TIER_WORDS = {
    "relative": "the standing of an object in its set",
    "net": "interactions in a net of the whole set",
}


def _steps(comparison: "Comparison") -> str:
    """Say what each tier adds to the one before."""
    parts = []
    for name, step in comparison.steps.items():
        low, high = (_signed(end) for end in step.interval)
        p = "p < 0.001" if step.p_value < 0.001 else f"p = {step.p_value:.3f}"
        parts.append(
            f"{_TIER_WORDS[name]} {_signed(step.gain, plus=True)} [{low}, {high}], {p} "
            f"({_most_frequent(step.models)} − {_most_frequent(step.against)})"
        )
    return f" Step by step: {'; then '.join(parts)}." if parts else ""


def warnings_of(comparison: "Comparison") -> list[str]:
    """Return what a reader of the verdict must know besides: candidates left out, training that was too short."""
    sentences = [f"{name} was left out: {why}." for name, why in comparison.left_out.items()]
    if comparison.out_of_time:
        late = ", ".join(f"{name} (in {count} fits)" for name, count in comparison.out_of_time.items())
        sentences.append(
            f"The time limit ended the training of {late}: these may do better; give more time (--budget)."
        )
    if comparison.still_improving:
        names = list(comparison.still_improving)
        joined = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        steps = max(comparison.still_improving.values())
        sentences.append(
            f"{joined} {'was' if len(names) == 1 else 'were'} still improving when training ended ({steps:,} steps): "
            "a short training can look like context; give more steps (--steps)."
        )
    return sentences


def _signed(value: float, *, plus: bool = False) -> str:
    """Write three digits, with a typographic minus sign."""
    return f"{value:{'+' if plus else ''}.3f}".replace("-", "−")


def _most_frequent(names: Sequence[str]) -> str:
    """Name what was chosen most often, and in how many folds where not in all."""
    name, times = Counter(names).most_common(1)[0]
    return name if times == len(names) else f"{name} ({times} of {len(names)} folds)"
