r"""Proposition 1, executable: utilities for any ranking function, and what each order can express.

A ranking function on N objects ranks every subset of them. Its score under utilities up to order K is

.. math:: U(i, C) = \sum_{k=0}^{K} \frac{1}{\binom{|C|}{k}} \sum_{C' \subseteq C, |C'| = k} U_k(i, C')

for the context C of the object i.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb, factorial, prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.errors import check_number
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Job, Options, Row, keep_rows, provenance
from entourage.report.page import Cell, Section, Table, write_report, write_text

__all__ = [
    "RankingFunction",
    "aggregate",
    "construct",
    "count_all",
    "count_reachable",
    "rank_all",
    "run_expressivity",
]

NAME = "expressivity"
SAMPLES = 200_000  # utilities drawn at a time in the search
WORTHWHILE = 500  # new ranking functions in a draw, below which the solver is quicker

RankingFunction: TypeAlias = dict[frozenset[int], tuple[int, ...]]  # each query of two or more, best first
Utilities: TypeAlias = dict[tuple[int, frozenset[int]], Fraction]  # (object, sub-context) -> utility


# --- the construction -------------------------------------------------------------------------------


def queries(n: int) -> list[frozenset[int]]:
    """All subsets of two or more of n objects, small ones first."""
    return [frozenset(c) for size in range(2, n + 1) for c in combinations(range(n), size)]


def random_ranking_function(n: int, rng: np.random.Generator) -> RankingFunction:
    """Rank every query at random."""
    return {query: tuple(int(i) for i in rng.permutation(sorted(query))) for query in queries(n)}


def aggregate(utilities: Utilities, i: int, context: frozenset[int], order: int) -> Fraction:
    """Return U(i, C): the utilities of all sub-contexts, averaged for each size up to ``order``."""
    total = Fraction(0)
    for k in range(min(order, len(context)) + 1):
        parts = [utilities.get((i, frozenset(c)), Fraction(0)) for c in combinations(sorted(context), k)]
        total += sum(parts, Fraction(0)) / len(parts)
    return total


def construct(rho: RankingFunction, n: int) -> Utilities:
    """Find U_1 ... U_{N-1} whose aggregation ranks every query as ``rho`` does: the proof of Proposition 1.

    From small queries to large ones: what the lower orders say of a query differs by at most delta between
    its objects, so that steps of delta + 1 in the new order decide.

    Examples
    --------
    >>> rho = {frozenset({0, 1}): (1, 0)}
    >>> rank_all(construct(rho, 2), 2) == rho
    True
    """
    check_number("n", n, least=2, whole=True)
    utilities: Utilities = {}
    for query in queries(n):
        k = len(query) - 1
        lower = [aggregate(utilities, i, query - {i}, k - 1) for i in query]
        step = max(lower) - min(lower) + 1
        for position, i in enumerate(rho[query], start=1):
            utilities[i, query - {i}] = (len(query) - position) * step
    return utilities


def rank_all(utilities: Utilities, n: int) -> RankingFunction:
    """Rank every query by its aggregated utilities, in exact arithmetic."""
    return {
        query: tuple(sorted(query, key=lambda i: (-aggregate(utilities, i, query - {i}, n - 1), i)))
        for query in queries(n)
    }


# --- the counts -------------------------------------------------------------------------------------


def count_all(n: int) -> int:
    """Count all ranking functions on n objects.

    Examples
    --------
    >>> count_all(3), count_all(4)  # 2^3 3!, and 2^6 6^4 4!
    (48, 1990656)
    """
    return prod(factorial(size) ** comb(n, size) for size in range(2, n + 1))


def count_reachable(n: int, order: int, rng: np.random.Generator) -> tuple[int, int]:
    """Count the ranking functions that utilities up to ``order`` can express; also how many a solver decided.

    Renaming the objects turns a reachable function into another one, and no two of the n! are the same:
    their rankings of all objects differ. So only those that rank all objects as 0, 1, ..., n - 1 are counted.
    Random utilities find most of them. The rest are decided by linear programs, query by query: where no
    utilities rank the first few queries so, none of the functions that begin like that can be reached.
    """
    weights = _scores(n, order)
    total = count_all(n) // factorial(n)
    found = np.zeros(total, dtype=bool)
    new = total
    while new >= WORTHWHILE and not found.all():
        before = int(found.sum())
        found[_codes(n, weights, _draw(n, order, rng))] = True
        new = int(found.sum()) - before
    feasible, solved, value = (
        np.zeros(1, dtype=np.int64),
        0,
        1,
    )  # the beginnings of ranking functions, as numbers
    for at, query in enumerate(queries(n)[:-1], start=1):
        longer = (feasible[:, None] + value * np.arange(factorial(len(query)))).ravel()
        value *= factorial(len(query))
        known = np.isin(longer, np.unique(np.flatnonzero(found) % value))
        solved += int((~known).sum())
        known[~known] = [_feasible(weights, rho) for rho in _decode(n, longer[~known], at)]
        feasible = longer[known]
    return len(feasible) * factorial(n), solved


def _variables(n: int, order: int) -> list[tuple[int, frozenset[int]]]:
    """List what can be chosen, U_k(i, C'); U_0 only where there is nothing else, since U_1 absorbs it."""
    orders = [0] if order == 0 else range(1, order + 1)
    return [
        (i, frozenset(c))
        for k in orders
        for i in range(n)
        for c in combinations(sorted(set(range(n)) - {i}), k)
    ]


def _scores(n: int, order: int) -> dict[tuple[frozenset[int], int], NDArray[np.float64]]:
    """For each object of each query, the row of weights with which the variables make up its score."""
    place = {variable: at for at, variable in enumerate(_variables(n, order))}
    rows = {}
    for query in queries(n):
        for i in query:
            row = np.zeros(len(place))
            context = sorted(query - {i})
            for k in [0] if order == 0 else range(1, min(order, len(context)) + 1):
                for c in combinations(context, k):
                    row[place[i, frozenset(c)]] += 1 / comb(len(context), k)
            rows[query, i] = row
    return rows


def _draw(n: int, order: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw utilities at random, of differing spreads, (samples, variables)."""
    size = len(_variables(n, order))
    spread = np.exp(rng.normal(0, 1, (SAMPLES, size)))
    return np.asarray(rng.normal(0, 1, (SAMPLES, size)) * spread)


def _codes(
    n: int, weights: dict[tuple[frozenset[int], int], NDArray[np.float64]], drawn: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the number of each sample's ranking function, objects renamed by their rank among all."""
    whole = frozenset(range(n))
    scores = {key: drawn @ row for key, row in weights.items()}
    by_rank = np.argsort(-np.stack([scores[whole, i] for i in range(n)], axis=1), axis=1)  # (samples, n)
    name = np.argsort(by_rank, axis=1)  # the new name of each object
    digits = {}
    for query in queries(n)[:-1]:
        members = sorted(query)
        order = np.argsort(-np.stack([scores[query, i] for i in members], axis=1), axis=1)
        ranked = np.stack([name[:, i] for i in members], axis=1)  # new names
        ranked = np.take_along_axis(ranked, order, axis=1)  # best first
        digits[query] = ranked
    # a renamed query is found by the set of its new names
    code = np.zeros(len(drawn), dtype=np.int64)
    for ranked in digits.values():
        names = np.sort(ranked, axis=1)
        place = np.argsort(np.argsort(ranked, axis=1), axis=1)  # within the query
        which = _permutation_number(place)
        code += which * _stride(n, names)
    return code


def _stride_table(n: int) -> dict[tuple[int, ...], int]:
    """Return the value of each query's digit in the number of a ranking function."""
    strides, value = {}, 1
    for query in queries(n)[:-1]:
        strides[tuple(sorted(query))] = value
        value *= factorial(len(query))
    return strides


def _stride(n: int, names: NDArray[np.int64]) -> NDArray[np.int64]:
    table = _stride_table(n)
    lookup = np.zeros(2**n, dtype=np.int64)
    for members, value in table.items():
        lookup[sum(2**i for i in members)] = value
    return np.asarray(lookup[(2**names).sum(1)])


def _permutation_number(ranked: NDArray[np.int64]) -> NDArray[np.int64]:
    size = ranked.shape[1]
    lookup = {p: at for at, p in enumerate(permutations(range(size)))}
    flat = (ranked * size ** np.arange(size)).sum(1)
    table = np.zeros(size**size, dtype=np.int64)
    for p, at in lookup.items():
        table[sum(v * size**k for k, v in enumerate(p))] = at
    return np.asarray(table[flat])


def _decode(n: int, codes: NDArray[np.int64], most: int) -> Iterator[RankingFunction]:
    """Turn numbers back into ranking functions, of the whole and of the first ``most`` queries."""
    strides = list(_stride_table(n).items())[:most]
    for code in codes:
        rho: RankingFunction = {frozenset(range(n)): tuple(range(n))}
        for members, value in strides:
            which = int(code) // value % factorial(len(members))
            order = list(permutations(range(len(members))))[which]
            rho[frozenset(members)] = tuple(members[i] for i in order)
        yield rho


def _feasible(weights: dict[tuple[frozenset[int], int], NDArray[np.float64]], rho: RankingFunction) -> bool:
    """Whether some utilities rank as ``rho`` does: each object's score above the next one's by at least 1."""
    from scipy.optimize import linprog

    rows = [
        weights[query, worse] - weights[query, better]
        for query, ranked in rho.items()
        for better, worse in pairwise(ranked)
    ]
    size = len(rows[0])
    answer = linprog(
        np.zeros(size), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=(None, None), method="highs"
    )
    if answer.status not in (0, 2):
        raise RuntimeError(f"The linear program ended with: {answer.message}")
    return bool(answer.status == 0)


# --- the experiment ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpressivityJob(Job):
    """A count or a construction on so many objects."""

    n: int
    order: int | None  # None: the construction
    seed: int
    constructed: int

    @property
    def identity(self) -> Row:
        """What a row must have to be this job's, beside its key."""
        return {"seed": self.seed} | ({"constructed": self.constructed} if self.order is None else {})


def run_expressivity(folder: Path, options: Options) -> str:
    """Run what is missing, write rows, table and report into ``folder``; return the Markdown."""
    claims = read_claims(NAME)
    limits = claims["modes"][options.mode]
    tasks = [f"N = {n}" for n in sorted({*limits["objects"], *limits["counted"]})]
    options.check(tasks=tasks, models=["construction", "K = 0", "K = 1", "K = 2"], tunes=False)
    seed, constructed = claims["seed"], limits["constructed"]
    jobs = [
        ExpressivityJob(NAME, f"N = {n}", "construction", 0, n, None, seed, constructed)
        for n in limits["objects"]
    ]
    jobs += [
        ExpressivityJob(NAME, f"N = {n}", f"K = {order}", 0, n, order, seed, constructed)
        for n in limits["counted"]
        for order in range(min(n, 3))
    ]
    jobs = [job for job in jobs if options.wants(task=job.task, model=job.model)]
    rows = keep_rows(folder, jobs, run_jobs, options)
    text = summarise(claims, rows)
    write_text(folder / f"{NAME}.md", text)
    constructions, counts = _tables(rows)
    write_report(
        folder / "report.html",
        claims["title"],
        _LEAD,
        [Section("Counts", _COUNTS, counts), Section("Proposition 1", _CONSTRUCTION, constructions)],
    )
    return text


def run_jobs(jobs: Sequence[ExpressivityJob], device: str) -> list[Row]:
    """Construct, or count."""
    rows = []
    for job in jobs:
        rng = np.random.default_rng([job.seed, job.n, *job.model.encode()])
        start = time.perf_counter()
        if job.order is None:
            tried, reproduced = _try_constructions(job.n, job.constructed, rng)
            found: Row = {"tried": tried, "reproduced": reproduced, "queries": len(queries(job.n))}
        else:
            reachable, solved = count_reachable(job.n, job.order, rng)
            found = {"all": count_all(job.n), "reachable": reachable, "decided_by_solver": solved}
        rows.append(provenance(job, "cpu") | found | {"seconds": round(time.perf_counter() - start, 2)})
    return rows


def _try_constructions(n: int, most: int, rng: np.random.Generator) -> tuple[int, int]:
    """Construct utilities for all ranking functions on n objects, or for ``most`` random ones."""
    if count_all(n) <= most:
        every = [list(permutations(sorted(query))) for query in queries(n)]
        functions = [dict(zip(queries(n), choice, strict=True)) for choice in product(*every)]
    else:
        functions = [random_ranking_function(n, rng) for _ in range(most)]
    return len(functions), sum(rank_all(construct(rho, n), n) == rho for rho in functions)


_LEAD = (
    "A ranking function ranks every subset of N objects. Which of them can a sum of averaged utilities "
    "express, if it looks at sub-contexts of up to K others?"
)
_COUNTS = (
    "How many ranking functions utilities up to order K reach: found by random utilities, the rest decided "
    "by linear programs. K = 0 is a context-free utility, K = 1 is FETA."
)
_CONSTRUCTION = (
    "Utilities up to order N - 1 were built for ranking functions (all of them where there are few, else "
    "random ones) as in the proof, and ranked every query again in exact arithmetic."
)


def _tables(rows: list[Row]) -> tuple[Table, Table]:
    constructions: list[list[Cell]] = [
        [row["task"], f"{row['queries']}", f"{row['tried']:,}", f"{row['reproduced']:,}"]
        for row in rows
        if "tried" in row
    ]
    counts: list[list[Cell]] = []
    for task in dict.fromkeys(row["task"] for row in rows if "reachable" in row):
        mine = {row["model"]: row for row in rows if row["task"] == task and "reachable" in row}
        cells = [
            f"{mine[k]['reachable']:,} ({mine[k]['reachable'] / mine[k]['all']:.3%})" if k in mine else "–"
            for k in ("K = 0", "K = 1", "K = 2")
        ]
        counts.append([task, f"{next(iter(mine.values()))['all']:,}", *cells])
    return (
        Table(["objects", "queries", "ranking functions", "reproduced exactly"], constructions),
        Table(["objects", "ranking functions", "K = 0", "K = 1", "K = 2"], counts),
    )


def summarise(claims: dict[str, Any], rows: list[Row]) -> str:
    """Write both tables as Markdown."""
    constructions, counts = _tables(rows)
    lines = [f"# {claims['title']}", "", _LEAD]
    for text, table in ((_COUNTS, counts), (_CONSTRUCTION, constructions)):
        lines += ["", text, "", "| " + " | ".join(table.header) + " |"]
        lines += ["| --- |" + " ---: |" * (len(table.header) - 1)]
        lines += ["| " + " | ".join(map(str, cells)) + " |" for cells in table.rows]
    return "\n".join([*lines, ""])
