"""The context effects of the paper's appendix as data: compromise, attraction and similarity.

Alternatives have two attributes, both better when larger (say quality and economy), and lie near the line on which
one is traded for the other. Without context their utilities are about the same, so that the context decides.
"""

import numpy as np
from numpy.typing import NDArray

from entourage.data.sets import Seed, Sets
from entourage.errors import check_choice, check_number

__all__ = ["EFFECTS", "effect_utilities", "make_context_effect", "third_objects"]

STRENGTH = 0.4  # of an effect, beside utilities that differ by a few hundredths
NEAR = 0.12  # the scale of similarity, in units of the attributes


def _compromise(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Minus the distance to the middle of the choice set: extreme alternatives lose."""
    middle = (X.min(1, keepdims=True) + X.max(1, keepdims=True)) / 2
    return np.asarray(-np.abs(X - middle).sum(2))


def _attraction(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """How closely an alternative dominates others: a decoy helps the alternative that dominates it."""
    gaps = X[:, :, None] - X[:, None]  # (n, i, j, 2): by how much i is better than j
    dominates = (gaps >= 0).all(3) & (gaps > 0).any(3)
    return np.asarray(np.where(dominates, np.exp(-np.abs(gaps).sum(3) / (2 * NEAR)), 0.0).sum(2))


def _similarity(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Minus the similarity to the others: similar alternatives take choices from each other."""
    distances = np.square(X[:, :, None] - X[:, None]).sum(3)
    close = np.exp(-distances / (2 * NEAR**2))
    return np.asarray(1 - close.sum(2))  # an alternative is not similar to itself


#: Each effect: what the context adds to the utility of each object of sets (n, m, 2), as (n, m).
EFFECTS = {"compromise": _compromise, "attraction": _attraction, "similarity": _similarity}


def effect_utilities(X: NDArray[np.floating], effect: str) -> NDArray[np.floating]:
    """Return the true utilities U(x, C) of sets ``X (n, m, 2)``: mean attribute plus context effect."""
    added = EFFECTS[check_choice("effect", effect, EFFECTS)](X.astype(np.float64))
    return np.asarray(X.astype(np.float64).mean(2) + STRENGTH * added)


def make_context_effect(effect: str, n_sets: int = 10_000, *, random_state: Seed = None) -> Sets:
    """Make sets of two and of three objects, ranked under one context effect.

    A and B lie on the two halves of the trade-off line; in every second set there is a third object,
    which lies anywhere or, as often, close to one of them.

    Parameters
    ----------
    effect : {"compromise", "attraction", "similarity"}
    n_sets : how many sets; every second has a third object
    random_state : int, Generator or None

    Examples
    --------
    >>> make_context_effect("attraction", n_sets=4, random_state=0)
    Sets(4 sets of 2 to 3 objects, 2 features, targets)
    """
    check_choice("effect", effect, EFFECTS)
    check_number("n_sets", n_sets, least=2, whole=True)
    rng = np.random.default_rng(random_state)
    pairs = _pairs(n_sets, rng)
    half = n_sets // 2
    neighbour = pairs[np.arange(half), rng.integers(2, size=half)]
    close = (neighbour + rng.normal(0, 0.1, (half, 2))).clip(0, 1)
    third = np.where(rng.random((half, 1)) < 0.5, close, rng.random((half, 2)))
    triples = np.concatenate([pairs[:half], third[:, None]], axis=1)
    parts = []
    for X in (triples, pairs[half:]):
        order = rng.random(X.shape[:2]).argsort(axis=1)  # no place says who is A
        shuffled = np.take_along_axis(X, order[:, :, None], axis=1).astype(np.float32)
        utilities = effect_utilities(shuffled, effect)
        parts.append(Sets.of(shuffled, np.argsort(np.argsort(-utilities, axis=1), axis=1)))
    return Sets.concatenate(parts)


def _pairs(n: int, rng: np.random.Generator) -> NDArray[np.floating]:
    """Make A with little of the first attribute and much of the second, B the other way round: (n, 2, 2)."""
    share = np.stack([rng.uniform(0.15, 0.4, n), rng.uniform(0.6, 0.85, n)], axis=1)  # of the first attribute
    return np.stack([share, 1 - share], axis=2) + rng.uniform(-0.04, 0.04, (n, 2, 2))


def third_objects(effect: str, n: int, *, random_state: Seed = None) -> NDArray[np.float32]:
    """Make the textbook cases, (n, 3, 2): A, B, and a C placed on B's side so that the effect occurs.

    For the compromise effect C is an extreme beyond B, for attraction a decoy just below B, for similarity a
    near copy of B on the trade-off line.
    """
    rng = np.random.default_rng(random_state)
    X = _pairs(n, rng)
    b = X[:, 1]
    if check_choice("effect", effect, EFFECTS) == "compromise":
        step = rng.uniform(0.1, 0.14, n)
        c = b + np.stack([step, -step], axis=1)
    elif effect == "attraction":
        c = b - rng.uniform(0.02, 0.1, (n, 2))
    else:
        step = rng.uniform(0.02, 0.06, n) * rng.choice([-1, 1], n)
        c = b + np.stack([step, -step], axis=1)
    return np.concatenate([X, c[:, None]], axis=1).clip(0, 1).astype(np.float32)
