"""Intervals of a page: a table whose rows have a picture of their interval, on one scale.

The picture is SVG in the page: it takes the colours of the page, light or dark, and the width of a phone. The numbers
beside it are its text.
"""

import math
from dataclasses import dataclass

__all__ = ["INKS", "IntervalPlot", "Line", "Mark"]

#: What a line can look like: a colour of the page, and a shape that tells it apart without colour.
INKS = {
    "any": "M0-6.5 6.5 0 0 6.5-6.5 0z",
    "context": "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0z",
    "relative": "M-5-5h10v10h-10z",
    "context-free": "M0-6 6 5-6 5z",
    "plain": "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0z",
}
_MARKS = {  # shapes of further values of a line: open, so that the estimate is seen beneath
    "ring": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "cross": "M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5",
}
_EDGE = 4.0  # per cent of the width that is left free at each end
_STEPS = 4  # between the ticks of the axis, at most


@dataclass(frozen=True)
class Mark:
    """A further value of each line, such as that of a control.

    Attributes
    ----------
    name : in the legend
    shape : "ring" or "cross"
    """

    name: str
    shape: str


@dataclass(frozen=True)
class Line:
    """One estimate.

    Attributes
    ----------
    name, note : what it is of, and a word more
    value, interval : None where there is none
    text, beside : the numbers, as they are read, and others
    look : one of :data:`INKS`
    best : whether it is the best one
    marks : further values, one for each mark of the plot
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None
    text: str
    note: str = ""
    beside: str = ""
    look: str = "plain"
    best: bool = False
    marks: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class IntervalPlot:
    """Lines on one scale.

    Attributes
    ----------
    what : what the scale is, its caption
    names, numbers : headers of the names and of the numbers
    lines : from above
    zero : a value at which a vertical line is drawn; None for none
    marks : of what further values are
    legend : names of looks, where they differ

    Examples
    --------
    >>> plot = IntervalPlot("gain", "tier", "mean", [Line("net", 0.5, (0.0, 1.0), "+0.5")], zero=0.0)
    >>> plot.ticks
    [(4.0, '0'), (27.0, '0.25'), (50.0, '0.5'), (73.0, '0.75'), (96.0, '1')]
    >>> plot.drawn(plot.lines[0]).bar
    (4.0, 96.0)
    """

    what: str
    names: str
    numbers: str
    lines: list[Line]
    zero: float | None = None
    marks: tuple[Mark, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the scale: of all that is drawn and finite."""
        values = [] if self.zero is None else [self.zero]
        for line in self.lines:
            values += [*(line.interval or ()), *[v for v in (line.value, *line.marks) if v is not None]]
        known = [v for v in values if math.isfinite(v)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        if low == high:
            room = abs(low) / 2 or 1.0
            low, high = low - room, high + room
        return low, high

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places, in per cent of the width, and numbers."""
        low, high = self.ends
        size = (high - low) / _STEPS
        unit = 10.0 ** math.floor(math.log10(size))
        step = unit * next(k for k in (1, 2, 2.5, 5, 10) if k * unit >= size * (1 - 1e-9))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [(self.place(i * step), _tick(i * step, step)) for i in range(first, last + 1)]

    @property
    def at_zero(self) -> float | None:
        """The place of the vertical line."""
        return None if self.zero is None else self.place(self.zero)

    def place(self, value: float) -> float:
        """Return the place of a value, in per cent of the width; what is infinite is at the end."""
        low, high = self.ends
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(_EDGE + (100 - 2 * _EDGE) * share, 2)

    def drawn(self, line: Line) -> "Drawn":
        """Return the places of what is drawn of a line."""
        known = line.value is not None and not math.isnan(line.value)
        ends = line.interval is not None and not any(map(math.isnan, line.interval))
        return Drawn(
            point=self.place(line.value) if known and line.value is not None else None,
            bar=(self.place(line.interval[0]), self.place(line.interval[1]))
            if ends and line.interval is not None
            else None,
            shape=INKS[line.look],
            marks=[
                (self.place(value), _MARKS[mark.shape])
                for mark, value in zip(self.marks, line.marks, strict=True)
                if value is not None and not math.isnan(value)
            ],
        )

    def shape_of(self, name: str) -> str:
        """Return the path of a look or of a mark, for the legend."""
        return INKS.get(name) or _MARKS[name]


@dataclass(frozen=True)
class Drawn:
    """Places of a line, in per cent of the width, and shapes."""

    point: float | None
    bar: tuple[float, float] | None
    shape: str
    marks: list[tuple[float, str]]


def _tick(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:.{digits + 1}f}".rstrip("0").rstrip(".") if digits else f"{value:g}"
    return "0" if float(text) == 0 else text.replace("-", "−")
