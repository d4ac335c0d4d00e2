"""Jobs whose peak memory is measured, each run in its own process by `benchmarks.measure.extra_memory`."""

import json
import sys
import time

import torch

from benchmarks.measure import peak_megabytes
from benchmarks.reference import ConcatenatedPairs
from entourage import FATE, FETA


def feta(m: int) -> tuple[torch.nn.Module, torch.Tensor]:
    return FETA(width=64, depth=2).build(20, torch.Generator().manual_seed(0)), torch.randn(1, m, 20)


def concatenated(m: int) -> tuple[torch.nn.Module, torch.Tensor]:
    net, objects = feta(m)
    return ConcatenatedPairs(net), objects


def fate(m: int) -> tuple[torch.nn.Module, torch.Tensor]:
    return FATE().build(20, torch.Generator().manual_seed(0)), torch.randn(1, m, 20)


if __name__ == "__main__":
    make = {"feta": feta, "concatenated": concatenated, "fate": fate}[sys.argv[1]]
    net, objects = make(int(sys.argv[2]))
    with torch.no_grad():
        net.eval()(objects[:, :100])  # what torch itself takes at first use is not the net's doing
        before, start = peak_megabytes(), time.perf_counter()
        net(objects)
        print(json.dumps({"seconds": time.perf_counter() - start, "megabytes": peak_megabytes() - before}))
