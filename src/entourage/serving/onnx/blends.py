"""A blend of models ("auto") in a graph."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from entourage.data.columns import MOST_LEVELS
from entourage.data.decode import place_without_codes
from entourage.estimators.blend import LEAST, Blend
from entourage.serving.onnx.nets import NetScores
from entourage.serving.onnx.outcomes import choice_probabilities, subset_probabilities
from entourage.serving.onnx.scorer import FeatureScorer, Floats, doubles, mean_of_set
from entourage.tasks import Choice, SubsetChoice

__all__ = ["BlendScores"]


class BlendScores(FeatureScorer):
    """What :class:`entourage.estimators.blend.Blend` does: predictions of models, averaged with weights."""

    shares: Tensor
    scales: Tensor
    bounds: Tensor

    def __init__(self, blend: Blend, n_features: int, scorer_of: Callable[[Any], FeatureScorer]) -> None:
        super().__init__()
        self.task, self.categories, self.n_features = blend.task, list(blend.categories), n_features
        pairs = [
            (model, part.weight / len(part.models), scale)
            for part in blend.parts
            for model, scale in zip(part.models, part.scales, strict=True)
        ]
        self.models = nn.ModuleList(scorer_of(model) for model, _, _ in pairs)
        self.knows_codes = [bool(model.level_codes) for model, _, _ in pairs]
        self.register_buffer("shares", doubles([share for _, share, _ in pairs]))
        self.register_buffer("scales", doubles([scale for _, _, scale in pairs]))
        self.register_buffer("bounds", doubles([LEAST, 1 - LEAST]))

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        plain = self.without_codes(objects)
        scores = [
            model(objects if codes else plain, mask, situation)
            for model, codes in zip(self.models, self.knows_codes, strict=True)
        ]
        return self.mixed(scores, mask)

    def without_codes(self, objects: Tensor) -> Tensor:
        """Return what models see that know no codes of levels."""
        return _without_codes(objects, self.categories)

    def mixed(self, scores: Sequence[Tensor], mask: Tensor) -> Tensor:
        """Return scores, given those of each model, (n, m)."""
        together = torch.stack(list(scores))  # (k, n, m): all models at once, so that a graph has few steps
        masks = mask.unsqueeze(0).expand(len(scores), -1, -1)
        made = self._contributions(together.flatten(0, 1), masks.flatten(0, 1)).reshape(
            len(scores), *mask.shape
        )
        if not isinstance(self.task, Choice | SubsetChoice):
            made = made / self.scales[:, None, None]
        return self._scores((self.shares[:, None, None] * made).sum(0), mask)

    def _contributions(self, scores: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.task, Choice):
            return choice_probabilities(scores, mask, outside=self.task.outside)[0]
        if isinstance(self.task, SubsetChoice):
            return subset_probabilities(scores)
        return scores - mean_of_set(scores.unsqueeze(-1), mask).squeeze(-1)

    def _scores(self, mix: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.task, SubsetChoice):
            p = torch.minimum(torch.maximum(mix, self.bounds[0]), self.bounds[1])
            return torch.log(p / (1 - p))
        if not isinstance(self.task, Choice):
            return mix
        utilities = torch.log(torch.maximum(mix, self.bounds[0]))
        if not self.task.outside:
            return utilities
        nothing = 1.0 - torch.where(mask, mix, 0.0).sum(1, keepdim=True)
        return utilities - torch.log(torch.maximum(nothing, self.bounds[0]))

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features as the first net would, which knows the means and scales of all; codes at random.

        Without a net, as the first model would. To the nets, features as trees would draw them may be far from all that
        they learnt from.
        """
        first = next((i for i, model in enumerate(self.models) if isinstance(model, NetScores)), 0)
        own, situation = self.models[first].draw(n, m, rng)  # type: ignore[operator]
        if not self.categories or self.knows_codes[first]:
            return own, situation
        codes = dict(self.categories)
        objects = np.empty((n, m, self.n_features))
        for place in range(self.n_features):
            if place in codes:
                objects[..., place] = rng.integers(0, codes[place] + 2, size=(n, m))
            else:
                objects[..., place] = own[..., place_without_codes(place, self.categories)]
        return objects, situation


def _without_codes(objects: Tensor, categories: Sequence[tuple[int, int]]) -> Tensor:
    """Return codes as indicators, as :func:`entourage.data.decode.without_codes` does."""
    if not categories:
        return objects
    parts, at = [], 0
    for place, levels in sorted(categories):
        own = levels if levels <= MOST_LEVELS else MOST_LEVELS - 1
        code = objects[..., place : place + 1]
        parts += [objects[..., at:place], (code == torch.arange(1, own + 1)).double()]
        if own < levels:
            parts.append(((code > own) & (code <= levels)).double())
        at = place + 1
    return torch.cat([*parts, objects[..., at:]], dim=-1)
