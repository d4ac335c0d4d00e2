"""A request that is refused: a status, a sentence, and the place in the body that it is about."""

from collections.abc import Mapping
from typing import Any

__all__ = ["Refusal"]


class Refusal(Exception):
    """What a client did wrong, or what the server can't do now; the message is shown to the client.

    Parameters
    ----------
    status : of HTTP
    message : says what is needed, what came, and what to do
    path : where in the body, such as ``sets[0].objects[2].price``
    headers : more headers of the response

    Examples
    --------
    >>> Refusal(422, "A set needs at least one object.", "sets[0].objects").content()
    {'error': {'message': 'A set needs at least one object.', 'path': 'sets[0].objects'}}
    """

    def __init__(
        self,
        status: int,
        message: str,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.path = status, message, path
        self.headers = dict(headers or {})

    def content(self) -> dict[str, Any]:
        """Return what the body of the response holds."""
        return {"error": {"message": self.message} | ({} if self.path is None else {"path": self.path})}
