"""The same data by every way in gives the same numbers: command, Python, scikit-learn, table, array, weights."""

import json
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupKFold, cross_val_score
from typer.testing import CliRunner

from entourage import (
    FATE,
    FETA,
    ContextFree,
    DiscreteChooser,
    Ranker,
    SetAttention,
    Sets,
    SubsetChooser,
    cross_validate,
    load,
)
from entourage.baselines import ExpectedRankRegression, LambdaMART, RankBoost, RankSVM
from entourage.choice import MultinomialLogit
from entourage.cli.program import app
from entourage.data.table_files import read_table, write_table
from entourage.errors import DataError, DataWarning, UserError
from entourage.selection.comparison import compare

FAST = {"steps": 60, "batch_size": 64, "random_state": 0}


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def table_of(n=120, m=5, seed=0):
    """A table whose rank is the order of a + 0.5 of a level of text; rows in order of sets."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, m)), rng.normal(size=(n, m))
    colour = rng.choice(["red", "green", "blue"], size=(n, m))
    utility = a + 1.5 * (colour == "red")
    return pd.DataFrame(
        {
            "race": np.repeat(np.arange(n), m),
            "a": a.ravel(),
            "b": b.ravel(),
            "colour": colour.ravel(),
            "place": np.argsort(np.argsort(-utility, 1), 1).ravel(),
        }
    )


def ranker(**more):
    return Ranker(FATE(width=16), **(FAST | more))


# --- weights ---------------------------------------------------------------------------------------


def reversed_half(seed=0):
    """Half of the sets ranked by the first feature, the other half the other way round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5, 2))
    ranks = np.argsort(np.argsort(-X[..., 0], 1), 1)
    y = np.concatenate([ranks[:100], 4 - ranks[100:]])
    return X, y, np.repeat([1.0, 0.0], 100)


def test_early_stopping_goes_by_the_weights_of_held_out_sets():
    X, y, weights = reversed_half()
    model = Ranker(FATE(width=16), steps=300, random_state=0).fit(X, y, sample_weight=weights)
    assert model.score(X[:100], y[:100]) > 0.95


@pytest.mark.parametrize(
    "model",
    [
        ranker(),
        Ranker(ContextFree(width=8), members=2, **FAST),
        DiscreteChooser(FATE(width=16), **FAST),
        SubsetChooser(FATE(width=16), **FAST),
        RankSVM(),
        ExpectedRankRegression(),
        RankBoost(rounds=10),
        LambdaMART(n_estimators=10),
        MultinomialLogit(l2=1.0),
    ],
    ids=lambda model: f"{type(model).__name__}{getattr(model, 'members', '')}",
)
def test_a_set_of_weight_0_is_left_out(model):
    X, y, weights = reversed_half()
    X[100:] *= 50  # which would show in what features are standardised by
    if isinstance(model, (DiscreteChooser, MultinomialLogit)):
        y = y.argmin(1)
    elif isinstance(model, SubsetChooser):
        y = (y < 2).astype(int)
    weighted = model.fit(X, y, sample_weight=weights).predict_scores(X)
    alone = model.fit(X[:100], y[:100])
    np.testing.assert_array_equal(weighted, alone.predict_scores(X))


def test_the_threshold_of_subsets_goes_by_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6, 1))
    chosen = (X[..., 0] > np.repeat([1.0, -1.0], 100)[:, None]).astype(int)
    weights = np.repeat([1.0, 1e-9], 100)
    model = SubsetChooser(ContextFree(width=8), steps=300, random_state=0).fit(
        X, chosen, sample_weight=weights
    )
    share = model.predict(X[:100]).mean()
    assert abs(share - chosen[:100].mean()) < 0.1


def test_weight_2_is_a_set_that_comes_twice_for_the_standardiser():
    X, y, _ = reversed_half()
    model = ranker(validation=0).fit(X[:50], y[:50], sample_weight=np.r_[np.full(25, 2.0), np.ones(25)])
    twice = np.concatenate([X[:25], X[:50]]).reshape(-1, 2)
    np.testing.assert_allclose(model.view_.standardise.means[0], twice.mean(0), rtol=1e-12)
    np.testing.assert_allclose(model.view_.standardise.scales[0], twice.std(0), rtol=1e-12)


# --- magnitudes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["frame", "array", "command"])
def test_unix_times_within_a_minute_are_learnt_as_well_as_seconds(way, tmp_path):
    rng = np.random.default_rng(0)
    seconds = rng.uniform(0, 60, size=(150, 5))
    places = np.argsort(np.argsort(seconds, 1), 1)
    times = seconds + 1.7e9
    if way == "array":
        score = (
            Ranker(FATE(width=16), steps=200, random_state=0)
            .fit(times[..., None], places)
            .score(times[..., None], places)
        )
    else:
        frame = pd.DataFrame(
            {"s": np.repeat(np.arange(150), 5), "time": times.ravel(), "place": places.ravel()}
        )
        if way == "frame":
            model = Ranker(FATE(width=16), steps=200, random_state=0).fit(frame, set_id="s", target="place")
        else:
            frame.to_csv(tmp_path / "t.csv", index=False)
            out = run(
                "fit",
                tmp_path / "t.csv",
                "--set-id",
                "s",
                "--target",
                "place",
                "--model",
                "fate",
                "--steps",
                200,
                "-o",
                tmp_path / "m.entourage",
            )
            assert out.exit_code == 0, out.output
            model = load(tmp_path / "m.entourage")
        score = model.score(frame)
    assert score > 0.97


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    offset=st.sampled_from([0.0, 1e-9, -3e4, 1.7e9, -1e12]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    labels=st.sampled_from(["int", "text", "huge", "negative"]),
    tails=st.booleans(),
)
def test_offsets_scales_labels_and_tails_change_nothing(offset, scale, labels, tails):
    frame = table_of(60)
    if tails:
        frame["b"] = np.random.default_rng(1).standard_cauchy(len(frame)) ** 3
    plain = ranker(steps=30).fit(frame, set_id="race", target="place").predict_scores(frame)
    moved = frame.copy()
    spread = max(scale, abs(offset) * 1e-6)  # else there is nothing left of it in double precision
    moved["a"] = frame["a"] * spread + offset
    moved["race"] = {
        "int": frame["race"] + 7,
        "text": "r" + frame["race"].astype(str),
        "huge": (frame["race"].astype(object) + 2**63).astype("uint64"),
        "negative": -1 - frame["race"],
    }[labels]
    got = ranker(steps=30).fit(moved, set_id="race", target="place").predict_scores(moved)
    np.testing.assert_allclose(got, plain, rtol=0, atol=2e-3)


def test_an_offset_of_1e9_changes_no_score_of_a_net_that_takes_means_of_sets():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**20, size=(60, 5, 2)) / 2**20  # exact beside 1e9
    y = np.argsort(np.argsort(X[..., 0], 1), 1)
    model = Ranker(SetAttention(width=8), steps=30, random_state=0, device="cpu")
    plain = clone(model).fit(X, y).predict_scores(X)
    got = clone(model).fit(X + 1e9, y).predict_scores(X + 1e9)
    np.testing.assert_allclose(got, plain, rtol=0, atol=2e-3)
    assert plain.std() > 0.1


def test_a_feature_that_never_varied_does_nothing_when_it_varies_later():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5, 3))
    X[..., 2] = 4.0
    y = np.argsort(np.argsort(-X[..., 0], 1), 1)
    model = ranker(steps=200).fit(X, y)
    other = X.copy()
    other[..., 2] += 100 * rng.normal(size=X.shape[:2])
    np.testing.assert_array_equal(model.predict_scores(X), model.predict_scores(other))


# --- labels ----------------------------------------------------------------------------------------


def test_set_ids_beyond_64_bits_stay_apart_in_a_csv(tmp_path):
    frame = table_of(100)
    frame["race"] = [str(2**63 + int(i)) for i in frame["race"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = run(
        "fit",
        tmp_path / "t.csv",
        "--set-id",
        "race",
        "--target",
        "place",
        "--model",
        "context_free",
        "--steps",
        5,
        "-o",
        tmp_path / "m",
        "--json",
    )
    assert json.loads(out.stdout)["sets"] == 100
    run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert read_table(tmp_path / "p.csv", ids=["race"])["race"].to_pylist() == frame["race"].tolist()


def test_labels_are_whole_numbers_only_where_nothing_is_lost(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,007,18446744073709551616\n2,7,3\n")
    table = read_table(tmp_path / "t.csv", ids=["a", "b", "c"])
    assert table.to_pydict() == {"a": [1, 2], "b": ["007", "7"], "c": ["18446744073709551616", "3"]}


def test_labels_that_a_double_merges_are_refused():
    frame = table_of(10)
    frame["race"] = frame["race"] + 2.0**60
    with pytest.raises(DataError, match="'race'.*different ones become the same.*text"):
        ranker().fit(frame, set_id="race", target="place")
    table = table_of(10)
    table["person"] = table["race"] + 2.0**60
    with pytest.raises(DataError, match="'person'.*different ones become the same"):
        cross_validate(RankSVM(), table, set_id="race", target="place", groups="person", ignore=["person"])


# --- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_frames_of_every_kind_are_fitted_and_scored_in_the_order_of_their_rows(make):
    frame = table_of()
    model = ranker().fit(make(frame), set_id="race", target="place")
    assert model.feature_names_in_.tolist() == ["a", "b", "colour"]
    shuffled = frame.sample(frac=1, random_state=3)
    scores = model.predict_scores(make(frame))
    np.testing.assert_allclose(model.predict_scores(make(shuffled)), scores[shuffled.index], atol=1e-6)
    np.testing.assert_array_equal(model.predict(make(shuffled)), model.predict(make(frame))[shuffled.index])
    sets = Sets.from_frame(make(frame), set_id="race", target="place")
    assert (
        model.score(make(shuffled))
        == pytest.approx(model.score(sets))
        == pytest.approx(model.evaluate(make(frame))["ranking_accuracy"])
    )


def test_a_table_is_the_same_as_its_array():
    frame = table_of().drop(columns="colour")
    X = frame[["a", "b"]].to_numpy().reshape(-1, 5, 2)
    y = frame["place"].to_numpy().reshape(-1, 5)
    by_table = ranker().fit(frame, set_id="race", target="place")
    by_array = ranker().fit(X, y)
    np.testing.assert_array_equal(by_table.predict_scores(frame), by_array.predict_scores(X).ravel())
    np.testing.assert_array_equal(by_table.predict_scores(X), by_array.predict_scores(X))


def test_train_and_test_may_be_one_frame_or_two():
    frame = table_of(150)
    train, test = frame[frame.race < 100], frame[frame.race >= 100]
    test = test[test.colour != "blue"]  # so that levels encoded separately would differ
    sizes = test.groupby("race").race.transform("size")
    test = test[sizes > 1]
    model = ranker(steps=200).fit(train, set_id="race", target="place")
    apart = Sets.from_frame(test, set_id="race", target="place")
    with pytest.raises(DataError, match="'colour' is encoded by other levels.*like=training_sets"):
        model.predict(apart)
    alike = Sets.from_frame(test, like=Sets.from_frame(train, set_id="race", target="place"))
    assert model.score(alike) == model.score(test) > 0.85


def test_choosers_of_a_table_say_of_each_row_whether_it_is_chosen():
    frame = table_of()
    frame["chosen"] = (frame.pop("place") == 0).astype(int)
    shuffled = frame.sample(frac=1, random_state=1)
    model = DiscreteChooser(FATE(width=16), steps=200, random_state=0).fit(
        shuffled, set_id="race", target="chosen"
    )
    predicted = model.predict(shuffled)
    assert set(predicted) == {0, 1}
    assert (pd.Series(predicted).groupby(shuffled.race.to_numpy()).sum() == 1).all()
    assert model.score(shuffled) == pytest.approx((predicted[shuffled.chosen == 1] == 1).mean())
    total = pd.Series(model.predict_proba(shuffled)).groupby(shuffled.race.to_numpy()).sum()
    np.testing.assert_allclose(total, 1, atol=1e-5)


def test_situation_and_weights_may_be_columns():
    frame = table_of()
    frame["rain"] = frame.race % 2 * 1.0
    frame["weight"] = (frame.race < 60) * 1.0
    model = ranker().fit(
        frame, set_id="race", target="place", situation=["rain"], sample_weight="weight", ignore=["weight"]
    )
    alone = ranker().fit(
        frame[frame.race < 60], set_id="race", target="place", situation="rain", ignore=["weight"]
    )
    np.testing.assert_array_equal(model.predict_scores(frame), alone.predict_scores(frame))
    frame.loc[0, "rain"] = 5.0
    with pytest.raises(DataError, match="'rain' is of the situation"):
        model.predict(frame)


def test_the_command_is_the_same_as_python(tmp_path):
    frame = table_of().sample(frac=1, random_state=2)
    write_table(tmp_path / "t.parquet", pa.Table.from_pandas(frame, preserve_index=False))
    out = run(
        "fit",
        tmp_path / "t.parquet",
        "--set-id",
        "race",
        "--target",
        "place",
        "--model",
        "fate",
        "--steps",
        60,
        "-o",
        tmp_path / "m.entourage",
    )
    assert out.exit_code == 0
    model = Ranker(FATE(), steps=60, random_state=0).fit(frame, set_id="race", target="place")
    np.testing.assert_array_equal(
        load(tmp_path / "m.entourage").predict_scores(frame), model.predict_scores(frame)
    )
    found = json.loads(run("evaluate", tmp_path / "m.entourage", tmp_path / "t.parquet", "--json").stdout)
    assert found["metrics"] == model.evaluate(frame)
    run("predict", tmp_path / "m.entourage", tmp_path / "t.parquet", "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_array_equal(predicted["rank"], model.predict(frame))


def test_scikit_learns_cross_validation_is_ours_where_folds_keep_sets_whole():
    frame = table_of()
    theirs = cross_val_score(
        RankSVM(), frame, groups=frame.race, cv=GroupKFold(4), params={"set_id": "race", "target": "place"}
    )
    sets = Sets.from_frame(frame, set_id="race", target="place")
    ours = []
    for train, test in GroupKFold(4).split(frame, groups=frame.race):
        chosen = [np.unique(frame.race.to_numpy()[rows]) for rows in (train, test)]
        ours.append(RankSVM().fit(sets[chosen[0]]).score(sets[chosen[1]]))
    np.testing.assert_allclose(theirs, ours)


def test_cross_validation_of_a_table_keeps_sets_and_groups_whole():
    frame = table_of()
    frame["season"] = frame.race // 10
    found = cross_validate(
        RankSVM(), frame, set_id="race", target="place", groups="season", ignore=["season"], folds=4
    )
    seasons = np.unique(frame.race) // 10
    assert all(len(np.unique(found.fold_of[seasons == season])) == 1 for season in np.unique(seasons))
    sets = Sets.from_frame(frame, set_id="race", target="place", ignore=["season"])
    train = found.fold_of != 0
    by_hand = RankSVM().fit(sets[train]).score(sets[~train])
    assert found.folds["ranking_accuracy"][0] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"target": "place"}, "give set_id"),
        ({"set_id": "race"}, "give target"),
        ({"set_id": "race", "target": "race"}, "'race' can't be the set id and the target"),
        ({"set_id": "race", "target": "plce"}, "did you mean 'place'"),
        ({"set_id": "race", "target": "place", "features": ["nothing"]}, "no column 'nothing'"),
    ],
)
def test_what_a_table_lacks_is_said(arguments, says):
    with pytest.raises(UserError, match=says):
        ranker().fit(table_of(30), **arguments)


def test_a_misspelt_keyword_is_said():
    with pytest.raises(TypeError, match="did you mean 'set_id'"):
        ranker().fit(table_of(30), setid="race", target="place")


def test_a_model_of_arrays_refuses_a_table():
    frame = table_of(30).drop(columns="colour")
    model = RankSVM().fit(
        frame[["a", "b"]].to_numpy().reshape(-1, 5, 2), frame.place.to_numpy().reshape(-1, 5)
    )
    with pytest.raises(UserError, match="fitted to arrays, not to a table"):
        model.predict(frame)


# --- what a column is ------------------------------------------------------------------------------


def stray(n=100):
    frame = table_of(n)
    frame["a"] = frame["a"].round(3).astype(str)
    frame.loc[17, "a"] = "---"
    return frame


def test_a_stray_cell_is_said_with_its_column_row_and_count():
    with pytest.warns(
        DataWarning,
        match=r"'a' holds numbers in 499 of 500 rows, but text in 1 \('---' in row 18\).*missing=",
    ):
        Sets.from_frame(stray(), set_id="race", target="place")


def test_a_stray_cell_is_missing_where_that_is_asked_for(tmp_path):
    frame = stray()
    sets = Sets.from_frame(frame, set_id="race", target="place", missing=["---"])
    assert sets.encoder.columns[0].kind == "number"
    assert sets.encoder.columns[0].indicator
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = run(
        "fit",
        tmp_path / "t.csv",
        "--set-id",
        "race",
        "--target",
        "place",
        "--missing",
        "---",
        "--model",
        "context_free",
        "--steps",
        5,
        "-o",
        tmp_path / "m",
    )
    assert said.exit_code == 0
    run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 500


def test_other_kinds_than_learnt_are_refused():
    numbers, text = table_of(60), table_of(60)
    text["b"] = "t" + text["b"].round(0).astype(str)
    model = RankSVM().fit(text, set_id="race", target="place")
    with pytest.raises(DataError, match="'b' held text when the model was fitted.*holds numbers"):
        model.predict(numbers)
    model = RankSVM().fit(numbers, set_id="race", target="place")
    with pytest.raises(DataError, match="'b' needs numbers.*holds 't"):
        model.predict(text)
    numbers["b"] = numbers["b"] > 0
    with pytest.raises(DataError, match="'b' held numbers.*booleans now"):
        model.predict(numbers)


def test_a_name_in_each_row_is_left_out_with_a_word():
    frame = table_of(30)
    frame["driver"] = [f"driver {i}" for i in range(len(frame))]
    with pytest.warns(DataWarning, match="'driver' holds another text in each of 150 rows.*left out"):
        model = RankSVM().fit(frame, set_id="race", target="place")
    assert "driver" not in model.feature_names_in_


def test_a_row_that_stands_in_a_set_twice_is_said():
    frame = pd.concat([table_of(30), table_of(30).iloc[[4]]], ignore_index=True)
    with pytest.warns(DataWarning, match="1 row stands in a set twice.*row 151 is row 5 again"):
        RankSVM().fit(frame, set_id="race", target="place")


def test_choices_read_as_ranks_are_said():
    frame = table_of(30)
    frame["place"] = (frame["place"] == 0).astype(int)
    with pytest.warns(DataWarning, match="as ranks, that row is the worst"):
        RankSVM().fit(frame, set_id="race", target="place")


@pytest.mark.parametrize("named", [False, True])
def test_many_columns_are_encoded_in_linear_time(named):
    import time

    rng = np.random.default_rng(0)
    seconds = []
    for d in (500, 4000):
        columns = {f"c{i}": rng.normal(size=20) for i in range(d)}
        table = pa.table({"s": np.repeat(np.arange(4), 5), "y": np.tile(np.arange(5), 4)} | columns)
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            Sets.from_frame(table, set_id="s", target="y", features=list(columns) if named else None)
            best = min(best, time.process_time() - start)
        seconds.append(best)
    assert seconds[1] < 24 * seconds[0]  # 8 times if linear, 64 if quadratic: a ratio within one run


def test_columns_that_weigh_or_group_sets_are_no_features():
    frame = table_of(40)
    frame["w"], frame["season"] = 1.0 + frame.race % 2, frame.race // 4
    model = RankSVM().fit(frame, set_id="race", target="place", sample_weight="w", ignore="season")
    assert model.feature_names_in_.tolist() == ["a", "b", "colour"]
    model.predict(frame.drop(columns=["w", "season", "place"]))
    chosen = frame.assign(place=(frame.place == 0).astype(int)).drop(columns=["w", "colour"])
    logit = MultinomialLogit().fit(chosen, set_id="race", target="place", groups="season")
    assert logit.parameter_names_ == ["a", "b"]


def test_columns_that_weigh_or_group_sets_are_no_features_where_a_weight_is_0_either():
    frame = table_of(40)
    frame["w"], frame["season"], frame["slot"] = (
        frame.race % 2.0,
        frame.race // 4,
        frame.groupby("race").cumcount(),
    )
    roles = {
        "set_id": "race",
        "target": "place",
        "sample_weight": "w",
        "groups": "season",
        "position": "slot",
    }
    model = Ranker(ContextFree(), **FAST).fit(frame, **roles)
    assert model.feature_names_in_.tolist() == ["a", "b", "colour"]
    without = Ranker(ContextFree(), **FAST).fit(frame[frame.w > 0], **roles)
    np.testing.assert_array_equal(model.predict_scores(frame), without.predict_scores(frame))


def test_weights_go_to_sets_in_the_order_of_their_appearance_also_of_categories():
    frame = table_of(40).iloc[::-1].reset_index(drop=True)
    weights = np.r_[np.zeros(20), np.ones(20)]
    plain = RankSVM().fit(frame, set_id="race", target="place", sample_weight=weights)
    coded = frame.assign(race=pd.Categorical(frame.race))
    other = RankSVM().fit(coded, set_id="race", target="place", sample_weight=weights)
    np.testing.assert_array_equal(plain.predict_scores(frame), other.predict_scores(coded))


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    frame = table_of(20)[lambda f: f.b < 1]
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (read_table(tmp_path / "t.parquet"), pa.Table.from_pandas(frame)):
        model = RankSVM().fit(table, set_id="race", target="place")
        assert model.feature_names_in_.tolist() == ["a", "b", "colour"]
    frame.to_csv(tmp_path / "t.csv")
    with pytest.warns(DataWarning, match="'' seems to be the index of a frame"):
        model = RankSVM().fit(read_table(tmp_path / "t.csv"), set_id="race", target="place")
    assert model.feature_names_in_.tolist() == ["a", "b", "colour"]


def test_numbers_may_stand_for_missing_values_and_so_may_texts_of_the_target():
    frame = table_of(40)
    gaps = frame.copy()
    frame.loc[::5, "a"], gaps.loc[::5, "a"] = -999, np.nan
    model = RankSVM().fit(frame, set_id="race", target="place", missing=["-999"])
    np.testing.assert_allclose(
        model.predict_scores(frame), RankSVM().fit(gaps, set_id="race", target="place").predict_scores(gaps)
    )
    out = table_of(40)
    out["place"] = out["place"].astype(str)
    out.loc[3, "place"] = "DNF"
    sets = Sets.from_frame(out, set_id="race", target="place", missing=["DNF"])
    assert np.isnan(sets.targets).sum() == 1
    with pytest.raises(DataError, match="should hold ranks.*missing="):
        Sets.from_frame(out, set_id="race", target="place")


def test_numbers_given_as_text_are_said_not_taken_for_names():
    frame = table_of(40)
    frame["a"] = frame["a"].map("{:.10f}".format)
    with pytest.warns(
        DataWarning, match="'a' holds numbers in all 200 rows, but as text. Give it as numbers"
    ):
        Sets.from_frame(frame, set_id="race", target="place")
    frame.loc[7, "a"] = "n/a"
    with pytest.warns(DataWarning, match="'n/a' in row 8"):
        Sets.from_frame(frame, set_id="race", target="place")


def test_two_columns_of_one_name_are_refused():
    frame = table_of(10)
    doubled = pa.Table.from_pandas(frame).append_column("a", pa.array(frame["b"]))
    for table in (doubled, pd.concat([frame, frame[["a"]]], axis=1)):
        with pytest.raises(DataError, match="more than one column named 'a'"):
            RankSVM().fit(table, set_id="race", target="place")
    with pytest.raises(DataError, match="'a' is named as a feature twice, or to be ignored"):
        RankSVM().fit(frame, set_id="race", target="place", features=["a", "b"], ignore=["a"])


def test_a_choice_model_of_a_table_goes_through_the_commands(tmp_path):
    frame = table_of(60).drop(columns="colour")
    frame["place"] = (frame["place"] == 0).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = MultinomialLogit(l2=1.0).fit(frame, set_id="race", target="place")
    model.save(tmp_path / "m.entourage")
    run("predict", tmp_path / "m.entourage", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    np.testing.assert_allclose(
        pd.read_csv(tmp_path / "p.csv").probability, model.predict_proba(frame), rtol=1e-6
    )
    found = json.loads(run("evaluate", tmp_path / "m.entourage", tmp_path / "t.csv", "--json").stdout)
    assert found["metrics"]["accuracy"] == pytest.approx(model.score(frame))


def test_categories_of_an_arrow_file_of_polars_are_read(tmp_path):
    frame = pl.from_pandas(table_of(30)).with_columns(pl.col("colour").cast(pl.Categorical))
    model = RankSVM().fit(frame, set_id="race", target="place")
    frame.write_ipc(tmp_path / "t.arrow")
    np.testing.assert_allclose(
        model.predict_scores(read_table(tmp_path / "t.arrow")), model.predict_scores(frame)
    )


# --- one evaluation --------------------------------------------------------------------------------


def test_ndcg_is_scikit_learns_in_score_evaluate_compare_and_cross_validation(tmp_path):
    rng = np.random.default_rng(0)
    n, m = 60, 6
    x = rng.normal(size=(n, m))
    grade = np.clip(
        np.round(x + rng.normal(size=(n, m)) + rng.normal(size=(n, 1))), 0, 3
    )  # some sets have no 0
    grade[:, 0] += 1
    frame = pd.DataFrame({"q": np.repeat(np.arange(n), m), "x": x.ravel(), "grade": grade.ravel()})
    model = RankSVM().fit(frame, set_id="q", target="grade", target_kind="relevance")
    expected = np.mean([ndcg_score(g[None], s[None]) for g, s in zip(grade, x, strict=True) if g.any()])
    assert model.evaluate(frame)["ndcg"] == pytest.approx(expected)
    sets = Sets.from_frame(frame, set_id="q", target="grade", target_kind="relevance")
    assert model.evaluate(sets)["ndcg"] == pytest.approx(expected)
    candidates = {"a": (RankSVM(), "context-free"), "b": (ExpectedRankRegression(), "context")}
    compared = compare(sets, candidates, metrics=["ndcg"], metric="ndcg", kind="relevance")
    assert compared.means["a"]["ndcg"] == pytest.approx(expected, abs=1e-3)
    checked = cross_validate(RankSVM(), sets, metrics=["ndcg"])
    assert checked.means["ndcg"] == pytest.approx(expected, abs=1e-3)


def test_grades_finer_than_single_precision_keep_their_distances():
    frame = pd.DataFrame(
        {"q": [1, 1, 1, 2, 2, 2], "x": [1.0, 2.0, 3.0] * 2, "grade": [0.1, 0.7, 0.2, 0.9, 0.3, 0.1]}
    )
    model = RankSVM().fit(frame, set_id="q", target="grade", target_kind="relevance")
    scores = model.predict_scores(frame).reshape(2, 3)
    expected = np.mean(
        [ndcg_score([g], [s]) for g, s in zip([[0.1, 0.7, 0.2], [0.9, 0.3, 0.1]], scores, strict=True)]
    )
    assert model.evaluate(frame)["ndcg"] == pytest.approx(expected)


def test_the_held_out_score_of_noise_is_a_guess():
    rng = np.random.default_rng(1)
    found = []
    for seed in range(24):
        X = rng.normal(size=(200, 5, 4))
        y = rng.permuted(np.tile(np.arange(5), (200, 1)), axis=1)
        model = Ranker(ContextFree(width=16), steps=60, evaluate_every=3, random_state=seed).fit(X, y)
        found.append((model.held_out_score_, model.best_score_))
    fair, best = np.mean(found, axis=0)
    assert abs(fair - 0.5) < 0.025 < best - 0.5


# --- files -----------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a table, a model and a link to each."""
    table_of(40).to_csv(tmp_path / "mine.csv", index=False)
    model = Ranker(ContextFree(width=4), steps=2, random_state=0)
    model.fit(read_table(tmp_path / "mine.csv"), set_id="race", target="place").save(tmp_path / "m.entourage")
    (tmp_path / "link.csv").symlink_to(tmp_path / "mine.csv")
    os.link(tmp_path / "mine.csv", tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("out", ["mine.csv", "./mine.csv", "link.csv", "hard.csv", "../{folder}/mine.csv"])
@pytest.mark.parametrize("command", ["fit", "tune", "compare", "predict", "effects"])
def test_an_output_is_never_an_input(home, command, out):
    out = out.format(folder=home.name)
    before = (home / "mine.csv").read_bytes()
    roles = ["--set-id", "race", "--target", "place"]
    arguments = {
        "fit": ["fit", "mine.csv", *roles, "-o", out],
        "tune": ["tune", "mine.csv", *roles, "-o", out],
        "compare": ["compare", "mine.csv", *roles, "--report", out],
        "predict": ["predict", "m.entourage", "mine.csv", "-o", out],
        "effects": ["effects", "m.entourage", "mine.csv", "--report", out],
    }[command]
    with pytest.raises(UserError, match="is also an input"):
        run(*arguments)
    assert (home / "mine.csv").read_bytes() == before


def test_a_prediction_never_replaces_its_model(home):
    with pytest.raises(UserError, match="is also an input"):
        run("predict", "m.entourage", "mine.csv", "-o", "m.entourage")


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("s;x;y\n1;2;0\n1;3;1\n", [], "--sep ';'"),
        ("s;x;y\n1;2,5;0\n1;3,5;1\n", ["--sep", ";"], "--decimal ,"),
        ("s,x,y\n1,2,0\n2,3,0\n3,4,0\n", [], "Every set has one object"),
        ("s,x,y\n1,2,-3\n1,3,-1\n", [], "row 1, set 1 holds -3.*relevance"),
        ("s,x,y\n1,2,0\n1,3,1\n1,4,2\n", ["--model", "auto"], "too few sets"),
        ("s,x,y\n1,2,0\n1,3,1\n", ["--model", "fat"], "did you mean 'fate'.*'auto'"),
    ],
)
def test_clumsy_tables_are_answered_in_a_sentence(tmp_path, content, options, says):
    (tmp_path / "t.csv").write_text(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        with pytest.raises((UserError, DataWarning), match=says):
            run("fit", tmp_path / "t.csv", "--set-id", "s", "--target", "y", *options, "-o", tmp_path / "m")


def test_decimal_commas_and_semicolons_are_read(tmp_path):
    frame = table_of(30)
    frame.to_csv(tmp_path / "de.csv", sep=";", decimal=",", index=False)
    table = read_table(tmp_path / "de.csv", sep=";", decimal=",")
    np.testing.assert_allclose(table["a"].to_numpy(), frame["a"])


def test_latin_1_is_said_and_read(tmp_path):
    (tmp_path / "t.csv").write_bytes("s,name,y\n1,Käse,0\n1,Öl,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="not encoded as UTF-8.*--encoding latin-1"):
        read_table(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", encoding="latin-1")["name"].to_pylist() == ["Käse", "Öl"]


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_text_that_looks_like_numbers_stays_text_at_predict(tmp_path):
    rows = "".join(f"{i // 3},{c},{i % 3}\n" for i, c in enumerate(["1", "2", "A"] * 40))
    (tmp_path / "train.csv").write_text("s,code,y\n" + rows)
    (tmp_path / "test.csv").write_text("s,code\n1,1\n1,2\n")
    model = tmp_path / "m.entourage"
    run(
        "fit",
        tmp_path / "train.csv",
        "--set-id",
        "s",
        "--target",
        "y",
        "--model",
        "fate",
        "--steps",
        60,
        "-o",
        model,
    )
    run("predict", model, tmp_path / "test.csv", "-o", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["rank"].tolist() == [0, 1]


# --- Ctrl-C ----------------------------------------------------------------------------------------


def test_an_interrupted_fit_raises_unless_asked_to_keep():
    X, y, _ = reversed_half()

    def interrupt(score):
        raise KeyboardInterrupt

    model = ranker()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, on_evaluation=interrupt)
    assert not hasattr(model, "scorer_")
    with pytest.warns(UserWarning, match="Interrupted in step"):
        model.set_params(on_interrupt="keep").fit(X, y, on_evaluation=interrupt)
    assert model.interrupted_


# --- more words ------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [FETA(width=4), SetAttention(width=4, rounds=1, heads=1)])
def test_pairs_of_large_sets_are_said_beforehand_with_what_to_do(net, monkeypatch):
    monkeypatch.setattr("entourage.estimators.large_sets.LARGE_SET", 50)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 60, 2)), np.tile(np.arange(60), (3, 1))
    with pytest.warns(
        UserWarning, match=r"60 objects, 3,600 pairs. Training for 2 steps.*points=32.*subset_size"
    ):
        model = Ranker(net, steps=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="Scoring will take about"):
        model.predict(X)
    Ranker(SetAttention(width=4, rounds=1, heads=1, points=4), steps=2, random_state=0).fit(X, y).predict(X)


def test_a_dollar_in_a_name_is_no_formula(tmp_path):
    from entourage.effects.plots import draw_decoys

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3, 2))
    model = DiscreteChooser(FATE(width=4), steps=2, random_state=0).fit(X, X[..., 0].argmax(1))
    bounds = [np.array([-1.0, -1.0]), np.array([1.0, 1.0])]
    figure = draw_decoys(model, A=X[0, 0], B=X[0, 1], bounds=bounds, names=("a$^$b", "c$"), features=(0, 1))
    figure.savefig(tmp_path / "map.png")


def test_compare_takes_a_frame():
    frame = table_of(40)
    frame["season"] = frame.race // 4
    candidates = {"a": (RankSVM(), "context-free"), "b": (ExpectedRankRegression(), "context")}
    roles = {"set_id": "race", "target": "place", "ignore": ["season"]}
    by_frame = compare(frame, candidates, metrics=[], groups="season", **roles)
    sets = Sets.from_frame(frame, **roles)
    by_sets = compare(sets, candidates, metrics=[], groups=np.arange(40) // 4)
    assert by_frame.means == by_sets.means
    assert by_frame.p_value == by_sets.p_value


def test_a_fit_that_fails_leaves_a_fitted_model_as_it_was(tmp_path):
    frame = table_of(60)
    frame["driver"] = [f"d{i % 50}" for i in range(len(frame))]  # more levels than one-hot takes
    model = ranker(steps=5).fit(frame, set_id="race", target="place")
    before = model.predict_scores(frame)

    def interrupt(score):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(*reversed_half()[:2], on_evaluation=interrupt)
    np.testing.assert_array_equal(model.predict_scores(frame), before)
    model.save(tmp_path / "m.entourage")
    np.testing.assert_array_equal(load(tmp_path / "m.entourage").predict_scores(frame), before)
