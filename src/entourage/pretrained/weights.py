"""The weights that come with the package: one safetensors file in bfloat16, known by its checksum."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from entourage.data.files import write_atomically
from entourage.errors import ModelFileError
from entourage.nets.prior_fitted import PriorFittedNet
from entourage.training.file_checks import need

__all__ = [
    "CHECKSUM",
    "FILE",
    "available",
    "check_available",
    "pretrained_net",
    "read_weights",
    "write_weights",
]

FILE = Path(__file__).with_name("weights.safetensors")
CHECKSUM = Path(__file__).with_name("weights.sha256")


def write_weights(
    path: Path, settings: dict[str, int], weights: dict[str, Tensor], dtype: torch.dtype
) -> None:
    """Write weights with the settings of their net."""
    content = tensors_to_bytes(
        {name: value.to(dtype).contiguous() for name, value in weights.items()},
        metadata={"net": json.dumps(settings, sort_keys=True)},
    )
    write_atomically(path, content)


def read_weights(path: Path) -> PriorFittedNet:
    """Return the net whose weights a file holds, in float32."""
    try:
        with safe_open(path, "pt") as file:
            settings: dict[str, Any] = json.loads((file.metadata() or {})["net"])
        found = tensors_from_bytes(path.read_bytes())
        weights = {name: value.to(torch.float32, copy=True) for name, value in found.items()}
        unsound = [name for name, value in weights.items() if not value.isfinite().all()]
        need(not unsound, f"{', '.join(unsound[:3])} are infinite or NaN.")
        with torch.device("meta"):  # no random numbers for weights that are replaced
            net = PriorFittedNet(**settings)
        net.load_state_dict(weights, assign=True)
    except Exception as error:
        raise ModelFileError(f"{path} holds no weights of a prior-fitted net: {error}") from error
    return net


def available() -> bool:
    """Whether this copy of the package has weights of the pretrained net."""
    return FILE.exists()


def check_available() -> None:
    """Raise an error where this copy of the package has no weights of the pretrained net."""
    if not available():
        raise ModelFileError(
            "The weights of the pretrained net aren't in this copy of entourage. They come with the package: install "
            "it anew, or name a net that is trained on the labelled sets, such as fate. To make weights of your own, "
            "on a GPU: python -m entourage.pretraining train --out runs, then python -m entourage.pretraining keep "
            "runs/weights.safetensors."
        )


@cache
def pretrained_net() -> PriorFittedNet:
    """Return the net of the package; its weights are read once, and never changed."""
    check_available()
    try:
        expected = CHECKSUM.read_text().split()[:1]
        right = expected == [hashlib.sha256(FILE.read_bytes()).hexdigest()]
    except OSError as error:
        raise ModelFileError(
            f"The weights of the pretrained net can't be read: {error}. Install entourage anew."
        ) from error
    if not right:
        raise ModelFileError(f"{FILE} is not the file that belongs to this package; install entourage anew.")
    return read_weights(FILE).eval().requires_grad_(False)
