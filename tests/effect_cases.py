"""Models and choices of known context effects."""

import numpy as np

from entourage import FATE, DiscreteChooser
from entourage.data import Sets
from entourage.tasks import Choice

RNG = np.random.default_rng(0)
MIXED = Sets.from_list([RNG.normal(size=(m, 2)) for m in (3, 5, 2, 4, 5, 3, 1, 6)])
T, C = np.array([[1.0, 2.0], [1.0, 2.5]]), np.array([[2.0, 1.0], [2.5, 1.0]])  # targets and competitors
TINY = {"steps": 6, "evaluate_every": 3, "device": "cpu", "random_state": 0}


class Model:
    """A model made of a function of one set: (m, d) objects to (m,) utilities."""

    def __init__(self, utility, dtype=np.float64, task=None):
        self.utility = utility
        self.dtype = dtype
        self.calls = 0
        if task is not None:
            self.task = task

    def __repr__(self):
        return "Model()"

    def predict_scores(self, sets):
        self.calls += 1
        return np.concatenate([self.utility(x) for x in sets.to_list()]).astype(self.dtype)


class Known:
    """A model made of a function of packed sets."""

    def __init__(self, utility, task=Choice):
        self.utility, self.task = utility, task() if isinstance(task, type) else task

    def predict_scores(self, sets):
        return self.utility(sets)


def alone(x):
    return x @ np.arange(1.0, x.shape[1] + 1)


def push(x):
    """An object of value 9 raises the first feature's worth for whoever has a second feature of 1."""
    return x[:, 0] + 2.0 * x[:, 1] * (x[:, 0] == 9).any()


PUSHED = np.array(
    [[[1.0, 0.0], [0.0, 1.0], [9.0, 0.0]]]
)  # with the 9, the second is worth 2, more than the first


def near_dominated(x):
    """Attraction: 2 more for who dominates another closely."""
    gaps = x[:, None] - x
    close = (gaps >= 0).all(2) & (gaps > 0).any(2) & (gaps.sum(2) < 0.5)
    return x.sum(1) + 2.0 * close.any(1)


def middle(x):
    """Compromise: 1 less for whoever has the largest or smallest first feature, of three."""
    extreme = (x[:, 0] == x[:, 0].max()) | (x[:, 0] == x[:, 0].min())
    return x.sum(1) - 1.0 * (extreme & (len(x) > 2))


def shared(x):
    """Similarity: twins share what they are worth."""
    return x.sum(1) - np.log((np.abs(x - x[:, None]).sum(2) < 0.2).sum(1))


def choice_lists(seed, n=40, context=0.0, curved=0.0, sizes=(3,), shared_part=0.0):
    """Draw lists of objects and the places of the chosen ones, with or without context."""
    rng = np.random.default_rng(seed)
    parts, chosen = [], []
    for i in range(n):
        x = rng.normal(size=(sizes[i % len(sizes)], 2)) + shared_part * rng.normal(size=2)
        utility = x @ [1.0, -0.5] - curved * np.square(x).sum(1) + context * ((x.sum(0) - x) * x).sum(1)
        parts.append(x)
        chosen.append(int((utility + rng.gumbel(size=len(x))).argmax()))
    return parts, np.array(chosen)


def choice_sets(seed, n=60, sizes=(2, 3, 4), context=0.0, situation=False):
    """Draw choice sets, with or without context: people like the middle."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(m, 2)) for m in rng.choice(sizes, n)]
    rows = []
    for x in X:
        utility = x @ [1.0, 0.7] - context * np.square(x - x.mean(0)).sum(1) + rng.gumbel(size=len(x))
        rows.append((np.arange(len(x)) != utility.argmax()).astype(float))
    return Sets.from_list(X, rows, rng.normal(size=(n, 1)) if situation else None)


def small_chooser(sets, net=None, **settings):
    """Fit a small net for a few steps."""
    return DiscreteChooser(net or FATE(width=8), **(TINY | settings)).fit(sets)
