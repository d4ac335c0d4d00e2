"""How much one request may ask for, and how much the server holds at once."""

from dataclasses import dataclass

from entourage.errors import check_number

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds on requests; beyond them a request is refused with a sentence, and nothing is computed.

    Parameters
    ----------
    body : bytes of a request (413)
    sets : sets in a request (422)
    objects : objects in a set (422)
    total_objects : objects in a request (422)
    influence_objects : objects in a set whose influence on each other is asked for: m objects take m passes (422)
    queue : requests that wait for a model (429, with Retry-After)
    seconds : a request has to arrive (408), and to be answered (503)
    pairs : of objects in one forward pass, padding included; requests beyond it wait for the next pass

    Examples
    --------
    >>> Limits(objects=50).objects
    50
    >>> Limits(queue=0)
    Traceback (most recent call last):
        ...
    entourage.errors.ParameterError: queue needs a whole number of at least 1; got 0.
    """

    body: int = 4 * 2**20
    sets: int = 1000
    objects: int = 1000
    total_objects: int = 20_000
    influence_objects: int = 100
    queue: int = 1024
    seconds: float = 30.0
    pairs: int = 2**18

    def __post_init__(self) -> None:
        for name in ("body", "sets", "objects", "total_objects", "influence_objects", "queue", "pairs"):
            check_number(name, getattr(self, name), least=1, whole=True)
        check_number("seconds", self.seconds, above=0)
