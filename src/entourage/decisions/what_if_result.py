"""What :func:`entourage.decisions.what_if` finds, as text, tables and a picture."""

import os
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from entourage.decisions.intervals import Estimate
from entourage.errors import check_choice

__all__ = ["METHOD_WORDS", "Shift", "WhatIf"]

Floats: TypeAlias = NDArray[np.float64]

#: Where intervals are from, in words.
METHOD_WORDS = {
    "refits": "refits to resampled people.",
    "draws": "draws of the coefficients from their asymptotic normal distribution.",
    "members": "the spread over ensemble members, trained on the same data: initialisation and training only, narrower "
    "than a confidence interval.",
    "none": "none. For these, fit an ensemble (members=8) or a model of entourage.choice, or give refits "
    "(refit_people).",
}


@dataclass(frozen=True)
class Shift:
    """The share of some objects before and after.

    Attributes
    ----------
    by, group : the column and its value; "role" and what is done to the objects, for the whole table
    what : whose share it is
    before, after, change : shares, with intervals
    ranks : of rankers, mean expected ranks before and after, and their change
    surplus, money : change of consumer surplus a set, where the group is one of sets
    """

    by: str
    group: str
    what: str
    before: Estimate
    after: Estimate
    change: Estimate
    ranks: tuple[Estimate, Estimate, Estimate] | None = None
    surplus: Estimate | None = None
    money: Estimate | None = None


@dataclass(frozen=True)
class WhatIf:
    """What changes; see :func:`entourage.decisions.what_if`. Rows are those of the input, then the added ones.

    Attributes
    ----------
    kind : "choice", "ranking" or "subset"
    shifts : shares before and after: of the whole table by role, then by group
    before, after : choice probabilities of all rows; NaN where a row is not offered
    ranks_before, ranks_after : expected ranks, of rankers
    set_of_row, roles : of each row
    ids, weights : of the sets
    affected : before and after, the share of the affected objects (changed, added, removed) in each set
    outside : before and after, the probability that nothing is chosen from each set
    surplus, surplus_by_set : change of consumer surplus in utils: the mean over sets, and of each
    money, money_by_set : the same in money
    no_surplus : why there is no surplus
    method : where intervals are from
    level : intervals hold 1 - level
    notes : what a reader should know besides
    """

    kind: str
    shifts: list[Shift]
    before: Estimate
    after: Estimate
    ranks_before: Estimate | None
    ranks_after: Estimate | None
    set_of_row: NDArray[np.int64]
    roles: list[str]
    ids: list[Any]
    weights: Floats
    affected: tuple[Estimate, Estimate]
    outside: tuple[Estimate, Estimate] | None
    surplus: Estimate | None
    surplus_by_set: Estimate | None
    money: Estimate | None
    money_by_set: Estimate | None
    no_surplus: str | None
    method: str
    level: float
    notes: list[str] = field(default_factory=list)

    @property
    def share_words(self) -> str:
        """What a share is."""
        return {"ranking": "share of first places", "subset": "chosen a set"}.get(self.kind, "share")

    def counts(self) -> dict[str, int]:
        """Return how many objects are changed, added and removed."""
        return {
            role: self.roles.count(role) for role in ("changed", "added", "removed") if role in self.roles
        }

    def interval(self, found: Estimate) -> str:
        """Return an interval in words; "" where there is none."""
        if found.low is None or not np.isfinite(found.low):
            return ""
        return f"{100 * (1 - self.level):g} % CI [{found.low:.4f}, {found.high:.4f}]"

    def __str__(self) -> str:
        done = ", ".join(f"{n:,} objects {role}" for role, n in self.counts().items())
        lines = [f"What if, {len(self.ids):,} sets: {done}"]
        for one in self.shifts:
            name = one.group if one.by == "role" else f"{one.by} {one.group}"
            whose = f" of {one.what}" if one.what.startswith("affected") else ""
            sure = self.interval(one.change)
            lines.append(
                f"  {name}: {self.share_words}{whose} {one.before.value:.4f} to {one.after.value:.4f} "
                f"({one.change.value:+.4f}{', ' + sure if sure else ''})"
            )
            if one.ranks is not None and np.isfinite(one.ranks[2].value):
                sure = self.interval(one.ranks[2])
                lines[-1] += (
                    f"; expected rank {one.ranks[0].value:.3f} to {one.ranks[1].value:.3f}"
                    f"{' (change ' + sure + ')' if sure else ''}"
                )
            if one.surplus is not None:
                lines[-1] += f"; surplus {one.surplus.value:+.4f}"
                lines[-1] += "" if one.money is None else f", in money {one.money.value:+.4f}"
        if self.surplus is not None:
            sure = self.interval(self.surplus)
            text = f"  consumer surplus a set: {self.surplus.value:+.4f} utils{f' ({sure})' if sure else ''}"
            if self.money is not None:
                sure = self.interval(self.money)
                text += f"; {self.money.value:+.4f} in money{f' ({sure})' if sure else ''}"
            lines.append(text)
        elif self.no_surplus:
            lines.append(f"  no consumer surplus: {self.no_surplus}")
        return "\n".join([*lines, f"Intervals: {METHOD_WORDS[self.method]}", *self.notes])

    def to_frame(self, of: str = "shares") -> pa.Table:
        """Return an Arrow table: "shares" by role and group, "objects" (one row each), or "sets".

        Columns of intervals end in ``_low`` and ``_high``; null where there is none.
        """
        check_choice("of", of, ["shares", "objects", "sets"])
        columns: dict[str, Any] = {}
        if of == "shares":
            columns = {name: [getattr(one, name) for one in self.shifts] for name in ("by", "group", "what")}
            for name in ("before", "after", "change", "surplus", "money"):
                columns |= _columns(name, [getattr(one, name) for one in self.shifts])
            if self.kind == "ranking":
                for i, name in enumerate(("rank_before", "rank_after", "rank_change")):
                    columns |= _columns(
                        name, [None if one.ranks is None else one.ranks[i] for one in self.shifts]
                    )
        elif of == "objects":
            columns = {
                "row": np.arange(len(self.roles)),
                "set": [self.ids[i] for i in self.set_of_row.tolist()],
                "role": self.roles,
            }
            columns |= _columns("before", self.before) | _columns("after", self.after)
            if self.ranks_before is not None and self.ranks_after is not None:
                columns |= _columns("rank_before", self.ranks_before) | _columns(
                    "rank_after", self.ranks_after
                )
        else:
            columns = {"set": self.ids, "weight": self.weights}
            columns |= _columns("affected_before", self.affected[0]) | _columns(
                "affected_after", self.affected[1]
            )
            if self.outside is not None:
                columns |= _columns("outside_before", self.outside[0]) | _columns(
                    "outside_after", self.outside[1]
                )
            for name, one in (("surplus", self.surplus_by_set), ("money", self.money_by_set)):
                columns |= {} if one is None else _columns(name, one)
        return pa.table(
            {
                name: pa.array(values, from_pandas=True)
                if isinstance(values, np.ndarray)
                else pa.array(values)
                for name, values in columns.items()
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return shares and surplus, ready for JSON."""
        return {
            "kind": self.kind,
            "sets": len(self.ids),
            "objects": self.counts(),
            "shares": self.to_frame().to_pylist(),
            "surplus": _json(self.surplus),
            "money": _json(self.money),
            "no_surplus": self.no_surplus,
            "intervals": self.method,
            "level": self.level,
            "notes": self.notes,
        }

    def draw(self, by: str | None = None) -> Any:
        """Return a matplotlib figure: shares before (open) and after (filled), for the role or a column of ``by``."""
        from matplotlib.figure import Figure

        known = list(dict.fromkeys(one.by for one in self.shifts))
        by = known[-1] if by is None else check_choice("by", by, known)
        shown = [one for one in self.shifts if one.by == by and np.isfinite(one.before.value)]
        shown = sorted(shown, key=lambda one: -abs(one.change.value))[:20]
        figure = Figure(figsize=(7, 1.2 + 0.42 * len(shown)), dpi=140, layout="constrained")
        axis = figure.subplots()
        for y, one in enumerate(reversed(shown)):
            axis.plot([one.before.value, one.after.value], [y, y], color="#9aa5b4", linewidth=1, zorder=1)
            if one.after.low is not None:
                axis.plot(
                    [one.after.low, one.after.high],
                    [y, y],
                    color="#0b6e4f",
                    linewidth=3,
                    alpha=0.35,
                    zorder=2,
                )
            axis.scatter(
                one.before.value,
                y,
                s=42,
                facecolor="white",
                edgecolor="#1c2430",
                zorder=3,
                label="before" if y == 0 else None,
            )
            axis.scatter(
                one.after.value, y, s=42, color="#0b6e4f", zorder=3, label="after" if y == 0 else None
            )
        axis.set_yticks(range(len(shown)), [one.group.replace("$", r"\$") for one in reversed(shown)])
        axis.set_xlabel(f"{self.share_words}, by {by}".replace("$", r"\$"))
        axis.set_ylim(-0.7, len(shown) - 0.3)
        axis.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, loc="outside upper right", ncols=2)
        return figure

    def plot(self, path: str | os.PathLike[str], by: str | None = None) -> None:
        """Write the picture of `draw` to a file."""
        self.draw(by).savefig(path)


def _columns(name: str, found: Any) -> dict[str, Any]:
    """Return the columns of one estimate, an array, or of a list of estimates."""
    if isinstance(found, Estimate):
        columns = {name: found.value}
        return (
            columns if found.low is None else columns | {f"{name}_low": found.low, f"{name}_high": found.high}
        )
    if all(one is None for one in found):
        return {}
    parts = {name: [None if one is None else one.value for one in found]}
    if any(one is not None and one.low is not None for one in found):
        parts |= {
            f"{name}_{end}": [None if one is None else getattr(one, end) for one in found]
            for end in ("low", "high")
        }
    return {
        key: [None if value is None or value != value else value for value in values]
        for key, values in parts.items()
    }


def _json(found: Estimate | None) -> Any:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}
