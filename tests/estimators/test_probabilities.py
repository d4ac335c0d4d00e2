"""Probabilities of estimators: the same by every way in, kept in files, and refused where nothing was held out."""

import numpy as np
import pyarrow as pa
import pytest

from entourage import FATE, DiscreteChooser, Ranker, Sets, load
from entourage.errors import UserError
from entourage.estimators.fit_together import fit_together
from entourage.estimators.prediction_tables import predict_table
from entourage.estimators.probabilities import CalibratedRanker
from entourage.tasks.reliability import expected_calibration_error

RNG = np.random.default_rng(0)
N, M = 160, 4
X = RNG.normal(size=(N, M, 2))
UTILITY = 2 * X[..., 0] - X[..., 1]
RANKS = (-UTILITY - RNG.gumbel(size=(N, M))).argsort(1).argsort(1)
CHOSEN = RANKS.argmin(1)
SMALL = {"steps": 40, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def ranker():
    return Ranker(FATE(width=8), validation=0.25, **SMALL).fit(X, RANKS)


@pytest.fixture(scope="module")
def table():
    columns = {"race": np.repeat(np.arange(N), M), "speed": X[..., 0].ravel(), "load": X[..., 1].ravel()}
    return pa.table(columns | {"place": RANKS.ravel()})


@pytest.fixture(scope="module")
def on_table(table):
    model = Ranker(FATE(width=8), validation=0.25, **SMALL)
    return model.fit(table, set_id="race", target="place")


def test_probabilities_are_a_softmax_with_the_temperature(ranker):
    scores = ranker.predict_scores(X[:5]) / ranker.temperature_
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(ranker.predict_proba(X[:5]), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    places = ranker.predict_places(X[:5])
    assert places.shape == (5, M, M)
    powers = np.exp(ranker.predict_scores(X[:5]) / ranker.calibration_.place_temperature)
    np.testing.assert_allclose(places[:, :, 0], powers / powers.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(ranker.predict_expected_places(X[:5]), places @ np.arange(M), atol=1e-6)


def test_every_form_of_input_has_the_same_probabilities(ranker):
    low, high = ranker.predict_place_intervals(X[:6], 0.8)
    assert low.shape == high.shape == (6, M)
    lists, packed = list(X[:6]), Sets.from_array(X[:6])
    for form in (lists, packed):
        np.testing.assert_allclose(
            np.ravel(ranker.predict_proba(form)), ranker.predict_proba(X[:6]).ravel(), rtol=1e-5
        )
        np.testing.assert_allclose(
            np.stack(ranker.predict_places(form)), ranker.predict_places(X[:6]), atol=1e-6
        )
        np.testing.assert_array_equal(np.ravel(ranker.predict_place_intervals(form, 0.8)[1]), high.ravel())
    assert isinstance(ranker.predict_places(lists), list)
    ragged = ranker.predict_places([X[0], X[1, :3], X[2, :1]])
    assert [own.shape for own in ragged] == [(4, 4), (3, 3), (1, 1)]
    assert all(np.allclose(own.sum(0), 1) and np.allclose(own.sum(1), 1) for own in ragged)
    alone = ranker.predict_place_intervals([X[2, :1]], 0.8)
    assert [own[0].tolist() for own in alone] == [[0], [0]]


def test_a_table_has_a_row_for_each_of_its_rows_in_any_order(on_table, table):
    order = np.random.default_rng(1).permutation(N * M)
    shuffled = table.take(pa.array(order))
    for predict in (on_table.predict_proba, on_table.predict_places, on_table.predict_expected_places):
        found = predict(table)
        assert len(found) == N * M
        np.testing.assert_allclose(predict(shuffled), found[order], atol=1e-5)
    assert on_table.predict_places(table).shape == (N * M, M)
    low, high = on_table.predict_place_intervals(table, 0.8)
    places = table.column("place").to_numpy()
    assert ((low <= places) & (places <= high)).mean() > 0.7
    predicted = predict_table(on_table, shuffled)
    assert {"score", "rank", "probability"} <= set(predicted.column_names)
    np.testing.assert_allclose(
        predicted.column("probability").to_numpy(), on_table.predict_proba(table)[order], rtol=1e-5
    )


def test_a_table_calibrates_like_its_arrays_with_a_column_of_weights(on_table, table):
    model = Ranker(FATE(width=8), validation=0, **SMALL)
    model.fit(table, set_id="race", target="place")
    weights = np.repeat(np.random.default_rng(2).integers(0, 3, N), M)
    by_table = model.calibrate(table.append_column("w", pa.array(weights)), sample_weight="w").calibration_
    by_array = model.calibrate(X, RANKS, sample_weight=weights[::M]).calibration_
    assert by_array.n_sets == by_table.n_sets == (weights[::M] > 0).sum()
    assert by_table.temperature == pytest.approx(by_array.temperature, rel=1e-5)


def test_a_temperature_makes_the_probabilities_of_a_hinge_ranker_right(ranker):
    rng = np.random.default_rng(3)
    fresh = rng.normal(size=(800, M, 2))
    first = (2 * fresh[..., 0] - fresh[..., 1] + rng.gumbel(size=(800, M))).argmax(1)
    hits = np.arange(M) == first[:, None]
    scores = ranker.predict_scores(fresh)
    raw = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    error = expected_calibration_error(ranker.predict_proba(fresh), hits)
    assert error < 0.06
    assert error < expected_calibration_error(raw, hits) + 0.01


def test_files_keep_the_calibration_and_earlier_files_have_none(ranker, tmp_path):
    ranker.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.calibration_ == ranker.calibration_
    np.testing.assert_array_equal(again.predict_places(X[:3]), ranker.predict_places(X[:3]))


def test_an_earlier_file_is_read_and_can_be_calibrated():
    from pathlib import Path

    old = load(Path(__file__).parent / "golden" / "fate.entourage")
    if old.calibration_ is not None:
        pytest.skip("the golden file was made anew")
    with pytest.raises(UserError, match=r"model\.calibrate\(X, y\)"):
        old.predict_proba(X)
    assert "probability" not in old.columns(Sets.from_array(X), np.zeros(N * M))
    old.calibrate(X, RANKS)
    np.testing.assert_allclose(old.predict_proba(X).sum(1), 1)


@pytest.mark.parametrize(
    "fit",
    [
        lambda: Ranker(FATE(width=4), validation=0, **SMALL).fit(X, RANKS),
        lambda: Ranker(FATE(width=4), **SMALL).fit(X[:15], RANKS[:15]),
        lambda: Ranker(FATE(width=4), **SMALL).fit(X[:30], RANKS[:30]).partial_fit(X, RANKS),
    ],
    ids=["validation=0", "few sets", "partial_fit"],
)
def test_where_nothing_was_held_out_an_error_says_what_to_do(fit):
    model = fit()
    assert model.temperature_ is None
    for predict in (model.predict_proba, model.predict_places, model.predict_place_intervals):
        with pytest.raises(UserError, match="not used for training"):
            predict(X)
    assert model.calibrate(X, RANKS).temperature_ > 0
    model.fit(X[:15], RANKS[:15])
    assert model.temperature_ is None  # that of other weights is forgotten


def test_weights_and_fits_side_by_side_calibrate_too():
    weighted = Ranker(FATE(width=4), **SMALL).fit(X, RANKS, sample_weight=np.arange(N) % 3)
    assert weighted.temperature_ > 0
    pair = [Ranker(FATE(width=4), **(SMALL | {"random_state": seed})) for seed in (0, 1)]
    fit_together(pair, [(X, RANKS)] * 2)
    alone = Ranker(FATE(width=4), **SMALL).fit(X, RANKS)
    assert pair[0].temperature_ == pytest.approx(alone.temperature_, rel=1e-3)


class Blend(CalibratedRanker):
    """A ranker without a net: what has scores has probabilities."""

    n_features_in_, n_situation_features_in_ = 2, 0

    def _packed_scores(self, sets):
        return 5 * (2 * sets.objects[:, 0] - sets.objects[:, 1])


def test_whatever_scores_sets_can_be_calibrated():
    model = Blend().calibrate(X, RANKS)
    assert model.temperature_ == pytest.approx(5, rel=0.3)
    assert model.calibration_.place_temperature == pytest.approx(5, rel=0.2)
    assert model.predict_places(X[:2]).shape == (2, M, M)


def test_favourites_win_as_often_as_stated_where_the_lower_places_are_chance():
    """The order of the last is noise in most races; it must not make the chances of the first too modest."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1400, 12, 2))
    utility = 2 * x[..., 0] - x[..., 1]
    order = rng.random(utility.shape)
    winner = (utility + rng.gumbel(size=utility.shape)).argmax(1)
    order[np.arange(len(order)), winner] = -1
    ranks = order.argsort(1).argsort(1)
    model = Ranker(FATE(width=8), validation=0.4, **SMALL).fit(x[:400], ranks[:400])
    chances = model.predict_proba(x[400:])
    won = winner[400:] == chances.argmax(1)
    assert chances.max(1).mean() == pytest.approx(won.mean(), abs=0.06)
    assert model.predict_places(x[400:])[:, :, 0].max(1).mean() < won.mean() - 0.1  # one temperature for all


def test_features_of_the_situation_are_part_of_it():
    situation = RNG.normal(size=(N, 1))
    model = Ranker(FATE(width=4), **SMALL).fit(X, RANKS, situation=situation)
    np.testing.assert_allclose(model.predict_proba(X, situation=situation).sum(1), 1)
    model.calibrate(X[:50], RANKS[:50], situation=situation[:50])
    assert model.calibration_.n_sets == 50


# --- choices --------------------------------------------------------------------------------------


def test_prediction_sets_have_the_form_of_the_input_and_hold_the_prediction(tmp_path):
    model = DiscreteChooser(FATE(width=8), validation=0.25, **SMALL).fit(X, CHOSEN)
    inside = model.predict_sets(X, 0.8)
    assert inside.shape == (N, M)
    assert inside.dtype == bool
    assert inside[np.arange(N), model.predict(X)].all()
    assert inside[np.arange(N), CHOSEN].mean() > 0.7
    np.testing.assert_array_equal(np.stack(model.predict_sets(list(X), 0.8)), inside)
    np.testing.assert_array_equal(model.predict_sets(Sets.from_array(X), 0.8), inside.ravel())
    before = model.log_likelihood(X, CHOSEN)
    model.calibrate(X, CHOSEN)
    assert model.log_likelihood(X, CHOSEN) == before
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_sets(X, 0.8), model.predict_sets(X, 0.8))


def test_the_outside_option_may_be_in_a_prediction_set():
    chosen = np.where(RNG.random(N) < 0.5, -1, CHOSEN)
    table = pa.table({
        "visit": np.repeat(np.arange(N), M), "a": X[..., 0].ravel(), "b": X[..., 1].ravel(),
        "bought": (np.arange(M) == chosen[:, None]).ravel().astype(int)})  # fmt: skip
    model = DiscreteChooser(FATE(width=8), outside=True, validation=0.25, **SMALL)
    model.fit(table, set_id="visit", target="bought")
    inside, nothing = model.predict_sets(X, 0.8, return_nothing=True)
    assert nothing.shape == (N,)
    assert (inside.any(1) | nothing).all()
    hit = np.where(chosen < 0, nothing, inside[np.arange(N), chosen])
    assert hit.mean() > 0.65
    order = np.random.default_rng(4).permutation(N * M)
    rows, each = model.predict_sets(table.take(pa.array(order)), 0.8, return_nothing=True)
    np.testing.assert_array_equal(rows, inside.ravel()[order])
    np.testing.assert_array_equal(each, np.repeat(nothing, M)[order])


def test_a_chooser_without_held_out_sets_says_what_to_do():
    model = DiscreteChooser(FATE(width=4), validation=0, **SMALL).fit(X, CHOSEN)
    with pytest.raises(UserError, match=r"model\.calibrate"):
        model.predict_sets(X)
