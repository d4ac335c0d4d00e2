"""Choice models of econometrics: few parameters, estimated by maximum likelihood, with standard errors.

They take sets and choices as `entourage.DiscreteChooser` does, and serve as its benchmark.
"""

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit

__all__ = ["ChoiceModel", "ContextualLogit", "MixedLogit", "MultinomialLogit", "NestedLogit"]
