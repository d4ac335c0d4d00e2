"""Files written all or nothing."""

import os
import uuid
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write to a neighbouring file first, which then takes the place of the old one in one step.

    An `OSError` (a full disk, a folder that isn't there) leaves what was at ``path`` untouched.
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
