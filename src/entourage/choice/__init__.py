"""Choice models of econometrics: few parameters, estimated by maximum likelihood, with standard errors.

They take sets and choices as `entourage.DiscreteChooser` does, and serve as its benchmark.
"""

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit

__all__ = ["MODELS", "ChoiceModel", "ContextualLogit", "MixedLogit", "MultinomialLogit", "NestedLogit"]

#: Every choice model, by the name that model files know it by.
MODELS: dict[str, type[ChoiceModel]] = {
    kind.__name__: kind for kind in (MultinomialLogit, NestedLogit, MixedLogit, ContextualLogit)
}
