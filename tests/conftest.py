"""Axes are checked on every call while the tests run; must come before entourage is imported."""

import os
from pathlib import Path

import torch
from jaxtyping import install_import_hook
from threadpoolctl import threadpool_limits

torch.set_num_threads(
    1
)  # workers of pytest-xdist share the cores: two threads each would be many times slower
threadpool_limits(
    1
)  # numpy's BLAS likewise; plugins of pytest have imported it before any variable could be set
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start

if not torch.cuda.is_available():
    os.environ.setdefault(
        "TRITON_INTERPRET", "1"
    )  # the kernels of entourage.nets.pairs_triton, without a GPU

NETS = Path(__file__).parents[1] / "src/entourage/nets"
CHECKED = [
    f"entourage.nets.{path.stem}"
    for path in NETS.glob("*.py")
    if path.stem not in ("__init__", "pairs_triton")
]
install_import_hook(["entourage.tasks.losses", *CHECKED], "beartype.beartype")
