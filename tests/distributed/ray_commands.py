"""Commands of their own, and what is left of them."""

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = os.pathsep.join(path for path in sys.path if path)


def start_python(*arguments, path=""):
    """Start Python in a session of its own, with ``path`` before other places of packages."""
    known = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{HERE}" if path else HERE}
    command, pipe = [sys.executable, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=known, start_new_session=True)


def run_python(*arguments, path=""):
    """Run Python; return what it printed and its errors."""
    process = start_python(*arguments, path=path)
    try:
        return process.communicate(timeout=200)
    finally:
        process.kill()


def wait_until(condition, seconds=120):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def command_of(process):
    """Return the command of a process; "" where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def processes():
    """Return the processes that run."""
    return {folder.name for folder in Path("/proc").glob("[0-9]*") if command_of(folder.name)}
