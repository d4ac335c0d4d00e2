"""Jobs on a Ray cluster, by the one pool: each a task of one CPU and one thread. Needs the extra ``[ray]``.

What a pool does with its jobs is put into the object store once; a worker fetches it with its first job and keeps it.
The workers of a machine share its arrays, which they can't write to. A job whose worker or machine dies is done again.
"""

import copy
import os
import platform
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from entourage.errors import UserError, check_number
from entourage.training.parallel import Future, Pool, use_engine

__all__ = ["RayEngine", "ray_engine"]

J = TypeVar("J")
R = TypeVar("R")

RETRIES = 3  # of a job whose worker died
CONNECT = 10.0  # seconds to wait for a cluster to answer


@contextmanager
def ray_engine(
    address: str | None = None, *, cpus: int | None = None, memory: int | None = None
) -> "Iterator[RayEngine]":
    """Have all pools of the block run on Ray: those of ``tune``, ``compare``, the experiments, scoring.

    Every machine needs the same versions of Entourage, torch, NumPy and scikit-learn; this is checked.

    Parameters
    ----------
    address : HOST:PORT of a cluster, or "auto" on one of its machines. By default a Ray of this machine alone is
        started and, at the end, stopped; it listens on the loopback address, without dashboard or usage statistics
    cpus : how many CPUs a Ray that is started here may use; by default all
    memory : bytes of its object store, which holds the data that workers share; by default what Ray takes, under a
        third of the memory

    Examples
    --------
    >>> from entourage.selection import tune
    >>> with ray_engine(cpus=2) as engine:  # doctest: +SKIP
    ...     found = tune(model, X, ranks, workers=engine.workers)
    """
    ray = _load_ray()
    if ray.is_initialized():
        raise UserError("This process is connected to Ray already: call ray.shutdown() before.")
    try:
        if address is None:
            _start(ray, cpus, memory)
        else:
            _connect(ray, address, cpus, memory)
        engine = RayEngine(ray)
        with use_engine(engine):
            yield engine
    finally:
        ray.shutdown()


class RayEngine:
    """Opens pools on the Ray that this process is connected to; made by :func:`ray_engine`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)

    @property
    def workers(self) -> int:
        """How many CPUs the cluster has now."""
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if cpus == 0:
            raise UserError(
                "The Ray cluster has no CPUs for jobs now: add machines; or, if it grows on demand, say how many jobs "
                "are to run at a time (--workers)."
            )
        return cpus

    @property
    def address(self) -> str:
        """Where the cluster is, as HOST:PORT."""
        return str(self._ray.get_runtime_context().gcs_address)

    def open_pool(self, work: Callable[[J], R], workers: int) -> Pool[J, R]:
        """Open a pool that runs so many jobs at a time."""
        return _RayPool(self._ray, self._run, work, workers)


class _RayPool(Pool[J, R]):
    """A thread for each job that runs, which waits for its task: the others wait here, not in the cluster."""

    def __init__(self, ray: Any, run: Any, work: Callable[[J], R], workers: int) -> None:
        super().__init__(work, workers)
        self._ray, self._remote = ray, run
        self._work = _Shared(uuid.uuid4().hex, _reader_of_versions()(), [ray.put(work)])
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="ray-pool")
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._dropped = False

    def submit(self, job: J) -> "Future[R]":
        return self._threads.submit(self._wait_for, job)

    def close(self, *, cancel: bool) -> None:
        if cancel:
            with self._lock:
                self._dropped = True
                for task in self._running:
                    self._ray.cancel(task, force=True)
        self._threads.shutdown(wait=True, cancel_futures=cancel)

    def _wait_for(self, job: J) -> R:
        failures = self._ray.exceptions
        with self._lock:
            if self._dropped:
                raise UserError("The pool was closed before this job began.")
            task = self._remote.remote(self._work, job)
            self._running.add(task)
        try:
            result: R = copy.deepcopy(self._ray.get(task))  # whose arrays can be written to, as here
            return result
        except failures.RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from error
            raise
        except (failures.WorkerCrashedError, failures.NodeDiedError, failures.OutOfMemoryError) as error:
            raise UserError(
                f"A job was begun {RETRIES + 1} times, and each time its worker died, perhaps for want of memory: "
                f"{error}"
            ) from error
        finally:
            with self._lock:
                self._running.discard(task)


class _Shared:
    """What the jobs of a pool share; the work is in a list, for Ray not to fetch it for every job."""

    def __init__(self, name: str, versions: dict[str, str], work: list[Any]) -> None:
        self.name, self.versions, self.work = name, versions, work


_kept: tuple[str, Any] = ("", None)  # in a worker: the last pool's


def _run(shared: _Shared, job: Any) -> Any:
    global _kept
    if _kept[0] != shared.name:
        import ray

        _check(_reader_of_versions()(), shared.versions, platform.node())
        torch.set_num_threads(1)
        _kept = shared.name, ray.get(shared.work[0])
    return _kept[1](job)


def _start(ray: Any, cpus: int | None, memory: int | None) -> None:
    if cpus is not None:
        check_number("cpus", cpus, least=1, whole=True)
    ray.init(
        address="local",
        num_cpus=cpus,
        object_store_memory=memory,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        _node_ip_address="127.0.0.1",
    )


def _connect(ray: Any, address: str, cpus: int | None, memory: int | None) -> None:
    if cpus is not None or memory is not None:
        raise UserError("cpus and memory are of a Ray that is started here; a cluster has its own.")
    host, _, port = address.rpartition(":")
    if address != "auto" and not (host and "/" not in host and port.isdigit()):
        raise UserError(
            f"The address of a cluster is HOST:PORT, or auto on one of its machines; got {address!r}. (The Ray Client, "
            "ray://, is not supported: run this on a machine of the cluster.)"
        )
    try:
        if address != "auto":
            socket.create_connection(
                (host, int(port)), timeout=CONNECT
            ).close()  # Ray itself tries for minutes
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (OSError, OverflowError) as error:
        raise UserError(f"There is no Ray cluster at {address}: {error}") from error
    _check_machines(ray)


def _check_machines(ray: Any) -> None:
    """Check what every machine of the cluster has installed; one that comes later is checked by its jobs."""
    place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    ask = ray.remote(num_cpus=0, max_retries=RETRIES)(_reader_of_versions())
    machines = [machine for machine in ray.nodes() if machine["Alive"]]
    asked = [ask.options(scheduling_strategy=place(one["NodeID"], soft=False)).remote() for one in machines]
    for machine, versions in zip(machines, ray.get(asked), strict=True):
        _check(versions, _reader_of_versions()(), machine["NodeManagerAddress"])


def _check(there: dict[str, str], here: dict[str, str], machine: str) -> None:
    others = [
        f"{name} {there.get(name, 'none')}, not {its}" for name, its in here.items() if there.get(name) != its
    ]
    if others:
        raise UserError(
            f"{machine} has {'; '.join(others)}: every machine of a cluster needs the same installation."
        )


def _reader_of_versions() -> Callable[[], dict[str, str]]:
    """Return a function that Ray sends as it is, and not by its name: Entourage may not be where it is called."""

    def read() -> dict[str, str]:
        import importlib.metadata
        import importlib.util

        modules = {"entourage": "entourage", "torch": "torch", "numpy": "numpy", "scikit-learn": "sklearn"}
        return {
            package: importlib.metadata.version(package)
            for package, module in modules.items()
            if importlib.util.find_spec(module) is not None
        }

    return read


def _load_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise UserError("--engine ray needs Ray: run pip install 'entourage[ray]'.") from None
    return ray
