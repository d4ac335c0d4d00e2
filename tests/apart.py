"""Runs Python apart from everything: in namespaces of its own, with a loopback network and its own processes only.

    python tests/apart.py -m pytest -n 0 -m ray tests/distributed

Ray listens on ports and looks for an address of the machine; here it finds nothing but 127.0.0.1. Where namespaces
aren't allowed, this says so and runs nothing. It fails if a process is left behind, or after half an hour.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 1800
UNSHARE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]


def main() -> int:
    inside = [sys.executable, __file__, "inside"]
    try:
        tried = subprocess.run([*UNSHARE, *inside, "-c", "pass"], capture_output=True, text=True, timeout=60)
        why = tried.stderr.strip() if tried.returncode else None
    except FileNotFoundError:
        why = "there is no unshare"
    if why is not None:
        print(f"Namespaces of its own are not allowed here ({why}): skipped: {' '.join(sys.argv[1:])}")
        return 0
    return subprocess.run([*UNSHARE, *inside, *sys.argv[1:]], timeout=SECONDS).returncode


def run_inside(arguments: list[str]) -> int:
    bring_up_loopback()
    with tempfile.TemporaryDirectory() as home:
        status = subprocess.run([sys.executable, *arguments], env=os.environ | {"HOME": home}).returncode
    time.sleep(1)  # those that were told to end, end
    left = other_processes()
    if left:
        print("These processes were left behind:", *left, sep="\n", file=sys.stderr)
    return status or int(bool(left))


def bring_up_loopback() -> None:
    with socket.socket() as any_socket:
        name = struct.pack("16sh", b"lo", 0)
        _, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, 0x8913, name))  # SIOCGIFFLAGS
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP


def other_processes() -> list[str]:
    """Return what runs in these namespaces beside this process and those that were there when it began."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        if int(folder.name) != os.getpid() and command:
            found.append(f"{folder.name}: {command}")
    return found


if __name__ == "__main__":
    sys.exit(run_inside(sys.argv[2:]) if sys.argv[1:2] == ["inside"] else main())
