"""Every choice model by the name that commands and comparisons know it by."""

from dataclasses import dataclass

from entourage.choice.base import ChoiceModel
from entourage.choice.contextual import ContextualLogit
from entourage.choice.cross_nested import CrossNestedLogit
from entourage.choice.latent import LatentClassLogit
from entourage.choice.linear_context import LinearContextLogit
from entourage.choice.logit import MultinomialLogit
from entourage.choice.mixed import MixedLogit
from entourage.choice.nested import NestedLogit
from entourage.choice.regret import RandomRegret

__all__ = ["LOGITS", "LogitEntry"]


@dataclass(frozen=True)
class LogitEntry:
    """What the library knows of a choice model.

    Attributes
    ----------
    kind : the class
    context : whether the utility that a person gives to an object depends on the others of its set
    needs : the parameters without a default
    """

    kind: type[ChoiceModel]
    context: bool = False
    needs: tuple[str, ...] = ()


#: By the names of ``entourage fit --model``.
LOGITS: dict[str, LogitEntry] = {
    "multinomial_logit": LogitEntry(MultinomialLogit),
    "nested_logit": LogitEntry(NestedLogit, needs=("nests",)),
    "cross_nested_logit": LogitEntry(CrossNestedLogit, needs=("nests",)),
    "mixed_logit": LogitEntry(MixedLogit),
    "latent_class": LogitEntry(LatentClassLogit),
    "random_regret": LogitEntry(RandomRegret, context=True),
    "contextual_logit": LogitEntry(ContextualLogit, context=True),
    "linear_context_logit": LogitEntry(LinearContextLogit, context=True),
}
