"""Utilities of an object in sub-contexts of k others: eq. (agg) of the paper for k >= 2."""

from math import comb

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from entourage.data.shapes import Mask, Objects, Scores
from entourage.nets.layers import MLP

__all__ = ["SubcontextMean"]

TILE_NUMBERS = 2**21  # hidden numbers worked on at a time where no gradient is needed
GRADIENT_NUMBERS = 2**26  # of all sub-contexts, above which training computes tiles twice to save memory


class SubcontextMean(torch.nn.Module):
    r"""The average of a symmetric :math:`U_k(x, C')` over the sub-contexts C' of size k.

    :math:`U_k(x, C') = U(x, \frac{1}{k} \sum_{y \in C'} \varphi(y))`, which is symmetric in C' whatever
    :math:`\varphi` and :math:`U` are.

    All sub-contexts are evaluated where there are at most ``max_subcontexts`` of them; otherwise
    ``max_subcontexts`` are drawn, each sub-context with the same probability, so the mean is unbiased.
    In training every step draws anew; in evaluation the draw is always the same, and since it goes by
    the objects' features rather than by their places, it doesn't depend on the order of presentation.
    (Duplicates, equal in all features, are given different sub-contexts then, and so may differ in score.)

    How: objects are arranged in a circle. The sub-contexts of object ``i`` are ``i + shift_1, ..., i + shift_k``
    for the k-element sets of shifts in ``1 ... size - 1``, the same shifts for all objects of a set.
    """

    def __init__(
        self,
        embedding: MLP,
        utility: MLP,
        *,
        k: int,
        max_subcontexts: int,
        squash: bool,
        n_features: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.embedding, self.utility = embedding, utility
        self.k, self.max_subcontexts, self.squash = k, max_subcontexts, squash
        self.seed: Tensor
        self.draws: Tensor
        self.direction: Tensor
        self.register_buffer("seed", torch.randint(2**62, (1,), generator=generator))
        self.register_buffer("draws", torch.zeros(1, dtype=torch.int64))  # saved: a resumed run draws on
        self.register_buffer("direction", torch.randn(n_features, generator=generator))

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        """Return the average over sub-contexts for each object, 0 where the context is smaller than k."""
        n, m, _ = objects.shape
        if self.training:
            self.draws += 1
        there = objects.new_ones((n, m), dtype=torch.bool) if mask is None else mask
        key = (objects.detach().double() * self.direction.double()).sum(-1)
        order = torch.where(there, key, torch.inf).argsort(dim=1, stable=True)  # padding comes last
        ordered = objects.gather(1, order[:, :, None].expand_as(objects))
        sizes = there.sum(1)
        exact = torch.tensor(
            [comb(max(size - 1, 0), self.k) <= self.max_subcontexts for size in sizes.tolist()]
        )
        exact = exact.to(objects.device)
        means = objects.new_zeros(n, m)
        if exact.any():
            found = self._mean(ordered[exact], sizes[exact], self._all_shifts(sizes[exact]))
            means[exact] = found.to(means.dtype)
        if not exact.all():
            found = self._mean(ordered[~exact], sizes[~exact], self._drawn_shifts(sizes[~exact]))
            means[~exact] = found.to(means.dtype)
        return torch.zeros_like(means).scatter(1, order, means)

    def _all_shifts(self, sizes: Tensor) -> Tensor:
        """All k-element sets of shifts up to the largest size: (1, t, k)."""
        others = torch.arange(1, max(int(sizes.max()), 1), device=sizes.device)
        return torch.combinations(others, self.k).view(1, -1, self.k)

    def _drawn_shifts(self, sizes: Tensor) -> Tensor:
        """Floyd's algorithm: uniform k-element subsets of 1 ... size - 1, for each set: (n, t, k)."""
        seed = (int(self.seed) + (int(self.draws) if self.training else 0)) % 2**63
        generator = torch.Generator().manual_seed(seed)
        uniform = torch.rand(self.max_subcontexts, self.k, generator=generator, dtype=torch.float64)
        uniform = uniform.to(sizes.device)
        chosen: list[Tensor] = []
        for step in range(self.k):
            last = (sizes - self.k + step)[:, None]  # (n, 1): pick from 1 ... last
            pick = (uniform[:, step] * last).long() + 1  # (n, t)
            taken = torch.stack([earlier == pick for earlier in chosen]).any(0) if chosen else None
            chosen.append(pick if taken is None else torch.where(taken, last.expand_as(pick), pick))
        return torch.stack(chosen, dim=-1)

    def _mean(self, objects: Tensor, sizes: Tensor, shifts: Tensor) -> Tensor:
        n, m, _ = objects.shape
        there = torch.arange(m, device=objects.device) < sizes[:, None]  # (n, m)
        if shifts.shape[1] == 0:
            return objects.new_zeros(n, m)
        embedded = self.embedding(objects, there)  # (n, m, e)
        own, context = self.utility.first(objects, embedded)  # (n, m, h) each; linear, so means pass through
        per_subcontext = n * m * own.shape[-1] * self.k
        gradients = torch.is_grad_enabled()
        whole = gradients and per_subcontext * shifts.shape[1] <= GRADIENT_NUMBERS
        if whole or (self.training and self.utility.statistics_need_all):
            total, count = self._sum(own, context, sizes, shifts)
            return total / count.clamp(min=1)
        step = max(1, (GRADIENT_NUMBERS // 8 if gradients else TILE_NUMBERS) // per_subcontext)
        total, count = objects.new_zeros(n, m), objects.new_zeros(n, 1)
        for some in torch.split(shifts, step, dim=1):
            arguments = (own, context, sizes, some)
            if gradients:
                part = checkpoint(self._sum, *arguments, use_reentrant=False, preserve_rng_state=False)
            else:
                part = self._sum(*arguments)
            total, count = total + part[0], count + part[1]
        return total / count.clamp(min=1)

    def _sum(self, own: Tensor, context: Tensor, sizes: Tensor, shifts: Tensor) -> tuple[Tensor, Tensor]:
        """Sum over the sub-contexts at these shifts, (n, m), and how many of them there are, (n, 1)."""
        n, m, h = own.shape
        t = shifts.shape[1]
        places = torch.arange(m, device=own.device)
        there = places < sizes[:, None]  # (n, m)
        fits = (shifts.amax(-1) < sizes[:, None])[:, None] & there[:, :, None]  # (n, m, t)
        partners = (places[:, None, None] + shifts[:, None]) % sizes.clamp(min=1)[:, None, None, None]
        flat = partners.reshape(n, -1, 1).expand(-1, -1, h)  # (n, m t k, h)
        mean_context = context.gather(1, flat).view(n, m, t, self.k, h).mean(3)  # (n, m, t, h)
        values = self.utility.after_first(own[:, :, None] + mean_context, fits).squeeze(-1)
        if self.squash:
            values = torch.sigmoid(values)
        return torch.where(fits, values, 0.0).sum(2), fits[:, 0].sum(1, keepdim=True)
