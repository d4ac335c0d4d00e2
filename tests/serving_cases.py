"""Models to serve, and clients: within the process, or of a server in a process of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx
import numpy as np
import pyarrow as pa

from entourage import FATE, DiscreteChooser

ROLES = {"set_id": "trip", "target": "chosen", "situation": ["nights", "device"]}
COLUMNS = ["price", "stars", "wifi", "brand"]
HOST = "http://127.0.0.1"


def hotels(n=60, seed=0):
    """Choices of hotels: numbers, text and flags, some of them missing, of the objects and of the situation."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, n)
    trip = np.repeat(np.arange(n), sizes)
    price = np.where(rng.random(len(trip)) < 0.1, np.nan, rng.normal(80, 20, len(trip)))
    brand = [None if one < 0.05 else "abc"[int(3 * one)] for one in rng.random(len(trip))]
    chosen = np.zeros(len(trip), dtype=int)
    chosen[np.append(0, np.cumsum(sizes)[:-1]) + rng.integers(0, sizes)] = 1
    columns = {
        "trip": trip,
        "price": pa.array(price, from_pandas=True),
        "stars": rng.normal(3, 1, len(trip)),
        "wifi": rng.random(len(trip)) < 0.5,
        "brand": pa.array(brand),
        "nights": rng.integers(1, 9, n)[trip],
        "device": pa.array([None if i % 11 == 0 else "web app"[3 * (i % 2) :][:3] for i in range(n)]).take(
            trip
        ),
        "chosen": chosen,
    }
    return pa.table(columns)


def hotel_chooser(seed=0, table=None, **settings):
    """A small chooser that learnt from a table."""
    given = {"steps": 10, "random_state": seed} | settings
    return DiscreteChooser(FATE(width=8), **given).fit(hotels() if table is None else table, **ROLES)


def sets_in_json(table, columns=COLUMNS, situation=("nights", "device"), set_id="trip"):
    """The sets of a table whose rows stand together, as a request has them."""
    found = {}
    for row in table.to_pylist():
        one = found.setdefault(row[set_id], {"objects": []})
        one["objects"].append({name: row[name] for name in columns})
        if situation:
            one["situation"] = {name: row[name] for name in situation}
    return list(found.values())


def ask_all(app, asked, **options):
    """Send requests (method, path, body) to an app at once; return the answers in their order."""

    async def run():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, **options) as client:
            return await asyncio.gather(*(_send(client, *one) for one in asked))

    return asyncio.run(run())


def ask(app, path, body=None, method="POST", **options):
    """Send one request to an app; return the answer."""
    return ask_all(app, [(method, path, body)], **options)[0]


def packed(sets, name):
    """The values of all objects of answered sets, one after the other."""
    return [value for one in sets for value in one[name]]


def refused(answer):
    """The sentence and the path of a refusal, which is JSON of one form and tells nothing of the server."""
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    assert set(content) == {"error"}
    assert set(content["error"]) <= {"message", "path"}
    for secret in ("Traceback", "/work", "/tmp", "site-packages", ".py", 'File "'):
        assert secret not in answer.text
    return content["error"]["message"], content["error"].get("path")


async def _send(client, method, path, body):
    if method == "GET":
        return await client.get(path)
    if isinstance(body, bytes):
        return await client.post(path, content=body, headers={"content-type": "application/json"})
    return await client.post(path, json=body)


@contextmanager
def server(*arguments, program=("-m", "entourage"), **environment):
    """Run ``entourage serve`` in a process of its own; yield the process and its port. No process is left behind."""
    command = [sys.executable, *program, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | environment,
    )
    try:
        for line in process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                break
        else:
            raise AssertionError(f"The server did not start: exit code {process.wait(10)}.")
        yield process, int(found[1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stderr.close()


class Client:
    """A client of plain sockets, which tells a refused connection from a request that was lost."""

    def __init__(self, port, body, path="/v1/predict"):
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self.request = f"{head}content-length: {len(content)}\r\n\r\n".encode() + content
        self.port, self.answers, self.refused, self.lost = port, [], 0, []

    async def run(self, most=10**9, stop=None):
        """Ask again and again until connections are refused, or so many answers have come, or ``stop`` is set."""
        reader = writer = None
        while len(self.answers) < most and not (stop is not None and stop.is_set()):
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except ConnectionRefusedError:
                self.refused += 1
                return
            try:
                writer.write(self.request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: (\d+)", head)[1])
                body = await reader.readexactly(length)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.lost.append(repr(error))
                await _close(writer)
                return
            self.answers.append((int(head.split(b" ", 2)[1]), body))
            if b"connection: close" in head.lower():
                await _close(writer)
                reader = writer = None
        if writer is not None:
            await _close(writer)


async def _close(writer):
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
