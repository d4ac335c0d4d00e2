"""Proposition 1, executed, and what each order can express."""

import numpy as np
import pytest

from entourage.experiments import expressivity
from entourage.experiments.expressivity import construct, count_all, count_reachable, queries, rank_all
from entourage.experiments.reproduce import reproduce
from entourage.experiments.rows import Options


def test_every_ranking_function_on_three_objects_is_constructed():
    assert expressivity._try_constructions(3, 100, np.random.default_rng(0)) == (48, 48)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_random_ranking_functions_are_constructed(n):
    rng = np.random.default_rng(n)
    rho = expressivity.random_ranking_function(n, rng)
    assert len(rho) == 2**n - n - 1
    assert rank_all(construct(rho, n), n) == rho


def test_a_preference_reversal_needs_context():
    """A before B by themselves, B before A beside C: no order of fixed utilities does that."""
    rho = {frozenset(q): tuple(q) for q in [(0, 1), (0, 2), (1, 2)]} | {frozenset({0, 1, 2}): (1, 0, 2)}
    weights = expressivity._scores(3, 0)
    assert not expressivity._feasible(weights, rho)
    assert expressivity._feasible(expressivity._scores(3, 1), rho)


def test_counts_on_few_objects_agree_with_asking_about_each():
    rng = np.random.default_rng(0)
    assert count_reachable(2, 0, rng)[0] == count_reachable(2, 1, rng)[0] == 2
    assert count_reachable(3, 0, rng)[0] == 6, "the orders of three objects"
    every = [
        rho
        for rho in expressivity._decode(3, np.arange(8), 3)
        if expressivity._feasible(expressivity._scores(3, 1), rho)
    ]
    assert count_reachable(3, 1, rng)[0] == len(every) * 6 == count_all(3)


def test_samples_are_numbered_as_they_are_decoded():
    rng = np.random.default_rng(5)
    weights = expressivity._scores(4, 2)
    drawn = rng.normal(size=(20, len(expressivity._variables(4, 2))))
    for values, code in zip(drawn, expressivity._codes(4, weights, drawn), strict=True):
        score = {key: float(row @ values) for key, row in weights.items()}
        whole = sorted(range(4), key=lambda i: -score[frozenset(range(4)), i])
        name = {old: new for new, old in enumerate(whole)}
        renamed = {
            frozenset(name[i] for i in q): tuple(name[i] for i in sorted(q, key=lambda i: -score[q, i]))
            for q in queries(4)
        }
        assert renamed == next(expressivity._decode(4, np.array([code]), 10))


def test_expressivity_writes_both_tables(tmp_path):
    text = reproduce("expressivity", tmp_path, Options(tasks=["N = 2", "N = 3"]))
    assert "| N = 3 | 48 | 6 (12.500%) | 48 (100.000%) | 48 (100.000%) |" in text
    assert "| N = 3 | 4 | 48 | 48 |" in text
    assert (tmp_path / "report.html").exists()
