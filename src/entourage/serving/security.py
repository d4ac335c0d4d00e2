"""Who may ask, and how much: the bearer token, names of this machine, and bodies of bounded size."""

import asyncio
import contextlib
import hmac
import ipaddress
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from entourage.errors import UserError
from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal

__all__ = [
    "TOKEN_VARIABLE",
    "check_bind",
    "check_host",
    "check_strength",
    "check_token",
    "is_loopback",
    "read_body",
    "read_token",
]

TOKEN_VARIABLE = "ENTOURAGE_TOKEN"
SHORTEST_TOKEN = 16
_FORGOTTEN = 8  # times the limit of a body: what is read of a larger one before its connection is closed


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(path: str | os.PathLike[str] | None) -> str | None:
    """Return the token of a file, else of the environment variable; None where there is neither."""
    if path is not None:
        try:
            token = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"The token can't be read from {path}: {error}.") from None
        where = str(path)
    else:
        token, where = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if TOKEN_VARIABLE not in os.environ:
            return None
    check_strength(token, f"The token of {where}")
    return token


def check_strength(token: str, what: str) -> None:
    """Refuse a token that can be guessed, an empty one above all."""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(
            f"{what} needs at least {SHORTEST_TOKEN} printable ASCII characters without spaces; it has "
            f"{len(token)}. Make one: python -c 'import secrets; print(secrets.token_urlsafe())'."
        )


def check_bind(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach the server, unless they need a token."""
    if token is None and not is_loopback(host):
        raise UserError(
            f"--host {host} can be reached from other machines, so a token is needed: --token-file FILE, or the "
            f"environment variable {TOKEN_VARIABLE}. For this machine alone, leave --host out."
        )


def check_token(given: bytes | None, token: str) -> None:
    """Refuse a request without the right token; the comparison takes the same time wherever they differ."""
    kind, _, came = (given or b"").partition(b" ")
    right = hmac.compare_digest(came.strip(), token.encode())
    if kind.lower() != b"bearer" or not right:
        raise Refusal(
            401,
            "This server needs a token: send the header 'Authorization: Bearer TOKEN'.",
            headers={"WWW-Authenticate": "Bearer"},
        )


def check_host(given: bytes | None, origin: bytes | None = None) -> None:
    """Refuse a name other than this machine's, and pages of other origins, where there is no token.

    A web page can make its own name mean 127.0.0.1, and read what is answered (DNS rebinding); and any page can send
    requests to 127.0.0.1, though it can't read the answers.
    """
    _check_name(given)
    if origin is not None:
        _check_name(origin.partition(b"://")[2])


def _check_name(given: bytes | None) -> None:
    name = (given or b"").decode("latin-1")
    bare = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() and name.count(":") != 0 else name
    if not is_loopback(bare):
        raise Refusal(
            421,
            "This server listens to this machine alone: ask 127.0.0.1 or localhost, or start it with a token.",
        )


async def read_body(
    receive: Callable[[], Awaitable[Any]], headers: Iterable[tuple[bytes, bytes]], limits: Limits
) -> bytes:
    """Return the body of a request; refuse one that is too large, or doesn't arrive in time."""
    given = dict(headers)
    kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refusal(415, "The body needs to be JSON: send the header 'Content-Type: application/json'.")
    coding = given.get(b"content-encoding", b"identity").strip().lower()
    if coding not in (b"identity", b""):
        raise Refusal(415, "The body needs to come as it is, not compressed: leave out Content-Encoding.")
    length = given.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > limits.body:
        raise await _too_large(receive, limits)
    message = await _receive(receive, limits)
    parts, size = [message.get("body", b"")], len(message.get("body", b""))
    deadline = asyncio.get_running_loop().time() + limits.seconds
    while message.get("more_body") and size <= limits.body:
        message = await _receive(receive, limits, deadline)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limits.body:
        raise await _too_large(receive, limits, message.get("more_body", False))
    return b"".join(parts)


async def _receive(
    receive: Callable[[], Awaitable[Any]], limits: Limits, deadline: float | None = None
) -> Any:
    try:
        async with asyncio.timeout_at(deadline or asyncio.get_running_loop().time() + limits.seconds):
            message = await receive()
    except TimeoutError:
        raise Refusal(
            408,
            f"The body did not arrive within {limits.seconds:g} seconds.",
            headers={"Connection": "close"},
        ) from None
    if message["type"] == "http.disconnect":
        raise Refusal(400, "The connection was closed before the body was complete.")
    return message


async def _too_large(receive: Callable[[], Awaitable[Any]], limits: Limits, more: bool = True) -> Refusal:
    """Read what is left of a large body and forget it: many clients read no answer before they have sent it all."""
    left = _FORGOTTEN * limits.body
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.seconds):
            while more and left > 0:
                message = await receive()
                more, left = message.get("more_body", False), left - len(message.get("body", b""))
    return Refusal(
        413,
        f"A request takes at most {limits.body} bytes. Send fewer sets at once.",
        headers={"Connection": "close"},
    )
