"""Photographs with true depth, read from folders. Needs the extra ``[image]``.

Three forms are known by their file names. Nothing is downloaded here; where the files are available:

- Make3D, ``img-NAME.jpg`` with ``depth_sph_corr-NAME.mat``: http://make3d.cs.cornell.edu/data.html
  (A. Saxena, M. Sun, A. Ng, "Make3D: Learning 3D Scene Structure from a Single Still Image", PAMI 2009).
- Depth pairs, ``NAME.color.jpg`` or ``.png`` with ``NAME.depth.png``, the form of KITTI's laser depth:
  https://www.cvlibs.net/datasets/kitti/eval_depth_all.php
- Stereo scenes, ``NAME_left.png`` or ``.jpg`` with ``NAME_disp.png`` or ``.npz``, the disparities of
  Middlebury: https://vision.middlebury.edu/stereo/data/

Pixels are taken as they are stored: a rotation that the camera noted in EXIF is not applied,
since the depth was laid over the pixels as they lie.
"""

import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.photographs.regions import require_image
from entourage.errors import DataError, check_choice

__all__ = [
    "Photograph",
    "find_photographs",
    "load_depth_pairs",
    "load_make3d",
    "load_middlebury",
    "load_motorcycle",
]

Folder: TypeAlias = str | os.PathLike[str]

_GRID = (55, 305, 4)  # rows, columns and (Y, X, Z, depth) of a Make3D laser scan
_UPRIGHT = 2272 / 1704  # height by width of a Make3D photograph
_SLACK = 0.05  # how far, as a share, a resized one may be from that
_METRE = 256.0  # steps to a metre in a 16 bit depth file
_PLAIN = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")  # Pillow's modes of 8 bits a channel
_DEEP = ("I", "I;16", "I;16B")  # and of 16 bits, which depend on its version
_SHOWN = 3  # names in a message


@dataclass(frozen=True)
class Photograph:
    """A photograph and its depth, as two files; nothing is read before :meth:`read`.

    Attributes
    ----------
    name : of the photograph, once in a folder
    group : the drive, place or scene; photographs of one group must stay in one fold
    split : "train" or "test", or None where the distribution has no split
    image : file of the photograph
    depth : file of the depth
    kind : how the depth is written: "make3d", "metres" or "disparity"

    Examples
    --------
    >>> image, distances = load_motorcycle().read()
    >>> image.shape, distances.shape
    ((500, 741, 3), (500, 741))
    """

    name: str
    group: str
    split: str | None
    image: Path
    depth: Path
    kind: str

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, _READERS)
        if self.split is not None:
            check_choice("split", self.split, ["train", "test"])

    def read(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Read the photograph and its distances.

        Returns
        -------
        image : uint8 array of shape (h, w, 3)
        distances : float32 array of shape (h', w'), larger = farther, NaN = no reading. They cover the same
            view; for Make3D by another grid (55, 305), otherwise pixel by pixel. In metres for "make3d" and
            "metres"; for "disparity" only their order means anything.
        """
        image = _read_photograph(self.image)
        distances = _READERS[self.kind](self.depth)
        if self.kind == "make3d":
            _check_upright(image, self.image)
        elif distances.shape != image.shape[:2]:
            raise DataError(
                f"{self.depth} needs one value for each pixel of {self.image.name}, "
                f"{image.shape[0]} x {image.shape[1]} (height x width); "
                f"{distances.shape[0]} x {distances.shape[1]} came. Take both files from one source."
            )
        return image, distances

    def fingerprint(self) -> str:
        """Return the SHA-256 of what is in both files and of the kind: whether a result is still of them."""
        whole = hashlib.sha256(self.kind.encode())
        for path in (self.image, self.depth):
            whole.update(hashlib.sha256(_read_bytes(path)).digest())
        return whole.hexdigest()


@dataclass(frozen=True)
class _Form:
    """How the files of a distribution are named, in patterns and in words, and where they are available."""

    kind: str
    image: re.Pattern[str]
    depth: re.Pattern[str]
    said: str
    deep: bool  # whether the files may lie in folders below
    home: str


_MAKE3D = _Form(
    "make3d",
    re.compile(r"img-(?P<name>.+)\.jpe?g", re.IGNORECASE),
    re.compile(r"depth_sph_corr-(?P<name>.+)\.mat", re.IGNORECASE),
    "img-NAME.jpg with depth_sph_corr-NAME.mat (Make3D, also in folders below)",
    True,
    "Unpack all four archives, Train400Img, Train400Depth, Test134 and Test134Depth, into one folder; "
    "they are available from http://make3d.cs.cornell.edu/data.html",
)
_PAIRS = _Form(
    "metres",
    re.compile(r"(?P<name>.+)\.color\.(jpe?g|png)", re.IGNORECASE),
    re.compile(r"(?P<name>.+)\.depth\.png", re.IGNORECASE),
    "NAME.color.jpg or .png with NAME.depth.png (16 bit, metres x 256)",
    False,
    "Copy both files of each photograph; KITTI's are available from "
    "https://www.cvlibs.net/datasets/kitti/eval_depth_all.php",
)
_STEREO = _Form(
    "disparity",
    re.compile(r"(?P<name>.+)_left\.(jpe?g|png)", re.IGNORECASE),
    re.compile(r"(?P<name>.+)_disp\.(png|npz)", re.IGNORECASE),
    "NAME_left.png or .jpg with NAME_disp.png or .npz (disparities)",
    False,
    "Copy both files of each scene; Middlebury's are available from "
    "https://vision.middlebury.edu/stereo/data/",
)
_FORMS = (_MAKE3D, _PAIRS, _STEREO)


def find_photographs(folder: Folder) -> list[Photograph]:
    """Tell by the file names which form a folder has, and list its photographs by name.

    Parameters
    ----------
    folder : see :func:`load_make3d`, :func:`load_depth_pairs` and :func:`load_middlebury`

    Returns
    -------
    list : photographs of one kind

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ["desk_left.png", "desk_disp.png", "lamp_left.png", "lamp_disp.png"]:
    ...     (folder / name).touch()
    >>> [(photograph.name, photograph.kind) for photograph in find_photographs(folder)]
    [('desk', 'disparity'), ('lamp', 'disparity')]
    """
    folder = Path(folder)
    files = _files(folder)
    forms = [form for form in _FORMS if _named(files, folder, form, form.image, form.depth)]
    if len(forms) != 1:
        came = "more than one: " + " and ".join(form.said for form in forms) if forms else "none of them"
        known = "; ".join(form.said for form in _FORMS)
        raise DataError(
            f"{folder} needs photographs of one form, of {known}. It holds {came}. "
            + ("Separate them into folders." if forms else "Name the folder that holds such files, unpacked.")
        )
    loaders = {"make3d": load_make3d, "metres": load_depth_pairs, "disparity": load_middlebury}
    return loaders[forms[0].kind](folder)


def load_make3d(folder: Folder) -> list[Photograph]:
    """List the photographs of Make3D, 400 to train and 134 to test on, with laser depth in metres.

    Unpack Train400Img.tar.gz, Train400Depth.tgz, Test134.tar.gz and Test134Depth.tar.gz from
    http://make3d.cs.cornell.edu/data.html into one folder. What is assumed of them:

    - A photograph ``img-NAME.jpg`` belongs to the depth ``depth_sph_corr-NAME.mat``, wherever in the folder
      both lie; a NAME comes once.
    - The split is given by the photograph's folder: the innermost one, inside the given folder, whose name
      begins with "train" or "test", in any case. The depth's folder doesn't matter: that of the test
      photographs is called Gridlaserdata. Without such folders the split is None.
    - The group is what stands before ``-p-`` in NAME, the place: ``math11`` of ``math11-p-139t0``. The
      split is the distributors' own; whether it separates the places is not checked.
    - A .mat file (MATLAB 5) holds ``Position3DGrid`` of shape (55, 305, 4): Y, X, Z and the depth in metres.
      A depth that is not finite or not above 0 is no reading.
    - The grid covers the whole photograph, its 55 rows from top to bottom. So the photograph must stand
      upright, 2272 x 1704 (height x width) or that resized: another shape is refused when it is read.

    Parameters
    ----------
    folder : holds the files, itself or in folders below
    """
    folder = Path(folder)
    pairs = _pairs(folder, _MAKE3D)
    splits = [_split(image.relative_to(folder)) for _, image, _ in pairs]
    stray = [image for (_, image, _), split in zip(pairs, splits, strict=True) if split is None]
    if 0 < len(stray) < len(pairs):
        raise DataError(
            f"{folder}: a folder whose name begins with train or test is needed for all photographs or for "
            f"none; {len(stray)} of {len(pairs)} lie in no such folder: {_some(stray)}. Move them."
        )
    return [
        Photograph(name, name.partition("-p-")[0], split, image, depth, _MAKE3D.kind)
        for (name, image, depth), split in zip(pairs, splits, strict=True)
    ]


def load_depth_pairs(folder: Folder) -> list[Photograph]:
    """List photographs with depth files of the same size: 16 bit, metres x 256, 0 = no reading.

    Frames of one drive are one group. In the names of KITTI's own depth files the drive is what comes up to
    ``_drive_<digits>``. Elsewhere a frame is taken to be named DRIVE_FRAME: the group is the name without its
    last ``_<digits>`` where several names share that, and otherwise the name itself. That also keeps together
    what only has a prefix in common, such as ``kuixu_000000`` and ``kuixu_000001``, separate scenes from one
    source: it can cost a split some freedom, but splits no drive.

    Parameters
    ----------
    folder : holds NAME.color.jpg (or .jpeg, .png) and NAME.depth.png
    """
    pairs = _pairs(Path(folder), _PAIRS)
    drives = [re.match(r".*_drive_\d+", name) for name, _, _ in pairs]
    stems = [
        drive[0] if drive else re.sub(r"_\d+$", "", name)
        for (name, _, _), drive in zip(pairs, drives, strict=True)
    ]
    shared = Counter(stems)
    return [
        Photograph(name, stem if shared[stem] > 1 else name, None, image, depth, _PAIRS.kind)
        for (name, image, depth), stem in zip(pairs, stems, strict=True)
    ]


def load_middlebury(folder: Folder) -> list[Photograph]:
    """List stereo scenes: the left image and its disparities, larger = nearer.

    The distance is taken as 1 / disparity. With the focal length and the baseline left out, and with the
    factors by which disparity files are scaled, only the order within a photograph means anything.
    Disparities in a .png are 8 or 16 bit, of one channel or of three that agree, 0 = unknown; in a .npz,
    one array of two axes, where anything not finite or not above 0 is unknown. Every scene is a group.

    Parameters
    ----------
    folder : holds NAME_left.png (or .jpg, .jpeg) and NAME_disp.png (or .npz)
    """
    return [
        Photograph(name, name, None, image, depth, _STEREO.kind)
        for name, image, depth in _pairs(Path(folder), _STEREO)
    ]


def load_motorcycle() -> Photograph:
    """Give scikit-image's stereo scene of a motorcycle, an example that comes with the extra ``[image]``.

    The scene is Middlebury's (D. Scharstein and others, "High-Resolution Stereo Datasets with
    Subpixel-Accurate Ground Truth", GCPR 2014), scaled to 500 x 741. Versions of scikit-image that don't
    bring the files fetch them on demand; this function only looks where they would be kept.

    Examples
    --------
    >>> load_motorcycle().kind
    'disparity'
    """
    require_image()
    for folder in _example_folders():
        image, depth = folder / "motorcycle_left.png", folder / "motorcycle_disp.npz"
        if image.is_file() and depth.is_file():
            return Photograph("motorcycle", "motorcycle", None, image, depth, _STEREO.kind)
    raise DataError(
        "The motorcycle needs motorcycle_left.png and motorcycle_disp.npz; scikit-image did not bring them. "
        "To let it fetch them once, run pip install pooch and then "
        "python -c 'import skimage.data; skimage.data.stereo_motorcycle()'."
    )


def _example_folders() -> list[Path]:
    """List where scikit-image keeps its examples: inside the package, or where it puts what it fetches."""
    import skimage
    from skimage.data import data_dir

    return [Path(skimage.__file__).parent / "data", Path(data_dir)]


def _files(folder: Path, deep: bool = True) -> list[Path]:
    """List the files, less hidden ones: archives made on a Mac leave a ._NAME beside each NAME."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; name the one that holds the photographs.")
    found: list[Path] = []
    seen: set[Path] = set()  # links are followed, but not in circles
    for place, inner, names in os.walk(folder, followlinks=True, onerror=_refuse):
        real = Path(place).resolve()
        if real in seen:
            inner.clear()
            continue
        seen.add(real)
        inner[:] = sorted(name for name in inner if deep and not name.startswith("."))
        found += [Path(place) / name for name in sorted(names) if not name.startswith(".")]
    return found


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename} can't be listed: {error.strerror}. Make it readable.") from error


def _named(
    files: Sequence[Path], folder: Path, form: _Form, *patterns: re.Pattern[str]
) -> list[tuple[str, Path]]:
    """Pick the files of a form that match a pattern, each with its NAME."""
    own = [file for file in files if form.deep or file.parent == folder]
    matches = [(pattern.fullmatch(file.name), file) for file in own for pattern in patterns]
    return [(match["name"], file) for match, file in matches if match]


def _pairs(folder: Path, form: _Form) -> list[tuple[str, Path, Path]]:
    """Put each photograph to its depth by NAME; sorted by it."""
    files = _files(folder, form.deep)
    images = _once(_named(files, folder, form, form.image))
    depths = _once(_named(files, folder, form, form.depth))
    if not images and not depths:
        raise DataError(f"{folder} needs files {form.said}; it holds none. {form.home}.")
    alone = [
        f"{len(names)} {what} ({_some(names)})"
        for what, names in [
            ("without depth", [images[name] for name in sorted(images.keys() - depths.keys())]),
            ("without photograph", [depths[name] for name in sorted(depths.keys() - images.keys())]),
        ]
        if names
    ]
    if alone:
        raise DataError(
            f"{folder} needs each photograph with its depth: {form.said}. Of {len(images)} photographs and "
            f"{len(depths)} depths, these are alone: {', '.join(alone)}. {form.home}."
        )
    return [(name, images[name], depths[name]) for name in sorted(images)]


def _once(named: Sequence[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name, file in named:
        if name in files:
            raise DataError(
                f"{name!r} is needed once, but both {files[name]} and {file} came. Leave one out."
            )
        files[name] = file
    return files


def _some(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files[:_SHOWN]) + (", ..." if len(files) > _SHOWN else "")


def _split(image: Path) -> str | None:
    """Tell the split by the innermost folder that is named after one."""
    for part in reversed(image.parts[:-1]):
        for split in ("train", "test"):
            if part.lower().startswith(split):
                return split
    return None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}. Put it back as it was.") from None


def _read_pixels(path: Path, modes: Sequence[str], needed: str, rgb: bool = False) -> NDArray[np.generic]:
    """Decode an image file of one of some modes (Pillow's word for channels and their bits)."""
    require_image()
    from PIL import Image

    data = _read_bytes(path)
    try:
        with Image.open(io.BytesIO(data)) as picture:
            mode = picture.mode
            if mode in modes:
                return np.array(picture.convert("RGB") if rgb else picture)  # writeable, unlike asarray
    except Exception as error:  # Pillow meets damage with OSError, SyntaxError, struct.error and others
        raise DataError(f"{path} is no whole image file: {error}. Fetch it again.") from error
    raise DataError(f"{path} needs {needed}; Pillow calls what came {mode!r}. Save it again in that form.")


def _read_photograph(path: Path) -> NDArray[np.uint8]:
    return _read_pixels(path, _PLAIN, "a photograph of 8 bits a channel", rgb=True).astype(
        np.uint8, copy=False
    )


def _check_upright(image: NDArray[np.uint8], path: Path) -> None:
    h, w, _ = image.shape
    if abs(h / w / _UPRIGHT - 1) > _SLACK:
        raise DataError(
            f"{path} needs the shape of a Make3D photograph, 2272 x 1704 (height x width) or that resized, "
            f"since the depth covers the whole of it; {h} x {w} came. "
            + ("It lies on its side: turn it upright." if w > h else "Take the photograph uncropped.")
        )


def _read_make3d(path: Path) -> NDArray[np.float32]:
    from scipy.io import loadmat

    data = _read_bytes(path)
    try:
        content = loadmat(io.BytesIO(data), variable_names=["Position3DGrid"])
    except NotImplementedError:
        raise DataError(
            f"{path} needs the form of MATLAB 5 to 7; it is of MATLAB 7.3 (HDF5). Fetch the file as it was "
            "distributed, or save it again in MATLAB with save(..., '-v7')."
        ) from None
    except Exception as error:  # scipy meets damage with whatever its parser ran into
        raise DataError(f"{path} is no whole MATLAB file: {error}. Fetch it again.") from error
    if "Position3DGrid" not in content:
        raise DataError(f"{path} needs the variable Position3DGrid; it has none. Fetch the file again.")
    grid = np.asarray(content["Position3DGrid"])
    if grid.shape != _GRID or grid.dtype.kind not in "fiu":
        raise DataError(
            f"{path}: Position3DGrid needs numbers of shape {_GRID}; {grid.dtype} of shape {grid.shape} came. "
            "Fetch the file again."
        )
    return _readings(grid[:, :, 3])


def _read_metres(path: Path) -> NDArray[np.float32]:
    steps = _read_pixels(path, _DEEP, "16 bit depth of one channel (metres x 256)")
    return _readings(steps.astype(np.float64) / _METRE)


def _read_disparity(path: Path) -> NDArray[np.float32]:
    disparity = _read_npz(path) if path.suffix.lower() == ".npz" else _read_disparity_image(path)
    with np.errstate(divide="ignore"):
        return _readings(1 / disparity.astype(np.float64))


def _read_npz(path: Path) -> NDArray[np.generic]:
    data = _read_bytes(path)
    try:
        with np.load(io.BytesIO(data)) as archive:
            arrays = [archive[key] for key in archive.files]
    except Exception as error:  # numpy meets damage with ValueError, BadZipFile, zlib.error and others
        raise DataError(f"{path} is no whole .npz file of numbers: {error}. Fetch it again.") from error
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].dtype.kind not in "fiu":
        came = ", ".join(f"{array.dtype} of shape {array.shape}" for array in arrays) or "nothing"
        raise DataError(f"{path} needs one array of numbers of shape (height, width); {came} came.")
    return np.asarray(arrays[0])


def _read_disparity_image(path: Path) -> NDArray[np.generic]:
    values = _read_pixels(path, ("L", "RGB", "RGBA", *_DEEP), "disparities, grey, of 8 or 16 bits")
    if values.ndim == 2:
        return values
    first = values[:, :, 0]
    if not (values[:, :, :3] == first[:, :, None]).all():
        raise DataError(
            f"{path} needs disparities, the same in all channels; a coloured picture came. "
            "Take the file with the numbers, not the one to look at."
        )
    return first


def _readings(distances: NDArray[np.floating]) -> NDArray[np.float32]:
    """Turn what is not a distance into NaN."""
    with np.errstate(over="ignore"):
        readings = np.array(distances, dtype=np.float32)
    readings[~(np.isfinite(readings) & (readings > 0))] = np.nan
    return readings


_READERS = {"make3d": _read_make3d, "metres": _read_metres, "disparity": _read_disparity}
