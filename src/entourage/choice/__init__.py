"""Choice models of econometrics: few parameters, estimated by maximum likelihood, with standard errors.

They take sets and choices as `entourage.DiscreteChooser` does, and stand beside it as what is to be beaten.
"""

from entourage.choice.base import ChoiceModel
from entourage.choice.halo import ContextualLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit

__all__ = ["ChoiceModel", "ContextualLogit", "MixedLogit", "MultinomialLogit", "NestedLogit"]
