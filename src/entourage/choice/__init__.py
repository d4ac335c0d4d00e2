"""Choice models of econometrics: few parameters, estimated by maximum likelihood, with standard errors.

They take sets and choices as `entourage.DiscreteChooser` does, and serve as its benchmark.
"""

from entourage.choice.base import ChoiceModel
from entourage.choice.comparison import compare_logits, likelihood_ratio_test
from entourage.choice.contextual import ContextualLogit
from entourage.choice.cross_nested import CrossNestedLogit
from entourage.choice.latent import LatentClassLogit
from entourage.choice.linear_context import LinearContextLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit
from entourage.choice.regret import RandomRegret

__all__ = [
    "ChoiceModel",
    "ContextualLogit",
    "CrossNestedLogit",
    "LatentClassLogit",
    "LinearContextLogit",
    "MixedLogit",
    "MultinomialLogit",
    "NestedLogit",
    "RandomRegret",
    "compare_logits",
    "likelihood_ratio_test",
]
