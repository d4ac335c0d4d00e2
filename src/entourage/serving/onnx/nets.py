"""Nets and ensembles of nets in a graph, with what they see of sets."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from entourage.nets import Scorer
from entourage.nets.ensemble import Stack
from entourage.nets.subcontexts import SubcontextMean
from entourage.serving.onnx.refusal import ExportError
from entourage.serving.onnx.scorer import FeatureScorer, Floats
from entourage.serving.onnx.views import ViewOfSets, draw_mapped

__all__ = ["NetScores"]


class NetScores(FeatureScorer):
    """The net of a Ranker, DiscreteChooser or SubsetChooser; the mean of the members of an ensemble."""

    drawn_by = frozenset({"fitted_view", "codes"})

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.view = ViewOfSets(model.view_)
        self.nets = nn.ModuleList(_members(model.scorer_))
        if any(isinstance(module, SubcontextMean) for module in self.nets.modules()):
            raise ExportError(
                f"{model.net_!r} can't be exported: which sub-contexts it evaluates depends on the values of the "
                "features and on the size of the set, which a graph can't follow. Fit FETA(order=1), FATE() or "
                "SetAttention() instead."
            )
        self.fitted_view, self.codes = model.view_, list(model.categories_)

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        seen = self.view(objects, mask, situation)
        scores = [net(seen, mask) for net in self.nets]
        mean = scores[0] if len(scores) == 1 else torch.stack(scores).mean(0)
        return mean.double()

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features by the view; codes at random, some of them never seen."""
        view = self.fitted_view
        d, s = view.n_features
        means, scales = view.standardise.means, view.standardise.scales
        objects = draw_mapped(view.maps[0], means[0][:d], scales[0][:d], (n, m), rng)
        for place, levels in self.codes:
            objects[..., place] = rng.integers(0, levels + 2, size=(n, m))
        if not s:
            return objects, np.zeros((n, 0))
        return objects, draw_mapped(view.maps[1], means[1], scales[1], (n,), rng)


def _members(scorer: Scorer) -> list[Scorer]:
    """Return copies of the nets on the CPU, ready to score."""
    found = (
        [scorer.scorer(i) for i in range(scorer.members)]
        if isinstance(scorer, Stack)
        else [copy.deepcopy(scorer)]
    )
    return [one.cpu().float().eval() for one in found]
