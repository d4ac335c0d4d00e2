"""Models without a net in a graph: linear utilities, boosted trees, and the best single column."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from entourage.estimators.baselines import BestColumn
from entourage.estimators.baselines.trees import Trees
from entourage.serving.onnx.scorer import (
    FeatureScorer,
    Floats,
    doubles,
    look_up,
    table_of,
    with_situation,
)
from entourage.serving.onnx.views import Interpolation, MappedColumns, Standings, draw_mapped
from entourage.training.quantile_map import QuantileMap

__all__ = ["ColumnScores", "LinearScores", "TreeScores", "TreesOfFeatures"]

ZERO = float(np.float32(1e-35))  # as in entourage.estimators.baselines.trees


class _Wider(FeatureScorer):
    """What baselines share: they see standings behind the features, and the situation behind these."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.standings = None if model.relative_ is None else Standings(model.relative_)
        self.n_own, self.n_situation = model.n_features_in_, model.n_situation_features_in_
        self.n_columns = model.n_columns

    def wide(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Return all that is seen of an object."""
        if self.standings is not None:
            objects = torch.cat([objects, self.standings(objects, mask)], dim=-1)
        return with_situation(objects, situation)

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features by their means and scales."""
        found, mean, scale = self.typical()
        objects = draw_mapped(found, mean, scale, (n, m), rng)[..., : self.n_own]
        situation = draw_mapped(found, mean, scale, (n,), rng)[..., self.n_columns :]
        return objects, situation

    def typical(self) -> tuple[QuantileMap | None, Floats, Floats]:
        """Return what features are mapped by, their means and their scales."""
        width = self.n_columns + self.n_situation
        return None, np.zeros(width), np.ones(width)


class LinearScores(_Wider):
    """RankSVM and LinearRanker: a linear utility of standardised features."""

    drawn_by = frozenset({"found"})

    mean: Tensor
    scale: Tensor
    coef: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        own = getattr(model, "map_", None)
        self.found: QuantileMap | None = own if own is not None and own.places else None
        width = self.n_columns + self.n_situation
        self.mapped = nn.Identity() if self.found is None else MappedColumns(self.found, width)
        self.register_buffer("mean", doubles(model.mean_))
        self.register_buffer("scale", doubles(model.scale_))
        self.register_buffer("coef", doubles(model.coef_))

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        features = self.mapped(self.wide(objects, mask, situation))
        scores: Tensor = ((features - self.mean) / self.scale) @ self.coef
        return scores

    def typical(self) -> tuple[QuantileMap | None, Floats, Floats]:
        """Return those that were learnt."""
        return self.found, self.mean.numpy(), self.scale.numpy()


class ColumnScores(_Wider):
    """BestColumn, BestColumnLogit and BestColumnSubset: one column, or a monotone map of it."""

    drawn_by = frozenset({"knots"})

    line: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.index = model.index_
        self.knots: Floats | None = None
        self.mapped: nn.Module = nn.Identity()
        if isinstance(model, BestColumn):
            line = [0.0, -1.0 if model.ascending_ else 1.0]
        else:
            line = [model.intercept_, model.coef_]
            self.knots = model.knots_
            self.mapped = Interpolation([model.knots_], [model.levels_])
        self.register_buffer("line", doubles(line))

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        column: Tensor = self.mapped(objects[..., self.index : self.index + 1]).squeeze(-1)
        return self.line[0] + self.line[1] * column

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the column from a little more than the range of its knots."""
        objects, situation = super().draw(n, m, rng)
        if self.knots is not None:
            low, high = self.knots[0], self.knots[-1]
            objects[..., self.index] = low + rng.uniform(-0.1, 1.1, size=(n, m)) * (high - low)
        return objects, situation


class TreeScores(_Wider):
    """LambdaMART, BoostedLogit and BoostedSubset: boosted trees."""

    drawn_by = frozenset({"feature", "threshold"})

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.trees = TreesOfFeatures(model.trees_)
        self.feature, self.threshold = model.trees_.feature, model.trees_.threshold

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        scores: Tensor = self.trees(self.wide(objects, mask, situation))
        return scores

    def typical(self) -> tuple[QuantileMap | None, Floats, Floats]:
        """Return means and spreads of the thresholds of each feature."""
        found, mean, scale = super().typical()
        for place in np.unique(self.feature):
            own = self.threshold[self.feature == place]
            mean[place], scale[place] = own.mean(), own.std() or max(1e-3, abs(own[0]) / 10)
        return found, mean, scale


class TreesOfFeatures(nn.Module):
    """A sum of trees: all objects go down all trees at once, a level in each step.

    Examples
    --------
    >>> trees = Trees(
    ...     feature=np.array([0, 1]),
    ...     threshold=np.array([0.5, 0.0]),
    ...     left=np.array([-1, -2]),
    ...     right=np.array([1, -3]),
    ...     value=np.array([1.0, 2.0, 3.0]),
    ...     leaves=np.array([3]),
    ... )
    >>> TreesOfFeatures(trees)(torch.tensor([[[0.5, 9.0], [0.6, 0.0], [0.6, 0.1]]]).double()).tolist()
    [[1.0, 2.0, 3.0]]
    """

    any_size = frozenset({"roots", "feature", "threshold", "next_nodes", "value"})

    roots: Tensor
    feature: Tensor
    threshold: Tensor
    next_nodes: Tensor
    value: Tensor
    count: Tensor

    def __init__(self, trees: Trees) -> None:
        super().__init__()
        nodes, leaves = len(trees.feature), len(trees.value)
        sizes = trees.leaves - 1
        first_node, first_leaf = np.cumsum(sizes) - sizes, np.cumsum(trees.leaves) - trees.leaves
        tree = np.repeat(np.arange(trees.count), sizes)

        def place(child: Any) -> Any:
            """Return its number among all nodes and, behind them, all leaves."""
            return np.where(child >= 0, child + first_node[tree], nodes + first_leaf[tree] - 1 - child)

        itself = np.arange(nodes, nodes + leaves)  # who is at a leaf stays there
        left, right = (np.append(place(side), itself) for side in (trees.left, trees.right))
        roots = np.where(sizes > 0, first_node, nodes + first_leaf)
        self.depth = _depth(roots, left, right, nodes)
        features = np.append(trees.feature, np.zeros(leaves, np.int64))
        self.register_buffer("roots", torch.from_numpy(roots))
        self.register_buffer("feature", table_of(torch.from_numpy(features)))
        self.register_buffer("threshold", table_of(doubles(np.append(trees.threshold, np.zeros(leaves)))))
        self.register_buffer("next_nodes", table_of(torch.from_numpy(np.append(left, right))))
        self.register_buffer("value", table_of(doubles(np.append(np.zeros(nodes), trees.value))))
        self.register_buffer(
            "count", torch.tensor(nodes + leaves)
        )  # no number of the graph is one of these trees

    def forward(self, features: Tensor) -> Tensor:
        """Score ``features (n, m, d)``: ``(n, m)``."""
        features = torch.where(features.abs() <= ZERO, 0.0, features)
        at = self.roots + torch.zeros_like(features[..., :1], dtype=torch.int64)  # (n, m, trees)
        for _ in range(self.depth):
            asked = features.gather(-1, look_up(self.feature, at))
            goes_right = (asked > look_up(self.threshold, at)).to(torch.int64)
            at = look_up(self.next_nodes, at + self.count * goes_right)
        return look_up(self.value, at).sum(-1)


def _depth(roots: Any, left: Any, right: Any, nodes: int) -> int:
    """Return how many steps the deepest tree takes."""
    here, steps = np.unique(roots[roots < nodes]), 0
    while len(here):
        here = np.unique(np.concatenate([left[here], right[here]]))
        here, steps = here[here < nodes], steps + 1
    return steps
