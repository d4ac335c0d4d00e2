"""Regression trees as plain arrays: a boosted model scores by them, and a model file holds them.

LightGBM grows the trees. From then on they are numbers, so that a model scores to the bit alike on a machine without
LightGBM, and a file of them holds no code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.training.file_checks import Arrays, need

__all__ = ["Trees"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

_TYPES: dict[str, Any] = {
    "feature": np.int64,
    "threshold": np.float64,
    "left": np.int64,
    "right": np.int64,
    "value": np.float64,
    "leaves": np.int64,
}
ZERO = float(np.float32(1e-35))  # LightGBM takes what is no further from 0 for 0
ROWS = 16_384  # scored at a time: a column of so many stays in the cache


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of binary regression trees.

    Nodes and leaves of all trees lie behind each other, and children are numbered within their tree. An object goes
    left at a node where ``x[feature] <= threshold``. A tree of one leaf has no node.

    Parameters
    ----------
    feature : (nodes,), which feature a node asks for
    threshold : (nodes,)
    left, right : (nodes,), the children of a node: i is node i, -1 - i is leaf i. Nodes come after their parents
    value : (leaves,), what a leaf adds to the score
    leaves : (trees,), how many leaves each tree has; one less are its nodes

    Examples
    --------
    One tree: 1 where the first feature is at most 0.5, otherwise 2 or 3 by the second.

    >>> trees = Trees(
    ...     feature=np.array([0, 1]),
    ...     threshold=np.array([0.5, 0.0]),
    ...     left=np.array([-1, -2]),
    ...     right=np.array([1, -3]),
    ...     value=np.array([1.0, 2.0, 3.0]),
    ...     leaves=np.array([3]),
    ... )
    >>> trees.score(np.array([[0.5, 9.0], [0.6, 0.0], [0.6, 0.1]]))
    array([1., 2., 3.])
    """

    feature: Index
    threshold: Floats
    left: Index
    right: Index
    value: Floats
    leaves: Index

    @property
    def count(self) -> int:
        """How many trees there are."""
        return len(self.leaves)

    @classmethod
    def of(cls, booster: Any, count: int | None = None) -> Self:
        """Take the first ``count`` trees of a LightGBM booster of numerical features without missing values."""
        parts: dict[str, list[Any]] = {name: [] for name in _TYPES}
        trees = booster.dump_model(num_iteration=-1 if count is None else count)["tree_info"]
        for tree in trees:
            before = len(parts["value"])
            _take(tree["tree_structure"], parts)
            parts["leaves"].append(len(parts["value"]) - before)
        return cls(**{name: np.array(part, dtype=_TYPES[name]) for name, part in parts.items()})

    @classmethod
    def mean(cls, members: Sequence[Self], base: float = 0.0) -> Self:
        """Return trees whose score is a constant and the mean of the members' scores."""
        empty = {name: np.empty(0, dtype=kind) for name, kind in _TYPES.items()}
        start = cls(**empty | {"value": np.array([base]), "leaves": np.array([1])})
        scaled = [replace(m, value=m.value / len(members)) for m in members]
        parts = [start, *scaled] if base else scaled
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES})

    def score(self, features: NDArray[Any]) -> Floats:
        """Return the sum of the trees for each row of (rows, features), in float64; trees are added in their order."""
        scores = np.zeros(len(features))
        used, column = np.unique(self.feature, return_inverse=True)
        nodes = list(
            zip(
                column.tolist(),
                self.threshold.tolist(),
                self.left.tolist(),
                self.right.tolist(),
                strict=True,
            )
        )
        value, leaves = self.value.tolist(), self.leaves.tolist()
        for begin in range(0, len(features), ROWS):
            rows = slice(begin, begin + ROWS)
            wide = np.ascontiguousarray(features[rows].astype(np.float64, copy=False).T[used])
            wide[np.abs(wide) <= ZERO] = 0.0
            columns = list(wide)
            node = leaf = 0
            for size in leaves:
                _add(nodes[node : node + size - 1], value[leaf : leaf + size], columns, scores[rows])
                node, leaf = node + size - 1, leaf + size
        return scores

    # --- files ------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Return what a model file keeps."""
        return {f"trees.{name}": torch.from_numpy(value.copy()) for name, value in vars(self).items()}

    @classmethod
    def taken_from(cls, arrays: Arrays, n_features: int) -> Self:
        """Make trees of the arrays of a file, if they are trees and ask for features that there are."""
        leaves = arrays.take("trees.leaves", None, torch.int64)
        value = arrays.take("trees.value", None, finite=True)
        right = bool((leaves >= 1).all()) and len(leaves) <= len(value)  # so that no sum overflows
        need(right and bool((leaves <= len(value)).all()), "a tree has no leaf, or more than there are.")
        need(int(leaves.sum()) == len(value), "the leaves of the trees are not as many as there are values.")
        shape = (len(value) - len(leaves),)
        feature = arrays.take("trees.feature", shape, torch.int64)
        threshold = arrays.take("trees.threshold", shape, finite=True)
        to_left, to_right = (arrays.take(f"trees.{side}", shape, torch.int64) for side in ("left", "right"))
        need(bool(((feature >= 0) & (feature < n_features)).all()), "trees ask for features that are none.")
        _check_children(to_left, to_right, leaves)
        return cls(feature, threshold, to_left, to_right, value, leaves)


def _take(root: dict[str, Any], parts: dict[str, list[Any]]) -> None:
    """Add a tree of LightGBM's dump: its nodes, each before its children, and its leaves."""
    first_node, first_leaf = len(parts["feature"]), len(parts["value"])
    waiting: list[tuple[dict[str, Any], str, int]] = [(root, "", 0)]  # (what, which child, of which node)
    while waiting:
        found, side, parent = waiting.pop()
        if "split_feature" in found:
            if found["decision_type"] != "<=" or found["missing_type"] != "None":
                raise NotImplementedError("Trees hold splits of numbers without missing values.")
            code = len(parts["feature"]) - first_node
            parts["feature"].append(found["split_feature"])
            parts["threshold"].append(found["threshold"])
            parts["left"].append(0)
            parts["right"].append(0)
            at = first_node + code
            waiting += [(found["right_child"], "right", at), (found["left_child"], "left", at)]
        else:
            code = -1 - (len(parts["value"]) - first_leaf)
            parts["value"].append(found["leaf_value"])
        if side:
            parts[side][parent] = code


def _add(
    nodes: list[tuple[int, float, int, int]], value: list[float], columns: list[Floats], scores: Floats
) -> None:
    """Add the value of a tree to the score of each object: its objects go down the tree together, and part."""
    if not nodes:
        scores += value[0]
        return
    waiting = [(0, np.arange(len(scores)))]  # a node, and which objects came there
    while waiting:
        node, here = waiting.pop()
        if node < 0:
            scores[here] += value[-1 - node]
            continue
        column, threshold, left, right = nodes[node]
        goes_left = columns[column].take(here) <= threshold
        for child, some in ((left, here.compress(goes_left)), (right, here.compress(~goes_left))):
            if len(some):
                waiting.append((child, some))


def _check_children(left: Index, right: Index, leaves: Index) -> None:
    """See that every tree is one: all but its first node are the child of one earlier node."""
    nodes = leaves - 1
    tree = np.repeat(np.arange(len(leaves)), nodes)
    first_node, first_leaf = np.cumsum(nodes) - nodes, np.cumsum(leaves) - leaves
    own = np.arange(len(tree)) - first_node[tree]
    found_nodes, found_leaves = [], []
    for child in (left, right):
        inner = child >= 0
        later = (child > own) & (child < nodes[tree])
        need(bool(np.where(inner, later, child >= -leaves[tree]).all()), "a child in a tree is none of it.")
        found_nodes.append((child + first_node[tree])[inner])
        found_leaves.append((-1 - child + first_leaf[tree])[~inner])
    inner_nodes = np.flatnonzero(own > 0)
    once = np.array_equal(np.sort(np.concatenate(found_nodes)), inner_nodes)
    once = once and np.array_equal(np.sort(np.concatenate(found_leaves)), _leaves_below(leaves, first_leaf))
    need(once, "nodes of a tree are the child of none, or of two.")


def _leaves_below(leaves: Index, first_leaf: Index) -> Index:
    """Return the leaves that have a parent: all but those of trees of one leaf."""
    return np.setdiff1d(np.arange(leaves.sum()), first_leaf[leaves == 1])
