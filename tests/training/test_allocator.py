"""Freed memory stays with a process that trains, in steps of one size."""

import platform
import subprocess
import sys

import pytest

from entourage.training.allocator import keep_freed_memory

CODE = """
import resource, sys, torch
from entourage.training.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
for _ in range(3):
    torch.ones(20_000_000).sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(20_000_000).sum()  # 80 MB
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_asked_for(how):
    done = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this C library has no mallopt")
def test_memory_is_asked_of_the_system_once_and_not_in_every_step(monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    assert 3 * pages_asked_for("keep") < pages_asked_for("leave")


def test_settings_of_the_user_stay(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    keep_freed_memory.cache_clear()
    assert not keep_freed_memory()
    keep_freed_memory.cache_clear()
