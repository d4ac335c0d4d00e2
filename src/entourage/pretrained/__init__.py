"""The pretrained net: it reads labelled sets and scores new ones, without being trained on them.

On the way from a table to scores:

1. :mod:`~entourage.pretrained.inputs` standardises the columns by the labelled sets and makes what the net sees of
   each cell, column and of the table as a whole.
2. :mod:`~entourage.pretrained.ridge` fits ridge conditional logits to the labelled sets. The net sees their utilities
   (leave-one-out for the labelled sets), so what is linear need not be found anew.
3. :mod:`~entourage.pretrained.interactions` finds products of alternatives with the situation, for a second reading.
4. :mod:`~entourage.pretrained.weights` has the weights of the package, known by their checksum; ``MODEL_CARD.md``
   beside them says what they saw. The net itself is :class:`~entourage.nets.prior_fitted.PriorFittedNet`.
5. :mod:`~entourage.pretrained.reading` lets the net read the labelled sets once, keeps what it remembers of them, and
   scores new sets; :mod:`~entourage.pretrained.reading_file` is what a model file keeps of that.
6. :mod:`~entourage.pretrained.verdict` says what the net believes of the context: the instant verdict.

How it is made is :mod:`entourage.pretraining`.
"""

from entourage.pretrained.reading import Reading
from entourage.pretrained.verdict import InstantVerdict

__all__ = ["InstantVerdict", "Reading"]
