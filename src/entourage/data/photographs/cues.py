"""Numbers for the eight basic monocular depth cues of the paper, for every region of a photograph.

Each cue is one function of a `View`, which is measured once a photograph, and of the regions. All work on
a copy of about 200,000 pixels, on which lengths are shares of the picture. See docs/cues.md for the columns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from entourage.data.photographs.regions import Regions, as_rgb, require_image, scaled_copy
from entourage.errors import ShapeError

__all__ = [
    "CUES",
    "CUE_NAMES",
    "Cue",
    "View",
    "atmospheric_perspective",
    "describe",
    "distribution_of_light",
    "linear_perspective",
    "occlusion",
    "relative_height",
    "relative_size",
    "texture_gradients",
    "usual_size",
    "view_of",
]

Map: TypeAlias = NDArray[np.float32]  # (h, w), a number for each pixel of the copy
Features: TypeAlias = NDArray[np.float32]  # (count, k), k numbers for each region

PIXELS = 200_000  # of the copy that is measured, however large the photograph
LINES = 150  # the longest ones vote for the vanishing point
CANDIDATES = 1500  # crossings of two of them that are voted on
AIM = math.radians(2.5)  # a line that misses the vanishing point by this angle still counts for 0.6
SLANT = math.radians(6)  # lines nearer than this to upright or level say nothing about the vanishing point
SPREAD = (
    0.15,
    0.3,
)  # how far from the middle the vanishing point mostly lies, of the height and of the width
FEW = 0.05  # of the lines' length is too little to tell a vanishing point from chance
ALIKE = 12.0  # two things whose colours differ by this much in Lab count as alike for 0.6
NOISE = 0.005  # a change of lightness, of 1 in all, that is no texture and no edge


@dataclass(frozen=True, eq=False)
class View:
    """What the cues share, measured once a photograph on its copy of ``(h, w)`` pixels; made by `view_of`.

    Parameters
    ----------
    rgb : (h, w, 3), from 0 to 1
    lab : (h, w, 3), colour as it is seen: lightness from 0 to 100, green to red, blue to yellow
    slope : (h, w, 2), change of lightness a pixel, downwards and to the right
    detail : (h, w), deviation of grey within each pixel of the copy; 0 where the photograph is no larger
    things : some hundred segments of one colour (Felzenszwalb and Huttenlocher 2004)
    surfaces : some dozen segments, cut likewise
    vanishing_point : row and column where the lines of the picture meet, as shares of height and width
    strength : length of the lines that meet there, as a share of all; 0 = none found, the point is the middle
    """

    rgb: NDArray[np.float32]
    lab: NDArray[np.float32]
    slope: NDArray[np.float32]
    detail: Map
    things: Regions
    surfaces: Regions
    vanishing_point: tuple[float, float]
    strength: float

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the copy in pixels."""
        return self.things.shape

    @property
    def light(self) -> Map:
        """Lightness from 0 to 1, ``(h, w)``."""
        return self.lab[..., 0] / np.float32(100)

    @property
    def side(self) -> float:
        """Root of the number of pixels: the measure for widths of blurs."""
        return math.sqrt(math.prod(self.shape))

    def pool(self, regions: Regions, *maps: NDArray[Any]) -> Features:
        """Mean of each map over each region; a region too small for the copy takes the value at its middle."""
        labels = regions.at(self.shape).ravel()
        pixels = np.bincount(labels, minlength=regions.count)
        sums = np.stack([np.bincount(labels, values.ravel(), regions.count) for values in maps], axis=1)
        means = sums / np.maximum(pixels, 1)[:, None]
        lost = pixels == 0
        if lost.any():
            middles = regions.centre_cells(self.shape)
            means[lost] = np.stack([values[middles] for values in maps], axis=1)[lost]
        return means.astype(np.float32)


def view_of(image: ArrayLike) -> View:
    """Measure on a photograph, uint8 and of shape ``(h, w, 3)``, ``(h, w, 4)`` or ``(h, w)``, what the cues share."""
    require_image()
    from skimage.color import rgb2lab
    from skimage.segmentation import felzenszwalb

    photograph = as_rgb(image)
    copy = scaled_copy(photograph, PIXELS)
    rgb = copy.astype(np.float32) / np.float32(255)
    lab = rgb2lab(rgb).astype(np.float32)
    light = lab[..., 0] / np.float32(100)
    slope = np.stack(
        [ndimage.gaussian_filter(light, 1.0, order=order) for order in ((1, 0), (0, 1))], axis=-1
    )
    things, surfaces = (
        Regions(felzenszwalb(copy, scale=scale, sigma=sigma, min_size=light.size // most, channel_axis=-1))
        for scale, sigma, most in ((150, 0.8, 2000), (800, 1.2, 500))
    )
    point, strength = _vanishing_point(light)
    return View(rgb, lab, slope, _detail(photograph, light.shape), things, surfaces, point, strength)


def linear_perspective(view: View, regions: Regions) -> Features:
    """Parallel lines that lead away meet at the vanishing point, so what lies near it is far.

    In a street or a room, floor, walls and ceiling all run towards that point: how far a surface is depends
    on the larger of the two offsets from it (box), rather than on the distance.

    Columns: distance to the vanishing point, offset across, the larger of the offsets across and up or
    down (box), share of the edges there that point at it (aim), share of the picture's lines that do (strength).
    """
    point = view.vanishing_point
    down, across = (np.abs(regions.centres() - point) * view.shape / view.side).T
    rows, columns = (np.arange(n) + 0.5 - share * n for n, share in zip(view.shape, point, strict=True))
    rows = rows[:, None]
    # Lightness changes across an edge. Where the edge points there, none of the change is in that direction.
    towards = view.slope[..., 0] * rows + view.slope[..., 1] * columns
    towards /= np.maximum(np.hypot(rows, columns), 1)
    other, energy = view.pool(regions, towards**2, (view.slope**2).sum(-1)).T
    aim = np.maximum(energy - other, 0) / (energy + NOISE**2)
    return _features(
        np.hypot(down, across), across, np.maximum(down, across), aim, np.full(regions.count, view.strength)
    )


def atmospheric_perspective(view: View, regions: Regions) -> Features:
    """Air scatters light, so what is far is pale, bluish and low in contrast.

    The dark channel (He, Sun and Tang 2009), the darkest colour of the darkest pixel around, is near 0 in
    clear air and rises with haze, since haze adds light to all colours.

    Columns: dark_channel, saturation, contrast (deviation of lightness around), blueness.
    """
    largest, smallest = view.rgb.max(-1), view.rgb.min(-1)
    dark = ndimage.minimum_filter(smallest, size=2 * round(view.side / 80) + 1)
    saturation = (largest - smallest) / np.maximum(largest, np.float32(1 / 255))
    contrast = _deviation(view.light, view.side / 100)
    return view.pool(regions, dark, saturation, contrast, -view.lab[..., 2] / 100)


def texture_gradients(view: View, regions: Regions) -> Features:
    """Surfaces look finer in grain the farther they are, until the grain can't be seen any more.

    Texture is measured as the deviation of lightness within three bands, from the finest to the coarsest,
    and within the pixels of the copy, where the photograph is larger.

    Columns: detail (within pixels), fine, middle and coarse, all four as logarithms, ratio (fine less coarse),
    change (of fine, downwards), coherence (1 = all edges run one way, 0 = all ways), upright (share of the
    edges' energy that belongs to upright ones).
    """
    blurs = [view.light] + [ndimage.gaussian_filter(view.light, sigma) for sigma in (1.0, 2.0, 4.0)]
    around = view.side / 60
    bands = [
        np.log(NOISE + np.sqrt(ndimage.gaussian_filter((finer - coarser) ** 2, around)))
        for finer, coarser in pairwise(blurs)
    ]
    change = ndimage.gaussian_filter(bands[0], 2 * around, order=(1, 0)) * np.float32(view.side)
    down, right = view.slope[..., 0], view.slope[..., 1]
    dd, rr, dr = (ndimage.gaussian_filter(a, around) for a in (down**2, right**2, down * right))
    energy = dd + rr + NOISE**2
    coherence = np.hypot(dd - rr, 2 * dr) / energy
    detail = np.log(NOISE + view.detail)
    return view.pool(regions, detail, *bands, bands[0] - bands[2], change, coherence, rr / energy)


def occlusion(view: View, regions: Regions) -> Features:
    """Things that cover a part of something else are nearer.

    A border between two things shows as a contrast between neighbouring regions. Of two surfaces that
    touch, the one that reaches further down in the picture mostly is in front. Going up from the lower edge
    of the picture, each border passed leads to something behind.

    Columns: above, below, left, right (contrast with the neighbouring regions there; 0 at the edge of the
    picture), front (share of the surface's border along which it reaches further down than its neighbour, less
    the share along which it reaches less far), behind (logarithm of the borders between things straight below),
    compact (share of its box that the surface fills).
    """
    labels = regions.at(view.shape)
    colours = view.pool(regions, *np.moveaxis(view.lab, -1, 0)) / np.float32(100)
    sides = [side for pairs in _touching(labels) for side in _contrasts(pairs, colours)]
    contrasts = np.stack(sides, axis=1)  # (count, 4)
    lost = np.bincount(labels.ravel(), minlength=regions.count) == 0
    if lost.any():
        contrasts[lost] = contrasts[labels[regions.centre_cells(view.shape)]][lost]

    surfaces, count = view.surfaces.labels, view.surfaces.count
    one, other = np.concatenate(_touching(surfaces), axis=1)  # the surfaces on both sides of a border
    top, bottom, left, right = view.surfaces.boxes().T
    lower = np.sign(bottom[one] - bottom[other])
    lengths = np.bincount(one, minlength=count) + np.bincount(other, minlength=count)
    front = (np.bincount(one, lower, count) - np.bincount(other, lower, count)) / np.maximum(lengths, 1)
    compact = view.surfaces.areas() / (math.prod(view.shape) * (bottom - top) * (right - left))

    things = view.things.labels
    passed = np.zeros(view.shape)
    passed[:-1] = np.cumsum((things[1:] != things[:-1])[::-1], axis=0)[::-1]
    return _features(
        *contrasts.T, *view.pool(regions, front[surfaces], np.log1p(passed), compact[surfaces]).T
    )


def usual_size(view: View, regions: Regions) -> Features:
    """Cars and doors have their usual size, so their size in the picture tells how far they are.

    What a thing is isn't known here; how large it looks is. On level ground, a thing whose foot is as far
    below the horizon as its top is above stands twice as high as the camera (stature).

    Columns: area (logarithm of the thing's share of the picture), height and width of the thing, stature
    (logarithm of its height against the distance from its foot up to the horizon).
    """
    things = view.things
    top, bottom, left, right = things.boxes().T
    area = np.log(things.areas() / math.prod(view.shape))
    stature = np.log((bottom - top) / np.maximum(bottom - view.vanishing_point[0], 0.02))
    sizes = (area, bottom - top, right - left, stature)
    return view.pool(regions, *(size[things.labels] for size in sizes))


def relative_height(view: View, regions: Regions) -> Features:
    """On the ground, what stands higher in the picture is farther, up to the horizon.

    A thing is as far as the ground at its foot, however high it rises.

    Columns: row (0 = top of the picture, 1 = bottom), row_squared, below_horizon (distance down from the row
    of the vanishing point), foot (the lowest row of the region's surface).
    """
    row = regions.centres()[:, 0]
    feet = view.surfaces.boxes()[:, 1]
    foot = view.pool(regions, feet[view.surfaces.labels])[:, 0]
    return _features(row, row**2, row - view.vanishing_point[0], foot)


def relative_size(view: View, regions: Regions) -> Features:
    """Of two things alike, the one that looks smaller is farther.

    Things of similar colour are taken to be alike.

    Columns: area, height and width (logarithms, less the mean of the things alike), alike (share of the
    things that are), crowding (borders between things around: there are many small ones).
    """
    things = view.things
    colours = things.means(view.lab)  # (things, 3)
    squares = (colours**2).sum(1)
    apart = np.maximum(squares[:, None] + squares - 2 * colours @ colours.T, 0)  # (things, things)
    alike = np.exp(-apart / (2 * ALIKE**2))
    top, bottom, left, right = things.boxes().T
    sizes = np.log(np.stack([things.areas(), bottom - top, right - left], axis=1))
    against = sizes - alike @ sizes / alike.sum(1, keepdims=True)
    border = np.zeros(view.shape, dtype=np.float32)
    border[:-1] += things.labels[1:] != things.labels[:-1]
    border[:, :-1] += things.labels[:, 1:] != things.labels[:, :-1]
    crowding = ndimage.gaussian_filter(border, view.side / 30)
    return view.pool(
        regions, *against[things.labels].transpose(2, 0, 1), alike.mean(1)[things.labels], crowding
    )


def distribution_of_light(view: View, regions: Regions) -> Features:
    """Light falls from somewhere: surfaces brighten towards it, and shadows lie beneath and behind things.

    Outdoors the sky is the brightest and the farthest; indoors lamps and the flash light what is near.

    Columns: lightness, against_mean (less that of the picture), down and right (change of smoothed lightness that
    way), shadow (share of pixels much darker than what is around).
    """
    light = view.light
    smooth = ndimage.gaussian_filter(light, view.side / 40)
    down, right = (
        ndimage.gaussian_filter(light, view.side / 25, order=order) * np.float32(view.side)
        for order in ((1, 0), (0, 1))
    )
    wide = ndimage.gaussian_filter(smooth, view.side / 10)
    shadow = light < 0.6 * wide - 4 * NOISE
    return view.pool(regions, light, light - light.mean(), down, right, shadow)


class Cue(NamedTuple):
    """How a cue is measured, and what its columns are called."""

    measure: Callable[[View, Regions], Features]
    columns: tuple[str, ...]


#: The cues in the order in which the paper lists them.
CUES: dict[str, Cue] = {
    "linear_perspective": Cue(linear_perspective, ("distance", "across", "box", "aim", "strength")),
    "atmospheric_perspective": Cue(
        atmospheric_perspective, ("dark_channel", "saturation", "contrast", "blueness")
    ),
    "texture_gradients": Cue(
        texture_gradients, ("detail", "fine", "middle", "coarse", "ratio", "change", "coherence", "upright")
    ),
    "occlusion": Cue(occlusion, ("above", "below", "left", "right", "front", "behind", "compact")),
    "usual_size": Cue(usual_size, ("area", "height", "width", "stature")),
    "relative_height": Cue(relative_height, ("row", "row_squared", "below_horizon", "foot")),
    "relative_size": Cue(relative_size, ("area", "height", "width", "alike", "crowding")),
    "distribution_of_light": Cue(
        distribution_of_light, ("lightness", "against_mean", "down", "right", "shadow")
    ),
}
#: Names of the columns that `describe` returns.
CUE_NAMES: list[str] = [f"{name}: {column}" for name, cue in CUES.items() for column in cue.columns]


def describe(image: ArrayLike, regions: Regions) -> Features:
    """Measure all cues for all regions of a photograph, ``(count, len(CUE_NAMES))``.

    The same photograph and regions give the same numbers on one machine, to the bit.

    Parameters
    ----------
    image : uint8, (h, w, 3), (h, w, 4) or (h, w)
    regions : cut from this photograph, or from one of the same shape
    """
    rgb = as_rgb(image)
    if rgb.shape[:2] != regions.shape:
        raise ShapeError(
            f"The regions are those of a photograph of {regions.shape} pixels; this one has {rgb.shape[:2]}. "
            "Cut the regions from the photograph itself."
        )
    view = view_of(rgb)
    return np.concatenate([cue.measure(view, regions) for cue in CUES.values()], axis=1)


def _features(*columns: NDArray[Any]) -> Features:
    return np.stack(columns, axis=1).astype(np.float32)


def _detail(photograph: NDArray[np.uint8], shape: tuple[int, int]) -> Map:
    """Deviation of grey, from 0 to 1, within each cell of a grid of ``shape`` over the photograph."""
    from PIL import Image

    grey = np.asarray(Image.fromarray(photograph).convert("F")) / np.float32(255)
    mean, square = (
        np.asarray(Image.fromarray(values).resize(shape[::-1], Image.Resampling.BOX))
        for values in (grey, grey**2)
    )
    spread: Map = np.sqrt(np.maximum(square - mean**2, 0))
    return spread


def _deviation(values: Map, sigma: float) -> Map:
    """Return the standard deviation of a map around each pixel."""
    mean = ndimage.gaussian_filter(values, sigma)
    spread: Map = np.sqrt(ndimage.gaussian_filter((values - mean) ** 2, sigma))
    return spread


def _touching(labels: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Labels of neighbouring pixels that differ: ``(2, pairs)`` one above the other, then side by side."""
    pairs = [
        np.stack([before.ravel(), after.ravel()])
        for before, after in ((labels[:-1], labels[1:]), (labels[:, :-1], labels[:, 1:]))
    ]
    return [pair[:, pair[0] != pair[1]] for pair in pairs]


def _contrasts(pairs: NDArray[np.int32], colours: Features) -> list[NDArray[np.float64]]:
    """Mean difference in colour of each region from those before it, and from those after it, along the border."""
    before, after = pairs
    apart = np.linalg.norm(colours[before] - colours[after], axis=1)
    count = len(colours)
    return [
        np.bincount(ends, apart, count) / np.maximum(np.bincount(ends, minlength=count), 1)
        for ends in (after, before)
    ]


def _vanishing_point(light: Map) -> tuple[tuple[float, float], float]:
    """Where most of the picture's lines meet, and the share of their length that does.

    The crossings of two lines are the candidates. Every line votes for each with its length, and with less
    of it the larger the angle by which it misses. A candidate far from the middle of the picture needs more votes.
    """
    none = ((0.5, 0.5), 0.0)
    ends, total = _slanted_lines(light)
    if len(ends) < 2:
        return none
    centres, along = ends.mean(1), ends[:, 1] - ends[:, 0]  # (lines, row and column)
    lengths = np.linalg.norm(along, axis=1)
    along /= lengths[:, None]

    first, second = np.triu_indices(len(ends), 1)
    sines = _cross(along[first], along[second])
    apart = np.abs(sines) > math.sin(SLANT)  # almost parallel lines cross anywhere
    first, second, sines = first[apart], second[apart], sines[apart]
    reach = _cross(centres[second] - centres[first], along[second]) / sines
    points = centres[first] + reach[:, None] * along[first]
    inside = np.flatnonzero(((points > 0) & (points < light.shape)).all(1))
    weights = lengths[first] * lengths[second] * np.abs(sines)
    points = points[inside[np.argsort(-weights[inside], kind="stable")[:CANDIDATES]]]
    if len(points) == 0:
        return none

    towards = points[:, None] - centres  # (candidates, lines, 2)
    distances = np.linalg.norm(towards, axis=2)
    angles = _cross(towards, along) / np.maximum(distances, lengths)
    votes = lengths * np.exp(-((angles / AIM) ** 2) / 2)
    votes = np.where(distances > lengths / 2, votes, 0).sum(1)  # a line through the point doesn't lead there
    shares = points / light.shape
    chosen = np.argmax(votes * np.exp(-(((shares - 0.5) / SPREAD) ** 2).sum(1) / 2))
    strength = float(votes[chosen] / total)
    row, column = shares[chosen].tolist()
    return ((row, column), strength) if strength > FEW else none


def _slanted_lines(light: Map) -> tuple[NDArray[np.float64], float]:
    """Find the longest straight edges that are neither upright nor level, and the length of all straight edges.

    Lines that are upright or level in the picture mostly are so in the scene, and don't lead away.

    Returns
    -------
    ends : (lines, 2 ends, row and column)
    """
    from skimage.feature import canny
    from skimage.transform import probabilistic_hough_line

    edges = canny(light, sigma=1.5, low_threshold=0.03, high_threshold=0.08)  # type: ignore[no-untyped-call]
    least = max(8, round(0.06 * math.sqrt(light.size)))
    found = probabilistic_hough_line(  # type: ignore[no-untyped-call]
        edges, threshold=10, line_length=least, line_gap=2, rng=0
    )
    ends = np.array(found, dtype=np.float64).reshape(-1, 2, 2)[:, :, ::-1]
    along = np.abs(ends[:, 1] - ends[:, 0])
    lengths = np.linalg.norm(along, axis=1)
    slanted = np.flatnonzero(along.min(1) > math.sin(SLANT) * lengths)
    longest = slanted[np.argsort(-lengths[slanted], kind="stable")[:LINES]]
    return ends[longest], float(lengths.sum())


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
