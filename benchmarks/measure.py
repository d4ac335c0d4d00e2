"""Timing in turns within one process, and peak memory in a process of its own."""

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def in_turns(
    ours: Callable[[], object], reference: Callable[[], object], repeats: int = 7
) -> tuple[float, float]:
    """Median seconds of both, run alternately after one warm-up each, so that a slow spell hits both."""
    ours(), reference()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for function, record in zip((ours, reference), times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def extra_memory(name: str, *arguments: int) -> dict[str, float]:
    """Run ``benchmarks.memory.<name>`` in a fresh process: seconds, and peak megabytes above its inputs."""
    command = [sys.executable, "-m", "benchmarks.memory", name, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_megabytes() -> float:
    """Return the largest size of this process so far (ru_maxrss is inherited from the parent)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
