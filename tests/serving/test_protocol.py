"""HTTP as clients send it that offer another protocol, read by the server of an app that returns bodies."""

import asyncio

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from entourage.serving.protocol import BoundedProtocol

HEAD = b"host: x\r\ncontent-type: application/json\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAA\r\n"


async def echo(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    content = b"<%s %s %s>" % (scope["method"].encode(), scope["path"].encode(), body)
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


def answers(*parts, wanted=1):
    """Send parts of requests one after the other; return what was echoed."""

    async def run():
        config = Config(echo, ws="none", log_config=None)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: BoundedProtocol(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        came = b""
        async with asyncio.timeout(10):
            while came.count(b">") < wanted and (more := await reader.read(2**16)):
                came += more
        writer.close()
        server.close()
        return [piece.partition(b">")[0] for piece in came.split(b"<")[1:]]

    return asyncio.run(run())


def post(path, body, headers=OFFER):
    return b"POST %s HTTP/1.1\r\n%scontent-length: %d\r\n%s\r\n%s" % (path, HEAD, len(body), headers, body)


def test_a_request_that_offers_another_protocol_keeps_its_body():
    assert answers(post(b"/a", b"one")) == [b"POST /a one"]


def test_it_does_so_in_whatever_pieces_it_comes():
    whole = post(b"/a", b"one")
    assert answers(whole[:-3], whole[-3:]) == [b"POST /a one"]
    assert answers(whole[:70], whole[70:130], whole[130:-1], whole[-1:]) == [b"POST /a one"]
    chunks = b"POST /a HTTP/1.1\r\n%stransfer-encoding: chunked\r\n%s\r\n2\r\non\r\n" % (HEAD, OFFER)
    assert answers(chunks, b"1\r\ne\r\n0\r\n\r\n") == [b"POST /a one"]


@pytest.mark.parametrize("headers", [OFFER, b""])
def test_others_on_the_same_connection_are_answered_in_order(headers):
    several = [post(b"/a", b"one"), post(b"/b", b"", OFFER), post(b"/c", b"three", headers)]
    expected = [b"POST /a one", b"POST /b ", b"POST /c three"]
    assert answers(*several, wanted=3) == expected
    assert answers(b"".join(several), wanted=3) == expected


def test_what_is_no_http_is_still_refused():
    assert answers(b"CONNECT x:1 HTTP/1.1\r\n%s\r\n" % HEAD) == []
    assert answers(post(b"/a", b"one"), b"nonsense\r\n\r\n", wanted=2) == [b"POST /a one"]
