"""What the laws are tried on. A net, loss or metric joins by being registered in the library.

A net may add variants here; without any it is tried with its defaults.
"""

from typing import Any

import numpy as np
import torch

from entourage.nets import NETS, Net, Scorer
from entourage.nets.monotone import Monotone

HIDDEN_LAYERS: dict[str, dict[str, Any]] = {
    "relu-batch": {"activation": "relu", "norm": "batch"},
    "selu": {"activation": "selu", "norm": "none"},
    "gelu-layer": {"activation": "gelu", "norm": "layer"},
    "linear": {"depth": 0},
}
MONOTONE: dict[str, Any] = {"own": [(1, -1)], "standings": [(2, 1)]}  # of nets under `Monotone`
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "context_free": HIDDEN_LAYERS | {"monotone-linear": {"monotone": MONOTONE, "depth": 0}},
    "fate": HIDDEN_LAYERS
    | {
        "others": {"include_self": False},
        "others-batch": {"include_self": False, "activation": "relu", "norm": "batch"},
        "small-embedding": {"embedding_size": 2, "embedding_depth": 1},
        "rounds": {"rounds": 3, "dropout": 0.2},
        "rounds-spread": {"rounds": 2, "pooling": "spread", "features": "periodic"},
        "monotone": {"monotone": MONOTONE},
    },
    "feta": HIDDEN_LAYERS
    | {
        "squash": {"squash": True},
        "squash-linear": {"squash": True, "depth": 0},
        "order-0": {"order": 0},
        "order-2": {"order": 2},
        "order-3-batch": {"order": 3, "activation": "relu", "norm": "batch", "squash": True},
        "order-2-sampled": {"order": 2, "max_subcontexts": 3},
        "rounds": {"rounds": 3, "dropout": 0.2},
        "rounds-batch": {"rounds": 2, "activation": "relu", "norm": "batch", "features": "periodic"},
        "monotone-alone": {"monotone": {"own": [(0, 1), (1, -1)], "ignored": [2]}},
    },
    "set_attention": {
        "one-head": {"heads": 1, "rounds": 1, "dropout": 0.0, "norm": "layer"},
        "deep": {"heads": 2, "depth": 2, "rounds": 2},
        "points": {"heads": 2, "points": 3},
        "periodic": {"heads": 2, "features": "periodic"},
        "linear": {"heads": 2, "rounds": 3, "features": "linear"},
    },
}
DEFAULTS: dict[str, dict[str, Any]] = {"set_attention": {"heads": 2}}  # a divisor of the tests' small width
NET_CASES = [
    (name, variant, params)
    for name in NETS
    for variant, params in ({"default": DEFAULTS.get(name, {})} | VARIANTS.get(name, {})).items()
]
NET_IDS = [f"{name}-{variant}" for name, variant, _ in NET_CASES]


def describe(name: str, params: dict[str, Any], width: int = 6) -> Net:
    """Return a small net, under `Monotone` where the variant says so."""
    own = {key: value for key, value in params.items() if key != "monotone"}
    net = NETS[name](width=width, **own)
    return Monotone(net, **params["monotone"]) if "monotone" in params else net


def build(name: str, params: dict[str, Any], n_features: int = 3, width: int = 6) -> Scorer:
    """Build a small float64 net, moved off its initial state so that no bias is 0."""
    generator = torch.Generator().manual_seed(1)
    scorer = describe(name, params, width).build(n_features, generator).double()
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return scorer.eval()


def random_objects(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_ranking(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, ranks with ties and unranked objects, and a mask, for n sets of up to m objects."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, m))
    ranks = rng.integers(0, m, size=(n, m)).astype(float)
    ranks[rng.random((n, m)) < 0.15] = np.nan
    mask = np.arange(m) < rng.integers(2, m + 1, size=(n, 1))
    return scores, ranks, mask
