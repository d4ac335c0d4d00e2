"""What a model file keeps of the view of a model: see :mod:`entourage.training.view`."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.data.relative import STANDINGS, Relative
from entourage.errors import check_choice
from entourage.training.file_checks import fits, need, take
from entourage.training.quantile_map import QuantileMap
from entourage.training.standardizer import Standardizer
from entourage.training.view import Piecewise, View

__all__ = ["describe_map", "describe_relative", "describe_view", "map_from", "relative_from", "view_from"]


def describe_view(view: View) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the view as JSON content and tensors."""
    content = {
        "n_features": list(view.n_features),
        "relative": describe_relative(view.relative),
        "maps": [_curves(found, "knots", "scores") for found in view.maps],
        "piecewise": _curves(view.piecewise, "edges"),
        "level_counts": [list(counts) for counts in view.level_counts],
    }
    if view.monotone:
        content["monotone"] = [list(pair) for pair in view.monotone]
    tensors: dict[str, Tensor] = {}
    for i, (mean, scale) in enumerate(zip(view.standardise.means, view.standardise.scales, strict=True)):
        tensors |= {f"mean.{i}": torch.from_numpy(mean), f"scale.{i}": torch.from_numpy(scale)}
    return content, tensors


def view_from(content: Any, means: dict[str, Tensor], scales: dict[str, Tensor]) -> View:
    """Make a view again, if all that the file says of it can be; earlier files have no content."""
    standardise = _standardizer(means, scales)
    inputs = [len(part) for part in standardise.means]
    if content is None:
        return View(standardise, (inputs[0], inputs[1] if len(inputs) > 1 else 0))
    first, second = take(content, "n_features", tuple[int, int])
    need(first > 0 and second == (inputs[1] if len(inputs) > 1 else 0), "its view has other features.")
    relative = relative_from(content.get("relative"), first)
    maps = content.get("maps")
    need(isinstance(maps, list) and len(maps) == 2, "'maps' of its view needs two entries.")
    of_objects, of_situations = (
        None if one is None else QuantileMap(*_read_curves(one, count, "knots", "scores"))
        for one, count in zip(maps, (first, second), strict=True)
    )
    given = content.get("piecewise")
    piecewise = None if given is None else Piecewise(*_read_curves(given, first, "edges"))
    counts = take(content, "level_counts", list[list[int]])
    need(all(count >= 0 for own in counts for count in own), "a level was seen fewer than 0 times.")
    width = first + (relative.width if relative else 0) + (piecewise.width if piecewise else 0)
    need(width == inputs[0], f"its view makes {width} numbers, and it has means of {inputs[0]}.")
    seen = tuple(tuple(own) for own in counts)
    monotone = [
        (place, sign) for place, sign in take({"monotone": []} | content, "monotone", list[tuple[int, int]])
    ]
    if monotone:
        _check_places([place for place, _ in monotone], first)
        need(
            all(sign in (1, -1) for _, sign in monotone), "a sign of a monotone feature is neither 1 nor -1."
        )
    return View(
        standardise, (first, second), (of_objects, of_situations), relative, piecewise, seen, tuple(monotone)
    )


def describe_map(found: QuantileMap) -> dict[str, Any] | None:
    """Return which columns are mapped by their quantiles, and how, as JSON."""
    return _curves(found, "knots", "scores") if found.places else None


def map_from(content: Any, n_features: int) -> QuantileMap:
    """Make it again, if its columns are among the features."""
    if content is None:
        return QuantileMap((), (), ())
    return QuantileMap(*_read_curves(content, n_features, "knots", "scores"))


def describe_relative(relative: Relative | None) -> dict[str, Any] | None:
    """Return which columns are seen relative to their set, as JSON."""
    if relative is None:
        return None
    return {"places": list(relative.places), "standings": list(relative.standings)}


def relative_from(content: Any, n_features: int) -> Relative | None:
    """Make it again, if its columns are among the features."""
    if content is None:
        return None
    places = take(content, "places", list[int])
    _check_places(places, n_features)
    standings = take(content, "standings", list[str])
    need(0 < len(standings) == len(set(standings)), "a standing within sets comes twice, or there is none.")
    for standing in standings:
        check_choice("standings", standing, STANDINGS)
    return Relative(tuple(places), tuple(standings))


def _curves(found: QuantileMap | Piecewise | None, *names: str) -> dict[str, Any] | None:
    if found is None:
        return None
    lists = {name: [values.tolist() for values in getattr(found, name)] for name in names}
    return {"places": list(found.places)} | lists


def _read_curves(content: Any, n_features: int, *names: str) -> tuple[Any, ...]:
    places = take(content, "places", list[int])
    _check_places(places, n_features)
    parts = []
    for name in names:
        lists = content.get(name)
        need(
            fits(lists, list[list[float]]) and len(lists) == len(places),
            f"{name!r} of its view is malformed.",
        )
        rising = all(
            len(one) > 1 and all(map(math.isfinite, one)) and (np.diff(one) > 0).all() for one in lists
        )
        need(rising, f"{name!r} of its view must be finite and increasing.")
        parts.append(tuple(np.array(one, dtype=np.float64) for one in lists))
    if len(parts) > 1:
        same = all(len(a) == len(b) for a, b in zip(*parts, strict=True))
        need(same, f"{names[0]} and {names[1]} of its view differ in number.")
    return (tuple(places), *parts)


def _check_places(places: list[int], n_features: int) -> None:
    right = len(set(places)) == len(places) and all(0 <= place < n_features for place in places)
    need(right and len(places) > 0, "its view is of features that are not there, or of one twice.")


def _standardizer(means: dict[str, Tensor], scales: dict[str, Tensor]) -> Standardizer:
    parts = [str(i) for i in range(len(means))]
    right = len(parts) in (1, 2) and set(means) == set(scales) == set(parts)
    need(right, "means and scales of the features are missing, or too many.")
    for part in parts:
        mean, scale = means[part], scales[part]
        right = mean.dtype == scale.dtype == torch.float64 and mean.ndim == 1 and mean.shape == scale.shape
        need(right, "means and scales of the features need one float64 a feature.")
        need(
            bool(mean.isfinite().all() and (scale > 0).all()),
            "means of features must be finite, and scales above 0.",
        )
    need(len(means["0"]) > 0, "objects have no features.")
    return Standardizer(*(tuple(group[part].numpy() for part in parts) for group in (means, scales)))
