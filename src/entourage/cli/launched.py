"""A command in several processes: started here, or by torchrun. The first one speaks and writes."""

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from entourage.errors import UserError

__all__ = ["run_launched", "save_from_first", "start_processes"]


def start_processes(count: int, checkpoint: Path | None, console: Console) -> int:
    """Start this command in so many processes; return its exit code. A checkpoint of its own goes when it is done."""
    from entourage.distributed.launch import launch, threads_each

    threads = threads_each(count)
    console.print(f"Training in {count} processes of {threads} thread{'s' * (threads > 1)}", highlight=False)
    code = launch(sys.argv[1:], count)
    if code == 0 and checkpoint is not None:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return code


def save_from_first(estimator: Any, out: Path) -> None:
    """Write a fitted model; of several processes that trained it, the first one does."""
    from entourage.training.processes import processes_here

    estimator.set_params(verbose=False)
    if processes_here().first:
        estimator.save(out)


def run_launched(app: Callable[[], Any]) -> NoReturn:
    """Run a command as one of several processes of a launch; it ends with the process."""
    from entourage.distributed.joining import processes
    from entourage.distributed.launch import REFUSED

    if sys.argv[1:2] != ["fit"] and "--help" not in sys.argv:
        raise UserError(
            "Several processes of a launch run entourage fit; run the other commands in one process."
        )
    errors = sys.stderr
    _end_with_launcher()
    with contextlib.ExitStack() as stack:
        if os.environ["RANK"] != "0":
            silent = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(contextlib.redirect_stdout(silent))
            stack.enter_context(contextlib.redirect_stderr(silent))
        try:
            with processes():
                app()
        except UserError as error:
            _say_once(error, errors)
            if REFUSED in os.environ:  # not a failure: nothing would be gained by starting again
                sys.exit(0)
            sys.exit(2)
    sys.exit(0)


def _end_with_launcher() -> None:
    """End this process when the launcher is killed: it would train on, beside those of the same command run again."""
    from entourage.distributed.launch import LAUNCHER

    if LAUNCHER not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        return  # another launcher, which may end before its processes
    launcher = int(os.environ.get(LAUNCHER, os.getppid()))

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _say_once(error: UserError, errors: Any) -> None:
    """Print an error, from the first process that has it; where the launcher is another, from one of each machine."""
    from entourage.distributed.launch import REFUSED

    refused = os.environ.get(REFUSED)
    if refused is None:
        first = os.environ.get("LOCAL_RANK", "0") == "0"
    else:
        try:
            Path(refused).touch(exist_ok=False)
            first = True
        except FileExistsError:
            first = False
    if first:
        Console(file=errors).print(Text.assemble(("Error: ", "red"), str(error)), soft_wrap=True)
