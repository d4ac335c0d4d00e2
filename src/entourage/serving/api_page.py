"""The page ``/docs``: what can be asked, with examples to send. It loads nothing from elsewhere, and needs no token.

The page itself says nothing of the models: it fetches ``/openapi.json``, which needs the token where there is one. The
reader enters it, and it stays in the memory of the page.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

__all__ = ["api_page", "headers_of_page"]


@cache
def api_page() -> bytes:
    """Return the page.

    Examples
    --------
    >>> b"http" in api_page()
    False
    """
    return (Path(__file__).parent / "api_page.html").read_bytes()


@cache
def headers_of_page() -> dict[str, str]:
    """Return what makes a browser run and load nothing but what is in the page, and keep it out of frames."""
    digests = {
        kind: base64.b64encode(hashlib.sha256(content).digest()).decode()
        for kind, content in re.findall(rb"<(script|style)>(.*?)</\1>", api_page(), re.S)
    }
    policy = (
        f"default-src 'none'; script-src 'sha256-{digests[b'script']}'; style-src 'sha256-{digests[b'style']}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
