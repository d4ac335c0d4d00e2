"""What can be reproduced, by name."""

from collections.abc import Callable
from pathlib import Path

from entourage.errors import UserError, check_choice
from entourage.experiments.effects import run_effects
from entourage.experiments.expressivity import run_expressivity
from entourage.experiments.noguchi import run_noguchi
from entourage.experiments.rows import Options
from entourage.experiments.sf import run_sf
from entourage.experiments.sizes import run_sizes
from entourage.experiments.table1 import run_table
from entourage.experiments.table2 import run_table2

__all__ = ["EXPERIMENTS", "reproduce"]

#: Every experiment by name: runs what is missing in a folder and returns its Markdown.
EXPERIMENTS: dict[str, Callable[[Path, Options], str]] = {
    "table1": run_table,
    "table2": run_table2,
    "sizes": run_sizes,
    "effects": run_effects,
    "expressivity": run_expressivity,
    "sf": run_sf,
    "noguchi": run_noguchi,
}
WITH_DATA = ("table2", "sf", "noguchi")


def reproduce(name: str, folder: Path, options: Options) -> str:
    """Run an experiment: rows, Markdown, pictures and a report go into ``folder``; return the Markdown."""
    run = EXPERIMENTS[check_choice("name", name, EXPERIMENTS)]
    if options.data is not None and name not in WITH_DATA:
        raise UserError(f"--data is for {', '.join(WITH_DATA)}: {name} makes its own data.")
    if options.regions != "grid" and name != "table2":
        raise UserError("--regions is about photographs: it is for table2.")
    return run(folder, options)
