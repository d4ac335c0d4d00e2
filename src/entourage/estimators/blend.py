"""A blend: several fitted models whose predictions are averaged with weights. What ``net="auto"`` fits.

Utilities of rankings are centred in each set and divided by their spread on held-out sets, so that no model counts
more because its numbers are larger. Of choices, probabilities are averaged, and the score is the utility that has this
probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.decode import without_codes
from entourage.data.sets import Sets
from entourage.estimators.base import SetPredictor
from entourage.estimators.plugins import model_class, model_names
from entourage.tasks import Choice, SubsetChoice, Task
from entourage.training.file_checks import need, take

__all__ = ["LEAST", "Blend", "Part", "contribution", "mixed_scores", "sets_for", "spread_of"]

Floats: TypeAlias = NDArray[np.float64]

LEAST = 1e-12  # a probability of 0 would be a utility of minus infinity
MOST_MODELS = 1_000  # in a file


@dataclass(frozen=True)
class Part:
    """One candidate of a blend: its models, one a fold, and what it counts."""

    name: str
    weight: float
    models: Sequence[SetPredictor]
    scales: Sequence[float]  # by which the scores of each model are divided


@dataclass(frozen=True)
class Blend:
    """Fitted models and their weights.

    Parameters
    ----------
    task : of all
    parts : the candidates
    categories : places of codes among the features, and their numbers of levels
    """

    task: Task
    parts: Sequence[Part]
    categories: Sequence[tuple[int, int]] = ()

    def scores(self, sets: Sets, device: str = "auto") -> Floats:
        """Score all objects of sets, packed; nets on a device."""
        bare = sets.with_position(None)
        mix = np.zeros(len(sets.objects))
        for part in self.parts:
            share = part.weight / len(part.models)
            for model, scale in zip(part.models, part.scales, strict=True):
                if getattr(model, "device", device) != device:
                    model.set_params(device=device)
                seen = sets_for(model, bare, self.categories)
                mix += share * contribution(self.task, seen, model.predict_scores(seen), scale)
        return mixed_scores(self.task, sets, mix)

    def describe(self) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
        """Return what a file holds of it: JSON content, and tensors."""
        content: list[dict[str, Any]] = []
        tensors: dict[str, Tensor] = {}
        for i, part in enumerate(self.parts):
            models = []
            for j, model in enumerate(part.models):
                described, arrays = model.describe()
                models.append(described)
                tensors |= {f"part{i}.{j}.{name}": value for name, value in arrays.items()}
            own = {"name": part.name, "weight": part.weight, "scales": list(part.scales), "models": models}
            content.append(own)
        return content, tensors

    @classmethod
    def from_file(
        cls,
        task: Task,
        content: Any,
        tensors: dict[str, Tensor],
        n_features: tuple[int, int],
        categories: Sequence[tuple[int, int]],
    ) -> Self:
        """Make it again, each of its models checked as one of a file of its own would be."""
        need(isinstance(content, list) and len(content) > 0, "a blend needs at least one model.")
        of_model: dict[tuple[str, str], dict[str, Tensor]] = {}
        for name, value in tensors.items():
            first, _, rest = name.partition(".")
            second, _, own = rest.partition(".")
            of_model.setdefault((first, second), {})[own] = value
        parts = []
        for i, one in enumerate(content):
            models, scales = one.get("models"), take(one, "scales", list[float])
            need(
                isinstance(models, list) and 0 < len(models) == len(scales), "a part of a blend is malformed."
            )
            need(
                len(models) <= MOST_MODELS and all(0 < scale < np.inf for scale in scales),
                "a scale is not above 0.",
            )
            made = []
            for j, described in enumerate(models):
                need(isinstance(described, dict) and "blend" not in described, "a blend is within a blend.")
                name = take(described, "estimator", str)
                need(name in model_names(), "a part of a blend is of an unknown kind.")
                made.append(model_class(name).from_file(described, of_model.pop((f"part{i}", str(j)), {})))
                _check_fits(made[-1], task, n_features, categories)
            weight = take(one, "weight", float)
            need(0 < weight <= 1, "a weight of a blend is not between 0 and 1.")
            parts.append(Part(take(one, "name", str), weight, made, scales))
        need(not of_model, "it holds numbers of which nothing is known.")
        return cls(task, parts, list(categories))


def _check_fits(
    model: Any, task: Task, n_features: tuple[int, int], categories: Sequence[tuple[int, int]]
) -> None:
    """See that a model scores what the blend is given."""
    blank = Sets(
        np.zeros((1, n_features[0])), [0, 1], None, np.zeros((1, n_features[1])) if n_features[1] else None
    )
    seen = sets_for(model, blank, categories)
    came = model.n_features_in_, model.n_situation_features_in_
    need(came == (seen.n_features, seen.n_situation_features), "a part of a blend has other features.")
    need(type(model.task) is type(task), "a part of a blend is of another task.")


def sets_for(model: Any, sets: Sets, categories: Sequence[tuple[int, int]]) -> Sets:
    """Return sets as a model of the blend takes them: codes of levels as indicators, unless it is a net's."""
    return sets if model.level_codes else without_codes(sets, categories)


def contribution(task: Task, sets: Sets, scores: NDArray[Any], scale: float = 1.0) -> Floats:
    """Return what a model adds to the mix: probabilities, or centred utilities over their scale."""
    values = scores.astype(np.float64)
    if isinstance(task, Choice | SubsetChoice):
        return np.asarray(task.probabilities(sets, values))
    means = np.add.reduceat(values, sets.offsets[:-1]) / sets.sizes
    return (values - np.repeat(means, sets.sizes)) / scale


def mixed_scores(task: Task, sets: Sets, mix: Floats) -> Floats:
    """Return the scores that a mix stands for."""
    if isinstance(task, SubsetChoice):
        p = np.clip(mix, LEAST, 1 - LEAST)
        return np.asarray(np.log(p / (1 - p)))
    if not isinstance(task, Choice):
        return mix
    utilities = np.log(np.maximum(mix, LEAST))
    if not task.outside:
        return utilities
    nothing = 1.0 - np.add.reduceat(mix, sets.offsets[:-1])
    return np.asarray(utilities - np.repeat(np.log(np.maximum(nothing, LEAST)), sets.sizes))


def spread_of(sets: Sets, scores: NDArray[Any]) -> float:
    """Return the root mean square of utilities centred in their sets; 1 where they don't vary."""
    values = scores.astype(np.float64)
    means = np.add.reduceat(values, sets.offsets[:-1]) / sets.sizes
    spread = float(np.sqrt(np.mean((values - np.repeat(means, sets.sizes)) ** 2)))
    return spread if np.isfinite(spread) and spread > 0 else 1.0
