"""Permutation importance within sets: worked by hand, exact zeros, and the same by every way in."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from commands import run

import entourage
from entourage import FATE, DiscreteChooser, Ranker, SubsetChooser
from entourage.baselines import RankSVM
from entourage.choice import MultinomialLogit
from entourage.data import Sets
from entourage.data.resampling import bootstrap_interval
from entourage.effects import importance
from entourage.effects.content_order import content_order, in_content_order
from entourage.errors import DataError, ParameterError
from entourage.estimators.base import NotFittedError, OneChoicePredictor, SetPredictor

RNG = np.random.default_rng(0)
TINY = {"steps": 5, "device": "cpu", "random_state": 0}


class Known(SetPredictor):
    """A fitted model made of a function of packed sets."""

    def __init__(self, utility=None, features=2, situation=0):
        self.utility = utility
        self.n_features_in_, self.n_situation_features_in_ = features, situation

    def _packed_scores(self, sets):
        return self.utility(sets)


class KnownChoice(OneChoicePredictor, Known):
    """The same of one choice."""


def first(sets):
    return sets.objects[:, 0]


def ranked(n=30, seed=0, sizes=(1, 2, 3, 5)):
    """Sets of several sizes, ranked by the first of two features."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(sizes[i % len(sizes)], 2)) for i in range(n)]
    return X, [(-x[:, 0]).argsort().argsort() for x in X]


def table_of(X, y):
    rows = pd.DataFrame(np.concatenate(X), columns=["x0", "x1"])
    return rows.assign(race=np.repeat(np.arange(len(X)), list(map(len, X))), place=np.concatenate(y))


def test_what_a_model_does_not_use_and_what_cannot_be_shuffled_matter_exactly_nothing():
    X, y = ranked()
    found = importance(Known(first), X, y)
    assert found["x1"].drop == 0
    assert found["x1"].interval == (0, 0)
    assert found["x1"].reaches_zero
    assert not found["x1"].constant
    assert found["x0"].drop > 0.2
    assert not found["x0"].reaches_zero
    assert found.columns[0].name == "x0"
    assert found.baseline == 1
    linear = RankSVM().fit(X, y)
    linear.coef_ = np.array([1.0, 0.0])
    assert importance(linear, X, y)["x1"].drop == 0
    same = [np.column_stack([np.full(len(x), i), x[:, 1]]) for i, x in enumerate(X)]
    found = importance(Known(first), same, y)
    assert found["x0"].constant
    assert found["x0"].drop == 0
    assert found["x0"].note == "constant within sets"


def test_the_drop_is_the_mean_over_permutations_and_sets_worked_by_hand():
    """In a set of two a swap turns accuracy from 1 to 0: the drop is the share of swaps, near one half."""
    X = np.tile([[[1.0], [0.0]]], (400, 1, 1)) + np.arange(400)[:, None, None]
    y = np.tile([0, 1], (400, 1))
    found = importance(Known(first, features=1), X, y, repeats=4)["x0"]
    assert found.drop * 1600 == pytest.approx(round(found.drop * 1600))  # of 1,600 swaps
    assert found.drop == pytest.approx(0.5, abs=4 * 0.5 / 40)
    # 400 means of four coins: a standard deviation of 1/4 each
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * 1.96 * 0.25 / 20, rel=0.2)
    # three objects: of 6 orders, the pairs in the right order are 3, 2, 2, 1, 1, 0 of 3: one half on average
    X = np.tile([[[2.0], [1.0], [0.0]]], (400, 1, 1)) + np.arange(400)[:, None, None]
    found = importance(Known(first, features=1), X, np.tile([0, 1, 2], (400, 1)), repeats=4)
    assert found["x0"].drop == pytest.approx(0.5, abs=0.04)
    # a loss rises by what accuracy drops
    rises = importance(
        Known(first, features=1), X, np.tile([0, 1, 2], (400, 1)), repeats=4, metric="ranking_loss"
    )
    assert rises["x0"].drop == pytest.approx(found["x0"].drop)
    assert "rise" in str(rises)


def test_a_column_of_the_situation_is_shuffled_among_sets():
    n = 200
    X, taste = RNG.normal(size=(n, 3, 1)), RNG.choice([-1.0, 1.0], size=(n, 1))
    y = (-X[:, :, 0] * taste).argsort(1).argsort(1)
    model = Known(lambda s: s.objects[:, 0] * np.repeat(s.situation[:, 0], s.sizes), features=1, situation=2)
    covariates = np.column_stack([taste, np.ones(n)])
    found = importance(model, X, y, situation=covariates)
    assert found["situation 0"].drop == pytest.approx(0.5, abs=0.06)  # half of all sets get the other sign
    assert found["situation 1"].constant
    assert found["situation 1"].note == "the same for all sets"
    assert found["situation 0"].role == "situation"


def test_rows_in_another_order_give_the_same_result_to_the_bit():
    X, y = ranked()
    table = table_of(X, y).assign(
        who=lambda t: "p" + (t.race % 7).astype(str), again=lambda t: t.race // 2 * 2
    )
    model = RankSVM().fit(table, set_id="race", target="place", ignore=["who", "again"])
    found = importance(model, table, groups="who")
    shuffled = table.sample(frac=1, random_state=1)
    assert importance(model, shuffled, groups="who") == found
    assert found.n_groups == 7
    assert importance(model, table, random_state=1) != importance(model, table)


def test_alike_sets_of_different_people_are_told_apart_by_their_people():
    X = [[[1.0], [2.0]]] * 3 + [[[5.0], [2.0]]]
    sets, labels = Sets.from_list(X, [[0, 1]] * 4), np.array([0, 1, 2, 2])
    order = content_order(sets, labels)
    back = content_order(sets[::-1], labels[::-1])
    assert set(map(int, labels[order][:3])) | set(map(int, labels[::-1][back][:3])) <= {0, 1, 2}
    assert [labels[i] == 2 for i in order] == [labels[::-1][i] == 2 for i in back]
    assert (
        in_content_order(sets[3]).objects.tolist()
        == in_content_order(Sets.from_list([[[2.0], [5.0]]], [[1, 0]])).objects.tolist()
    )


def test_a_table_and_its_arrays_have_the_same_importance():
    X, y = ranked()
    table = table_of(X, y)
    of_arrays = RankSVM().fit(X, y)
    of_table = RankSVM().fit(table, set_id="race", target="place")
    assert importance(of_table, table) == importance(of_arrays, X, y)
    sets = Sets.from_frame(table, set_id="race", target="place")
    assert importance(of_table, sets) == importance(of_table, table)
    assert importance(of_table, X, y) == importance(of_table, table)


def test_a_column_of_a_table_is_shuffled_with_all_that_it_became():
    """A number goes with its mark of being missing, a category with all its levels."""
    n, m = 60, 4
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n * m)
    number = np.where(rng.random(n * m) < 0.3, np.nan, rng.normal(size=n * m))
    noise = rng.gumbel(size=n * m)
    utility = (kind == "a") * 3.0 + np.where(np.isnan(number), 2.0, number) + 0.1 * noise
    table = pd.DataFrame({"s": np.repeat(np.arange(n), m), "kind": kind, "number": number})
    table["y"] = (-utility.reshape(n, m)).argsort(1).argsort(1).ravel()
    seen = []

    class Spy(RankSVM):
        def _packed_scores(self, sets):
            seen.append(sets.objects.copy())
            return super()._packed_scores(sets)

    model = Spy().fit(table, set_id="s", target="y")
    found = importance(model, table, repeats=2)
    assert {column.name for column in found.columns} == {"kind", "number"}
    assert not any(column.reaches_zero for column in found.columns)
    rows = {tuple(row) for row in seen[0][:, :3]}
    assert rows == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}  # levels of kind
    for after in seen[1:]:
        assert {tuple(row) for row in after[:, :3]} == rows
        pairs = {tuple(row) for row in after[:, 3:]}
        assert pairs <= {tuple(row) for row in seen[0][:, 3:]}, "a number without its mark"


def test_sets_of_weight_0_are_left_out_and_weights_count():
    X, y = ranked(40)
    X, y = X + [x + 9 for x in X[:10]], y + [row[::-1].copy() for row in y[:10]]
    weights = np.r_[np.ones(40), np.zeros(10)]
    model = Known(first)
    assert importance(model, X, y, sample_weight=weights) == importance(
        model, X[:40], y[:40], sample_weight=np.ones(40)
    )
    assert importance(model, X[:40], y[:40], sample_weight=np.full(40, 3.0))["x0"].drop == pytest.approx(
        importance(model, X[:40], y[:40], sample_weight=np.ones(40))["x0"].drop, rel=0.25
    )
    values, own = np.array([0.0, 1.0, 1.0, 5.0]), np.array([2.0, 1.0, 1.0, 0.0])
    low, high = bootstrap_interval(values, weights=own)
    assert 0 <= low < 0.5 < high <= 1  # the weighted mean is 2/4; the last one has no say
    assert bootstrap_interval(values[:3], weights=own[:3]) == (low, high)
    assert bootstrap_interval(values, weights=np.ones(4)) == bootstrap_interval(values)
    with pytest.raises(DataError, match="one a value"):
        bootstrap_interval(values, weights=[1.0])


@pytest.mark.parametrize(
    ("model", "metric"),
    [
        (Ranker(FATE(8), **TINY), "ranking_accuracy"),
        (Ranker(FATE(8), members=2, **TINY), "ranking_accuracy"),
        (DiscreteChooser(FATE(8), **TINY), "log_likelihood"),
        (DiscreteChooser(FATE(8), outside=True, **TINY), "log_likelihood"),
        (SubsetChooser(FATE(8), **TINY), "f1"),
        (MultinomialLogit(l2=0.1), "log_likelihood"),
    ],
)
def test_every_task_has_its_own_metric_and_a_loaded_model_the_same_result(model, metric, tmp_path):
    X = RNG.normal(size=(20, 4, 2))
    y = (
        X[:, :, 0].argmax(1)
        if not isinstance(model, Ranker | SubsetChooser)
        else (X[:, :, 0] > 0).astype(float)
    )
    found = importance(model.fit(X, y), X, y, repeats=2)
    assert found.metric == metric
    before = model.evaluate(X, y)[metric]
    assert found.baseline == pytest.approx(before)
    model.save(tmp_path / "m")
    assert importance(entourage.load(tmp_path / "m"), X, y, repeats=2) == found
    assert json.loads(json.dumps(found.to_json()))["columns"][0]["name"] == found.columns[0].name


def test_progress_is_told_beforehand_and_to_the_end():
    X, y = ranked()
    told = []
    importance(Known(first), X, y, repeats=3, on_scoring=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 7)
    assert told[-1] == (7, 7)


def test_small_chunks_change_no_zero_and_keep_memory_bounded(monkeypatch):
    X, y = ranked()
    monkeypatch.setattr(sys.modules["entourage.effects.importance"], "_CHUNK", 24)
    largest = []

    def spied(sets):
        largest.append(sets.objects.size)
        return sets.objects[:, 0]

    found = importance(Known(spied), X, y)
    assert found["x1"].drop == 0 < found["x0"].drop
    assert max(largest) <= 24


def test_mistakes_are_named():
    X, y = ranked()
    with pytest.raises(NotFittedError, match="not fitted"):
        importance(RankSVM(), X, y)
    with pytest.raises(ParameterError, match="ranking_accuracy"):
        importance(Known(first), X, y, metric="ranking_acuracy")
    with pytest.raises(ParameterError, match="repeats"):
        importance(Known(first), X, y, repeats=0)
    with pytest.raises(DataError, match="at least 2"):
        importance(Known(first), X[1:2], y[1:2])
    with pytest.raises(ParameterError, match="x0"):
        importance(Known(first), X, y)["x00"]


def test_the_command_says_what_python_says(tmp_path, capsys):
    X, y = ranked()
    table = table_of(X, y).assign(who=lambda t: t.race % 5, team=lambda t: "t" + (t.race % 3).astype(str))
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    table.to_csv(tmp_path / "u.csv", index=False)
    model = Ranker(FATE(8), **TINY).fit(
        table, set_id="race", target="place", ignore=["who"], situation=["team"]
    )
    model.save(tmp_path / "m")
    asked = ("info", tmp_path / "m", "--table", tmp_path / "t.csv", "--sep", ";", "--group", "who")
    code, out, err = run(capsys, *asked, "--repeats", "2", "--json")
    assert code == 0, err
    assert json.loads(out) == importance(model, table, groups="who", repeats=2).to_json()
    code, out, err = run(capsys, *asked)
    assert code == 0, err
    assert "3 columns × 5 permutations: the table is scored 16 times." in err
    assert "x1" in out
    assert "95 % interval" in out
    assert "of 5 groups" in out
    for arguments, message in [
        (("info", tmp_path / "m", "--group", "who"), "--table"),
        (("info", tmp_path / "m", "--table", tmp_path / "u.csv", "--metric", "f2"), "ranking_accuracy"),
        (("info", tmp_path / "m", "--table", tmp_path / "u.csv", "--group", "wo"), "who"),
    ]:
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert message in " ".join(err.split())
