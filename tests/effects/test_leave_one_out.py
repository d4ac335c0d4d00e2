"""Influence, preference reversals, IIA and regularity: worked by hand, and exactly 0 without context."""

import numpy as np
import pytest
from effect_cases import MIXED, PUSHED, Model, alone, push

from entourage import FATE, ContextFree, DiscreteChooser, Ranker
from entourage.data import Sets, make_medoid
from entourage.effects import (
    Estimate,
    effects_report,
    iia_violation,
    influence_matrix,
    regularity_violation,
    reversal_rate,
)
from entourage.errors import DataError, ShapeError
from entourage.tasks import SubsetChoice

RNG = np.random.default_rng(0)


def test_influence_is_the_change_of_utility_less_the_mean_change_of_the_others():
    # Utilities: 1, 2, 9. Without the third 1, 0: it moves the second by 2 and the first by 0, about a mean of 1.
    matrix = influence_matrix(Model(push), PUSHED)
    np.testing.assert_array_equal(matrix, [[[np.nan, 0.0, -1.0], [0.0, np.nan, 1.0], [0.0, 0.0, np.nan]]])


def test_influence_follows_the_objects_and_its_columns_sum_to_zero():
    model = Model(lambda x: np.tanh(x @ x.sum(0)))
    X = RNG.normal(size=(7, 5, 3))
    matrix = influence_matrix(model, X)
    assert matrix.shape == (7, 5, 5)
    assert np.isnan(matrix[:, range(5), range(5)]).all()
    np.testing.assert_allclose(np.nansum(matrix, axis=1), 0, atol=1e-12)
    order = [3, 0, 4, 1, 2]
    shuffled = influence_matrix(model, X[:, order])
    np.testing.assert_allclose(shuffled, matrix[:, order][:, :, order], atol=1e-12)


def test_a_shift_of_every_utility_of_a_set_has_no_influence():
    model = Model(lambda x: x[:, 0] + 100 * len(x))
    assert np.nanmax(np.abs(influence_matrix(model, RNG.normal(size=(4, 4, 1))))) < 1e-10
    assert iia_violation(model, MIXED).value < 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_without_context_has_exactly_no_effect(dtype):
    model = Model(alone, dtype)
    X = RNG.normal(size=(6, 5, 2))
    assert np.nanmax(np.abs(influence_matrix(model, X))) == 0
    for found in (reversal_rate(model, MIXED), iia_violation(model, MIXED)):
        assert found.value == 0
        assert found.interval() == (0, 0)
    found = regularity_violation(model, MIXED)
    assert found.rate.value == found.amount.value == 0


def test_a_fitted_net_without_context_has_exactly_no_effect_and_one_with_context_has_some():
    X, ranks = make_medoid(n_sets=100, random_state=0)
    settings = {"steps": 60, "device": "cpu", "random_state": 0, "batch_size": 64, "learning_rate": 0.01}
    blind = Ranker(ContextFree(width=16), **settings).fit(X, ranks)
    report = effects_report(blind, Sets.of(X * 3, ranks), draws=0)
    for name in ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount"):
        assert getattr(report, name).value == 0
    seeing = DiscreteChooser(FATE(width=16), **settings).fit(X, ranks.argmin(1))
    assert iia_violation(seeing, X).interval()[0] > 0.01
    assert reversal_rate(seeing, X).interval()[0] > 0


def test_the_reversal_rate_counts_the_pairs_whose_preference_reverses():
    # The first two reverse when the 9 is removed; the other pairs never do: one of three.
    found = reversal_rate(Model(push), np.concatenate([PUSHED, PUSHED * [1, 0]]))
    np.testing.assert_allclose(found.values, [1 / 3, 0])
    assert found.value == pytest.approx(1 / 6)


def test_the_violation_of_iia_is_the_mean_change_of_log_odds():
    # The 9 moves the log-odds of the one pair by 2; without the first or the second nothing changes: 2 / 3.
    assert iia_violation(Model(push), PUSHED).values == pytest.approx([2 / 3])


def test_the_violation_of_regularity_is_worked_by_hand():
    # With a third object of 9, the second gains: its utility is 20 above, else 0 as the others'.
    model = Model(lambda x: 20.0 * x[:, 1] * (x[:, 0] == 9).any())
    found = regularity_violation(model, PUSHED)
    gained = 1 / (1 + 2 * np.exp(-20.0)) - 1 / 2  # when the 9 comes; that the first comes lowers everybody
    assert found.rate.values == pytest.approx([1 / 6])
    assert found.amount.values == pytest.approx([gained / 6])


def test_the_outside_option_and_subset_choices_have_their_own_probabilities():
    def raised(x):  # an object alone or in a pair is worth 0, of three each is worth 1
        return np.full(len(x), float(len(x) == 3))

    X = np.zeros((1, 3, 1))
    assert regularity_violation(Model(raised), X).rate.value == 0  # a third is less than a half
    outside = DiscreteChooser(outside=True).task
    more = np.e / (3 * np.e + 1) - 1 / 3  # of three and nothing, beside two and nothing
    found = regularity_violation(Model(raised, task=outside), X)
    assert found.amount.values == pytest.approx([max(more, 0)])
    found = regularity_violation(Model(raised, task=SubsetChoice()), X)
    assert found.amount.values == pytest.approx([1 / (1 + np.exp(-1)) - 1 / 2])


def test_sets_of_several_sizes_each_count_once_and_small_ones_not_at_all():
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    together = reversal_rate(model, MIXED)
    assert np.isnan(together.values[[2, 6]]).all()
    assert together.n == 6
    for i in (0, 1, 3, 4, 5, 7):
        assert reversal_rate(model, MIXED[i]).values[0] == together.values[i]
        assert iia_violation(model, MIXED[i]).values[0] == pytest.approx(
            iia_violation(model, MIXED).values[i]
        )


def test_chunks_change_nothing_and_all_is_scored_at_once_where_it_fits(monkeypatch):
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    X = RNG.normal(size=(9, 6, 2))
    whole = influence_matrix(model, X)
    assert model.calls == 2  # the sets, and all that remain
    rate = reversal_rate(model, MIXED).values
    for chunk in (1, 50, 200):
        monkeypatch.setattr("entourage.estimators.base._CHUNK", chunk)
        np.testing.assert_array_equal(influence_matrix(model, X), whole)
        np.testing.assert_array_equal(reversal_rate(model, MIXED).values, rate)


def test_the_situation_of_a_set_goes_with_what_remains_of_it():
    class Tilted:
        def predict_scores(self, sets):
            about = np.repeat(sets.situation[:, 0], sets.sizes)
            return sets.objects[:, 0] * about * np.repeat(sets.sizes, sets.sizes)

    X = np.array([[[0.0], [1.0], [3.0]]] * 2)
    matrix = influence_matrix(Tilted(), Sets.of(X, None, np.array([[1.0], [-2.0]])))
    np.testing.assert_allclose(matrix[1], -2 * matrix[0])
    assert matrix[0, 0, 1] == -1.5  # three times 0 and 3 less twice 0 and 3, about their mean


def test_intervals_contain_the_truth_about_as_often_as_they_should():
    # Three of ten sets reverse one of three pairs: the true rate is 0.1.
    hits = 0
    for seed in range(60):
        strong = np.random.default_rng(seed).random(80) < 0.3
        X = PUSHED * np.where(strong[:, None, None], [1.0, 1.0], [1.0, 0.0])
        low, high = reversal_rate(Model(push), X).interval(resamples=400)
        hits += low <= 0.1 <= high
    assert hits >= 52


def test_groups_are_resampled_together():
    values = np.repeat(RNG.normal(size=10), 20)
    apart, together = Estimate(values), Estimate(values, np.repeat(np.arange(10), 20))
    assert np.ptp(together.interval()) > 2 * np.ptp(apart.interval())
    found = reversal_rate(Model(push), np.repeat(PUSHED, 6, axis=0), groups=list("aabbcc"))
    assert found.groups.tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: influence_matrix(Model(alone), MIXED), DataError, "at least three objects"),
        (lambda: influence_matrix(Model(alone), MIXED[[0, 1]]), ShapeError, "sets of one size"),
        (lambda: reversal_rate(Model(alone), np.zeros((4, 2, 1))), DataError, "at least three objects"),
        (lambda: iia_violation(Model(lambda x: x), PUSHED), ShapeError, "one utility for each of the 3"),
        (lambda: iia_violation(Model(lambda x: x[:, 0] / 0), PUSHED + 1), DataError, "finite"),
        (lambda: reversal_rate(Model(alone), PUSHED, groups=[1, 2]), DataError, "one label a set"),
        (lambda: reversal_rate(Model(alone), PUSHED).interval(), DataError, "at least 2 values"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()
