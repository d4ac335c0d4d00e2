"""The prior: simulated choice problems from which the pretrained net learns, as code that reads like a model card.

A *world* is one data set: sets of objects, and choices, rankings or subsets of one population. Its utility is a
weighted sum of families. Of all worlds

- half have context effects (1 to 3 context families), the others have none;
- half have a context-free part that is plainly linear, also with many columns; in the others it mixes linear terms,
  curves, interactions, random nets and trees; a tenth of those with context have no context-free part at all;
- the standard deviation of the context part is 0.2 to 4 times that of the context-free part, log-uniform;
- the within-set standard deviation of utilities is 0.08 to 8, log-uniform: from nearly uniform choices to nearly
  certain ones (for subset choice: the standard deviation over all objects of the world);
- 35 % have people with tastes of their own, 25 % have lapses (up to a quarter of uniform choices);
- 35 % have free designs, 20 % conjoint designs, 15 % labelled alternatives, 15 % a catalogue of items, 15 % trade-offs
  with decoys (half, where attraction, compromise or similarity is present, and 15 % of the other half);
- columns are skewed, heavy-tailed, 0/1, rounded, zero-inflated, constant within a set, positions or near copies, and
  many are irrelevant (:mod:`~entourage.pretraining.prior.columns`);
- of ranking worlds, 30 % have ties and 20 % rank the best only.

Not in the prior: missing values, outside options, dependence between the sets of a person other than by taste.
"""

from entourage.pretraining.prior.families import CONTEXT, CONTEXT_FREE, EFFECTS, FAMILIES
from entourage.pretraining.prior.shape import Shape, Worlds
from entourage.pretraining.prior.worlds import draw_worlds

__all__ = ["CONTEXT", "CONTEXT_FREE", "EFFECTS", "FAMILIES", "Shape", "Worlds", "draw_worlds"]
