"""Sums over batches of choices, so that what is computed of each object at once stays small."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from entourage.choice.likelihood import Floats, Index, Packed, stretches
from entourage.choice.optimise import slopes_by_differences

__all__ = ["Batch", "Batches"]

Contributions: TypeAlias = Callable[[Floats, Any, Index], tuple[Floats, Floats]]
Information: TypeAlias = Callable[[Floats, Any, Index, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some of the sets, or people, what was chosen, and their weights."""

    packed: Any
    chosen: Index
    weights: Floats
    units: slice  # which sets, or people


@dataclass(frozen=True, eq=False)
class Batches:
    """Choices in batches of whole sets, or of whole people where the choices of a person count together.

    A log-likelihood is a sum over these, and so are its gradient, its Hessian and the outer products of gradients.
    Where all fit, there is one batch. A batch is cut when its turn comes, so that one at a time is in memory.

    Attributes
    ----------
    packed : of all sets
    chosen : the place of the chosen object of each set among all objects, in the order of the input, (n,)
    weights : of each set, or person
    most : rows of a batch
    """

    packed: Packed
    chosen: Index
    weights: Floats
    most: int

    def __iter__(self) -> Iterator[Batch]:
        packed = self.packed
        if len(packed.features) <= self.most:
            yield Batch(packed, self.chosen, self.weights, slice(0, len(self.weights)))
            return
        rows = packed.rows_of(self.chosen)
        for start, stop in stretches(packed.ends, self.most):
            own = packed.chosen_in(rows, start, stop)
            yield Batch(packed.part(start, stop), own, self.weights[start:stop], slice(start, stop))

    def total(self, contributions: Contributions, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood and its gradient, (p,)."""
        value, gradient = 0.0, np.zeros(len(theta))
        for batch in self:
            values, slopes = contributions(theta, batch.packed, batch.chosen)
            value, gradient = value + float(batch.weights @ values), gradient + batch.weights @ slopes
        return value, gradient

    def information(self, information: Information, theta: Floats) -> Floats:
        """Return minus the Hessian, (p, p), given that of a batch."""
        found = np.zeros((len(theta), len(theta)))
        for batch in self:
            found = found + information(theta, batch.packed, batch.chosen, batch.weights)
        return found

    def information_by_differences(
        self, contributions: Contributions, theta: Floats, steps: Floats
    ) -> Floats:
        """Return minus the Hessian, (p, p), by differences of the gradient over all batches."""
        return slopes_by_differences(lambda at: -self.total(contributions, at)[1], theta, steps)

    def outer_products(
        self, contributions: Contributions, theta: Floats, groups: Index | None
    ) -> tuple[float, Floats]:
        """Return the log-likelihood, and the sum of the outer products of gradients, (p, p).

        Gradients are of sets, or of people where these count together; with ``groups``, one a set, of groups.
        """
        value, found = 0.0, np.zeros((len(theta), len(theta)))
        of_groups = np.zeros((0 if groups is None else int(groups.max()) + 1, len(theta)))
        for batch in self:
            values, slopes = contributions(theta, batch.packed, batch.chosen)
            value += float(batch.weights @ values)
            scores = slopes * batch.weights[:, None]
            if groups is None:
                found += scores.T @ scores
            else:
                np.add.at(of_groups, groups[batch.units], scores)
        return value, found if groups is None else of_groups.T @ of_groups
