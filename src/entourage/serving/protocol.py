"""HTTP of uvicorn with a bound on the head of a request, which httptools alone would read without end."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["MOST_HEAD", "BoundedProtocol"]

#: Bytes of the first line and the headers of a request.
MOST_HEAD = 2**16
_TOO_LARGE = b"The first line and the headers of a request take at most 65536 bytes.\n"


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose head is too large, before it is complete."""

    _head: int | None = 0  # bytes of a head that is not complete; None within a body
    _ended = False  # whether a request ended in what came last: how much of that is the next head isn't known
    transport: asyncio.Transport

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
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that what comes now is another head."""
        super().on_message_complete()
        self._head, self._ended = 0, True
