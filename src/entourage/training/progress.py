"""Progress of training: the history of evaluations, the best weights so far, and the progress bar."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from entourage.training.held_out import HeldOutScore

__all__ = ["History", "in_words", "progress_bar", "training_bar"]


@dataclass
class History:
    """The evaluations of one net, and its best weights."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    best_score: float | None = None
    best_weights: dict[str, Tensor] | None = None
    since_best: int = 0  # evaluations

    def add(
        self,
        step: int,
        rate: float,
        loss: float,
        score: float | None,
        weights: Callable[[], dict[str, Tensor]],
    ) -> None:
        """Add an evaluation, and keep the weights if the score is the best so far."""
        row: dict[str, Any] = {"step": float(step), "learning_rate": rate, "loss": loss}
        if score is not None:
            row["score"] = float(score)
            if isinstance(score, HeldOutScore) and np.isfinite(score.halves).all():
                row["halves"] = list(score.halves)
            self.since_best += 1
            if self.best_score is None or score > self.best_score:
                self.best_score, self.best_weights, self.since_best = float(score), weights(), 0
        self.rows.append(row)

    def stopped_improving(self, patience: int | None) -> bool:
        """Whether the score has not risen for so many evaluations that it is time to stop."""
        return patience is not None and self.since_best >= patience

    def summary(self) -> str:
        """Return the last loss and the best score, in a few words."""
        words = f"loss {self.rows[-1]['loss']:.4f}" if self.rows else ""
        return words if self.best_score is None else f"{words}, best {self.best_score:.4f}"


@contextlib.contextmanager
def training_bar(steps: int, visible: bool) -> Iterator[Callable[[int, str], None]]:
    """Show a bar on the error stream, moved by the number of steps done and a few words."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[summary]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as progress:
        bar = progress.add_task("training", total=steps, summary="")
        yield lambda done, summary: progress.update(bar, completed=done, summary=summary)


def progress_bar(
    what: str, total: int, visible: bool
) -> contextlib.AbstractContextManager[Callable[[int], None] | None]:
    """Show a bar on the error stream, gone when it is done; it is moved by how much more was done."""
    return _transient_bar(what, total) if visible else contextlib.nullcontext()


@contextlib.contextmanager
def _transient_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda more: progress.advance(bar, more)


def in_words(seconds: float) -> str:
    """Return a duration in words, rounded.

    Examples
    --------
    >>> in_words(3.2), in_words(250), in_words(9000)
    ('3 seconds', '4 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' * (round(seconds) > 1)}"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
