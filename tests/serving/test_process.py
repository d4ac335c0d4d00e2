"""A server in a process of its own, on loopback: start, stop, reload and kill, under load."""

import asyncio
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from serving_cases import Client, hotel_chooser, hotels, server, sets_in_json

from entourage import load

pytestmark = pytest.mark.heavy
BODY = {"sets": sets_in_json(hotels(1, seed=1))}
CLIENTS = 16


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for seed in (0, 1):
        hotel_chooser(seed).save(folder / f"{seed}.entourage")
    return [folder / f"{seed}.entourage" for seed in (0, 1)]


@pytest.fixture(scope="module")
def expected(files):
    return [load(path).predict_scores(hotels(1, seed=1)) for path in files]


def ask(port, path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def megabytes(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def scores_in(body):
    return json.loads(body)["sets"][0]["scores"]


def test_a_stop_under_load_answers_all_that_was_accepted_and_ends_with_code_0(files, expected):
    async def stop_under_load(process, port):
        clients = [Client(port, BODY) for _ in range(CLIENTS)]
        running = [asyncio.create_task(one.run()) for one in clients]
        while sum(len(one.answers) for one in clients) < 10 * CLIENTS:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*running), 30)
        return clients

    with server(files[0], "--quiet") as (process, port):
        clients = asyncio.run(stop_under_load(process, port))
        begin = time.monotonic()
        assert process.wait(30) == 0
        assert time.monotonic() - begin < 10
    assert [one.lost for one in clients] == [[]] * CLIENTS
    assert all(one.refused == 1 for one in clients)
    for status, body in [answer for one in clients for answer in one.answers]:
        assert status == 200
        np.testing.assert_allclose(scores_in(body), expected[0], atol=1e-5)


SLOW = """
import time
import entourage.serving.app as app
app.answer_what_if = lambda *given: time.sleep(300)
from entourage.cli import main
main()
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_stop_has_an_end_also_while_a_long_request_runs(files, signals):
    """With one signal after --stop-timeout, with a second one at once: 503, exit code 3."""
    seconds = {1: "0.5", 2: "200"}[signals]

    async def stop_while_it_runs(process, port):
        clients = [
            Client(port, BODY | {"change": "price *= 2"}, "/v1/whatif"),
            Client(port, BODY),  # waits behind the long one
        ]
        running = []
        for one in clients:
            running.append(asyncio.create_task(one.run(most=1)))
            await asyncio.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        if signals == 2:
            await asyncio.sleep(0.3)
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*running), 30)
        return clients

    with server(files[0], "--stop-timeout", seconds, program=("-c", SLOW)) as (process, port):
        clients = asyncio.run(stop_while_it_runs(process, port))
        assert process.wait(20) == 3
    for one in clients:
        assert one.lost == []
        (status, body), *_ = one.answers
        assert status == 503
        assert json.loads(body)["error"]["message"].startswith("The server stops, and there was no time left")


def test_reloads_under_load_fail_no_request_and_mix_no_models(files, expected, tmp_path):
    path = tmp_path / "m.entourage"
    path.write_bytes(files[0].read_bytes())

    def put(content):
        temporary = tmp_path / "new"
        temporary.write_bytes(content)
        temporary.rename(path)

    async def reload_under_load(process, port):
        stop, clients = asyncio.Event(), [Client(port, BODY) for _ in range(CLIENTS)]
        running = [asyncio.create_task(one.run(stop=stop)) for one in clients]
        for turn in range(8):
            content = b"broken" if turn == 5 else files[(turn + 1) % 2].read_bytes()
            put(content)
            if turn % 2:
                process.send_signal(signal.SIGHUP)
                await asyncio.sleep(0.3)
            else:
                await asyncio.to_thread(ask, port, "/v1/reload", {})
            await asyncio.sleep(0.1)
        stop.set()
        await asyncio.wait_for(asyncio.gather(*running), 30)
        return clients

    with server(path, "--quiet") as (process, port):
        clients = asyncio.run(reload_under_load(process, port))
        assert ask(port, "/healthz") == {"status": "alive"}
    assert [one.lost for one in clients] == [[]] * CLIENTS
    seen = set()
    for status, body in [answer for one in clients for answer in one.answers]:
        assert status == 200
        near = [bool(np.allclose(scores_in(body), one, atol=1e-5)) for one in expected]
        assert sum(near) == 1
        seen.add(near.index(True))
    assert seen == {0, 1}


def test_after_a_kill_a_new_server_answers_as_before_and_its_log_keeps_the_token_to_itself(files):
    with server(files[0], "--quiet") as (process, port):
        first = ask(port, "/v1/predict", BODY)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    token = "a-token-that-nobody-knows"
    with server(files[0], ENTOURAGE_TOKEN=token) as (process, port):
        assert ask(port, "/v1/predict", BODY, authorization=f"Bearer {token}") == first
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(port, "/v1/predict", BODY)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        log = process.stderr.read()
    assert "POST /v1/predict 200" in log
    assert "POST /v1/predict 401" in log
    assert token not in log
    assert "objects" not in log


def refuse_endless_heads(port):
    """A header without an end, at the first request of a connection and at a later one, is refused."""
    health = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    for before in (b"", health + b"\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one, suppress(ConnectionError):
            one.sendall(before + health + b"x: ")
            for _ in range(1000):  # 64 MB, of which next to nothing is read
                one.sendall(b"a" * 2**16)
            raise AssertionError("The server reads headers without an end.")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            for sent, wanted in (
                (before, b"alive"),
                (health + b"x: " + b"a" * 70_000, b"at most 65536 bytes"),
            ):
                one.sendall(sent)
                answer = b""
                while sent and wanted not in answer:
                    part = one.recv(2**16)
                    assert part
                    answer += part
            assert answer.startswith(b"HTTP/1.1 431 ")


def test_memory_stays_flat_and_slow_or_broken_clients_hold_nobody_up(files):
    async def load_it(port, each):
        clients = [Client(port, BODY) for _ in range(CLIENTS)]
        await asyncio.gather(*(one.run(most=each) for one in clients))
        assert [one.lost for one in clients] == [[]] * CLIENTS
        assert {status for one in clients for status, _ in one.answers} == {200}

    with server(files[0], "--quiet") as (process, port):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for i, one in enumerate(idle):  # a head without an end, a body without an end, and what is no HTTP
            one.sendall(
                [
                    b"POST /v1/predict HTTP/1.1\r\nhost: x",
                    b"POST /v1/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
                    b'content-length: 90\r\n\r\n{"sets',
                    b"\x16\x03\x01\x00nonsense\r\n\r\n",
                ][i % 3]
            )
        asyncio.run(load_it(port, 30))
        before = megabytes(process.pid)
        asyncio.run(load_it(port, 150))
        assert megabytes(process.pid) - before < 8
        for one in idle:
            one.close()
        refuse_endless_heads(port)
        many = {"sets": BODY["sets"] * 500}  # its end comes in a piece that is larger than a head may be
        assert len(json.dumps(many)) > 2**17
        assert len(ask(port, "/v1/predict", many)["sets"]) == 500
        with pytest.raises(
            urllib.error.HTTPError, match="413"
        ):  # not a connection that breaks while it is sent
            ask(port, "/v1/predict", {"sets": "x" * 6_000_000})
        assert ask(port, "/readyz") == {"status": "ready"}
