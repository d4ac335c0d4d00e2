"""A photograph cut into regions: a grid of patches, or superpixels that follow its edges.

Whatever is known per pixel becomes a number per region here: by means, or, for laser readings, by medians.
"""

import importlib.util
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entourage.errors import DataError, ParameterError, ShapeError, UserError, check_number

__all__ = [
    "Regions",
    "as_rgb",
    "grid_regions",
    "region_distances",
    "require_image",
    "scaled_copy",
    "superpixels",
]

SMALL = 200_000  # pixels of the copy that superpixels are cut on, however large the photograph


@dataclass(frozen=True, eq=False)
class Regions:
    """Which region each pixel of a photograph belongs to.

    Parameters
    ----------
    labels : (h, w), whole numbers; the regions are 0, 1, ..., and each has a pixel at least

    Examples
    --------
    >>> regions = Regions([[0, 0, 1], [2, 2, 1]])
    >>> regions.count
    3
    >>> regions.means([[1, 3, 5], [0, 0, 7]])
    array([2., 6., 0.])
    """

    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        labels = np.array(self.labels)
        if labels.ndim != 2 or labels.size == 0:
            raise ShapeError(
                f"labels need 2 axes (height, width) and a pixel at least; got shape {labels.shape}. "
                "Pass the region of each pixel."
            )
        if labels.dtype.kind not in "iu":
            raise DataError(
                f"labels need whole numbers; got {labels.dtype}. Number the regions from 0, "
                "for instance with np.unique(labels, return_inverse=True)."
            )
        fits = labels.min() >= 0 and labels.max() < labels.size
        if not fits or not np.bincount(labels.ravel().astype(np.int64)).all():
            raise DataError(
                f"labels need every number from 0 to the largest; those from {labels.min()} to "
                f"{labels.max()} have gaps or start below 0. Number the regions with "
                "np.unique(labels, return_inverse=True)."
            )
        labels = labels.astype(np.int32)
        labels.setflags(write=False)
        object.__setattr__(self, "labels", labels)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the photograph in pixels."""
        height, width = self.labels.shape
        return height, width

    @cached_property
    def count(self) -> int:
        """How many regions there are."""
        return int(self.labels.max()) + 1

    def areas(self) -> NDArray[np.int64]:
        """Pixels of each region, ``(count,)``."""
        return np.bincount(self.labels.ravel(), minlength=self.count)

    def means(self, values: ArrayLike) -> NDArray[np.float64]:
        """Mean over each region of what is known per pixel.

        Parameters
        ----------
        values : (h, w), which gives (count,), or (h, w, k), which gives (count, k)
        """
        values = np.asarray(values)
        if values.ndim not in (2, 3) or values.shape[:2] != self.shape:
            raise ShapeError(
                f"values need shape {self.shape}, that of the photograph, or a third axis after these; "
                f"got {values.shape}. Scale them to the photograph first."
            )
        flat = values.reshape(self.labels.size, -1)  # (pixels, k)
        sums = [np.bincount(self.labels.ravel(), column, self.count) for column in flat.T]
        means = np.stack(sums, axis=1) / self.areas()[:, None]  # (count, k)
        return means.reshape((self.count, *values.shape[2:]))

    def centres(self) -> NDArray[np.float64]:
        """Middle of each region, ``(count, 2)``: from the top (0) to the bottom (1), from the left to the right."""
        height, width = self.shape
        rows = np.repeat((np.arange(height) + 0.5) / height, width)
        columns = np.tile((np.arange(width) + 0.5) / width, height)
        sums = [np.bincount(self.labels.ravel(), along, self.count) for along in (rows, columns)]
        return np.stack(sums, axis=1) / self.areas()[:, None]

    def boxes(self) -> NDArray[np.float64]:
        """Top, bottom, left and right of each region, ``(count, 4)``, on the scale of `centres`."""
        height, width = self.shape
        rows, columns = np.indices(self.shape)
        boxes = np.tile([height, 0, width, 0], (self.count, 1))
        np.minimum.at(boxes[:, 0], self.labels, rows)
        np.maximum.at(boxes[:, 1], self.labels, rows + 1)
        np.minimum.at(boxes[:, 2], self.labels, columns)
        np.maximum.at(boxes[:, 3], self.labels, columns + 1)
        return boxes / [height, height, width, width]

    def at(self, shape: tuple[int, int]) -> NDArray[np.int32]:
        """Lay a grid of ``shape`` cells over the photograph; return the region in the middle of each cell."""
        rows, columns = (_middles(n, side) for n, side in zip(shape, self.shape, strict=True))
        return self.labels[rows[:, None], columns]

    def centre_cells(self, shape: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and column of the cell, in a grid of ``shape`` cells, that the middle of each region lies in."""
        cells = (self.centres() * shape).astype(np.int64)
        return np.minimum(cells[:, 0], shape[0] - 1), np.minimum(cells[:, 1], shape[1] - 1)


def grid_regions(image_or_shape: ArrayLike, rows: int = 55, columns: int = 61) -> Regions:
    """Cut into patches of equal size, numbered row by row from the top left.

    The default is the paper's 61 × 55 = 3,355 patches. Make3D's laser reads 55 rows of 305 distances,
    which is 5 to a patch.

    Parameters
    ----------
    image_or_shape : a photograph, (h, w) or (h, w, channels), or its shape

    Examples
    --------
    >>> grid_regions((2, 6), rows=2, columns=3).labels
    array([[0, 0, 1, 1, 2, 2],
           [3, 3, 4, 4, 5, 5]], dtype=int32)
    """
    check_number("rows", rows, least=1, whole=True)
    check_number("columns", columns, least=1, whole=True)
    given = np.asarray(image_or_shape)
    shape = tuple(given.tolist()) if given.ndim == 1 else given.shape
    if len(shape) not in (2, 3):
        raise ShapeError(
            f"A photograph has 2 axes (height, width), or 3 with its channels; got shape {shape}. "
            "Pass one photograph at a time."
        )
    height, width = shape[:2]
    if height < rows or width < columns:
        raise ShapeError(
            f"A grid of {rows} rows and {columns} columns needs as many pixels each way; the photograph has "
            f"{height} and {width}. Pass fewer rows and columns, or a larger photograph."
        )
    along = [np.arange(side) * n // side for side, n in ((height, rows), (width, columns))]
    return Regions((along[0][:, None] * columns + along[1]).astype(np.int32))


def superpixels(image: ArrayLike, count: int = 1000, compactness: float = 10.0) -> Regions:
    """Cut along the edges of the picture into about ``count`` superpixels (SLIC, by scikit-image).

    Large photographs are cut on a copy of 200,000 pixels, or of 100 a superpixel where that is more.

    Parameters
    ----------
    image : uint8, (h, w, 3), (h, w, 4) or (h, w)
    count : about how many regions; SLIC may give fewer
    compactness : larger makes them squarer, smaller lets them follow colours
    """
    require_image()
    from skimage.segmentation import slic

    rgb = as_rgb(image)
    check_number("count", count, least=1, whole=True)
    check_number("compactness", compactness, above=0)
    height, width = rgb.shape[:2]
    if count > height * width:
        raise ParameterError(
            f"count needs to be at most the {height * width:,} pixels of the photograph; got {count:,}. "
            "Pass a smaller count."
        )
    copy = scaled_copy(rgb, max(SMALL, 100 * count))
    found = slic(copy, n_segments=count, compactness=compactness, start_label=0, channel_axis=-1)
    rows, columns = (_middles(side, n) for side, n in zip((height, width), found.shape, strict=True))
    labels = found[rows[:, None], columns]
    return Regions(np.unique(labels, return_inverse=True)[1].reshape(height, width).astype(np.int32))


def region_distances(regions: Regions, distances: ArrayLike) -> NDArray[np.float64]:
    """Median of the readings in each region, ``(count,)``; NaN where there is none.

    A map of the photograph's own shape is read pixel by pixel. Any other is laid over the photograph:
    a reading belongs to the region in the middle of its cell. A region too small to hold the middle of
    a cell takes the reading of the cell that its own middle lies in.

    Parameters
    ----------
    distances : (h', w'), NaN = no reading

    Examples
    --------
    >>> regions = grid_regions((4, 4), rows=1, columns=2)
    >>> region_distances(regions, [[3.0, np.nan, np.nan, np.nan], [8.0, 1.0, np.nan, np.nan]])
    array([ 3., nan])
    """
    distances = np.asarray(distances, dtype=np.float64)
    if distances.ndim != 2 or distances.size == 0:
        raise ShapeError(
            f"distances need 2 axes (rows, columns) and a reading at least; got shape {distances.shape}. "
            "Pass one map, with NaN where there is no reading."
        )
    height, width = distances.shape
    cells = regions.at((height, width))
    known = ~np.isnan(distances)
    labels, readings = cells[known], distances[known]
    readings = readings[np.lexsort((readings, labels))]  # region by region, ascending
    counts = np.bincount(labels, minlength=regions.count)
    starts = np.cumsum(counts) - counts
    some = counts > 0
    lower, upper = starts + (counts - 1) // 2, starts + counts // 2
    medians = np.full(regions.count, np.nan)
    medians[some] = (readings[lower[some]] + readings[upper[some]]) / 2
    missed = np.bincount(cells.ravel(), minlength=regions.count) == 0
    medians[missed] = distances[regions.centre_cells((height, width))][missed]
    return medians


def require_image() -> None:
    """Say what is missing for photographs."""
    if importlib.util.find_spec("skimage") is None:
        raise UserError("Photographs need scikit-image: run pip install 'entourage[image]' and try again.")


def as_rgb(image: ArrayLike) -> NDArray[np.uint8]:
    """Return a photograph as ``(h, w, 3)``: grey is repeated, an alpha channel is left out.

    Examples
    --------
    >>> as_rgb(np.zeros((4, 5), dtype=np.uint8)).shape
    (4, 5, 3)
    """
    image = np.asarray(image)
    fits = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))
    if not fits or image.size == 0:
        raise ShapeError(
            "A photograph needs shape (height, width, 3), (height, width, 4) or, if grey, (height, width); "
            f"got {image.shape}. Pass one photograph, the channels last."
        )
    if image.dtype != np.uint8:
        raise DataError(
            f"A photograph needs uint8, from 0 to 255; got {image.dtype}. For values from 0 to 1, pass "
            "(255 * image).round().astype(np.uint8)."
        )
    if image.ndim == 2:
        return np.repeat(image[:, :, None], 3, axis=2)
    return np.ascontiguousarray(image[:, :, :3])


def scaled_copy(rgb: NDArray[np.uint8], pixels: int) -> NDArray[np.uint8]:
    """Scale a photograph down to about ``pixels`` pixels by averaging; a smaller one stays as it is."""
    from PIL import Image

    height, width = rgb.shape[:2]
    scale = math.sqrt(pixels / (height * width))
    if scale >= 1:
        return rgb
    size = (max(1, round(scale * width)), max(1, round(scale * height)))
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BOX))


def _middles(n: int, side: int) -> NDArray[np.int64]:
    """Where the middle of each of ``n`` equal cells lies along a side of ``side`` pixels."""
    return (2 * np.arange(n) + 1) * side // (2 * n)
