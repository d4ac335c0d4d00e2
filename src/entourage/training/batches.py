"""Sets on the device: packed tensors, batches gathered from them, and scoring in bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entourage.data.batch_plan import plan_batches
from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.nets import Scorer
from entourage.training.processes import ALONE, Processes

__all__ = ["SCORE_OBJECTS", "Batch", "Resident", "SubsetResident", "predict_packed"]

BATCH_OBJECTS = 2**17  # objects in a training batch at most, padding included
BATCH_PAIRS = 2**26  # and pairs of objects, since losses and FETA need all of them
SCORE_OBJECTS = {"cpu": 2**14, "cuda": 2**18}  # objects scored at a time
DRAWN_KEYS = 2**22  # random numbers held while subsets are drawn


@dataclass
class Batch:
    """Sets of about one size, padded."""

    objects: Tensor  # (n, m, d), the situation appended to each object; (r, n, m, d) for r stacked nets
    mask: Tensor | None  # (n, m), None where there is no padding
    targets: Tensor | None  # (n, m)
    weights: Tensor | None  # (n,)

    @cached_property
    def present(self) -> Tensor:
        """The mask (n, m), even where there is no padding."""
        if self.mask is not None:
            return self.mask
        return self.objects.new_ones(self.objects.shape[:-1], dtype=torch.bool).flatten(0, -2)


class Resident:
    """Packed sets as tensors, on the device where they fit, from which a batch is one gather.

    Parameters
    ----------
    sets : what to hold; its features already standardised
    device : where batches are wanted
    weights : one a set, optional
    only : which sets, where their features are on disk
    on_batch : what a net sees of a batch and its mask, where their features are on disk
    """

    def __init__(
        self,
        sets: Sets,
        device: torch.device,
        weights: NDArray[Any] | None = None,
        *,
        only: NDArray[np.int64] | None = None,
        on_batch: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        self.device = device
        self.on_batch = on_batch
        self.count = len(sets) if only is None else len(only)
        self.uniform_size = None if sets.on_disk else sets.uniform_size
        if self.uniform_size is None:
            self.sizes = sets.sizes if only is None else sets.sizes[only]
        home = torch.device("cpu") if sets.on_disk else self._home(sets, device)
        raw = on_batch is not None  # standardised batch by batch, in the precision of the file
        self.objects = torch.from_numpy(sets.objects) if raw else _tensor(sets.objects, home)
        self.targets = None if sets.targets is None else _tensor(sets.targets, home)
        situation = sets.situation if only is None or sets.situation is None else sets.situation[only]
        self.situation = None if situation is None else _tensor(situation, home)
        self.weights = None if weights is None else _tensor(weights, home)
        self.home = home
        if self.uniform_size is not None:
            self.objects = self.objects.view(len(sets), self.uniform_size, -1)
            if self.targets is not None:
                self.targets = self.targets.view(len(sets), self.uniform_size)
        else:
            starts = sets.offsets[:-1] if only is None else sets.offsets[:-1][only]
            self.starts = torch.from_numpy(starts.copy()).to(home)
            self.lengths = torch.from_numpy(self.sizes).to(home)

    def __len__(self) -> int:
        return self.count

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many objects each set holds."""
        return np.full(self.count, self.uniform_size, dtype=np.int64)  # others are kept where they are made

    @property
    def gathers_by_index(self) -> bool:
        """Whether a batch is gathered on the device, by kernels that depend on no value."""
        return self.uniform_size is not None and self.home == self.device

    @staticmethod
    def _home(sets: Sets, device: torch.device) -> torch.device:
        if device.type != "cuda":
            return device
        free, _ = torch.cuda.mem_get_info(device)
        return device if 4 * (sets.objects.size + 2 * len(sets.objects)) < free // 2 else torch.device("cpu")

    def batch(self, chosen: Tensor | slice, *, like: Tensor | None = None) -> Batch:
        """Gather the chosen sets and pad them to the largest; a slice of equal sets is not even copied.

        A share of a batch is padded ``like`` the whole.
        """
        if self.uniform_size is not None:
            objects, mask = _rows(self.objects, chosen), None
            targets = None if self.targets is None else _rows(self.targets, chosen)
        else:
            lengths = self.lengths[chosen]
            largest = int((lengths if like is None else self.lengths[like]).max())
            places = torch.arange(largest, device=self.home)
            mask = places < lengths[:, None]  # (n, m)
            rows = torch.where(mask, self.starts[chosen][:, None] + places, 0)
            objects, targets = self._gather(rows, mask)
        return self._complete(objects, mask, targets, chosen)

    def _gather(self, rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Take packed objects and their targets; 0 and NaN in the padding."""
        objects = self.objects[rows]
        objects = (objects if self.on_batch is None else self.on_batch(objects, mask)) * mask.unsqueeze(-1)
        return objects, None if self.targets is None else torch.where(mask, self.targets[rows], torch.nan)

    def _complete(
        self, objects: Tensor, mask: Tensor | None, targets: Tensor | None, chosen: Tensor | slice
    ) -> Batch:
        """Join situations and weights to the objects of the chosen sets, and bring all to the device."""
        if self.situation is not None:
            shared = self.situation[chosen][:, None].expand(-1, objects.shape[1], -1)
            objects = torch.cat([objects, shared], dim=2)
        weights = None if self.weights is None else self.weights[chosen]
        if self.home != self.device:
            objects = objects.to(self.device, non_blocking=True)
            mask, targets, weights = (
                None if t is None else t.to(self.device, non_blocking=True) for t in (mask, targets, weights)
            )
        return Batch(objects, mask, targets, weights)

    def n_batches(self, batch_size: int) -> int:
        """How many batches an epoch has."""
        if self.uniform_size is not None:
            return -(-len(self) // self.sets_in_batch(batch_size))
        return len(plan_batches(self.sizes, batch_size, max_objects=BATCH_OBJECTS, max_pairs=BATCH_PAIRS))

    def epoch(self, batch_size: int, rng: np.random.Generator) -> list[Tensor]:
        """Split the sets into shuffled batches."""
        if self.uniform_size is not None:
            order = torch.from_numpy(rng.permutation(len(self))).to(self.home)
            return list(torch.split(order, self.sets_in_batch(batch_size)))
        plan = plan_batches(self.sizes, batch_size, max_objects=BATCH_OBJECTS, max_pairs=BATCH_PAIRS, rng=rng)
        return [torch.from_numpy(chosen).to(self.home) for chosen in plan]

    def sets_in_batch(self, batch_size: int) -> int:
        """How many sets of one size go into a batch."""
        return min(len(self), _most_sets(batch_size, self.uniform_size or 1))


class SubsetResident(Resident):
    """Sets from which every batch takes subsets, drawn anew.

    Parameters
    ----------
    subset_sizes : the smallest and the largest size; a batch draws one. A set with fewer objects comes whole
    per_set : how many subsets an epoch takes from each set
    """

    def __init__(
        self,
        sets: Sets,
        device: torch.device,
        weights: NDArray[Any] | None = None,
        *,
        subset_sizes: tuple[int, int],
        per_set: int = 1,
        only: NDArray[np.int64] | None = None,
        on_batch: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(sets, device, weights, only=only, on_batch=on_batch)
        if self.uniform_size is not None:
            self.objects = self.objects.flatten(0, 1)
            self.targets = None if self.targets is None else self.targets.flatten()
            self.starts = torch.from_numpy(sets.offsets[:-1].copy()).to(self.home)
            self.sizes, self.uniform_size = sets.sizes, None
        largest = int(self.sizes.max())
        self.subset_sizes = min(subset_sizes[0], largest), min(subset_sizes[1], largest)
        self.per_set = per_set
        self.padded = bool(self.sizes.min() < self.subset_sizes[1])

    def n_batches(self, batch_size: int) -> int:
        """How many batches an epoch has."""
        return -(-len(self) * self.per_set // _most_sets(batch_size, self.subset_sizes[1]))

    def epoch(self, batch_size: int, rng: np.random.Generator) -> list[Tensor]:
        """Draw the subsets of an epoch: for each batch the sets, then the places in them, -1 for padding."""
        low, high = self.subset_sizes
        order = rng.permutation(np.repeat(np.arange(len(self)), self.per_set))
        step = _most_sets(batch_size, high)
        batches = []
        for start in range(0, len(order), step):
            chosen = order[start : start + step]
            places = _draw_places(self.sizes[chosen], int(rng.integers(low, high + 1)), rng)  # (n, m)
            batches.append(torch.from_numpy(np.column_stack([chosen, places])).to(self.home))
        return batches

    def batch(self, chosen: Tensor | slice, *, like: Tensor | None = None) -> Batch:
        """Gather the subsets of a batch that `epoch` drew; those of a batch are of one size."""
        if isinstance(chosen, slice):
            raise ParameterError(
                "Subsets are drawn by epoch(); a slice of the sets is not a batch of subsets."
            )
        sets, places = chosen[:, 0], chosen[:, 1:]
        mask = places >= 0
        objects, targets = self._gather(torch.where(mask, self.starts[sets][:, None] + places, 0), mask)
        return self._complete(objects, mask if self.padded else None, targets, sets)


def _most_sets(batch_size: int, size: int) -> int:
    """How many sets of a size go into a batch, so that it fits into memory."""
    return int(max(1, min(batch_size, BATCH_OBJECTS // size, BATCH_PAIRS // size**2)))


def _draw_places(sizes: NDArray[np.int64], m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw m different places in each of n sets, all of them where there are no more: ``(n, m)``, -1 for padding."""
    largest = int(sizes.max())
    m = min(m, largest)
    drawn = np.empty((len(sizes), m), dtype=np.int64)
    step = max(1, DRAWN_KEYS // largest)
    for start in range(0, len(sizes), step):
        part = slice(start, start + step)
        keys = rng.random((len(sizes[part]), largest), dtype=np.float32)
        keys[np.arange(largest) >= sizes[part, None]] = np.inf
        drawn[part] = np.argpartition(keys, m - 1, axis=1)[:, :m]
    return np.where(drawn < sizes[:, None], drawn, -1)


@torch.no_grad()
def predict_packed(
    scorer: Scorer,
    data: Resident,
    on_batch: Callable[[int], None] | None = None,
    processes: Processes = ALONE,
) -> Tensor:
    """Score all objects, packed in the order they came, in bounded memory; of several, each process some batches."""
    if scorer.training:
        scorer.eval()
    most = SCORE_OBJECTS.get(data.device.type, SCORE_OBJECTS["cpu"])
    if data.uniform_size is not None:
        step = max(1, most // data.uniform_size)
        if processes.several:
            step = max(1, min(step, -(-len(data) // processes.count)))
        parts = []
        for i, start in enumerate(range(0, len(data), step)):
            some = slice(start, min(start + step, len(data)))
            if i % processes.count != processes.rank:
                parts.append(torch.zeros(some.stop - start, data.uniform_size, device=data.device))
                continue
            parts.append(scorer(data.batch(some).objects).float())
            if on_batch is not None:
                on_batch(len(parts[-1]))
        return processes.sum((parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(-1))
    result = torch.zeros(int(data.sizes.sum()), device=data.device)
    starts = data.starts.to(data.device)
    plan = plan_batches(data.sizes, most, max_objects=most)
    for chosen in plan[processes.share(len(plan))]:
        index = torch.from_numpy(chosen).to(data.home)
        batch = data.batch(index)
        scores = scorer(batch.objects, batch.mask).float()
        places = torch.arange(scores.shape[1], device=data.device)
        rows = starts[index.to(data.device)][:, None] + places
        result[rows[batch.present]] = scores[batch.present]
        if on_batch is not None:
            on_batch(len(chosen))
    return processes.sum(result)


def _rows(values: Tensor, chosen: Tensor | slice) -> Tensor:
    if not isinstance(chosen, slice):
        return values.index_select(0, chosen)
    return values if chosen == slice(0, len(values)) else values[chosen]


def _tensor(values: NDArray[Any], device: torch.device) -> Tensor:
    with np.errstate(over="ignore"):  # of held-out ranks beyond float32, which are scored as they came
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(device)
