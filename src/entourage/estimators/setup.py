"""What training begins with: everything that follows from the parameters of an estimator and its sets."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from entourage.data.relative import Relative, find_places
from entourage.data.sets import Sets
from entourage.errors import ParameterError, check_choice, check_number
from entourage.estimators.large_sets import warn_of_large_sets
from entourage.estimators.monotone import constrained, find_signs
from entourage.estimators.positions import Positions
from entourage.estimators.validation_split import evaluation_on, hold_out
from entourage.nets import FATE, NETS, Net, Scorer
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.tasks import Ranking
from entourage.tasks.losses import loss_identity
from entourage.training.batches import Resident, SubsetResident
from entourage.training.checkpoint import checkpoint_file, read_seed
from entourage.training.device import find_device
from entourage.training.held_out import HeldOutEvaluation
from entourage.training.plan import Plan
from entourage.training.processes import processes_here
from entourage.training.view import View

if TYPE_CHECKING:
    from entourage.estimators.net_estimator import NetEstimator

__all__ = [
    "Categories",
    "Start",
    "build_scorer",
    "categories_of",
    "check_net",
    "check_same_everywhere",
    "check_same_sets",
    "draw_seed",
    "fingerprint_of",
    "one_pass_plan",
    "plan_of",
    "prepare",
    "resident_of",
    "scoring_precision",
    "view_of",
]

COMPILE_FROM = 80_000  # steps; on an H200 compiling takes 16 s at first and saves 0.2 ms of a step of FATE

SAMPLED = 100_000  # objects whose features processes compare, at most about twice as many

Categories = list[tuple[int, int]]  # places of features that are codes, and how many levels each has


@dataclass
class Start:
    """What training begins with."""

    sets: Sets
    weights: NDArray[Any] | None
    categories: Categories
    view: View
    net: Net
    scorer: Scorer
    data: Resident
    plan: Plan
    evaluation: HeldOutEvaluation | None
    held_out: NDArray[np.int64] | None  # which sets these are
    positions: Positions | None = None  # whose effects are learnt beside the net


def prepare(
    model: "NetEstimator",
    net: Net,
    sets: Sets,
    weights: NDArray[np.float64] | None,
    seed: int,
    groups: Any = None,
) -> Start:
    """Lay out what training needs, for checked sets."""
    categories = categories_of(model, sets)
    if sets.on_disk:  # several passes over what machines may share: the first process makes them
        view = processes_here().first_does(lambda: view_of(model, sets, weights, categories))
    else:
        view = view_of(model, sets, weights, categories)
    scorer = build_scorer(model, net, view, categories, seed)
    task = model.task
    training, held_out = hold_out(task, sets, model.validation, seed, groups)
    device = find_device(model.device)
    own = None if weights is None else weights[training]
    positions = Positions.of(sets)
    see = view if positions is None else positions.seen(view)
    learnt = task.in_single_precision(sets)
    if sets.on_disk:
        situated = view.situations(learnt)
        data = resident_of(model, situated, device, own, only=training, on_batch=view.on_batch)
    else:
        seen = see(learnt[training])
        data = resident_of(model, seen, device, own)
    plan = plan_of(model, data, seed, scorer)
    if model.subset_size is None:
        warn_of_large_sets(net, scorer.to(device), sets, device, plan.steps, stacklevel=5)
    if positions is not None:
        scorer = positions.beside(scorer, seen.n_features - 1)
    scorer.to(device)
    evaluation = None
    if held_out is not None:
        evaluation = evaluation_on(
            sets[held_out],
            task,
            see,
            device,
            scoring_precision(model.precision, device),
            weights=None if weights is None else weights[held_out],
            seed=seed,
        )
    return Start(
        sets=sets,
        weights=weights,
        categories=categories,
        view=view,
        net=net,
        scorer=scorer,
        data=data,
        plan=plan,
        evaluation=evaluation,
        held_out=held_out,
        positions=positions,
    )


def draw_seed(random_state: Any, checkpoint: str | os.PathLike[str] | None = None) -> int:
    """Return the seed: the given one, that of the run found in ``checkpoint``, or one drawn.

    Of several processes that train together, the first one draws for all.
    """
    return int(processes_here().from_first(_draw_seed(random_state, checkpoint)))


def _draw_seed(random_state: Any, checkpoint: str | os.PathLike[str] | None) -> int:
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
        if checkpoint is not None and checkpoint_file(checkpoint).exists():
            return read_seed(checkpoint_file(checkpoint))
        if isinstance(random_state, np.random.RandomState):
            return int(random_state.randint(2**31))
        return int(np.random.default_rng(random_state).integers(2**31))
    check_number("random_state", random_state, least=0, most=2**32 - 1, whole=True)
    return int(random_state)


def check_net(net: Any) -> Net:
    """Return the net to build, given itself or by its name; FATE where none is given."""
    net = FATE() if net is None else net
    if isinstance(net, str):
        return NETS[check_choice("net", net, [*NETS, "auto", "pretrained"])]()
    if not isinstance(net, Net):
        hint = f"; did you mean {net.__name__}()?" if isinstance(net, type) else "."
        raise ParameterError(
            f'net needs a net such as FATE() or FETA(), its name such as "fate", "auto" or "pretrained"; got '
            f"{net!r}{hint}"
        )
    return net


def categories_of(model: "NetEstimator", sets: Sets) -> Categories:
    """Return which features are codes: as given, or as the table has them."""
    if model.categories is not None:
        found = [(place, levels) for place, levels in model.categories]
    else:
        found = [] if sets.encoder is None else list(sets.encoder.categories)
    for place, _ in found:
        check_number("the place of a category", place, least=0, below=sets.n_features, whole=True)
    return found


def view_of(
    model: "NetEstimator",
    sets: Sets,
    weights: NDArray[np.float64] | None,
    categories: Categories,
    *,
    ignore_constant: bool = True,
) -> View:
    """Learn what the net sees of the features; codes stay as they are."""
    codes = [place for place, _ in categories]
    places = find_places(model.relative, sets, codes)
    if places is not None and sets.on_disk and model.subset_size is not None:
        raise ParameterError(
            "relative needs whole sets, and subset_size takes parts of sets on disk. Leave one of them out."
        )
    return View.fit(
        sets,
        model.standardize,
        categories,
        relative=None if places is None else Relative(places),
        weights=weights,
        ignore_constant=ignore_constant,
        monotone=find_signs(model.monotone, sets, categories),
    )


def build_scorer(model: "NetEstimator", net: Net, view: View, categories: Categories, seed: int) -> Scorer:
    """Build the net, or a stack of them for an ensemble."""
    check_number("members", model.members, least=1, whole=True)
    pairs = [(place, levels) for place, levels in categories]  # JSON has lists for tuples
    made = constrained(net, view, pairs)
    seeds = [seed, *np.random.default_rng([seed, 2**33]).integers(2**62, size=model.members - 1)]
    scorers = [
        build_with_categories(
            made, view.n_inputs, pairs, torch.Generator().manual_seed(int(own)), view.level_counts
        )
        for own in seeds
    ]
    return scorers[0] if model.members == 1 else Stack(scorers)


def resident_of(model: "NetEstimator", *args: Any, **kwargs: Any) -> Resident:
    """Lay out what to train on: whole sets, or subsets of them."""
    if model.subset_size is None:
        return Resident(*args, **kwargs)
    if not isinstance(model.task, Ranking):
        raise ParameterError(
            "subset_size is for rankings only: in a subset without the chosen object, no object is chosen."
        )
    sizes = model.subset_size if isinstance(model.subset_size, Sequence) else [model.subset_size] * 2
    if len(sizes) != 2:
        raise ParameterError(
            f"subset_size needs a number or a pair, smallest and largest; got {model.subset_size!r}."
        )
    low, high = sizes
    check_number("subset_size", low, least=2, whole=True)
    check_number("subset_size", high, least=low, whole=True)
    check_number("subsets_per_set", model.subsets_per_set, least=1, whole=True)
    return SubsetResident(*args, **kwargs, subset_sizes=(int(low), int(high)), per_set=model.subsets_per_set)


def plan_of(model: "NetEstimator", data: Resident, seed: int, scorer: Scorer) -> Plan:
    """Return how `fit` trains."""
    check_number("batch_size", model.batch_size, least=1, whole=True)
    steps = model.steps
    if model.epochs is not None:
        check_number("epochs", model.epochs, above=0)
        steps = max(1, round(model.epochs * data.n_batches(model.batch_size)))
    check_number("steps", steps, least=1, whole=True)
    return Plan(
        **_common_plan(model),
        steps=steps,
        evaluate_every=max(1, steps // 40) if model.evaluate_every is None else model.evaluate_every,
        evaluate_early=model.evaluate_every is None,
        schedule=model.schedule,
        warmup=model.warmup,
        ema=model.ema,
        patience=model.patience,
        compile=_compiles(model, data, steps, scorer),
        seed=seed,
    )


def one_pass_plan(model: "NetEstimator", data: Resident, seed: int, passes_before: int) -> Plan:
    """Return how `partial_fit` trains: once through the sets, at a constant learning rate."""
    check_number("batch_size", model.batch_size, least=1, whole=True)
    steps = data.n_batches(model.batch_size)
    return Plan(
        **_common_plan(model),
        steps=steps,
        evaluate_every=steps,
        schedule="constant",
        warmup=0.0,
        ema=None,
        patience=None,
        seed=int(np.random.default_rng([seed, passes_before]).integers(2**62)),
    )


def _common_plan(model: "NetEstimator") -> dict[str, Any]:
    names = ["batch_size", "optimizer", "learning_rate", "momentum", "weight_decay", "l1", "l2", "clip"]
    return {name: getattr(model, name) for name in [*names, "precision"]}


def _compiles(model: "NetEstimator", data: Resident, steps: int, scorer: Scorer) -> bool:
    can = (
        scorer.stackable
        and not scorer.drops_out
        and data.uniform_size is not None
        and model.subset_size is None
    )
    if model.compile == "auto":
        return can and data.device.type == "cuda" and steps >= COMPILE_FROM
    if not isinstance(model.compile, bool):
        raise ParameterError(f'compile must be True, False or "auto"; got {model.compile!r}.')
    if model.compile and not can:
        raise ParameterError(
            "compile=True is for nets without dropout, whose computation depends only on shapes, on whole sets of one "
            'size. Leave it at "auto".'
        )
    return model.compile


def scoring_precision(precision: str, device: torch.device) -> str:
    """In bfloat16 on a GPU only: elsewhere it saves nothing."""
    return precision if device.type == "cuda" else "float32"


def check_same_everywhere(model: "NetEstimator", start: Start) -> None:
    """See that all processes that train together were given the same sets and settings."""
    check_same_sets(start.sets, start.weights, start.plan, start.net, _settings(model, start), _split(start))


def check_same_sets(sets: Sets, weights: NDArray[np.float64] | None, *settings: Any) -> None:
    """See that all processes that train together were given the same sets, and settings that print alike."""
    processes = processes_here()
    if not processes.several:
        return
    sample = max(1, len(sets.objects) // SAMPLED)
    said = re.sub(" at 0x[0-9a-f]+", "", repr((sets, *settings)))  # where an object lies, held by a loss
    digest = hashlib.sha256(said.encode())
    for array in (sets.offsets, sets.targets, sets.situation, sets.objects[::sample], weights):
        _digest_array(digest, array)
    processes.check_same("What is learnt from, and how (a digest)", digest.hexdigest())


def fingerprint_of(model: "NetEstimator", start: Start) -> str:
    """Identify this run by its data and all its settings; the first process reads the data for all."""

    def identify() -> str:
        digest = hashlib.sha256()
        sets = start.sets
        for array in (sets.objects, sets.offsets, sets.targets, sets.situation, start.weights):
            _digest_array(digest, array)
        return digest.hexdigest() + repr([_split(start), *_settings(model, start)])

    return processes_here().first_does(identify)


def _settings(model: "NetEstimator", start: Start) -> list[Any]:
    """Return what a run depends on beside its data and its plan."""
    settings = [
        type(model).__name__,
        repr(model.net),
        loss_identity(model.task.find_loss(model.loss)),
        model.validation,
        model.standardize,
        start.view.relative,
        start.categories,
        model.members,
        model.subset_size,
        model.subsets_per_set,
    ]
    return settings + ([start.view.monotone] if start.view.monotone else [])


def _digest_array(digest: Any, array: Any) -> None:
    content: Any = b"-" if array is None else np.ascontiguousarray(array)  # hashed without a copy
    digest.update(content)


def _split(start: Start) -> str:
    """Return a digest of which sets are held out, which groups decide, and of where objects were shown."""
    digest = hashlib.sha256()
    _digest_array(digest, start.held_out)
    if start.sets.position is not None:
        digest.update(repr(start.sets.position.tolist()).encode())
    return digest.hexdigest()
