"""Starting a command in several processes on this machine, with torch's elastic launcher: torchrun as a function.

A process that dies takes the others down; all are then started again, and a run with a checkpoint goes on from there.
A user's mistake is not tried again.
"""

import logging
import os
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from entourage.distributed.joining import OWN_STORE
from entourage.errors import UserError, check_number

__all__ = ["LAUNCHER", "REFUSED", "RESTARTS", "launch", "threads_each"]

REFUSED = (
    "ENTOURAGE_REFUSED"  # the variable that names the file in which a process says that the input is refused
)
LAUNCHER = "ENTOURAGE_LAUNCHER"  # the variable that has the number of the process that starts the others
RESTARTS = 3


def threads_each(processes: int) -> int:
    """Return how many threads each of so many processes has, unless OMP_NUM_THREADS says otherwise."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("OMP_NUM_THREADS", max(1, cores // processes)))


def launch(arguments: Sequence[str], processes: int, *, restarts: int = RESTARTS) -> int:
    """Run ``entourage`` with these arguments in so many processes of this machine; return the exit code.

    Parameters
    ----------
    arguments : of the command line, without the program
    processes : how many; the cores are shared out among them, unless OMP_NUM_THREADS says otherwise
    restarts : how often all are started again after one has died
    """
    check_number("processes", processes, least=1, whole=True)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_each(processes)))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    os.environ[OWN_STORE] = "1"
    logging.getLogger("torch.distributed.elastic").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        refused = Path(folder) / "refused"
        os.environ[REFUSED] = str(refused)
        os.environ[LAUNCHER] = str(os.getpid())
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",  # "static" does not start processes again
            rdzv_endpoint="localhost:0",
            max_restarts=restarts,
            monitor_interval=0.2,
        )
        try:
            elastic_launch(config, sys.executable)("-m", "entourage", *arguments)
        except SignalException as signal:
            return 128 + int(signal.sigval)
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            raise UserError(
                f"A process ended with exit code {failure.exitcode}, {restarts + 1} times; its message is above. "
                "Where it was killed, memory may be short: use fewer processes, or --on-disk."
            ) from None
        finally:
            del os.environ[REFUSED], os.environ[LAUNCHER]
        return 2 if refused.exists() else 0
