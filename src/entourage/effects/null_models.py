"""The null models of :func:`entourage.effects.context_test`, without context: a logit and a mixed logit."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import qmc

from entourage.data.sets import Sets

__all__ = ["Panel", "logit_test"]

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]

RIDGE = 1e-4  # small relative to the information, about the number of sets; keeps separable choices finite
NODES = 100  # draws of tastes a person
_FEWEST_PEOPLE = 5  # for an estimate of how much their scores vary
_CHUNK = 4_000_000  # numbers in a temporary array, so that memory stays bounded
_ITERATIONS = 100
_SHARED = 12  # of them at most with the curvature of the start


# --- a logit null ---------------------------------------------------------------------------------


def logit_test(
    plain: Floats, context: Floats, sets: Sets, chosen: Index, draws: int, rng: np.random.Generator
) -> tuple[float, float, list[float]]:
    """Return the log-likelihood of the null, the statistic of the choices and those of simulated ones."""
    both = np.concatenate([plain, context], axis=1)
    p = plain.shape[1]

    def statistic(flags: Floats, probabilities: Floats) -> float:
        score, information = (flags - probabilities) @ both, _curvature(both, sets, probabilities)
        slope = np.linalg.solve(information[:p, :p], information[:p, p:]).T
        left = score[p:] - slope @ score[:p]
        return float(left @ np.linalg.solve(information[p:, p:] - slope @ information[:p, p:], left))

    flags = np.zeros((1, len(plain)))
    flags[0, chosen] = 1.0
    value, weights, probabilities = _fit(plain, sets, flags)
    null: list[float] = []
    for count in _chunks(draws, len(plain)):
        noisy = plain @ weights[0] + rng.gumbel(size=(count, len(plain)))
        best = np.maximum.reduceat(noisy, sets.offsets[:-1], axis=1)
        simulated = (noisy == np.repeat(best, sets.sizes, axis=1)).astype(np.float64)
        null += list(map(statistic, simulated, _fit(plain, sets, simulated, weights)[2]))
    return float(value[0]), statistic(flags[0], probabilities[0]), null


def _fit(
    features: Floats, sets: Sets, chosen: Floats, start: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Fit a logit to each row of choices (r, N) by Newton's method: log-likelihoods, weights and probabilities.

    Rows that begin at a ``start`` (1, p) share the curvature there for some steps: that of rows simulated from it is
    nearly the same.
    """
    starts, sizes = sets.offsets[:-1], sets.sizes
    observed = chosen @ features  # (r, p): the features of what was chosen, summed
    r, p = observed.shape
    weights = np.zeros((r, p)) if start is None else np.repeat(start, r, axis=0)

    def evaluate(at: Floats, rows: NDArray[Any]) -> tuple[Floats, Floats]:
        utilities = at @ features.T  # (r, N)
        highest = np.maximum.reduceat(utilities, starts, axis=1)
        powers = np.exp(utilities - np.repeat(highest, sizes, axis=1))
        totals = np.add.reduceat(powers, starts, axis=1)
        value = (at * observed[rows]).sum(1) - (highest + np.log(totals)).sum(1)
        value -= 0.5 * RIDGE * np.square(at).sum(1)
        return value, powers / np.repeat(totals, sizes, axis=1)

    values, probabilities = evaluate(weights, np.arange(r))
    shared = None if start is None else np.linalg.inv(_curvature(features, sets, probabilities[0]))
    live = np.arange(r)
    for iteration in range(_ITERATIONS):
        gradient = observed[live] - probabilities[live] @ features - RIDGE * weights[live]
        if shared is not None and iteration < _SHARED:
            step = gradient @ shared
        else:
            each = zip(live, gradient, strict=True)
            step = np.stack(
                [np.linalg.solve(_curvature(features, sets, probabilities[i]), slope) for i, slope in each]
            )
        gain = (gradient * step).sum(1)
        live, step = live[gain > 1e-7], step[gain > 1e-7]
        if len(live) == 0:
            break
        trying = np.arange(len(live))
        for halving in range(30):
            rows = live[trying]
            moved = weights[rows] + 0.5**halving * step[trying]
            value, probability = evaluate(moved, rows)
            good = value > values[rows] - 1e-12
            values[rows[good]], probabilities[rows[good]] = value[good], probability[good]
            weights[rows[good]] = moved[good]
            trying = trying[~good]
            if len(trying) == 0:
                break
    return values, weights, probabilities


def _curvature(features: Floats, sets: Sets, probabilities: Floats) -> Floats:
    weighted = probabilities[:, None] * features
    means = np.add.reduceat(weighted, sets.offsets[:-1])  # (n, p)
    return np.asarray(weighted.T @ features - means.T @ means + RIDGE * np.eye(features.shape[1]))


# --- a mixed logit null ---------------------------------------------------------------------------


class Panel:
    """A mixed logit of the choices of g people, whose tastes for k columns are normal; a person's sets are adjacent."""

    def __init__(self, plain: Floats, context: Floats, tastes: Floats, sets: Sets, people: Index) -> None:
        self.plain, self.context, self.tastes, self.sets = plain, context, tastes, sets
        self.starts, self.sizes = sets.offsets[:-1], sets.sizes
        self.heads = np.flatnonzero(np.append(True, np.diff(people) > 0))  # the first set of each person
        self.ends = np.append(self.starts[self.heads], len(plain))  # their first objects, and the end
        self.person = np.repeat(people, sets.sizes)  # (N,)
        k, g = tastes.shape[1], len(self.heads)
        few = k * (k + 1) / 2 <= len(sets) / 15
        self.root = (
            np.tril_indices(k) if few else (np.arange(k), np.arange(k))
        )  # of the covariance, L in L L'
        nodes = int(np.clip(20_000_000 // len(plain), 20, NODES))  # fewer where memory is short
        halton = qmc.Halton(k, scramble=True, seed=np.random.default_rng(0))
        self.normals: Floats = ndtri(halton.random(g * nodes)).reshape(g, nodes, k)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the mean utilities (N,) and L (k, k)."""
        p, k = self.plain.shape[1], self.tastes.shape[1]
        root = np.zeros((k, k))
        root[self.root] = theta[p:]
        return self.plain @ theta[:p], root

    def log_p(self, theta: Floats) -> Floats:
        """Return the log-probability of each object under each draw of its person's tastes, (N, r)."""
        mean, root = self.split(theta)
        drawn = self.normals @ root.T  # (g, r, k)
        u = np.repeat(mean[:, None], drawn.shape[1], axis=1)
        for j, column in enumerate(self.tastes.T):
            u += column[:, None] * drawn[self.person, :, j]
        u -= np.repeat(np.maximum.reduceat(u, self.starts), self.sizes, axis=0)
        u -= np.repeat(np.log(np.add.reduceat(np.exp(u), self.starts)), self.sizes, axis=0)
        return u

    def posterior(self, log_p: Floats, chosen: Index) -> tuple[Floats, Floats]:
        """Return the log-likelihood of each person (g,), and the posterior of the draws of their tastes (g, r)."""
        own = np.add.reduceat(log_p[chosen], self.heads)
        total = np.logaddexp.reduce(own, axis=1)
        return total - np.log(own.shape[1]), np.exp(own - total[:, None])

    def objective(self, theta: Floats, chosen: Index) -> tuple[float, Floats]:
        """Return minus the simulated log-likelihood, less the log of the diagonal of L, and its gradient."""
        p = self.plain.shape[1]
        log_p = self.log_p(theta)
        total, weights_of_draws = self.posterior(log_p, chosen)
        probability = np.exp(log_p)
        mixed = np.einsum("nr,nr->n", probability, weights_of_draws[self.person])
        felt = np.empty((*weights_of_draws.shape, self.tastes.shape[1]))
        for j, column in enumerate(self.tastes.T):
            expected = np.add.reduceat(probability * column[:, None], self.ends[:-1])
            felt[..., j] = weights_of_draws * (
                np.add.reduceat(column[chosen], self.heads)[:, None] - expected
            )
        slopes = np.einsum("gra,grb->ab", felt, self.normals)[self.root]
        diagonal = self.root[0] == self.root[1]
        sizes = theta[p:][diagonal]
        sizes = np.where(np.abs(sizes) < 1e-6, 1e-6, sizes)
        slopes[diagonal] += 1 / sizes
        value = total.sum() + np.log(np.abs(sizes)).sum() - 0.5 * RIDGE * np.square(theta).sum()
        gradient = np.append(self.plain[chosen].sum(0) - mixed @ self.plain, slopes) - RIDGE * theta
        return -float(value), -gradient

    def fit(self, chosen: Index) -> Floats:
        """Return the coefficients of the own utility and L; the start is a logit."""
        flags = np.zeros((1, len(self.plain)))
        flags[0, chosen] = 1.0
        _, weights, probabilities = _fit(self.plain, self.sets, flags)
        p = self.plain.shape[1]
        start = np.append(weights[0], np.where(self.root[0] == self.root[1], 0.5, 0.0))
        scale = np.diag(np.full(len(start), 2 / np.sqrt(len(self.sizes))))
        root = np.linalg.cholesky(_curvature(self.plain, self.sets, probabilities[0]))
        scale[:p, :p] = np.linalg.inv(root).T  # steps of about a standard error

        def scaled(step: Floats) -> tuple[float, Floats]:
            value, gradient = self.objective(start + scale @ step, chosen)
            return value, scale.T @ gradient

        options = {"maxiter": 60, "gtol": 0.05, "ftol": 1e-9}
        found = minimize(scaled, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
        return np.asarray(start + scale @ found.x)

    def test(self, chosen: Index, draws: int, rng: np.random.Generator) -> tuple[float, float, list[float]]:
        """Return the log-likelihood of the null, the statistic of the choices and those of simulated ones."""
        theta = self.fit(chosen)
        log_p = self.log_p(theta)
        probability = np.exp(log_p)
        a, b = np.tril_indices(self.tastes.shape[1])
        columns = np.concatenate([self.plain, self.context, self.tastes], axis=1)
        p, q, g = self.plain.shape[1], self.context.shape[1], len(self.heads)

        def expectation(values: Floats) -> Floats:
            """Sum over each person's sets the expectations of the columns, (g, r, columns)."""
            each = zip(self.ends[:-1], self.ends[1:], strict=True)
            return np.stack([probability[begin:end].T @ values[begin:end] for begin, end in each])

        expected = expectation(columns)
        means = [
            np.add.reduceat(probability * column[:, None], self.starts) for column in self.tastes.T
        ]  # (n, r) each
        squares = [np.add.reduceat(means[i] * means[j], self.heads) for i, j in zip(a, b, strict=True)]
        variance = expectation(self.tastes[:, a] * self.tastes[:, b]) - np.stack(squares, axis=2)

        def sums(choices: Index) -> tuple[Floats, Floats]:
            """Return the sum over people of the scores of own utility, covariance and context, and of their squares."""
            _, weights_of_draws = self.posterior(log_p, choices)
            surprise = np.add.reduceat(columns[choices], self.heads)[:, None] - expected  # (g, r, columns)
            felt = np.matmul(weights_of_draws[:, None], surprise[:, :, : p + q])[:, 0]
            taste = surprise[:, :, p + q :]
            spread = np.matmul(weights_of_draws[:, None], taste[..., a] * taste[..., b] - variance)[:, 0]
            scores = np.concatenate([felt[:, :p], spread, felt[:, p:]], axis=1)
            return scores.sum(0), scores.T @ scores

        mean, root = self.split(theta)
        simulated = []
        for _ in range(draws):
            tastes = rng.normal(size=(g, len(root))) @ root.T
            noisy = mean + (self.tastes * tastes[self.person]).sum(1) + rng.gumbel(size=len(mean))
            best = np.maximum.reduceat(noisy, self.starts)
            simulated.append(sums(np.flatnonzero(noisy == np.repeat(best, self.sizes))))
        information = np.mean([products for _, products in simulated], axis=0)
        nuisance = len(information) - q
        known = information[:nuisance, :nuisance] + RIDGE * np.eye(nuisance)
        slope = information[nuisance:, :nuisance] @ np.linalg.pinv(known, hermitian=True)
        left = np.concatenate([-slope, np.eye(q)], axis=1)  # what of a score is orthogonal to the null's
        metric = left.T @ np.linalg.pinv(left @ information @ left.T, rcond=1e-8, hermitian=True) @ left

        def statistic(total: Floats, products: Floats) -> float:
            value = float(total @ metric @ total)
            varies = ((metric * products).sum() - value / g) * g / (g - 1) / q
            return value / varies if g >= _FEWEST_PEOPLE and varies > 0 else value

        null = [statistic(*one) for one in simulated]
        return float(self.posterior(log_p, chosen)[0].sum()), statistic(*sums(chosen)), null


def _chunks(draws: int, numbers: int) -> Iterator[int]:
    step = max(1, _CHUNK // numbers)
    return (min(step, draws - begin) for begin in range(0, draws, step))
