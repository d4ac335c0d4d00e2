"""What a model file keeps of a reading: the labelled sets as the net has read them, and a net that was fine-tuned.

What a file says is checked against two small readings of made-up sets: every tensor must have their type and, but for
the axes that count labelled objects, their shape; axes of objects must agree with each other.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from entourage.data.sets import Sets
from entourage.nets.prior_fitted import TASK_KINDS, PriorFittedNet
from entourage.pretrained.interactions import MOST_PRODUCTS
from entourage.pretrained.weights import pretrained_net
from entourage.tasks import Choice, Ranking, SubsetChoice, Task
from entourage.training.file_checks import check_weights, forms_of, need, take

if TYPE_CHECKING:
    from entourage.pretrained.reading import Reading

__all__ = ["describe_reading", "reading_from"]

SIZES = (3, 2), (3, 2, 2)  # of the made-up sets: 5 objects in 6 places, 7 in 9
MOST_PAGES = 100


def describe_reading(reading: "Reading") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the JSON content, and the tensors."""
    standardise = reading.standardise
    content = {
        "kind": reading.kind,
        "outside": reading.outside,
        "n_features": list(reading.n_features),
        "n_sets": reading.n_sets,
        "pages": len(reading.pages),
        "weighted": reading.pages[0].memory.bias is not None,
        "fine_tuned": reading.net is not None,
        "mix": reading.mix,
        "level": reading.level,
    }
    tensors: dict[str, Tensor] = {}
    for i, (mean, scale) in enumerate(zip(standardise.means, standardise.scales, strict=True)):
        tensors |= {f"mean.{i}": torch.from_numpy(mean), f"scale.{i}": torch.from_numpy(scale)}
    for i, page in enumerate(reading.pages):
        tensors |= {name: value.detach().cpu().clone() for name, value in _leaves(page, f"page{i}")}
    if reading.products is not None:
        tensors["products"] = reading.products.cpu()
    for i, page in enumerate(reading.more):
        tensors |= {name: value.detach().cpu().clone() for name, value in _leaves(page, f"more{i}")}
    if reading.net is not None:
        tensors |= {f"net.{name}": value.detach().cpu() for name, value in reading.net.state_dict().items()}
    return content, tensors


def reading_from(kind: type["Reading"], content: Any, tensors: dict[str, Tensor]) -> "Reading":
    """Make a reading again, if all that the file says of it can be."""
    need(isinstance(content, dict), "what was read of labelled sets is malformed.")
    name = take(content, "kind", str)
    need(name in TASK_KINDS, "what was read of labelled sets is of an unknown task.")
    outside, weighted = take(content, "outside", bool), take(content, "weighted", bool)
    need(not outside or name == "choice", "an outside option is of choices alone.")
    first, second = take(content, "n_features", tuple[int, int])
    count = take(content, "pages", int, least=1)
    need(first > 0 and second >= 0 and count <= MOST_PAGES, "what was read of labelled sets is malformed.")
    level = take(content, "level", float)
    left = dict(tensors)
    means: list[Any] = []
    scales: list[Any] = []
    for i, width in enumerate([first, second] if second else [first]):
        for part, into in (("mean", means), ("scale", scales)):
            value = left.pop(f"{part}.{i}", None)
            right = value is not None and value.dtype == torch.float64 and value.shape == (width,)
            need(right, "it was not read with these features.")
            into.append(np.asarray(value))
    need(all(np.isfinite(mean).all() for mean in means), "a mean is not finite.")
    need(all((scale > 0).all() for scale in scales), "a scale is not above 0.")
    net = _net_from(left) if take(content, "fine_tuned", bool) else None
    mix = take(content, "mix", float)
    need(0 <= mix < 1 and not (mix and (outside or net is not None)), "its second reading is malformed.")
    products = _products_from(left.pop("products", None), first + second) if mix else None
    templates = [_made_up(kind, name, outside, (first, second), weighted, sizes, products) for sizes in SIZES]
    pages = [_page_from([one.pages[0] for one in templates], f"page{i}", left) for i in range(count)]
    more = [
        _page_from([one.more[0] for one in templates], f"more{i}", left) for i in range(count if mix else 0)
    ]
    need(not left, "it holds numbers of which nothing is known.")
    standardise = replace(templates[0].standardise, means=tuple(means), scales=tuple(scales))
    n_sets = take(content, "n_sets", int, least=1)
    return kind(name, outside, standardise, pages, n_sets, (first, second), net, mix, products, more, level)


def _products_from(value: Tensor | None, width: int) -> Tensor:
    """Return the interactions that a file names, if they are such."""
    sound = value is not None and value.dtype == torch.float64 and value.ndim == 2 and value.shape[1] == 4
    need(sound, "its interactions are malformed.")
    assert value is not None
    places = value[:, [0, 3]]
    right = bool(
        value.isfinite().all() and (value[:, 2] > 0).all() and ((places >= 0) & (places < width)).all()
    )
    need(right and 0 < len(value) <= MOST_PRODUCTS, "its interactions are malformed.")
    return value


def _net_from(tensors: dict[str, Tensor]) -> PriorFittedNet:
    """Return the fine-tuned net; it has the form of that of the package."""
    with torch.device("meta"):  # no random numbers for weights that are replaced
        net = PriorFittedNet(**pretrained_net().settings)
    own = {name[4:]: tensors.pop(name) for name in list(tensors) if name.startswith("net.")}
    check_weights(own, forms_of(net.state_dict()))
    net.load_state_dict(own, assign=True)
    return net.eval().requires_grad_(False)


def _made_up(
    kind: type["Reading"],
    name: str,
    outside: bool,
    n_features: tuple[int, int],
    weighted: bool,
    sizes: tuple[int, ...],
    products: Tensor | None,
) -> "Reading":
    """Read a few sets of random numbers."""
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(sizes))
    first = np.isin(np.arange(offsets[-1]), offsets[:-1])
    situation = rng.normal(size=(len(sizes), n_features[1])) if n_features[1] else None
    objects = rng.normal(size=(int(offsets[-1]), n_features[0]))
    sets = Sets(objects, offsets, np.where(first, 0.0, 1.0), situation, worst=1.0)
    tasks: dict[str, Task] = {"choice": Choice(outside=outside), "subset": SubsetChoice()}
    weights = np.arange(1.0, len(sizes) + 1) if weighted else None
    given = tasks.get(name, Ranking())
    return kind.read(sets, given, weights=weights, interactions=False, products=products, device="cpu")


def _page_from(templates: list[Any], name: str, tensors: dict[str, Tensor]) -> Any:
    """Fill the first template with the tensors of a file; the templates differ where axes count objects."""
    found: dict[str, Tensor] = {}
    axes: dict[tuple[int, int], int] = {}  # of the sizes in both templates, the one in the file
    for (own, like), (_, other) in zip(*(list(_leaves(one, name)) for one in templates), strict=True):
        value = tensors.pop(own, None)
        right = value is not None and value.dtype == like.dtype and value.ndim == like.ndim
        need(right, f"numbers of its reading are missing or of another kind: {own[:100]}.")
        for came, *sizes in zip(value.shape, like.shape, other.shape, strict=True):  # type: ignore[union-attr]
            expected = sizes[0] if sizes[0] == sizes[1] else axes.setdefault((sizes[0], sizes[1]), came)
            need(came == expected > 0, f"numbers of its reading have another shape: {own[:100]}.")
        need(not bool(value.isnan().any()), f"numbers of its reading are none: {own[:100]}.")  # type: ignore[union-attr]
        found[own] = value  # type: ignore[assignment]
    _check_order(found[f"{name}.knowledge.order"], found[f"{name}.knowledge.sign"])
    return _filled(templates[0], name, found)


def _check_order(order: Tensor, sign: Tensor) -> None:
    """See that every column has one place, and a sign."""
    places = torch.arange(order.shape[1])
    need(torch.equal(order[0].sort().values, places), "its columns are in no order.")
    need(bool((sign.abs() == 1).all()), "the signs of its columns are none.")


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested dataclasses, lists and tuples, by name."""
    if isinstance(value, Tensor):
        yield name, value
    elif is_dataclass(value):
        for one in fields(value):
            yield from _leaves(getattr(value, one.name), f"{name}.{one.name}")
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            yield from _leaves(one, f"{name}.{i}")


def _filled(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return nested dataclasses, lists and tuples with other tensors."""
    if isinstance(value, Tensor):
        return tensors[name]
    if is_dataclass(value) and not isinstance(value, type):
        made = {
            one.name: _filled(getattr(value, one.name), f"{name}.{one.name}", tensors)
            for one in fields(value)
        }
        return replace(value, **made)
    if isinstance(value, tuple):  # a named one
        return type(value)(*(_filled(one, f"{name}.{i}", tensors) for i, one in enumerate(value)))
    if isinstance(value, list):
        return [_filled(one, f"{name}.{i}", tensors) for i, one in enumerate(value)]
    return value
