"""Files that hold a model: one line of format and checksum, one line of JSON, then safetensors.

Nothing in them is code, so opening a stranger's file runs nothing. The checksum covers every byte after the first
line: a file that was cut short or changed is refused, never half-read. It proves nothing about the author of the
file: its content is checked by :mod:`entourage.training.file_checks` before it is used. Writing goes to a
neighbouring file first, which then takes the place of the old one in one step.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from entourage.data.files import write_atomically
from entourage.errors import ModelFileError

__all__ = ["FORMAT", "parse", "read", "to_json", "write"]

MAGIC = b"entourage-file"
FORMAT = 1
DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)  # that models are made of


def write(
    path: str | os.PathLike[str], kind: str, content: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Write ``content`` and ``tensors`` to ``path``, all or nothing.

    Parameters
    ----------
    path : where to
    kind : what it is, "model" or "checkpoint"; `read` refuses another kind
    content : anything JSON can hold
    tensors : tensors by name, on any device
    """
    settings = to_json({"kind": kind, **content}).encode()
    body = settings + b"\n" + tensors_to_bytes({k: t.detach().cpu().contiguous() for k, t in tensors.items()})
    head = MAGIC + f" {FORMAT} sha256:{hashlib.sha256(body).hexdigest()}\n".encode()
    try:
        write_atomically(path, head + body)
    except OSError as error:
        raise ModelFileError(
            f"{path} can't be written: {error.strerror}. What was there before is untouched."
        ) from error


def to_json(content: Any) -> str:
    """Write JSON in one line; numbers of numpy become plain ones, paths and devices their names."""

    def plain(value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else str(value)

    return json.dumps(content, default=plain, sort_keys=True)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read back what `write` wrote; anything else is a `ModelFileError`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} can't be read: {error.strerror}.") from error
    return parse(data, kind, path)


def parse(data: bytes, kind: str, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read the content of a file that `write` wrote; ``path`` is what messages call it."""
    head, _, body = data.partition(b"\n")
    words = head.split(b" ")
    if words[0] != MAGIC or len(words) != 3:
        raise ModelFileError(f"{path} is not a file that Entourage wrote; pass one made by model.save(...).")
    if words[1] != str(FORMAT).encode():
        raise ModelFileError(
            f"{path} has format {words[1].decode(errors='replace')}; this version of Entourage reads format "
            f"{FORMAT}. Open it with the version that wrote it."
        )
    if words[2] != b"sha256:" + hashlib.sha256(body).hexdigest().encode():
        raise ModelFileError(
            f"{path} is damaged: its content doesn't fit its checksum. It was cut short or changed after it "
            "was written; take another copy, or train again."
        )
    settings, _, packed = body.partition(b"\n")
    try:
        content = json.loads(settings)
        tensors = tensors_from_bytes(packed)
    except Exception as error:  # text that is none, nesting without end, numbers without end, shapes that lie
        raise ModelFileError(
            f"{path} is malformed, although its checksum is right: {type(error).__name__}. Entourage wrote no such "
            "file; take another copy, or train again."
        ) from error
    if not isinstance(content, dict) or content.pop("kind", None) != kind:
        raise ModelFileError(f"{path} holds no {kind}, although it has the form of a file of Entourage.")
    for name, value in tensors.items():
        if value.dtype not in DTYPES:
            raise ModelFileError(
                f"{path} holds {name[:100]!r} as {value.dtype}; models are made of {', '.join(map(str, DTYPES))}. Take "
                "another copy, or train again."
            )
    return content, tensors
