"""The logit models of :mod:`entourage.choice` in a graph: what ``predict_scores`` returns of each."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from entourage.choice import LatentClassLogit, NestedLogit
from entourage.serving.onnx.scorer import FeatureScorer, Floats, at_set, doubles, mean_of_set, without
from entourage.serving.onnx.views import Standings

__all__ = [
    "ContextualScores",
    "LinearContextScores",
    "LogitScores",
    "MixtureScores",
    "NestedScores",
    "RegretScores",
]

ROUNDING = 1e-14  # as in entourage.choice.likelihood
LOWEST = -1e30  # a utility that has no probability


class _Logit(FeatureScorer):
    """What all logits share: standings behind the features, base levels left out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.n_own, self.n_situation = model.n_features_in_, model.n_situation_features_in_
        self.standings = None if model.relative_ is None else Standings(model.relative_)
        self.dropped = model.dropped_.tolist()
        self.kept = [place for place in range(model.n_features_in_) if place not in set(self.dropped)]

    def seen(self, objects: Tensor, mask: Tensor) -> Tensor:
        """Return what the model sees of objects."""
        if self.standings is not None:
            objects = torch.cat([objects, self.standings(objects, mask)], dim=-1)
        return without(objects, self.dropped)

    def typical(self) -> Floats:
        """Return about how large each feature that is seen is, the standings left out."""
        return np.ones(len(self.kept))

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw normal features, of a size at which each one changes utilities by about 1."""
        objects = rng.normal(size=(n, m, self.n_own))
        objects[..., self.kept] *= self.typical()
        return objects, rng.normal(size=(n, self.n_situation))


def _sizes(coefficients: Any) -> Floats:
    """Return how large a feature is at which its coefficient changes a utility by 1."""
    large = np.abs(np.asarray(coefficients, dtype=np.float64))
    return np.where(large > 1e-9, 1 / np.maximum(large, 1e-9), 1.0)


def _centred(values: Tensor, mask: Tensor) -> Tensor:
    """Return features less the mean of their set; 0 where they don't differ."""
    within = at_set(values - mean_of_set(values, mask), mask)
    largest = at_set(values, mask).abs().amax(1, keepdim=True)
    same = within.abs().amax(1, keepdim=True) <= ROUNDING * largest
    return torch.where(same, 0.0, within)


def _log_softmax(utilities: Tensor, there: Tensor, axis: int) -> Tensor:
    """Return log-probabilities along an axis, over entries that are there; others are very low."""
    return torch.where(there, utilities, LOWEST).log_softmax(axis)


def _log_sum(values: Tensor, there: Tensor, axis: int) -> Tensor:
    """Return the logarithm of the sum of exponentials over entries that are there; 0 where none is."""
    highest = torch.where(there, values, -torch.inf).amax(axis, keepdim=True)
    some = there.any(axis, keepdim=True)
    highest = torch.where(some, highest, 0.0)
    powers = torch.where(there, torch.exp(torch.where(there, values - highest, 0.0)), 0.0)
    total = torch.where(some, powers.sum(axis, keepdim=True), 1.0)
    return (torch.log(total) + highest).squeeze(axis)


def _refused(scores: Tensor, wrong: Tensor, mask: Tensor) -> Tensor:
    """Return NaN for all objects of a set that has something wrong among its objects, (n, m)."""
    return torch.where((wrong & mask).any(1, keepdim=True), torch.nan, scores)


class _OfAlternatives(_Logit):
    """A logit that may be of alternatives without features: objects have one, their id, from 1."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.alternatives = model.alternatives
        if self.alternatives is not None:
            self.ids = (0,)

    def indicators(self, objects: Tensor) -> tuple[Tensor, Tensor]:
        """Return an indicator of each alternative, (n, m, A), and which objects are none of them, (n, m)."""
        found = objects[..., :1] == torch.arange(1, self.alternatives + 1, dtype=torch.float64)
        return found.double(), ~found.any(-1)

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw ids, none twice in a set where there are enough."""
        if self.alternatives is None:
            return super().draw(n, m, rng)
        again = -(-m // self.alternatives)
        rows = [
            np.concatenate([rng.permutation(self.alternatives) + 1.0 for _ in range(again)])[:m]
            for _ in range(n)
        ]
        return np.stack(rows)[..., None], rng.normal(size=(n, self.n_situation))


class LogitScores(_OfAlternatives):
    """MultinomialLogit and LinearLogit: a linear utility."""

    theta: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        width = model.n_columns if self.alternatives is None else self.alternatives - 1
        self.register_buffer("theta", doubles(model.theta_[:width]))  # without the effects of positions

    def typical(self) -> Floats:
        """Return one over the coefficients."""
        return _sizes(self.theta.numpy()[: len(self.kept)])

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        if self.alternatives is None:
            scores: Tensor = self.seen(objects, mask) @ self.theta
            return scores
        found, unknown = self.indicators(objects)
        return _refused(found[..., 1:] @ self.theta, unknown, mask)


class ContextualScores(_OfAlternatives):
    """ContextualLogit: a linear utility, and effects of the other objects."""

    own: Tensor
    pull: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.largest = self.alternatives  # none comes twice
        theta = model.theta_
        d = model.n_columns if self.alternatives is None else self.alternatives
        own = theta[:d] if self.alternatives is None else np.zeros(d)
        pull = np.zeros((d, d))  # of (other, own)
        if model.rank is not None:
            left, right = theta[-2 * d * model.rank :].reshape(2, d, -1)
            pull = left @ right.T
        elif self.alternatives is None:
            pull = theta[d:].reshape(d, d)
        else:
            pull.T[~np.eye(d, dtype=bool)] = theta
        self.register_buffer("own", doubles(own))
        self.register_buffer("pull", doubles(pull))

    def typical(self) -> Floats:
        """Return one over the coefficients."""
        return np.minimum(_sizes(self.own), _sizes(self.pull.diag()) ** 0.5)[: len(self.kept)]

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        wrong = torch.zeros_like(mask)
        if self.alternatives is None:
            x = at_set(self.seen(objects, mask), mask)
        else:
            found, wrong = self.indicators(objects)
            x = at_set(found, mask)
            twice = (x.sum(1) > 1).any(-1, keepdim=True)  # (n, 1)
            wrong = wrong | twice
        others = x.sum(1, keepdim=True) - x
        return _refused(x @ self.own + ((others @ self.pull) * x).sum(-1), wrong, mask)


class LinearContextScores(_Logit):
    """LinearContextLogit: coefficients that depend on the mean of the set."""

    own: Tensor
    pull: Tensor
    centre: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        d = model.n_columns
        pull = np.zeros((d, d))
        pull[model.varies_] = model.theta_[d:].reshape(-1, d)
        self.register_buffer("own", doubles(model.theta_[:d]))
        self.register_buffer("pull", doubles(pull))
        self.register_buffer("centre", doubles(model.centre_))

    def typical(self) -> Floats:
        """Return one over the coefficients."""
        return np.minimum(_sizes(self.own), _sizes(self.pull.diag()) ** 0.5)[: len(self.kept)]

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features around the middle of those that were learnt from."""
        objects, situation = super().draw(n, m, rng)
        objects[..., self.kept] += self.centre.numpy()[: len(self.kept)]
        return objects, situation

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        seen = self.seen(objects, mask)
        mean = mean_of_set(seen - self.centre, mask)  # (n, 1, d)
        return (_centred(seen, mask) * (self.own + mean @ self.pull)).sum(-1)


class RegretScores(_Logit):
    """RandomRegret: minus the regret against each of the other objects, column by column."""

    coef: Tensor
    mu: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.linear = model.linear_.tolist()
        self.register_buffer("mu", doubles(model.scale_))
        self.register_buffer("coef", doubles(model.theta_[: model.n_columns]))

    def typical(self) -> Floats:
        """Return one over the coefficients."""
        return _sizes(self.coef)[: len(self.kept)]

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        x = _centred(self.seen(objects, mask), mask)
        places = torch.arange(x.shape[1])
        others = mask.unsqueeze(1) & (places.unsqueeze(1) != places)  # (n, i, j)
        scores = torch.zeros_like(x[..., 0])
        for place, linear in enumerate(self.linear):
            own = x[..., place]
            if linear:
                scores = scores + own * self.coef[place]
                continue
            z = (own.unsqueeze(1) - own.unsqueeze(2)) * (self.coef[place] / self.mu)  # (n, i, j): j less i
            felt = z.clamp(min=0.0) + torch.log1p(torch.exp(-z.abs()))
            scores = scores - self.mu * torch.where(others, felt, 0.0).sum(2)
        return scores


class MixtureScores(_Logit):
    """LatentClassLogit and MixedLogit: the logarithm of the mean probability over classes, or over draws."""

    tastes: Tensor
    membership: Tensor
    centre: Tensor
    columns: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        columns, centre = np.zeros(0, dtype=np.int64), np.zeros(0)
        if isinstance(model, LatentClassLogit):
            tastes, own = model.class_coefficients_, model.membership_coefficients_
            columns, centre = model.situation_columns_, model.situation_centre_
        else:
            tastes = model.drawn_coefficients()
            own = np.zeros((len(tastes) - 1, 1))  # all draws alike
        self.register_buffer("tastes", doubles(tastes))  # (classes, d)
        self.register_buffer("membership", doubles(own))  # (classes - 1, 1 + q)
        self.register_buffer("centre", doubles(centre))
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64))
        self.varies = len(columns) > 0

    def typical(self) -> Floats:
        """Return one over the mean sizes of coefficients."""
        return _sizes(self.tastes.abs().mean(0))[: len(self.kept)]

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        utilities = _centred(self.seen(objects, mask), mask) @ self.tastes.T  # (n, m, classes)
        log_p = _log_softmax(utilities, mask.unsqueeze(-1), 1)
        if self.varies and situation is not None:
            about = situation.index_select(-1, self.columns) - self.centre
            felt = self.membership[:, 0] + about @ self.membership[:, 1:].T  # (n, classes - 1)
        else:
            felt = self.membership[:, 0].unsqueeze(0)
        prior = torch.cat([torch.zeros_like(felt[:, :1]), felt], dim=-1).log_softmax(-1)
        return (log_p + prior.unsqueeze(1)).logsumexp(-1)

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features, and situations around the middle of those that were learnt from."""
        objects, situation = super().draw(n, m, rng)
        situation[..., self.columns.numpy()] += self.centre.numpy()
        return objects, situation


class NestedScores(_Logit):
    """NestedLogit and CrossNestedLogit: alternatives in nests."""

    alternatives: Tensor
    coef: Tensor
    intercepts: Tensor
    shares: Tensor
    member: Tensor
    scale: Tensor

    def __init__(self, model: NestedLogit) -> None:
        super().__init__(model)
        parts = model.structure()
        self.id_columns, self.text = list(parts.id_columns), parts.text
        self.ids = tuple(self.kept[place] for place in self.id_columns)
        self.register_buffer("alternatives", doubles(model.alternatives_))
        self.register_buffer("coef", doubles(parts.coefficients))
        self.register_buffer("intercepts", doubles(parts.intercepts))
        self.register_buffer("shares", doubles(np.where(parts.member, parts.log_shares, 0.0)))
        self.register_buffer("member", doubles(parts.member))
        self.register_buffer("scale", doubles(parts.dissimilarities))

    def typical(self) -> Floats:
        """Return one over the coefficients."""
        found = np.ones(len(self.kept))
        numbers = [place for place in range(len(self.kept)) if place not in set(self.id_columns)]
        found[numbers] = _sizes(self.coef)[: len(numbers)]
        return found

    def draw(self, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features, and ids of alternatives."""
        objects, situation = super().draw(n, m, rng)
        drawn = rng.integers(0, len(self.alternatives), size=(n, m))
        if self.text:
            for i, place in enumerate(self.ids):
                objects[..., place] = self.alternatives.numpy()[drawn] == i + 1
        else:
            objects[..., self.ids[0]] = self.alternatives.numpy()[drawn]
        return objects, situation

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None) -> Tensor:
        """Score objects."""
        seen = self.seen(objects, mask)
        given = seen.index_select(-1, torch.tensor(self.id_columns, dtype=torch.int64))
        wrong = (given.sum(-1) != 1) if self.text else torch.zeros_like(mask)
        numbers = torch.arange(1, given.shape[-1] + 1, dtype=torch.float64)
        ids = given @ numbers if self.text else given.squeeze(-1)
        code = (ids.unsqueeze(-1) == self.alternatives).double()  # (n, m, alternatives)
        wrong = wrong | (code.sum(-1) == 0)
        features = without(_centred(seen, mask), self.id_columns)
        u = features @ self.coef + code @ self.intercepts
        there = (code @ self.member > 0.5) & mask.unsqueeze(-1)  # (n, m, nests)
        scaled = (u.unsqueeze(-1) + code @ self.shares) / self.scale
        inclusive = _log_sum(scaled, there, 1)  # (n, nests)
        between = _log_softmax(self.scale * inclusive, there.any(1), -1)
        log_p = scaled - inclusive.unsqueeze(1) + between.unsqueeze(1)
        return _refused(_log_sum(log_p, there, -1), wrong, mask)
