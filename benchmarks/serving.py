"""The server under load: ``python -m benchmarks.serving [load | large | soak] [--seconds 2]``, on one machine.

``load``: 1, 8 and 64 clients, each with one set of 20 objects at a time, ask a server that shares forward passes and
one that has a pass for each request, in turns within one run: requests a second, p50, p99 and CPU of the server a
request. ``large``: p50 and p99 of small sets, alone and while another client asks for sets of 1,000 objects. ``soak``:
100,000 requests to one server, and its memory. Rows in ``results/serving.jsonl``.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from entourage import FATE, DiscreteChooser, __version__

RESULTS = Path(__file__).parent / "results" / "serving.jsonl"
TICKS = os.sysconf("SC_CLK_TCK")


def hotels(n: int = 400, seed: int = 0) -> pa.Table:
    """Return choices of hotels: numbers, text and flags, some missing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 25, n)
    trip = np.repeat(np.arange(n), sizes)
    price = np.where(rng.random(len(trip)) < 0.1, np.nan, rng.normal(80, 20, len(trip)))
    brand = [None if one < 0.05 else "abc"[int(3 * one)] for one in rng.random(len(trip))]
    chosen = np.zeros(len(trip), dtype=int)
    chosen[np.append(0, np.cumsum(sizes)[:-1]) + rng.integers(0, sizes)] = 1
    return pa.table(
        {
            "trip": trip,
            "price": pa.array(price, from_pandas=True),
            "stars": rng.integers(1, 6, len(trip)),
            "wifi": rng.random(len(trip)) < 0.5,
            "brand": pa.array(brand),
            "nights": rng.integers(1, 9, n)[trip],
            "chosen": chosen,
        }
    )


def body_of(objects: int, seed: int = 1) -> bytes:
    """Return a request for one set."""
    rows = hotels(1 + objects // 3, seed).slice(0, objects)
    rows = rows.select(["price", "stars", "wifi", "brand"]).to_pylist()
    return json.dumps({"sets": [{"objects": rows, "situation": {"nights": 3}}]}).encode()


@contextmanager
def server(model: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run a server; yield its process id and its port."""
    command = [sys.executable, "-m", "entourage", "serve", str(model), "--port", "0", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                yield process.pid, int(found[1])
                break
        else:
            raise RuntimeError("The server did not start.")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


class Client:
    """A connection that asks again and again; the seconds of each answer are kept."""

    def __init__(self, port: int, body: bytes, seconds: list[float]) -> None:
        head = "POST /v1/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self.request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        self.port, self.seconds = port, seconds

    async def open(self) -> None:
        """Connect; the first answer is not measured."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        await self.once()

    async def once(self) -> None:
        """Ask, and wait for the answer."""
        self.writer.write(self.request)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        await self.reader.readexactly(int(re.search(rb"content-length: (\d+)", answer)[1]))

    async def run(self, until: float, most: int = 10**9) -> None:
        """Ask until a time, or until all clients together have so many answers."""
        while time.perf_counter() < until and len(self.seconds) < most:
            begin = time.perf_counter()
            await self.once()
            self.seconds.append(time.perf_counter() - begin)
        self.writer.close()


async def ask(
    port: int, body: bytes, clients: int, lasting: float, most: int = 10**9, pid: int | None = None
) -> dict[str, Any]:
    """Let some clients ask at once; return the seconds of all answers, those of all together and CPU of the server."""
    seconds: list[float] = []
    asking = [Client(port, body, seconds) for _ in range(clients)]
    await asyncio.gather(*(one.open() for one in asking))
    cpu, begin = 0.0 if pid is None else cpu_seconds(pid), time.perf_counter()
    await asyncio.gather(*(one.run(begin + lasting, most) for one in asking))
    took = time.perf_counter() - begin
    return {"seconds": seconds, "took": took, "cpu": 0.0 if pid is None else cpu_seconds(pid) - cpu}


def measure(pid: int, port: int, body: bytes, clients: int, lasting: float) -> dict[str, float]:
    found = asyncio.run(ask(port, body, clients, lasting, pid=pid))
    requests = len(found["seconds"])
    return {
        "requests": requests,
        "requests_a_second": requests / found["took"],
        "p50_ms": 1000 * float(np.quantile(found["seconds"], 0.5)),
        "p99_ms": 1000 * float(np.quantile(found["seconds"], 0.99)),
        "cpu_ms_a_request": 1000 * found["cpu"] / requests,
    }


def load(model: Path, lasting: float, repeats: int) -> None:
    body = body_of(20)
    with server(model, "--quiet") as shared, server(model, "--quiet", "--plain") as plain:
        both = {"shared": shared, "plain": plain}
        for pid, port in both.values():
            measure(pid, port, body, 8, 0.5)
        for clients in (1, 8, 64):
            found: dict[str, list[dict[str, float]]] = {kind: [] for kind in both}
            for _ in range(repeats):
                for kind, (pid, port) in both.items():
                    found[kind].append(measure(pid, port, body, clients, lasting))
            rows = {
                kind: {name: float(np.median([one[name] for one in runs])) for name in runs[0]}
                for kind, runs in found.items()
            }
            for kind, runs in found.items():  # over all turns: other work on the machine hits both kinds
                requests = sum(one["requests"] for one in runs)
                rows[kind]["requests"] = requests
                rows[kind]["requests_a_second"] = requests / sum(
                    one["requests"] / one["requests_a_second"] for one in runs
                )
            for kind, row in rows.items():
                keep(
                    {"what": "load", "kind": kind, "clients": clients, "objects": 20, "repeats": repeats}
                    | row
                )
            speeds = [[one["requests_a_second"] for one in found[kind]] for kind in ("shared", "plain")]
            ratios = sorted(a / b for a, b in zip(*speeds, strict=True))
            ratio = rows["shared"]["requests_a_second"] / rows["plain"]["requests_a_second"]
            keep(
                {
                    "what": "ratio",
                    "clients": clients,
                    "requests_a_second": ratio,
                    "of_turns": [round(one, 2) for one in ratios],
                }
            )


def soak(model: Path, requests: int) -> None:
    body = body_of(20)
    with server(model, "--quiet") as (pid, port):
        asyncio.run(ask(port, body, 64, 600, 2000))
        memory, begin = [megabytes(pid)], time.perf_counter()
        for _ in range(10):
            asyncio.run(ask(port, body, 64, 600, requests // 10))
            memory.append(megabytes(pid))
        took = time.perf_counter() - begin
    keep(
        {
            "what": "soak",
            "requests": requests,
            "seconds": took,
            "megabytes_first": memory[0],
            "megabytes_last": memory[-1],
            "megabytes": memory,
        }
    )


def large(model: Path, lasting: float) -> None:
    """Ask for small sets, alone and beside a client with sets of 1,000 objects."""
    small, others = body_of(20), list[float]()

    async def beside(port: int) -> dict[str, Any]:
        other = Client(port, body_of(1000), others)
        await other.open()
        running = asyncio.create_task(other.run(time.perf_counter() + lasting + 1))
        found = await ask(port, small, 8, lasting)
        await running
        return found

    with server(model, "--quiet") as (_, port):
        found = {
            "alone": asyncio.run(ask(port, small, 8, lasting)),
            "beside sets of 1,000": asyncio.run(beside(port)),
        }
    print(f"  sets of 1,000: {len(others)}, p50 {1000 * np.median(others):.1f} ms")
    for kind, one in found.items():
        p50, p99 = np.quantile(one["seconds"], [0.5, 0.99])
        keep({"what": "large", "kind": kind, "clients": 8, "p50_ms": 1000 * p50, "p99_ms": 1000 * p99})


def keep(row: dict[str, Any]) -> None:
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    row |= machine | {"version": __version__, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    shown = {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}
    print(json.dumps(shown), flush=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(shown) + "\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", nargs="*", choices=["load", "soak", "large", []], default=[])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--repeats", type=int, default=8)
    options.add_argument("--requests", type=int, default=100_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hotels.entourage"
        roles = {"set_id": "trip", "target": "chosen", "situation": ["nights"]}
        DiscreteChooser(FATE(), steps=100, random_state=0).fit(hotels(), **roles).save(path)
        for what in given.what or ["load", "large", "soak"]:
            if what == "load":
                load(path, given.seconds, given.repeats)
            elif what == "large":
                large(path, given.seconds)
            else:
                soak(path, given.requests)
