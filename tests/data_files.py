"""Small files written by tests, and the real ones where they lie."""

from pathlib import Path

import pytest

REAL = Path(__file__).parents[2] / "shared" / "data"


def real(folder: str) -> Path:
    """Return a folder of real data, or skip the test where it is missing."""
    if not (REAL / folder).is_dir():
        pytest.skip(f"the real data are not on this machine: {REAL / folder} is missing")
    return REAL / folder


def written(path: Path, text: str) -> Path:
    """Write a text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
