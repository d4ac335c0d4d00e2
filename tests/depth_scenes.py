"""Made photographs with depth, as files; needs the extra [image]."""

from pathlib import Path

import numpy as np
from PIL import Image


def scene(seed: int, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """A floor that runs away from the viewer under a sky: farther is higher up, and there the grain is finer."""
    rng = np.random.default_rng(seed)
    rows = np.linspace(0, 1, h)[:, None] + 0.02 * rng.normal(size=(h, w))
    distances = 4 + 60 * (1 - rows) ** 2
    image = 90 + 100 * (1 - rows[..., None]) + 20 * rng.normal(size=(h, w, 3)) * rows[..., None]
    return np.clip(image, 0, 255).astype(np.uint8), np.clip(distances, 1, None)


def write_pairs(folder: Path, names: list[str], h: int = 110, w: int = 122) -> Path:
    """Write photographs in the form of KITTI."""
    for i, name in enumerate(names):
        image, distances = scene(i, h, w)
        Image.fromarray(image).save(folder / f"{name}.color.jpg")
        readings = (distances * 256).astype(np.uint16)
        readings[: h // 4] = 0  # no reading of the sky
        Image.fromarray(readings).save(folder / f"{name}.depth.png")
    return folder


def write_kitti(folder: Path) -> Path:
    """Write six photographs: four of one drive, and two scenes."""
    return write_pairs(folder, [*(f"drive_{i:04d}" for i in range(4)), "alley_000001", "bridge_000002"])
