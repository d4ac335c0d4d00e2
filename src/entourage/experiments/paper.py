"""What the paper claims, read from ``paper/*.toml``."""

import tomllib
from pathlib import Path
from typing import Any

from entourage.errors import UserError

__all__ = ["read_claims"]


def read_claims(name: str) -> dict[str, Any]:
    """Return one of the paper's tables or figures as data.

    Examples
    --------
    >>> read_claims("table1")["tasks"]["medoid"]["published"]["ranking_accuracy"]["FATE-Net"]
    {'mean': 0.901, 'sd': 0.004}
    """
    package = Path(__file__).parents[1]
    folders = [package / "paper", package.parents[1] / "paper"]  # installed, or a checkout
    for folder in folders:
        file = folder / f"{name}.toml"
        if file.is_file():
            return tomllib.loads(file.read_text(encoding="utf-8"))
    known = sorted(file.stem for folder in folders if folder.is_dir() for file in folder.glob("*.toml"))
    raise UserError(f"The paper has no {name!r} here; there is {', '.join(known) or 'nothing'}.")
