"""Reports: self-contained HTML pages. Need the extra ``[report]``."""

from entourage.report.page import Cell, Section, Table, make_folder, require_report, write_report, write_text

__all__ = ["Cell", "Section", "Table", "make_folder", "require_report", "write_report", "write_text"]
