"""Reports: self-contained HTML pages. Need the extra ``[report]``."""

from entourage.report.intervals import IntervalPlot, Line, Mark
from entourage.report.page import (
    Cell,
    Live,
    Picture,
    Section,
    Table,
    make_folder,
    require_report,
    write_report,
    write_text,
)

__all__ = [
    "Cell",
    "IntervalPlot",
    "Line",
    "Live",
    "Mark",
    "Picture",
    "Section",
    "Table",
    "make_folder",
    "require_report",
    "write_report",
    "write_text",
]
