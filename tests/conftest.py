"""Axes are checked while the tests run; the hook must come before entourage is imported."""

import importlib.util
import os
from pathlib import Path

import jaxtyping
import pytest
import torch
from threadpoolctl import threadpool_limits

torch.set_num_threads(
    1
)  # workers of pytest-xdist share the cores: two threads each would be many times slower
threadpool_limits(
    1
)  # numpy's BLAS likewise; plugins of pytest have imported it before any variable could be set
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # the kernels of entourage.nets, without a GPU

ROOT = Path(__file__).parents[1]
WITHOUT_AXES = ("__init__", "attention_triton", "pairs_triton", "registry", "triton_parts")
CHECKED = [f.stem for f in (ROOT / "src/entourage/nets").glob("*.py") if f.stem not in WITHOUT_AXES]
if importlib.util.find_spec("beartype") or "CI" in os.environ:  # a lent GPU machine may lack it
    jaxtyping.install_import_hook(
        ["entourage.tasks.losses", *(f"entourage.nets.{name}" for name in CHECKED)], "beartype.beartype"
    )

ALWAYS = [ROOT / "tests" / "nets", ROOT / "tests" / "tasks"]  # the laws, nets and losses
EVERYWHERE = os.environ.get("CHECK_AXES") == "everywhere"  # as make long-tests does; a third slower
COMPILED = ("boxes", "contributions", "front_geometry", "fronts")  # modules that need numba


def pytest_report_header():
    return None if importlib.util.find_spec("beartype") else "axes are not checked: beartype is not installed"


def pytest_collection_modifyitems(items):
    """Skip the examples of what is compiled, where there is no compiler."""
    if importlib.util.find_spec("numba") is None:
        for item in items:
            if isinstance(item, pytest.DoctestItem) and item.path.stem in COMPILED:
                item.add_marker(pytest.mark.skip(reason="fronts need numba, of the extra [hypervolume]"))


@pytest.fixture(autouse=True)
def _axes(request):
    """Check axes in the laws, of nets and of losses; everywhere where it is asked for."""
    checked = EVERYWHERE or any(room in request.path.parents for room in ALWAYS)
    jaxtyping.config.update("jaxtyping_disable", not checked)


@pytest.fixture(scope="module")
def small_pretrained():
    """Let a small net stand for the pretrained one, whether or not its weights are in this copy."""
    from prior_fitted_cases import ridge_like_net

    with pytest.MonkeyPatch.context() as patch:
        for module in ("reading_file", "reading", "weights"):  # weights last: others import from it
            patch.setattr(f"entourage.pretrained.{module}.pretrained_net", ridge_like_net)
        for module in ("selection.candidates", "pretrained.weights"):
            patch.setattr(f"entourage.{module}.available", lambda: True)
        yield
