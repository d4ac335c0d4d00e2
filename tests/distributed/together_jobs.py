"""Cases of training by several processes, each beside one process: run by torchrun, the first writes what it found."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.baselines import RankSVM
from entourage.data import make_medoid
from entourage.distributed import processes
from entourage.errors import UserError
from entourage.selection import cross_validate
from entourage.training.processes import ALONE, train_in
from entourage.training.update import Update

X, RANKS = make_medoid(n_sets=201, n_objects=6, random_state=0)
SIZES = 2 + np.arange(len(X)) % 5
RAGGED = [x[:m] for x, m in zip(X, SIZES, strict=True)], [y[:m] for y, m in zip(RANKS, SIZES, strict=True)]
WEIGHTS = 1.0 + np.arange(len(X)) % 3
SETTINGS = {
    "steps": 30,
    "batch_size": 50,  # the last batch of 181 sets has 31
    "optimizer": "sgd",
    "learning_rate": 0.01,
    "random_state": 0,
    "device": "cpu",
}
BATCH = FATE(width=8, norm="batch", activation="relu")
CASES = {
    "one size": (Ranker(FATE(width=8), **SETTINGS), (X, RANKS), {}),
    "ragged": (Ranker(FATE(width=8), **SETTINGS), RAGGED, {}),
    "weights": (Ranker(FETA(width=8), **SETTINGS), RAGGED, {"sample_weight": WEIGHTS}),
    "dropout": (Ranker(SetAttention(width=8, dropout=0.3), **SETTINGS), RAGGED, {}),
    "penalties": (Ranker(ContextFree(width=8), l1=0.01, l2=0.01, **SETTINGS), RAGGED, {}),
    "batch norm": (Ranker(BATCH, **SETTINGS), RAGGED, {}),
    "ensemble": (Ranker(SetAttention(width=8, rounds=1, dropout=0.2), members=2, **SETTINGS), (X, RANKS), {}),
    "subsets": (Ranker(FATE(width=8), subset_size=(3, 4), **SETTINGS), RAGGED, {}),
    "single sets": (Ranker(FATE(width=8), **(SETTINGS | {"batch_size": 1})), RAGGED, {}),
    "choice": (DiscreteChooser(FATE(width=8), **SETTINGS), (X, RANKS.argmin(1)), {}),
    "subset choice": (SubsetChooser(FATE(width=8), **SETTINGS), (X, (RANKS < 2).astype(int)), {}),
}


def weights_of(model):
    return [value.double() for value in model.scorer_.state_dict().values()]


def difference(some, others):
    return max(float((a - b).abs().max()) for a, b in zip(some, others, strict=True))


def of_case(name):
    """Train together and alone; return the largest difference of a weight, and the scores."""
    model, data, given = CASES[name]
    together = weights_of(model.fit(*data, **given)), model.best_score_
    with train_in(ALONE):
        alone = weights_of(model.fit(*data, **given)), model.best_score_
    return difference(together[0], alone[0]), together[1], alone[1]


def of_gradients(here, net):
    """Return how far the gradient of a batch, in double precision, is from that of one process."""
    model = Ranker(net, **SETTINGS)
    start = model.prepare(*RAGGED, None, None)
    scorer, data = start.scorer.double(), start.data
    data.objects = data.objects.double()
    found = []
    for alone in (False, True):
        with train_in(ALONE if alone else here):
            update = Update(scorer, model.task.find_loss("plackett_luce"), data, start.plan)
        update.optimizer.step = lambda: None
        for p in update.parameters:
            p.grad = None
        chosen = torch.arange(37)
        update(chosen, 0)
        found.append([p.grad.clone() for p in update.parameters])
        scorer.sum_statistics_by(None)
    scale = max(float(g.abs().max()) for g in found[1])
    return difference(*found) / scale


def main():
    found = {}
    with processes() as here:
        for name in CASES:
            found[name] = of_case(name)
        for net in (FATE(width=8), SetAttention(width=8), BATCH):
            found[f"gradient, {net!r}"] = of_gradients(here, net)
        folds = cross_validate(RankSVM(), X, RANKS, folds=3)
        with train_in(ALONE):
            drawn = Ranker(FATE(width=4), steps=1).fit(X[:30], RANKS[:30]).seed_
        found["folds"] = folds.means["ranking_accuracy"]
        found["seeds differ alone"] = drawn
        found["seed"] = Ranker(FATE(width=4), steps=1).fit(X[:30], RANKS[:30]).seed_
        for name, change in (("other data", X + here.rank), ("other order", X[:: 1 - 2 * (here.rank > 0)])):
            try:
                Ranker(FATE(width=4), steps=2, random_state=0).fit(change, RANKS)
            except UserError as error:
                found[name] = str(error)
        other = {
            "other loss": ({"loss": "logistic" if here.first else "hinge"}, {}),
            "other groups": ({}, {"groups": np.arange(len(X)) // (2 + here.rank)}),
        }
        for name, (settings, given) in other.items():
            try:
                Ranker(FATE(width=4), **(SETTINGS | settings)).fit(X, RANKS, **given)
            except UserError as error:
                found[name] = str(error)
        try:
            Ranker(FATE(width=4), **SETTINGS).partial_fit(X + here.rank, RANKS)
        except UserError as error:
            found["other shard"] = str(error)
        try:
            Ranker("auto").fit(X, RANKS)
        except UserError as error:
            found["auto"] = str(error)
    Path(sys.argv[1], f"{here.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
