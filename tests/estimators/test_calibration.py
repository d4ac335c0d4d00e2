"""Calibration: thresholds by hand, coverage by simulation, and what a file may say."""

import dataclasses

import numpy as np
import pytest

from entourage.data.sets import Sets
from entourage.errors import DataError, ModelFileError, ParameterError, UserError
from entourage.estimators.calibration import Calibration
from entourage.tasks import Choice, Ranking, SubsetChoice


def rankings(n, m, rng, *, noise=1.0):
    """Draw utilities and rankings of Plackett and Luce; with another noise, the model is wrong."""
    utilities = rng.normal(size=(n, m))
    ranks = (-utilities - noise * rng.gumbel(size=(n, m))).argsort(1).argsort(1)
    return Sets.from_array(np.zeros((n, m, 1)), ranks), utilities.ravel()


def choices(n, m, rng, *, outside=False):
    utilities = 1.5 * rng.normal(size=(n, m))
    shown = utilities + rng.gumbel(size=(n, m))
    chosen = np.where(outside & (rng.gumbel(size=n) > shown.max(1)), -1, shown.argmax(1))
    return Choice(outside=outside).sets_of(np.zeros((n, m, 1)), chosen), utilities.ravel()


def place_coverage(found, sets, scores, coverage):
    low, high = found.place_intervals(sets, scores, coverage)
    return ((low <= sets.targets) & (sets.targets <= high)).mean(), (high - low + 1).mean()


def choice_coverage(found, task, sets, scores, coverage):
    inside, nothing = found.choice_sets(task, sets, scores, coverage)
    chosen = np.add.reduceat(inside & (sets.targets == 0), sets.offsets[:-1])
    none = ~np.logical_or.reduceat(sets.targets == 0, sets.offsets[:-1])
    return ((chosen > 0) | (none & nothing)).mean(), inside.mean()


# --- thresholds -----------------------------------------------------------------------------------


def test_the_threshold_of_nineteen_choices_is_the_second_smallest_probability():
    p = np.linspace(0.05, 0.41, 19)  # of the chosen object, always the smaller one of two
    sets = Choice().sets_of(np.zeros((19, 2, 1)), np.zeros(19, dtype=int))
    scores = np.stack([np.log(p), np.log(1 - p)], axis=1).ravel()
    found = Calibration.fit(Choice(), sets, scores)
    assert found.n_sets == 19
    # 1 / 20 of the mass is that of the new set; 0.9 allows one of the others to be left out, 0.95 none
    assert found.choice_thresholds[179] == pytest.approx(p[1], abs=3e-7)
    assert found.choice_thresholds[189] == pytest.approx(p[0], abs=3e-7)
    assert found.choice_thresholds[190] == 0.0
    inside, _ = found.choice_sets(Choice(), sets, scores, 0.9)
    assert inside.reshape(19, 2).tolist() == [[False, True]] + [[True, True]] * 18


def test_a_chosen_object_that_is_the_most_probable_is_always_covered():
    sets = Choice().sets_of(np.zeros((30, 3, 1)), np.zeros(30, dtype=int))
    scores = np.tile([0.1, 0.0, 0.0], 30)
    inside, _ = Calibration.fit(Choice(), sets, scores).choice_sets(Choice(), sets, scores, 0.9)
    assert inside.reshape(30, 3).tolist() == [[True, False, False]] * 30


def test_objects_of_a_set_share_its_vote():
    rng = np.random.default_rng(0)
    small, large = rankings(40, 2, rng), rankings(10, 30, rng)
    sets = Sets.from_list([*small[0].to_list(), *large[0].to_list()], [
        *np.split(small[0].targets, 40), *np.split(large[0].targets, 10)])  # fmt: skip
    scores = np.concatenate([small[1], large[1]])
    found = Calibration.fit(Ranking(), sets, scores)
    tails = found._place_conformity(sets, scores)
    masses = np.repeat(1 / sets.sizes, sets.sizes)
    for coverage in (0.5, 0.8, 0.9):
        kept = found.place_thresholds[round(200 * coverage) - 1]
        left_out = masses[tails < kept].sum() + 1
        assert left_out <= 51 * (1 - coverage) + 1e-9
        assert masses[tails <= kept + 3e-7].sum() + 1 > 51 * (1 - coverage) - 1e-9


def test_too_few_sets_leave_nothing_out_and_say_so():
    rng = np.random.default_rng(1)
    sets, scores = rankings(10, 4, rng)
    found = Calibration.fit(Ranking(), sets, scores)
    with pytest.warns(UserWarning, match="needs at least 19 sets to calibrate with, and there were 10"):
        low, high = found.place_intervals(sets, scores, 0.95)
    assert (low == 0).all()
    assert (high == 3).all()
    sets, scores = choices(10, 4, rng)
    with pytest.warns(UserWarning, match="needs at least 99 sets"):
        inside, nothing = Calibration.fit(Choice(), sets, scores).choice_sets(Choice(), sets, scores, 0.99)
    assert inside.all()
    assert not nothing.any()
    with pytest.raises(ParameterError, match="coverage"):
        found.place_intervals(sets, scores, 1.0)


@pytest.mark.parametrize("task", [Ranking(), Choice()])
def test_weight_zero_is_left_out_and_equal_weights_are_none(task):
    draw = rankings if isinstance(task, Ranking) else choices
    sets, scores = draw(60, 4, np.random.default_rng(2))
    weights = np.r_[np.full(40, 3.0), np.zeros(20)]
    fewer = Calibration.fit(task, sets[:40], scores[:160])
    found = Calibration.fit(task, sets, scores, weights)
    assert found.n_sets == fewer.n_sets == 40
    for name in ("choice_thresholds", "place_thresholds"):
        np.testing.assert_allclose(getattr(found, name), getattr(fewer, name), atol=1e-6)


def test_unranked_and_tied_objects_and_sets_of_one_count_as_documented():
    rng = np.random.default_rng(3)
    sets, scores = rankings(80, 5, rng)
    targets = sets.targets.reshape(80, 5).copy()
    without = [row[:4].argsort().argsort() for row in targets]
    targets[:, 4] = np.nan
    own = np.ravel(scores.reshape(80, 5)[:, :4])
    found = Calibration.fit(Ranking(), sets.with_targets(targets), scores)
    fewer = Calibration.fit(Ranking(), Sets.from_array(np.zeros((80, 4, 1)), np.stack(without)), own)
    np.testing.assert_allclose(
        found.place_thresholds, fewer.place_thresholds, atol=1e-2
    )  # the spread differs
    assert found.temperature == pytest.approx(fewer.temperature, rel=0.05)
    minus = Calibration.fit(Ranking(), sets.with_targets(np.where(np.isnan(targets), -1, targets)), scores)
    assert minus == found  # -1 says the same as NaN
    tied = sets.with_targets(np.where(sets.targets < 2, 0.0, sets.targets))
    tails = Calibration.fit(Ranking(), tied, scores)._place_conformity(tied, scores)
    assert not np.isnan(tails).any()
    with pytest.raises(DataError, match="no set has two ranked objects"):
        Calibration.fit(Ranking(), Sets.from_array(np.zeros((9, 1, 1)), np.zeros((9, 1))), np.zeros(9))
    with pytest.raises(DataError, match="no set has two objects"):
        Calibration.fit(Choice(), choices(9, 1, rng)[0], np.zeros(9))


def test_sets_that_take_too_long_are_drawn_and_very_large_ones_have_no_intervals():
    rng = np.random.default_rng(4)
    sets, scores = rankings(60, 8, rng)
    part = Calibration.fit(Ranking(), sets, scores, most_work=4e5)
    whole = Calibration.fit(Ranking(), sets, scores)
    assert 0 < part.n_sets < whole.n_sets == 60
    assert part.temperature == whole.temperature
    none = Calibration.fit(Ranking(), sets, scores, most_work=1.0)
    assert none.temperature == whole.temperature
    with pytest.raises(UserError, match="too large"):
        none.place_intervals(sets, scores, 0.9)


def test_what_can_not_be_calibrated_is_refused():
    sets, scores = rankings(5, 3, np.random.default_rng(5))
    with pytest.raises(ParameterError, match="Only rankings and choices"):
        Calibration.fit(SubsetChoice(), sets, scores)
    with pytest.raises(ParameterError, match="One score"):
        Calibration.fit(Ranking(), sets, scores[:3])
    ranking = Calibration.fit(Ranking(), sets, scores)
    with pytest.raises(UserError, match="no prediction sets"):
        ranking.choice_sets(Choice(), sets, scores, 0.9)
    choice = Calibration.fit(Choice(), *choices(20, 3, np.random.default_rng(6)))
    with pytest.raises(UserError, match="no temperature"):
        choice.first_place(sets, scores)


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_places_are_covered_as_often_as_stated_whether_the_model_is_right_or_not(noise):
    rng = np.random.default_rng(round(noise))
    covered = []
    for _ in range(30):
        sets, scores = rankings(90, 4, rng, noise=noise)
        scores = 10 * scores
        found = Calibration.fit(Ranking(), sets[:40], scores[:160])
        covered.append(place_coverage(found, sets[40:], scores[160:], 0.8)[0])
    error = np.std(covered) / np.sqrt(len(covered))
    assert np.mean(covered) > 0.8 - 3 * error
    assert np.mean(covered) < 0.93  # places are few: a step more of an interval is worth much


@pytest.mark.parametrize("outside", [False, True])
def test_choices_are_covered_as_often_as_stated_by_sets_of_few_objects(outside):
    rng, task = np.random.default_rng(7), Choice(outside=outside)
    found = []
    for _ in range(60):
        sets, scores = choices(400, 6, rng, outside=outside)
        calibration = Calibration.fit(task, sets[:50], 2 * scores[:300])  # overconfident
        found.append(choice_coverage(calibration, task, sets[50:], 2 * scores[300:], 0.9))
    covered, share = np.mean(found, axis=0)
    error = np.std([own[0] for own in found]) / np.sqrt(len(found))
    assert 0.9 - 3 * error < covered < 0.93
    assert share < 0.75


def test_every_prediction_set_holds_something_and_every_interval_the_median():
    rng = np.random.default_rng(8)
    sets, scores = choices(300, 3, rng, outside=True)
    found = Calibration.fit(Choice(outside=True), sets, 9 * scores)
    inside, nothing = found.choice_sets(Choice(outside=True), sets, 9 * scores, 0.3)
    assert (np.logical_or.reduceat(inside, sets.offsets[:-1]) | nothing).all()
    sets, scores = rankings(300, 3, rng)
    low, high = Calibration.fit(Ranking(), sets, scores).place_intervals(sets, scores, 0.1)
    assert (low <= high).all()


# --- files ----------------------------------------------------------------------------------------


def test_it_comes_back_from_json_and_what_is_none_is_refused():
    found = Calibration.fit(Ranking(), *rankings(30, 4, np.random.default_rng(9)))
    content = found.to_json()
    assert Calibration.from_json(content) == found
    assert Calibration.from_json(None) is None
    earlier = {key: value for key, value in content.items() if key != "place_temperature"}
    assert Calibration.from_json(earlier) == dataclasses.replace(found, place_temperature=None)
    for change in [
        {"temperature": 0.0},
        {"place_temperature": 0.0},
        {"place_temperature": "1"},
        {"temperature": float("inf")},
        {"temperature": None},
        {"temperature": "1"},
        {"n_sets": 0},
        {"n_sets": 2.5},
        {"place_thresholds": [0.5]},
        {"place_thresholds": [2.0] * 199},
        {"place_thresholds": ["a"] * 199},
        {"choice_thresholds": [0.5] * 199},
    ]:
        with pytest.raises(ModelFileError):
            Calibration.from_json(content | change)
    with pytest.raises(ModelFileError):
        Calibration.from_json([1])
    assert dataclasses.asdict(found)["temperature"] == found.temperature
