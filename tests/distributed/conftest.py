"""One Ray for all tests of it: of two CPUs, in a network of its own."""

import os
import socket
import sys

import pytest

from entourage.distributed import ray_engine
from entourage.training.parallel import use_engine


@pytest.fixture(autouse=True)
def _apart(request):
    if request.node.get_closest_marker("ray") and [name for _, name in socket.if_nameindex()] != ["lo"]:
        pytest.skip("Ray is tested in a network namespace of its own: make ray")


@pytest.fixture(scope="session")
def ray():
    """An engine; it is used by what runs in ``with use_engine(ray)``."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        path for path in sys.path if path
    )  # jobs of the tests are found
    with ray_engine(cpus=2, memory=200 * 2**20) as engine, use_engine(None):
        yield engine
