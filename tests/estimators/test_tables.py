"""Models of tables: predictions in the rows they belong to, metrics, influence; bad tables are clean errors."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_tables import TABLE, long_table

from entourage import Ranker, load
from entourage.data import Sets
from entourage.data.encoder import TableEncoder
from entourage.effects.influence import influential_objects
from entourage.errors import DataError, UserError
from entourage.estimators.evaluation_tables import evaluate_table
from entourage.estimators.inputs import encoder_of
from entourage.estimators.prediction_tables import predict_table
from entourage.nets import FATE


@pytest.fixture(scope="module")
def model():
    table = long_table()
    ranker = Ranker(FATE(width=16), steps=150, batch_size=32, random_state=0, device="cpu")
    ranker.fit(table, set_id="race", target="place", ignore=["note"])
    return ranker


def test_predictions_joined_row_by_row_are_those_of_the_sets(model, tmp_path):
    model.save(tmp_path / "m.entourage")
    again = load(tmp_path / "m.entourage")
    table = long_table(seed=1)
    predicted = predict_table(again, table)
    assert predicted.column_names == [*table.column_names, "probability", "score", "rank"]
    assert predicted.select(table.column_names).equals(table), "rows in the order they came, columns kept"
    rows = predicted.to_pylist()
    for race in set(table["race"].to_pylist()):
        mine = [row for row in rows if row["race"] == race]
        scores = model.predict_scores(np.array([[[row["x"]] for row in mine]], dtype=np.float32))[0]
        assert [row["score"] for row in mine] == pytest.approx(scores.tolist(), abs=1e-5)
        assert sorted(mine, key=lambda row: -row["score"]) == sorted(mine, key=lambda row: row["rank"])


def test_a_column_of_the_same_name_is_kept(model):
    table = long_table(seed=1).rename_columns(["race", "x", "note", "rank"])
    predicted = predict_table(model, table)
    assert predicted.column_names[-2:] == ["score", "predicted_rank"]
    assert predicted["rank"].equals(table["rank"])
    with pytest.raises(DataError, match="'predicted_rank' already"):
        predict_table(model, predicted.drop_columns(["score"]))


def test_evaluation_agrees_with_the_estimators_score(model):
    table = long_table(seed=2)
    result = evaluate_table(model, table)
    sets = encoder_of(model)(table).sets
    assert result["metrics"]["ranking_accuracy"] == pytest.approx(model.score(sets))
    assert result["sets"] == 40
    assert set(result["by_size"]) == set(sets.sizes.tolist())
    with pytest.raises(DataError, match="lacks column 'place'"):
        evaluate_table(model, table.drop_columns(["place"]))
    tied = table.set_column(3, "place", pa.array([1] * table.num_rows))
    with pytest.raises(DataError, match="all targets are equal"):
        evaluate_table(model, tied)


def test_graded_metrics_use_the_grades():
    table = pa.table({"q": [0, 0, 0], "x": [3.0, 2.0, 1.0], "rel": [2, 0, 1]})
    encoder = TableEncoder.fit(table, set_id="q", target="rel", target_kind="relevance")

    class Sum:
        task = Ranker().task
        table_ = encoder.to_json()

        def predict_scores(self, sets):
            return sets.objects[:, 0]

    ideal, got = 2 + 1 / np.log2(3), 2 + 1 / np.log2(4)
    assert evaluate_table(Sum(), table)["metrics"]["ndcg"] == pytest.approx(got / ideal)


def test_influence_is_how_often_the_others_turn_round(model):
    packed = encoder_of(model)(long_table(seed=3))
    found = influential_objects(model, packed, most_sets=10)
    assert found[0]["reversal_rate"] >= found[-1]["reversal_rate"] >= 0
    first = found[0]
    i = packed.ids.to_pylist().index(first["set"])
    rows = packed.order[packed.sets.offsets[i] : packed.sets.offsets[i + 1]]
    assert first["row"] in rows

    rest = np.setdiff1d(rows, first["row"])
    x = long_table(seed=3)["x"].to_numpy()
    whole = dict(zip(rows, model.predict_scores(Sets.of(x[rows][None, :, None])), strict=True))
    without = dict(zip(rest, model.predict_scores(Sets.of(x[rest][None, :, None])), strict=True))
    pairs = [(a, b) for k, a in enumerate(rest) for b in rest[k + 1 :]]
    turned = [(whole[a] - whole[b]) * (without[a] - without[b]) < 0 for a, b in pairs]
    assert (first["reversal_rate"], first["pairs"]) == (pytest.approx(np.mean(turned)), len(pairs))

    class Blind:
        def predict_scores(self, sets):
            return sets.objects[:, 0]

    assert all(entry["reversal_rate"] == 0 for entry in influential_objects(Blind(), packed))


def test_a_model_of_arrays_is_no_model_of_tables():
    ranker = Ranker(FATE(width=4), steps=2, device="cpu", random_state=0)
    ranker.fit(np.random.default_rng(0).random((30, 3, 1)), np.tile(np.arange(3), (30, 1)))
    with pytest.raises(UserError, match="was fitted to arrays"):
        predict_table(ranker, TABLE)


CELL = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(), st.text(max_size=3), st.just(1e300)
)


@given(
    data=st.fixed_dictionaries(
        {name: st.lists(CELL, min_size=6, max_size=6) for name in ("race", "x", "place")}
        | {
            "order": st.permutations(["race", "x", "place"]),
            "drop": st.sampled_from([None, "race", "x", "place"]),
        }
    )
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore::entourage.errors.DataWarning")
def test_malformed_tables_give_clean_errors_only(model, data):
    columns = {}
    for name in data["order"]:
        if name == data["drop"]:
            continue
        try:
            columns[name] = pa.array(data[name])
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # mixed types: as a CSV would have them
            columns[name] = pa.array([None if cell is None else str(cell) for cell in data[name]])
    table = pa.table(columns)
    try:
        fitted = Ranker(FATE(width=2), steps=1, device="cpu", random_state=0)
        fitted.fit(table, set_id="race", target="place")
        assert np.isfinite(predict_table(fitted, table)["score"].to_numpy()).all()
    except UserError:
        pass
    try:
        assert np.isfinite(predict_table(model, table)["score"].to_numpy()).all()
    except UserError:
        pass


def test_many_levels_become_codes_whose_vectors_are_learnt(tmp_path):
    rng = np.random.default_rng(0)
    quality = rng.permutation(40)
    names = np.array([f"team{i}" for i in range(40)])
    team = np.concatenate([rng.choice(40, 5, replace=False) for _ in range(200)])
    race = np.repeat(np.arange(200), 5)
    place = np.concatenate([np.argsort(np.argsort(quality[team[race == i]])) for i in range(200)])
    table = pa.table({"race": race, "noise": rng.random(1000), "team": names[team], "place": place})
    encoder = TableEncoder.fit(table, set_id="race", target="place", codes=True)
    assert encoder.categories == [(1, 40)]
    model = Ranker(FATE(width=16), steps=120, batch_size=64, learning_rate=0.03, device="cpu", random_state=0)
    model.fit(encoder(table).sets)
    assert evaluate_table(model, table)["metrics"]["ranking_accuracy"] > 0.85
    model.save(tmp_path / "m.entourage")
    again = load(tmp_path / "m.entourage")
    assert predict_table(again, table)["score"].equals(predict_table(model, table)["score"])
    unseen = pa.table({"race": [0, 0], "noise": [0.1, 0.1], "team": ["stranger", None]})
    scores = predict_table(again, unseen)["score"].to_pylist()
    assert scores[0] == pytest.approx(scores[1]), "what was never seen has no vector of its own"
