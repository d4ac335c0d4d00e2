"""Training steps recorded as CUDA graphs: a small net's step is mostly the cost of starting its kernels.

On a GPU a step is recorded as a CUDA graph, one for each shape of batch. The first steps of a shape run as they are;
then the step is recorded and from there on replayed, with the same kernels on the same numbers. Shapes beyond the
first `MOST_GRAPHS`, and steps that can't be recorded, run without a graph.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["StepGraphs"]

WARM_UP = 3  # steps of a shape before it is recorded
MOST_GRAPHS = 16

Inputs = Sequence[Tensor | None]


@dataclass
class _Recorded:
    graph: torch.cuda.CUDAGraph
    inputs: Inputs  # what it reads
    output: Tensor  # what it writes


class StepGraphs:
    """Runs ``work(*inputs)``, from a graph where there is one.

    Parameters
    ----------
    work : a step of training, of tensors (or None) on the GPU; returns a tensor
    prepare : called before recording, so that nothing an earlier step left is in the way
    device : the GPU
    generator : what is drawn at random in a step comes from it, if anything
    """

    def __init__(
        self,
        work: Callable[..., Tensor],
        prepare: Callable[[], None],
        device: torch.device,
        generator: torch.Generator | None,
    ) -> None:
        self.work, self.prepare, self.device, self.generator = work, prepare, device, generator
        self.recorded: dict[tuple[object, ...], _Recorded] = {}
        self.seen: Counter[tuple[object, ...]] = Counter()
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.possible = True

    def __call__(self, *inputs: Tensor | None) -> Tensor:
        """Do a step."""
        with torch.cuda.device(self.device):
            return self._step(inputs)

    def _step(self, inputs: Inputs) -> Tensor:
        key = tuple(None if t is None else (t.shape, t.dtype) for t in inputs)
        found = self.recorded.get(key)
        if found is None and self.possible and self.seen[key] >= WARM_UP:
            found = self._record(key, inputs)
        if found is None:
            self.seen[key] += 1
            return self._as_it_is(inputs)
        for kept, new in zip(found.inputs, inputs, strict=True):
            if kept is not None and new is not None:
                kept.copy_(new, non_blocking=True)
        found.graph.replay()
        return found.output.clone()

    def _as_it_is(self, inputs: Inputs) -> Tensor:
        """Run on the stream that graphs are recorded on, as recording asks of the steps before it."""
        here = torch.cuda.current_stream()
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            output = self.work(*inputs)
        here.wait_stream(self.stream)
        return output

    def _record(self, key: tuple[object, ...], inputs: Inputs) -> _Recorded | None:
        if len(self.recorded) >= MOST_GRAPHS:
            return None
        kept = [None if t is None else t.clone() for t in inputs]
        graph = torch.cuda.CUDAGraph()
        if self.generator is not None:
            graph.register_generator_state(self.generator)
        pool = next(iter(self.recorded.values())).graph.pool() if self.recorded else None
        self.prepare()
        here = torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=pool, stream=self.stream):
                output = self.work(*kept)
        except RuntimeError as error:
            torch.cuda.set_stream(here)
            self.prepare()
            torch.cuda.synchronize()
            self.give_up(str(error.__context__ or error).strip().splitlines()[0].rstrip("."))
            return None
        self.recorded[key] = _Recorded(graph, kept, output)
        return self.recorded[key]

    def give_up(self, reason: str) -> None:
        """Record nothing from here on, and warn."""
        self.possible = False
        warnings.warn(
            f"A step of this net and loss can't be recorded as a CUDA graph ({reason}); training continues "
            "without graphs, with the same result, more slowly.",
            stacklevel=2,
        )
