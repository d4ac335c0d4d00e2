"""Checkpoints: the state of a run in a file, from which it is resumed."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from entourage.errors import CheckpointError
from entourage.training import tensor_file
from entourage.training.file_checks import (
    check_history,
    check_optimizer,
    check_weights,
    forms_of,
    need,
    refusing,
    take,
)
from entourage.training.plan import Plan
from entourage.training.progress import History
from entourage.training.update import Update

__all__ = ["checkpoint_file", "identity_of", "read_seed", "restore", "save"]

CHECKPOINT = "checkpoint.entourage"


def checkpoint_file(folder: str | os.PathLike[str]) -> Path:
    """Return where the state of a run is kept, in a folder that is made where it is missing."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"{folder} can't be a folder for checkpoints: {error.strerror}.") from error
    return Path(folder) / CHECKPOINT


def identity_of(plan: Plan, fingerprint: str) -> str:
    """Return what identifies a run: its plan, and a fingerprint of its data and settings."""
    content = [tensor_file.FORMAT, asdict(plan), fingerprint]
    return hashlib.sha256(tensor_file.to_json(content).encode()).hexdigest()


def read_seed(path: str | os.PathLike[str]) -> int:
    """Return the seed of the run that a checkpoint is of."""
    content, _ = tensor_file.read(path, "checkpoint")
    with refusing(path, CheckpointError):
        return int(take(content, "seed", int, least=0))


def save(path: Path, identity: str, update: Update, history: History, step: int) -> None:
    """Write the whole state of a run."""
    tensors = _prefixed("net", update.scorer.state_dict()) | _prefixed(
        "optimizer", update.optimizer_tensors()
    )
    if update.average is not None:
        tensors |= _prefixed("average", update.average.state_dict())
    if history.best_weights is not None:
        tensors |= _prefixed("best", history.best_weights)
    content = {
        "identity": identity,
        "seed": update.plan.seed,
        "step": step,
        "history": history.rows,
        "best_score": history.best_score,
        "since_best": history.since_best,
    }
    tensor_file.write(path, "checkpoint", content, tensors)


def restore(path: Path, identity: str, update: Update, history: History) -> int:
    """Restore a saved state, if it is of this run; return its step."""
    content, tensors = tensor_file.read(path, "checkpoint")
    if content.get("identity") != identity:
        raise CheckpointError(
            f"{path} belongs to a run with other data or settings, or of another version of Entourage. Take an "
            "empty folder, or delete that file to start anew."
        )
    averaged = update.average is not None
    with refusing(path, CheckpointError):
        _check(content, tensors, update.scorer.state_dict(), update.counted, averaged=averaged)
    update.scorer.load_state_dict(_without("net", tensors))
    update.load_optimizer(_without("optimizer", tensors))
    if update.average is not None:
        update.average.load_state_dict(_without("average", tensors))
    history.rows = content["history"]
    history.best_score, history.since_best = content["best_score"], content["since_best"]
    best = _without("best", tensors)
    history.best_weights = {k: v.to(update.data.device) for k, v in best.items()} if best else None
    return int(content["step"])


def _check(
    content: dict[str, Any],
    tensors: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    parameters: Sequence[Tensor],
    *,
    averaged: bool,
) -> None:
    """Check that a checkpoint holds the state of a run with these weights and parameters of its optimiser."""
    groups: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "average": {}, "best": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition(".")
        need(group in groups, f"it holds numbers of which nothing is known: {name[:100]}.")
        groups[group][rest] = value
    best = take(content, "best_score", float | None)
    expected = forms_of(weights)
    for group, expects in (("net", True), ("average", averaged), ("best", best is not None)):
        check_weights(groups[group], expected if expects else {}, group)
    check_optimizer(groups["optimizer"], [tuple(p.shape) for p in parameters])
    take(content, "step", int, least=0)
    take(content, "since_best", int, least=0)
    check_history(content)


def _prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _without(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")}
