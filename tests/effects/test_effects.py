"""What company does to a model: figures worked by hand, models without context, and a test that keeps its level."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, load
from entourage.cli.program import app
from entourage.data import Sets, make_medoid
from entourage.data.encoder import TableEncoder
from entourage.data.synthetic.context_effects import make_context_effect
from entourage.effects import (
    Estimate,
    context_test,
    effects_report,
    iia_violation,
    influence_matrix,
    regularity_violation,
    reversal_rate,
)
from entourage.effects.decoys import best_decoy, decoy_map, decoys_among, map_features
from entourage.effects.observed import natural_effects
from entourage.effects.plots import (
    draw_context_test,
    draw_decoys,
    draw_effects,
    draw_influence,
    draw_natural_effects,
)
from entourage.effects.triples import attraction, compromise, context_effect, similarity
from entourage.errors import DataError, ParameterError, ShapeError, UserError
from entourage.estimators.tables import ordered_features
from entourage.tasks import SubsetChoice

RNG = np.random.default_rng(0)
MIXED = Sets.from_list([RNG.normal(size=(m, 2)) for m in (3, 5, 2, 4, 5, 3, 1, 6)])


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


def alone(x):
    return x @ np.arange(1.0, x.shape[1] + 1)


def push(x):
    """An object of value 9 raises the first feature's worth for whoever has a second feature of 1."""
    return x[:, 0] + 2.0 * x[:, 1] * (x[:, 0] == 9).any()


PUSHED = np.array(
    [[[1.0, 0.0], [0.0, 1.0], [9.0, 0.0]]]
)  # with the 9, the second is worth 2, more than the first


TESTED = context_test(np.random.default_rng(1).normal(size=(9, 3, 1)), [0, 1, 2] * 3, draws=1)


# --- one object leaves ----------------------------------------------------------------------------


def test_influence_is_what_changes_beside_the_mean_of_those_who_remain():
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


def test_a_shift_of_every_utility_of_a_set_influences_nobody():
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
    effect = context_effect(model, X[:, 0], X[:, 1], X[:, 2])
    assert (effect.shift.value, effect.reversal_rate) == (0, 0)
    assert effect.before == effect.after


def test_a_fitted_net_without_context_has_exactly_no_effect_and_one_with_context_has_some():
    X, ranks = make_medoid(n_sets=150, random_state=0)
    settings = {"steps": 100, "device": "cpu", "random_state": 0, "batch_size": 64}
    blind = Ranker(ContextFree(width=16), **settings).fit(X, ranks)
    report = effects_report(blind, Sets.of(X * 3, ranks), draws=0)
    for name in ("reversal_rate", "iia_violation", "regularity_rate", "regularity_amount"):
        assert getattr(report, name).value == 0
    seeing = DiscreteChooser(FATE(width=16), **settings).fit(X, ranks.argmin(1))
    assert iia_violation(seeing, X).interval()[0] > 0.01
    assert reversal_rate(seeing, X).interval()[0] > 0


def test_the_reversal_rate_counts_the_pairs_that_turn():
    # The pair of the first two turns when the 9 leaves; the two other pairs never do: one of three.
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


def test_the_option_of_nothing_and_choices_of_some_have_their_own_probabilities():
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
    # Three of ten sets turn one of three pairs: the true rate is 0.1.
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


# --- a third object comes -------------------------------------------------------------------------


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


T, C = np.array([[1.0, 2.0], [1.0, 2.5]]), np.array([[2.0, 1.0], [2.5, 1.0]])


def test_each_effect_has_the_size_it_was_made_with():
    found = attraction(Model(near_dominated), T, C, T - 0.1)
    np.testing.assert_allclose(found.shift.values, [2, 2])
    assert found.before == 0.5
    assert found.after == pytest.approx(1 / (1 + np.exp(-2)))
    assert compromise(Model(middle), T, C, T + np.array([-1.0, 1.0])).shift.value == pytest.approx(1)
    assert similarity(Model(shared), T, C, C + 0.05).shift.value == pytest.approx(np.log(2))
    assert similarity(Model(near_dominated), T, C, C - 0.05).shift.value == pytest.approx(-2)


def test_a_decoy_may_be_measured_against_the_other_decoy():
    found = attraction(Model(near_dominated), T, C, T - 0.1, instead=C - 0.1)
    assert found.shift.value == pytest.approx(4)
    assert found.reversal_rate == 1


def test_less_may_be_better():
    found = attraction(Model(lambda x: near_dominated(-x)), -T, -C, -T + 0.1, less_is_better=[0, 1])
    assert found.shift.value == pytest.approx(2)


@pytest.mark.parametrize(
    ("measure", "third"), [(attraction, T + 0.1), (compromise, C), (similarity, T + 0.01)]
)
def test_triples_that_are_no_case_of_the_effect_are_an_error(measure, third):
    with pytest.raises(DataError, match=f"Triple 0 is no case of {measure.__name__}"):
        measure(Model(alone), T, C, third)


def test_objects_are_repeated_where_one_is_given():
    found = context_effect(Model(near_dominated), [1.0, 2.0], [2.0, 1.0], [[0.9, 1.9], [0.0, 0.0]])
    np.testing.assert_allclose(found.shift.values, [2, 0])


def test_the_best_of_candidates_is_named():
    found = best_decoy(Model(near_dominated), T[0], C[0], candidates=[[0.0, 0.0], [1.9, 0.9], [0.9, 1.9]])
    assert (found.candidate, found.shift, found.before, found.after) == (2, 2, 0, 2)


def test_the_search_finds_a_known_best_place_in_the_box_and_at_its_edge():
    def peaked(x):  # A, the first, gains by what is near (0.3, 0.7)
        bonus = np.exp(-40 * np.square(x[2:] - [0.3, 0.7]).sum()) if len(x) > 2 else 0.0
        return x.sum(1) + bonus * (np.arange(len(x)) == 0)

    box = [[0.0, 0.0], [1.0, 1.0]]
    found = best_decoy(Model(peaked), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_allclose(found.features, [0.3, 0.7], atol=2e-3)
    assert found.shift == pytest.approx(1, abs=1e-4)
    again = best_decoy(Model(peaked), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_array_equal(found.features, again.features)

    def edge(x):
        return x.sum(1) + (x[2:].sum() if len(x) > 2 else 0.0) * (np.arange(len(x)) == 0)

    found = best_decoy(Model(edge), [0.0, 1.0], [1.0, 0.0], bounds=box)
    np.testing.assert_array_equal(found.features, [1, 1])


def test_a_map_has_the_shift_of_each_place():
    found = decoy_map(Model(near_dominated), T[0], C[0] - [0, 0.5], [[0, 0], [3, 3]], points=31)
    assert found.shifts.shape == (31, 31)
    assert found.before == 0.5
    assert (found.x[9], found.y[19]) == pytest.approx((0.9, 1.9))  # just below A = (1, 2)
    assert found.shifts[19, 9] == 2
    assert found.shifts[4, 19] == -2  # just below B = (2, 0.5)


# --- among the objects of sets --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "utility", "third", "size", "triples"),
    [
        ("attraction", near_dominated, T - 0.1, 2, 2),
        ("compromise", middle, T + np.array([-1.0, 1.0]), 1, 4),  # either neighbour may come second
        ("similarity", shared, C + np.array([0.05, -0.05]), np.log(2), 4),  # and either twin
    ],
)
def test_effects_are_found_in_the_sets_with_the_size_they_were_made_with(
    effect, utility, third, size, triples
):
    found = natural_effects(Model(utility), np.stack([T, C, third], axis=1))
    assert found.better == {"x0": "more", "x1": "more"}
    assert (found.failed, found.left_out, found.sets[effect]) == (None, [], 2)
    np.testing.assert_allclose(found.effects[effect].shift.values, [size] * triples)
    if effect == "attraction":
        assert found.effects["compromise"] is found.effects["similarity"] is None
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))[effect]["sets"] == 2


def kinds_in_words(a, b, c):
    """The definitions of the three effects, for one triple and in plain loops."""

    def dominates(x, y):
        return all(p >= q for p, q in zip(x, y, strict=True)) and any(
            p > q for p, q in zip(x, y, strict=True)
        )

    def traded(x, y):
        return not dominates(x, y) and not dominates(y, x)

    apart = traded(a, b) and traded(a, c) and traded(b, c)
    sides = [(p - q) * (r - p) for p, q, r in zip(a, b, c, strict=True)]
    return {
        "attraction": dominates(a, c) and not dominates(b, c) and traded(a, b),
        "compromise": apart and min(sides) >= 0 and max(sides) > 0,
        "similarity": apart and 3 * np.linalg.norm(c - b) < np.linalg.norm(c - a),
    }


def test_the_cases_are_those_of_the_definitions():
    X = RNG.normal(size=(40, 5, 2))
    X[:20, :, 0] = X[:20, :, 0].round()  # with ties
    scaled = X / X.reshape(-1, 2).std(0)
    counts = dict.fromkeys(("attraction", "compromise", "similarity"), 0)
    for x in scaled:
        for a, b, c in itertools.permutations(x, 3):
            for name, holds in kinds_in_words(a, b, c).items():
                counts[name] += holds
    found = natural_effects(Model(alone), X * [1, -7], better={"x0": "more", "x1": "less"})
    assert {name: one.shift.n for name, one in found.effects.items()} == counts
    assert min(counts.values()) > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_without_context_has_exactly_no_natural_effect(dtype):
    found = natural_effects(Model(alone, dtype), RNG.normal(size=(60, 5, 2)))
    for one in found.effects.values():
        assert (one.shift.value, one.shift.interval(), one.reversal_rate) == (0, (0, 0), 0)
        assert one.before == one.after


def test_the_model_says_which_direction_is_better_unless_it_is_given():
    model = Model(lambda x: near_dominated(x * [1, -1]))
    X = np.stack([T, C, T - 0.1], axis=1) * [1, -1]
    found = natural_effects(model, X, names=["quality", "price"])
    assert found.better == {"quality": "more", "price": "less"}
    assert found.slopes["quality"] > 0 > found.slopes["price"]
    assert found.effects["attraction"].shift.value == pytest.approx(2)
    other = natural_effects(model, X, names=["quality", "price"], better={"price": "more"})
    assert other.better == {"quality": "more", "price": "more"}
    assert list(other.slopes) == ["quality"]
    assert other.effects["attraction"] is None


def test_what_has_no_order_takes_no_part_and_too_little_is_said():
    X = np.concatenate([np.stack([T, C, T - 0.1], axis=1), RNG.normal(size=(2, 3, 3))], axis=2)
    X[:, :, 3] = 4.0  # constant; the fifth is nothing to the model; the third is a category
    model = Model(lambda x: near_dominated(x[:, :2]) + x[:, 2])
    found = natural_effects(model, X, ordered=[0, 1, 3, 4])
    assert (list(found.better), found.left_out) == (["x0", "x1"], ["x2", "x3", "x4"])
    assert found.effects["attraction"].shift.n == 2
    few = natural_effects(model, X, ordered=[0, 3])
    assert few.failed.endswith("there is one, 'x0'.")
    assert set(few.effects.values()) == {None}
    assert natural_effects(model, X, ordered=[]).failed.endswith("there is none.")


def test_triples_of_one_set_are_resampled_together_and_work_is_bounded():
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    X = [RNG.normal(size=(m, 2)) for m in (70, 3, 2, 80, 3, 90)]
    found = natural_effects(model, X, most_triples=300)
    one = found.effects["attraction"]
    assert (one.shift.n, found.sets["attraction"]) == (300, len(np.unique(one.shift.groups)))
    again = natural_effects(model, X, most_triples=300)
    np.testing.assert_array_equal(one.shift.values, again.effects["attraction"].shift.values)
    assert natural_effects(model, X[:1]).to_json()["attraction"]["interval"] is None
    assert model.calls < 60


def test_situations_come_along():
    class Tilted:  # what is dominated closely helps only in situation 1
        def predict_scores(self, sets):
            about = sets.situation[:, 0]
            return np.concatenate(
                [
                    x.sum(1) + s * (near_dominated(x) - x.sum(1))
                    for x, s in zip(sets.to_list(), about, strict=True)
                ]
            )

    sets = Sets.of(np.stack([T, C, T - 0.1], axis=1), None, np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(natural_effects(Tilted(), sets).effects["attraction"].shift.values, [2, 0])
    assert [one.candidate for one in decoys_among(Tilted(), sets, 0, 1).helps] == [2]
    assert decoys_among(Tilted(), sets, 3, 4).helps == []


def test_objects_that_help_and_hurt_are_found_once_each():
    X = np.array([[[1.0, 2.0], [2.0, 1.0], [0.9, 1.9]], [[1.9, 0.9], [0.9, 1.9], [1.0, 2.0]]])
    found = decoys_among(Model(near_dominated), X, 0, 1)
    assert (found.tried, found.before) == (2, 0)
    assert [(one.candidate, one.shift, one.after) for one in found.helps] == [(2, 2, 2)]
    assert [(one.candidate, one.shift, one.after) for one in found.hurts] == [(3, -2, -2)]
    assert decoys_among(Model(near_dominated), X, 0, 1, shown=0).helps == []
    blind = decoys_among(Model(alone), X, 0, 1)
    assert (blind.helps, blind.hurts) == ([], [])
    many = Sets.of(RNG.normal(size=(30, 4, 2)))
    assert decoys_among(Model(alone), many, 0, 1, most_objects=50).tried <= 50


def test_a_map_is_of_the_features_in_which_two_objects_differ_most():
    x = np.array([[0.0, 0.0, 5.0, 1.0, 0.0], [0.0, 9.0, 6.0, 1.0, 1.0], [4.0, 90.0, 7.0, 1.0, 0.0]])
    sets = Sets.of([x, x + np.array([1, 1, 1, 0, 0])])
    assert map_features(sets, 0, 1, range(5)) == (1, 2)  # the fifth differs more, but has two values
    assert map_features(sets, 0, 2, [0, 1, 4]) == (0, 1)
    assert map_features(sets, 0, 1, [4, 2]) == (2, 4)
    assert map_features(sets, 0, 1, [3, 2]) is None


def choices(seed, n=40, context=0.0, curved=0.0, sizes=(3,), shared_part=0.0):
    rng = np.random.default_rng(seed)
    parts, chosen = [], []
    for i in range(n):
        x = rng.normal(size=(sizes[i % len(sizes)], 2)) + shared_part * rng.normal(size=2)
        utility = x @ [1.0, -0.5] - curved * np.square(x).sum(1) + context * ((x.sum(0) - x) * x).sum(1)
        parts.append(x)
        chosen.append(int((utility + rng.gumbel(size=len(x))).argmax()))
    return parts, np.array(chosen)


# --- everything, drawn and said -------------------------------------------------------------------


def test_the_report_is_json_and_agrees_with_the_parts():
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    X, y = choices(0, 60, context=1.0, sizes=(2, 3, 5))
    sets = Sets.from_list(X, [np.arange(len(x)) != c for x, c in zip(X, y, strict=True)])
    report = effects_report(model, sets, draws=19)
    told = report.to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert report.reversal_rate.value == told["reversal_rate"]["value"] == reversal_rate(model, sets).value
    assert report.iia_violation.interval is report.iia_violation.reference is None  # without refits
    assert (report.sets, report.sets_seen, report.smallest, report.largest) == (60, 40, 3, 5)
    top = report.strongest[0]
    matrix = influence_matrix(model, sets[top.set])[0]
    np.testing.assert_array_equal(report.matrix, matrix)
    assert top.moves == pytest.approx(np.nanmean(np.abs(matrix[:, top.place])))
    assert report.context_test.result.p_value == told["context_test"]["p_value"] <= 0.1
    assert report.natural_effects.to_json() == natural_effects(model, sets).to_json()
    assert effects_report(model, sets, draws=0, most_sets=5).sets_seen == 5
    single = effects_report(model, sets[1], draws=0)
    assert single.reversal_rate.interval is None
    assert single.context_test is None
    assert single.no_intervals == "No refits, so no confidence intervals."


def test_rankings_are_tested_by_who_came_first_and_a_test_that_cannot_be_says_why():
    X, ranks = make_medoid(n_sets=80, random_state=0)
    found = effects_report(Model(alone), Sets.of(X, ranks), draws=9).context_test
    assert found.result.n_sets == 80
    constant = Sets.of(np.ones((5, 3, 2)), np.tile([0, 1, 1], (5, 1)))
    assert "alike" in effects_report(Model(alone), constant, draws=9).context_test.failed


def test_sets_that_say_nothing_to_the_test_are_counted_by_their_reason():
    X, y = choices(0, 60, sizes=(3, 2, 4))
    rows = [np.array(np.arange(len(x)) != c, dtype=float) for x, c in zip(X, y, strict=True)]
    plain = effects_report(Model(alone), Sets.from_list(X, rows), draws=9).context_test
    assert plain.left_out == {}
    more = [np.zeros((1, 2)), np.ones((3, 2)), np.ones((2, 2)), np.ones((3, 2))]
    odd = [np.zeros(1), np.ones(3), np.zeros(2), np.array([0.0, 1.0, 0.0])]
    found = effects_report(Model(alone), Sets.from_list([*X, *more], [*rows, *odd]), draws=9).context_test
    assert found.left_out == {"one_object": 1, "nothing": 1, "several": 2}
    assert found.result == plain.result
    none = effects_report(Model(alone), Sets.from_list(more, odd), draws=9).context_test
    assert none.failed.endswith("of which one was chosen or came first; there is none.")
    assert none.left_out == found.left_out
    assert none.to_json() == {"failed": none.failed, "left_out": none.left_out}


def test_who_came_first_is_who_has_the_best_rank_of_the_set_wherever_ranks_begin():
    X, ranks = make_medoid(n_sets=60, random_state=0)
    plain = effects_report(Model(alone), Sets.of(X, ranks), draws=9).context_test
    later = ranks + 1.0 + np.arange(60)[:, None] % 2  # from 1 or from 2
    found = effects_report(Model(alone), Sets.of(X, later), draws=9).context_test
    assert found == plain
    later[0], later[1, ranks[1] == 1] = np.nan, later[1].min()
    found = effects_report(Model(alone), Sets.of(X, later), draws=9).context_test
    assert (found.result.n_sets, found.left_out) == (58, {"nothing": 1, "several": 1})


def test_pictures_are_drawn(tmp_path):
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    figures = [
        draw_influence(influence_matrix(model, RNG.normal(size=(1, 6, 2)))[0], list("abcdef")),
        draw_influence(np.full((2, 2), np.nan)),
        draw_effects(effects_report(model, MIXED)),
        draw_effects(effects_report(Model(alone), MIXED[:1])),
        draw_natural_effects(natural_effects(model, RNG.normal(size=(20, 5, 2)))),
        draw_natural_effects(natural_effects(model, np.stack([T, C, T - 0.1], 1)[:1])),
        draw_decoys(Model(near_dominated), T[0], C[0], [[0, 0], [3, 3]], points=11),
        draw_decoys(Model(alone), T[0], C[0], [[0, 0], [3, 3]], points=5),
        draw_context_test(context_test(RNG.normal(size=(60, 3, 1)), np.arange(60) % 3, draws=9)),
    ]
    for i, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 1000


# --- what can go wrong ----------------------------------------------------------------------------


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
        (lambda: context_effect(Model(alone), T, C, [1.0]), ShapeError, "same features"),
        (lambda: context_effect(Model(alone), T, C[[0, 0, 0]], T), ShapeError, "as many rows"),
        (lambda: context_effect(Model(alone), T[None], C, T), ShapeError, "A needs axes"),
        (lambda: best_decoy(Model(alone), T[0], C[0]), ParameterError, "either candidates"),
        (lambda: best_decoy(Model(alone), T, C, candidates=T), ShapeError, "one A and one B"),
        (lambda: best_decoy(Model(alone), T[0], C[0], bounds=[0, 1]), ShapeError, "bounds needs"),
        (lambda: best_decoy(Model(alone), T[0], C[0], bounds=[[1, 1], [0, 0]]), ParameterError, "smallest"),
        (
            lambda: decoy_map(Model(alone), T[0], C[0], [[0, 0], [1, 1]], features=(0, 5)),
            ParameterError,
            "two",
        ),
        (lambda: natural_effects(Model(alone), np.zeros((4, 2, 1))), DataError, "at least three objects"),
        (lambda: natural_effects(Model(alone), MIXED, names=["a"]), ShapeError, "one for each of 2"),
        (lambda: natural_effects(Model(alone), MIXED, better={"a": "more"}), ParameterError, "'a' is none"),
        (lambda: natural_effects(Model(alone), MIXED, better={"x0": "most"}), ParameterError, "'more'"),
        (lambda: decoys_among(Model(alone), PUSHED[:, [0, 0, 1]], 0, 1), DataError, "the same features"),
        (lambda: decoys_among(Model(alone), PUSHED[:, [0, 1, 1]], 0, 1), DataError, "no third object"),
        (lambda: decoys_among(Model(alone), PUSHED, -1, 1), ParameterError, "target"),
        (
            lambda: best_decoy(Model(alone), T[0], C[0], bounds=[(0, 1), (0, 1)]),
            ParameterError,
            "a single point",
        ),
        (lambda: decoys_among(Model(alone), PUSHED, 0, 10**6), ParameterError, "competitor"),
        (lambda: decoys_among(Model(alone), PUSHED, 0, 1, shown=-1), ParameterError, "shown"),
        (lambda: effects_report(Model(alone), PUSHED, most_sets=0), ParameterError, "most_sets"),
        (lambda: draw_influence(PUSHED), ShapeError, "One influence matrix"),
        (lambda: draw_influence(np.eye(2), ["a"]), ShapeError, "one for each of 2"),
        (lambda: draw_effects({}), DataError, "an EffectsReport; got dict"),
        (
            lambda: draw_natural_effects(natural_effects(Model(alone), PUSHED, ordered=[])),
            DataError,
            "nothing to draw",
        ),
        (lambda: draw_context_test(replace(TESTED, null=[])), DataError, "simulated no choices"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """A table of products subject to attraction, a net that sees it and one that sees each product alone."""
    folder = tmp_path_factory.mktemp("products")
    sets = make_context_effect("attraction", 1500, random_state=0)
    columns = {
        "offer": np.repeat(np.arange(len(sets)), sets.sizes),
        "brand": np.random.default_rng(0).choice(["x", "y"], len(sets.objects)),
        "quality": sets.objects[:, 0],
        "price": 100 * (1 - sets.objects[:, 1]),
        "place": sets.targets,
    }
    frame = pd.DataFrame(columns).sample(frac=1, random_state=0, ignore_index=True)  # rows of a set apart
    frame.to_csv(folder / "products.csv", index=False)
    for name, net in (("seeing", FATE(width=32)), ("blind", ContextFree(width=16))):
        encoder = TableEncoder.fit(frame, set_id="offer", target="place")
        ranker = Ranker(net, steps=500, device="cpu", random_state=0)
        ranker.fit(encoder(frame).sets)
        ranker.save(folder / f"{name}.entourage")
    return folder


def effects_command(folder, name, *options):
    files = [folder / f"{name}.entourage", folder / "products.csv", "--report", folder / f"{name}.html"]
    return CliRunner().invoke(
        app,
        ["effects", *map(str, files), "--draws", "0", "--device", "cpu", "--refits", "0", *map(str, options)],
    )


def test_the_command_finds_attraction_where_it_is_and_exactly_none_without_context(products):
    found = json.loads(effects_command(products, "seeing", "--json").stdout)
    assert found["pair"] is None
    natural = found["natural_effects"]
    assert natural["better"] == {"quality": "more", "price": "less"}
    assert sorted(natural["left_out"]) == ["brand=x", "brand=y"]
    assert natural["attraction"]["value"] > 0.1
    assert natural["attraction"]["interval"] is None
    assert found["no_intervals"] == "--refits 0: no refits, so no confidence intervals."
    assert natural["attraction"]["sets"] > 100
    told = effects_command(products, "seeing").stdout
    assert "more quality (by the model), less price (by the model). Not used: 2 other features." in told
    assert f"attraction: {natural['attraction']['value']:+.4f}" in told
    page = (products / "seeing.html").read_text()
    assert "A lies between B and C" in page
    assert "extrapolates" not in page  # the table has pairs
    assert "no refits, so no confidence intervals" in page
    blind = json.loads(effects_command(products, "blind", "--json").stdout)["natural_effects"]
    for name in ("attraction", "compromise", "similarity"):
        assert blind[name]["value"] == 0
    given = effects_command(products, "seeing", "--more-is-better", "price")
    assert "more price (given)" in given.stdout


def test_the_command_says_what_helps_a_row_against_another(products):
    frame = pd.read_csv(products / "products.csv")
    one = frame[frame.offer == 0].index
    row, against = int(one[0]), int(one[1])
    options = ["--help-row", row, "--against", against]
    pair = json.loads(effects_command(products, "seeing", *options, "--json").stdout)["pair"]
    assert (pair["row"], pair["against"], pair["map"]) == (row, against, ["quality", "price"])
    assert pair["probability"] == pytest.approx(float(expit(pair["log_odds"])))
    shifts = [entry["shift"] for entry in pair["helps"]]
    assert shifts == sorted(shifts, reverse=True)
    assert len(pair["hurts"]) == 5
    best = pair["hurts"][0]
    assert best["after"] < best["before"] == pair["probability"]
    told = effects_command(products, "seeing", *options, "--map", "price", "--map", "quality").stdout
    assert f"Row {row} is preferred to row {against} with probability {pair['probability']:.4f}" in told
    assert f"row {best['row']} hurts: log-odds {best['shift']:+.4f}" in told
    page = (products / "seeing.html").read_text()
    assert f"Decoys: what helps row {row} against row {against}" in page
    assert "Dashed line: no effect." in page
    assert "None has an effect." in effects_command(products, "blind", *options).stdout


def test_the_shift_that_the_command_says_is_that_of_the_rows(products):
    frame = pd.read_csv(products / "products.csv")
    options = ["--help-row", 7, "--against", 3, "--json"]
    pair = json.loads(effects_command(products, "seeing", *options).stdout)["pair"]
    third = pair["hurts"][0]
    model = load(products / "seeing.entourage")
    encoder = TableEncoder.from_json(model.table_)
    objects = encoder(frame.iloc[[7, 3, third["row"]]].assign(offer=0)).sets.objects
    assert context_effect(model, *objects).shift.value == pytest.approx(third["shift"], rel=1e-4)


def test_numbers_and_flags_have_an_order_and_categories_have_none():
    frame = pd.DataFrame(
        {
            "set": [0, 0, 1],
            "age": [1.0, 1.0, 2.0],
            "brand": ["x", "y", "x"],
            "price": [1.0, None, 2.0],
            "new": [True, False, True],
        }
    )
    encoder = TableEncoder.fit(frame, set_id="set", target=None, situation=["age"])
    assert encoder.feature_names == ["brand=x", "brand=y", "price", "price is missing", "new"]
    assert ordered_features(encoder) == [2, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--help-row", 1], "only --help-row came. Add --against"),
        (["--against", 1], "only --against came. Add --help-row"),
        (["--help-row", 1, "--against", 1], "two different rows"),
        (["--help-row", 1, "--against", 99999], "from 0 to 3,749; got 99,999"),
        (["--help-row", -1, "--against", 1], "got -1"),
        (["--map", "price", "--map", "quality"], "--map is about a pair, and none came"),
        (["--help-row", 1, "--against", 2, "--map", "price"], "--map came once"),
        (["--help-row", 1, "--against", 2, *["--map", "price"] * 3], "--map came 3 times"),
        (["--help-row", 1, "--against", 2, *["--map", "price"] * 2], "got 'price' twice"),
        (
            ["--help-row", 1, "--against", 2, "--map", "price", "--map", "brand"],
            "got 'brand'. Choose from 'quality', 'price'",
        ),
        (["--more-is-better", "price", "--less-is-better", "price"], "'price' came with"),
        (["--less-is-better", "brand"], "'brand' is none of them. Choose from 'quality', 'price'"),
    ],
)
def test_options_that_do_not_go_together_get_one_sentence(options, words, products):
    result = effects_command(products, "blind", *options)
    assert isinstance(result.exception, UserError)
    assert words in str(result.exception)


def test_objects_that_miss_a_feature_are_in_no_case():
    X = np.concatenate([np.stack([T, C, T - 0.1], axis=1), np.zeros((len(T), 3, 1))], axis=2)
    X[0, 2, 2] = 1  # the first decoy's second feature was missing
    found = [natural_effects(Model(alone), X, ordered=[0, 1], marks=marks) for marks in (None, {1: 2})]
    assert [one.effects["attraction"].shift.n for one in found] == [len(T), len(T) - 1]
