"""HTTP of uvicorn, in which the head of a request has a bound, and an offer of another protocol costs no body."""

import asyncio
import contextlib
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["MOST_HEAD", "BoundedProtocol"]

#: Bytes of the first line and the headers of a request.
MOST_HEAD = 2**16
_TOO_LARGE = b"The first line and the headers of a request take at most 65536 bytes.\n"


class _Parser:
    """The parser of httptools, which goes on where a client offers another protocol (``Upgrade: h2c``).

    Clients of Java do so with every request. A server may answer as if there were no offer (RFC 9110, section 7.8), but
    httptools ends at the head of such a request, as if the body were of the other protocol. So the head is read again
    without the offer, and then what comes behind it.
    """

    def __init__(self, protocol: "BoundedProtocol", parser: Any) -> None:
        self._protocol, self._parser = protocol, parser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    @property
    def offered(self) -> bool:
        """Whether the request offers another protocol; CONNECT has no other meaning."""
        return bool(self._parser.should_upgrade()) and self._parser.get_method() != b"CONNECT"

    def feed_data(self, data: bytes) -> None:
        """Read what came."""
        rest = memoryview(data)
        while True:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as offer:
                if not self.offered:
                    raise
                rest = rest[offer.args[0] :]
                self._read_again()
            else:
                return

    def _read_again(self) -> None:
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        head = [b"%s %s HTTP/%s" % (method, self._protocol.url, version)]
        head += [b"%s: %s" % (name, value) for name, value in self._protocol.headers if name != b"upgrade"]
        self._parser = httptools.HttpRequestParser(self._protocol)
        with contextlib.suppress(AttributeError):  # as uvicorn has it
            self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._parser.feed_data(b"\r\n".join(head) + b"\r\n\r\n")


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose head is too large, before it is complete; answers as if no protocol were offered."""

    _head: int | None = 0  # bytes of a head that is not complete; None within a body
    _ended = False  # whether a request ended in what came last: how much of that is the next head isn't known
    transport: asyncio.Transport
    parser: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = _Parser(self, self.parser)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._ended = False
        super().data_received(data)
        if self._ended:
            return
        if self._head is not None and not self.transport.is_closing():
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.transport.write(
                    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
                    b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(_TOO_LARGE), _TOO_LARGE)
                )
                self.transport.close()

    def on_headers_complete(self) -> None:
        """Note that what comes now is a body."""
        if self.parser.offered:  # the same head comes again
            return
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that what comes now is another head."""
        if self.parser.offered:
            return
        super().on_message_complete()
        self._head, self._ended = 0, True
