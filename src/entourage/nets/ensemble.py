"""Several nets of one description as one module: every weight has an axis of members in front."""

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from entourage.data.shapes import Mask, Objects, Scores
from entourage.errors import ParameterError
from entourage.nets.base import Scorer
from entourage.nets.layers import Dropout, MaskedBatchNorm, is_one_tile

__all__ = ["Stack"]


class Stack(Scorer):
    """An ensemble: its score is the mean of its members'.

    A small net keeps neither a GPU nor a core busy, most of a step being the cost of starting its kernels; so in
    training one kernel serves all members, and on a GPU they work side by side. Where that can't be (the work depends
    on the values of the features, or is too large to be done at once), members are computed one after the other.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        super().__init__()
        weights, buffers = stack_module_state([*scorers])
        self.names = {name.replace(".", "/"): name for name in [*weights, *buffers]}
        for key, name in self.names.items():
            if name in weights:
                self.register_parameter(key, nn.Parameter(weights[name].detach()))
            else:
                self.register_buffer(key, buffers[name])
        self.members = len(scorers)
        self._one = [copy.deepcopy(scorers[0])]  # in a list, so that its weights are not the stack's
        self.stackable = scorers[0].stackable

    _kept: tuple[list[int], list[Scorer], Scorer] | None = None  # see `as_scorers` and `_side_by_side`

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": None}  # in a copy they would still have the weights of this stack

    @classmethod
    def of_weights(cls, scorer: Scorer, weights: Mapping[str, Tensor]) -> "Stack":
        """Restore a stack from its state, without building each of its members."""
        stack = cls([scorer])
        for key in stack.names:
            if key in stack._parameters:
                stack._parameters[key] = nn.Parameter(weights[key])
            else:
                stack._buffers[key] = weights[key]
            stack.members = len(weights[key])
        return stack

    def forward(self, objects: Objects, mask: Mask | None = None) -> Scores:
        """Return the mean of the members' scores ``(n, m)``."""
        if self.training or torch.is_grad_enabled() or torch.compiler.is_compiling():
            scores: Tensor = torch.stack(list(self.one_by_one(objects, mask))).mean(0)
            return scores
        if mask is None and len(objects) == 1 and self._one[0].weights_by_set:
            several = objects.expand(self.members, -1, -1)
            if is_one_tile(several):
                return self._side_by_side().forward(several).mean(0, keepdim=True)
        members = self.as_scorers()
        total = members[0].forward(objects, mask)
        for one in members[1:]:
            total = total + one.forward(objects, mask)
        return total / len(members)

    def one_by_one(self, objects: Tensor, mask: Tensor | None = None) -> Iterator[Tensor]:
        """Score with one member after the other, in the memory of one; see `each`."""
        scoring = not (self.training or torch.is_grad_enabled() or torch.compiler.is_compiling())
        kept = self.as_scorers() if scoring else None
        for i in range(self.members):
            own = objects[i] if objects.ndim == 4 else objects
            yield (self._on_its_own(i) if kept is None else kept[i])(own, mask)

    def as_scorers(self) -> list[Scorer]:
        """Return the members in evaluation, each a module whose weights are its part of the stack's, not a copy.

        They are made once: what changes a weight in place changes theirs. Where weights have moved, to a device or by
        an assignment, they are made again. For scoring only; their weights have no gradient.
        """
        return self._views()[1]

    def _side_by_side(self) -> Scorer:
        """Return one module with the weights of all members, each for one set of a batch; made as `as_scorers` are.

        Where a set is scored alone, most of the time is spent on starting operations, here once for all members.
        """
        return self._views()[2]

    @torch.no_grad()
    def _views(self) -> tuple[list[int], list[Scorer], Scorer]:
        held = [
            weight for weight in (*self._parameters.values(), *self._buffers.values()) if weight is not None
        ]
        places = [weight.data_ptr() for weight in held]
        kept = self._kept
        if kept is None or kept[0] != places:
            apart = [self._on_its_own(i).eval() for i in range(self.members)]
            together = copy.deepcopy(self._one[0]).eval()
            for key, name in self.names.items():
                weight = getattr(self, key)
                _put(together, name, weight if weight.ndim == 3 else weight.unsqueeze(1))
            kept = places, apart, together
            self._kept = kept  # threads that come together make the same
        return kept

    def _on_its_own(self, i: int) -> Scorer:
        """Return a member whose weights are its part of the stack's, through which gradients come back.

        A module of its own rather than `functional_call`: what is computed again on the way back (see
        :mod:`entourage.nets.pairs`) must find these weights then, too.
        """
        shared = {id(layer.generator): layer.generator for layer in self.dropouts()}
        one = copy.deepcopy(self._one[0], shared).train(self.training)
        for key, name in self.names.items():
            _put(one, name, getattr(self, key)[i])
        return one

    def each(self, objects: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the scores of all members ``(r, n, m)``.

        ``objects`` are shared, ``(n, m, d)``, or each member has its own, ``(r, n, m, d)``.
        """
        one = self._one[0].train(self.training)
        n, m = objects.shape[-3:-1]
        shared = objects[0] if objects.ndim == 4 else objects
        # tiles are written into one array, which vmap can't do
        if not self.stackable or not one.in_one_piece(self.members * n, m) or not is_one_tile(shared):
            return torch.stack(list(self.one_by_one(objects, mask)))

        def score(state: dict[str, Tensor], objects: Tensor) -> Tensor:
            scores: Tensor = functional_call(one, state, (objects, mask))
            return scores

        state = {name: getattr(self, key) for key, name in self.names.items()}
        if objects.is_cuda and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            return self._in_branches(score, state, objects)
        own = 0 if objects.ndim == 4 else None
        return torch.vmap(score, in_dims=(0, own), randomness="different")(state, objects)

    def _in_branches(
        self, score: Callable[[dict[str, Tensor], Tensor], Tensor], state: dict[str, Tensor], objects: Tensor
    ) -> Tensor:
        """Score with each member on a stream of its own, and so on the way back.

        In a recorded step (:mod:`entourage.training.cuda_graphs`) these are branches that the GPU works off side by
        side, each with the kernels of a single net.
        """
        here = torch.cuda.current_stream(objects.device)
        streams = _streams(objects.device, self.members)
        each = {
            name: value.unbind(0) if value.requires_grad else [value[i] for i in range(self.members)]
            for name, value in state.items()
        }
        own = objects.unbind(0) if objects.ndim == 4 else (objects,) * self.members
        scores = []
        for i, stream in enumerate(streams):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                scores.append(score({name: values[i] for name, values in each.items()}, own[i]))
        for stream in streams:
            here.wait_stream(stream)
        return torch.stack(scores)

    def scorer(self, i: int) -> Scorer:
        """Return one member on its own."""
        one = copy.deepcopy(self._one[0]).to(next(self.parameters()).device)
        one.load_state_dict(self.member(i))
        return one.eval()

    def sum_statistics_by(self, total: Callable[[Tensor], Tensor] | None) -> None:
        """Refuse batch normalisation: sums over processes can't be taken for all members at once."""
        if total is not None and any(
            isinstance(module, MaskedBatchNorm) for module in self._one[0].modules()
        ):
            raise ParameterError(
                'An ensemble with norm="batch" is trained by one process: take norm="layer", members=1, or one process.'
            )

    def dropouts(self) -> list[Dropout]:
        """Return the dropout layers: those of the net that all weights go through."""
        return self._one[0].dropouts()

    def member(self, i: int) -> dict[str, Tensor]:
        """Return a copy of the weights of one member."""
        return {name: getattr(self, key)[i].detach().clone() for key, name in self.names.items()}


def _put(module: Scorer, name: str, weight: Tensor) -> None:
    """Let a module have this weight, or buffer, as it is."""
    path, _, leaf = name.rpartition(".")
    parent = module.get_submodule(path)
    where = parent._parameters if leaf in parent._parameters else parent._buffers
    where[leaf] = weight  # type: ignore[assignment]


@functools.cache
def _streams(device: torch.device, count: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(count)]  # type: ignore[no-untyped-call]
