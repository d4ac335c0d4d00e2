"""What can be reproduced, by name. An experiment is imported when it is run."""

from importlib import import_module
from pathlib import Path

from entourage.errors import UserError, check_choice
from entourage.experiments.rows import Options

__all__ = ["EXPERIMENTS", "reproduce"]

#: The module of every experiment. Its ``run_NAME(folder, options)`` runs what is missing in a folder and returns
#: Markdown.
EXPERIMENTS: dict[str, str] = {
    "table1": "entourage.experiments.table1",
    "table2": "entourage.experiments.table2",
    "sizes": "entourage.experiments.sizes",
    "effects": "entourage.experiments.effects",
    "expressivity": "entourage.experiments.expressivity",
    "sf": "entourage.experiments.sf",
    "noguchi": "entourage.experiments.noguchi",
    "hvc": "entourage.experiments.hvc",
}
WITH_DATA = ("table2", "sf", "noguchi", "hvc")


def reproduce(name: str, folder: Path, options: Options) -> str:
    """Run an experiment: rows, Markdown, pictures and a report go into ``folder``; return the Markdown."""
    module = EXPERIMENTS[check_choice("name", name, EXPERIMENTS)]
    if options.data is not None and name not in WITH_DATA:
        raise UserError(f"--data is for {', '.join(WITH_DATA)}: {name} makes its own data.")
    if options.regions != "grid" and name != "table2":
        raise UserError("--regions is about photographs: it is for table2.")
    if options.seconds is not None and name != "hvc":
        raise UserError("--seconds is about training that goes on in the next call: it is for hvc.")
    text: str = getattr(import_module(module), f"run_{name}")(folder, options)
    return text
