"""The models that are served, by name; a new file takes the place of an old one at once, or not at all."""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from entourage import __version__
from entourage.errors import UserError
from entourage.estimators.base import SetPredictor
from entourage.estimators.model_file import load_bytes
from entourage.serving.answers import answer_predictions
from entourage.serving.batching import Batcher
from entourage.serving.limits import Limits
from entourage.serving.metrics import Metrics
from entourage.serving.refusal import Refusal
from entourage.serving.schema import Schema, schema_of

__all__ = ["Models", "Served", "named_paths"]

logger = logging.getLogger("entourage.serving")

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Served:
    """A model with all that belongs to it; a request keeps to the one that it began with.

    Attributes
    ----------
    name : by which requests ask for it
    model : fitted
    schema : what requests look like
    batcher : what scores them
    sha256 : of the file; None for a model that came from memory
    loaded : when
    """

    name: str
    model: Any
    schema: Schema
    batcher: Batcher
    sha256: str | None
    loaded: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def describe(self) -> dict[str, Any]:
        """Return what clients may know of the model."""
        task = self.model.task
        found: dict[str, Any] = {
            "name": self.name,
            "task": {"rank": "ranking", "choice": "discrete choice", "subset": "subset choice"}[task.kind],
            "estimator": type(self.model).__name__,
            "outside_option": bool(task.outside),
            "objects": "columns by name" if self.model.table_ is not None else "lists of numbers",
        }
        return (
            found
            | self.schema.describe()
            | {
                "version": __version__,
                "sha256": self.sha256,
                "loaded": self.loaded,
            }
        )


class Models:
    """Models by name.

    Parameters
    ----------
    sources : fitted models, or paths of model files, by name; the first is the one that is meant without a name
    limits, share : of the batches
    device : where nets run
    metrics : told of passes and reloads
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        limits: Limits,
        share: bool,
        device: str,
        metrics: Metrics,
    ) -> None:
        if not sources:
            raise UserError("A server needs at least one model; none was given.")
        for name in sources:
            if not _NAME.fullmatch(name):
                raise UserError(
                    f"The name of a model has letters, digits, '_', '.' and '-', at most 64 of them; got {name!r}. "
                    "Name it: name=path."
                )
        self._sources, self._limits, self._share, self._device = dict(sources), limits, share, device
        self.names = list(sources)  # the first of them first
        self._metrics = metrics
        self._loading = asyncio.Lock()
        self._served: dict[str, Served] = {}
        self._leaving: set[Batcher] = set()  # of models that others took the place of
        for name in sources:
            self._place(self._load(name))

    def __getitem__(self, name: str | None) -> Served:
        """Return the model of a name, the first one for None; refuse where there is none."""
        found = self._served.get(self.names[0] if name is None else name)
        if found is None:
            raise Refusal(404, f"There is no model of this name; there are {', '.join(self.names)}.")
        return found

    async def reload(self, name: str | None = None) -> list[Served]:
        """Read the files of one or all models again; each that can be used takes the place of the old one.

        All are read before any is put in place: where one fails, all stay as they were.
        """
        names = self.names if name is None else [self[name].name]
        if name is None:
            names = [one for one in names if not _in_memory(self._sources[one])] or names
        async with self._loading:
            fresh = []
            for one in names:
                try:
                    fresh.append(await asyncio.to_thread(self._load, one))
                except Exception:
                    logger.exception("model %s could not be loaded again; the one in use stays", one)
                    self._metrics.count_reload(one, "failed")
                    raise Refusal(
                        409,
                        f"Model {one!r} could not be loaded again; the one in use stays. The reason is in the log of "
                        "the server.",
                    ) from None
            old = [self._served[one.name] for one in fresh]
            for served in fresh:
                self._place(served)
                self._metrics.count_reload(served.name, "loaded")
                logger.info("model %s loaded again, sha256 %s", served.name, served.sha256)
        leaving = {served.batcher for served in old}
        self._leaving |= leaving
        for batcher in leaving:
            await batcher.close()
        self._leaving = {batcher for batcher in self._leaving if batcher.busy}
        return fresh

    @property
    def busy(self) -> bool:
        """Whether a model is at work or loaded again, be it for a request that was given up."""
        return self._loading.locked() or any(batcher.busy for batcher in self._batchers())

    async def close(self) -> None:
        """Wait until all that was accepted is answered."""
        for batcher in self._batchers():
            await batcher.close()

    def refuse_rest(self, refusal: Refusal) -> int:
        """Refuse all that is not answered yet; return how many requests that are."""
        return sum(batcher.refuse_rest(refusal) for batcher in self._batchers())

    def _batchers(self) -> list[Batcher]:
        return [*(served.batcher for served in self._served.values()), *self._leaving]

    def _place(self, served: Served) -> None:
        self._served[served.name] = served
        self._metrics.watch(served.name, lambda: served.batcher.waiting)

    def _load(self, name: str) -> Served:
        """Load a model and let it score an example, so that what fails fails here and first calls are not slow."""
        source = self._sources[name]
        if _in_memory(source):
            if name in self._served:
                raise UserError(f"Model {name!r} came from memory, not from a file.")
            model, digest = source, None
            if not hasattr(model, "n_features_in_"):
                raise UserError(f"Model {name!r} is not fitted yet; call fit first.")
        else:
            data = _bytes_of(source)  # read once, so that the digest is that of the model
            model, digest = load_bytes(data, source), hashlib.sha256(data).hexdigest()
        known = model.get_params(deep=False)
        settings = {"device": self._device, "verbose": False}
        if not _in_memory(source):
            model.set_params(**{key: value for key, value in settings.items() if key in known})
        schema = schema_of(model, self._metrics.on_unfamiliar(name))
        score = partial(answer_predictions, model, schema)
        score([schema.read({"sets": [schema.example()]}, Limits())])
        batcher = Batcher(score, self._limits, share=self._share, on_batch=self._metrics.on_batch(name))
        return Served(name, model, schema, batcher, digest)


def named_paths(given: list[str]) -> dict[str, Path]:
    """Return paths by name: of ``name=path`` the name, of a path alone its stem.

    Examples
    --------
    >>> named_paths(["hotels.entourage", "b=models/new.entourage"])
    {'hotels': PosixPath('hotels.entourage'), 'b': PosixPath('models/new.entourage')}
    """
    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not _NAME.fullmatch(name):
            name, path = Path(one).stem, one
        if name in found:
            raise UserError(f"Two models are named {name!r}. Name them: a={found[name]} b={path}.")
        found[name] = Path(path)
    return found


def _in_memory(source: Any) -> bool:
    return isinstance(source, SetPredictor)


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    try:
        if Path(path).exists() and not Path(path).is_file():  # to read a pipe may never end
            raise UserError(f"{path} is no file. Give a model file, made by model.save(...).")
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}.") from None
