"""The report: it agrees with its parts, and says what is wrong before anything that takes long."""

import json

import numpy as np
import pytest
from effect_cases import PUSHED, Known, Model, alone, choice_lists, choice_sets

from entourage.data import Sets, make_medoid
from entourage.effects import effects_report, influence_matrix, natural_effects, reversal_rate
from entourage.errors import ParameterError, UserError


def test_the_report_is_json_and_agrees_with_the_parts():
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    X, y = choice_lists(0, 60, context=1.0, sizes=(2, 3, 5))
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
    X, y = choice_lists(0, 60, sizes=(3, 2, 4))
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"groups": "who"}, "no table"),
        ({"rows": [1, 2]}, "rows needs one for each of"),
        ({"map_names": ("x0", "x1")}, "A map is of a pair"),
        ({"pair": (1, 1)}, "two different rows"),
        ({"pair": (1, 10**6)}, "got 1,000,000"),
        ({"pair": (0, 1), "map_names": ("x0", "speed")}, "got 'speed'. Choose from 'x0', 'x1'"),
        ({"better": {"speed": "less"}}, "'speed' is none of them"),
    ],
)
def test_a_report_says_what_is_wrong_before_it_refits(wrong, words, monkeypatch):
    monkeypatch.setattr("entourage.effects.report.refit_resampled", lambda *_, **__: pytest.fail("refitted"))
    model = Known(lambda sets: sets.objects[:, 0])
    with pytest.raises(UserError, match=words):
        effects_report(model, choice_sets(0), refits=2, draws=0, **wrong)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: effects_report(Model(alone), PUSHED, most_sets=0), ParameterError, "most_sets"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()
