"""Choice models of econometrics as candidates of a comparison: on any fold they give finite estimates, quietly."""

from typing import Any

from entourage.choice import (
    ContextualLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    RandomRegret,
)
from entourage.choice.registry import LOGITS
from entourage.estimators.base import SetPredictor

__all__ = ["logit_candidates"]


class _Quiet:
    """Situation features, equal for all objects of a set, are dropped, and nothing is said of what isn't identified."""

    drops_situation = True

    def _warn(self) -> None:
        """Say nothing: a fold may identify less than all sets do."""


class _Multinomial(_Quiet, MultinomialLogit):
    pass


class _Mixed(_Quiet, MixedLogit):
    pass


class _Latent(_Quiet, LatentClassLogit):
    pass


class _Regret(_Quiet, RandomRegret):
    pass


class _Contextual(_Quiet, ContextualLogit):
    pass


class _LinearContext(_Quiet, LinearContextLogit):
    pass


def logit_candidates() -> list[tuple[str, SetPredictor, str]]:
    """Return the logit models that a comparison may ask for: name, model, and kind.

    Mixed logit and latent classes count as context-free: each person's utility of an object is its own, though
    probabilities of a population of such people violate IIA. A nested logit needs its nests, so it has no default.

    Examples
    --------
    >>> [name for name, _, _ in logit_candidates()]
    ['multinomial_logit', 'mixed_logit', 'latent_class', 'random_regret', 'contextual_logit', 'linear_context_logit']
    """
    made: dict[str, Any] = {
        "multinomial_logit": _Multinomial(l2=1e-3),
        "mixed_logit": _Mixed("all", draws=100),
        "latent_class": _Latent(2, restarts=5, l2=1.0),
        "random_regret": _Regret(),
        "contextual_logit": _Contextual(l2=1.0),
        "linear_context_logit": _LinearContext(l2=1.0),
    }
    return [
        (name, model, "context" if LOGITS[name].context else "context-free") for name, model in made.items()
    ]
