"""Numbers in the explorer are those of Python: ``make browser``."""

import numpy as np
import pytest

from entourage.cli.options import read_for
from entourage.decisions import audit
from entourage.effects import influence_matrix
from entourage.estimators.prediction_tables import predict_table

pytestmark = pytest.mark.browser

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def softmax(utilities):
    powers = np.exp(utilities - utilities.max())
    return powers / powers.sum()


def standing(scores, i):
    return scores[i] - np.log(np.exp(np.delete(scores, i)).sum())


def test_scores_probabilities_influence_and_the_control(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    for i in (0, 1, 2):
        np.testing.assert_allclose(page.scores(), model.predict_scores(X[i : i + 1])[0], **CLOSE)
        np.testing.assert_allclose(page.probabilities(), model.predict_proba(X[i : i + 1])[0], **CLOSE)
        copies = np.repeat(X[i][:, None], 5, axis=1)
        control = softmax(model.predict_scores(copies)[:, 0])
        np.testing.assert_allclose(page.probabilities("beside"), control, **CLOSE)
        gaps = page.values("#objects .gap")
        np.testing.assert_allclose(gaps, model.predict_proba(X[i : i + 1])[0] - control, **CLOSE)
        matrix = influence_matrix(model, X[i : i + 1])[0]
        cells = page.values("#matrix tbody td").reshape(5, 5)
        np.testing.assert_allclose(cells, matrix, **CLOSE)
        page.do("click", "#next")


def test_demand_curves_of_the_model_and_of_the_control(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    page.select(2)
    at = page.values("#curve-table tbody th")
    moved = np.repeat(X[:1], len(at), axis=0)
    moved[:, 2, 0] = at
    own = page.values("#curve-table tbody td:nth-child(2)")
    np.testing.assert_allclose(own, model.predict_proba(moved)[:, 2], **CLOSE)
    copies = np.repeat(moved.reshape(-1, 1, 2), 5, axis=1)
    alone = model.predict_scores(copies)[:, 0].reshape(len(at), 5)
    control = np.array([softmax(one)[2] for one in alone])
    np.testing.assert_allclose(page.values("#curve-table tbody td:nth-child(3)"), control, **CLOSE)


def test_the_flag_of_a_price_is_the_verdict_of_the_audit(opened, medoid):
    model, X, path = medoid
    found = audit(model, X, {0: -1}, most_sets=None, most_offenders=1000).signs[0]
    amounts = {
        rule: {one.row: one.amount for one in getattr(found, rule).worst}
        for rule in ("gradient", "move", "monotone")
    }
    page = opened(path)
    flags = set()
    for i in range(3):
        for j in range(5):
            page.select(j)
            verdict = page.page.evaluate("JSON.parse(document.getElementById('audit').dataset.verdict)")
            row = 5 * i + j
            for rule, shown, near in zip(amounts, verdict, (2e-2, 1e-5, 1e-5), strict=False):
                wanted = amounts[rule].get(row, 0.0)
                assert shown == pytest.approx(wanted, rel=near, abs=max(near, 1.1e-3 if not wanted else 0))
            assert verdict[3] == any(row in rule for rule in amounts.values())
            words = page.page.inner_text("#audit")
            assert words.startswith("Flagged by the audit" if verdict[3] else "Audit passed")
            flags.add(verdict[3])
        page.do("click", "#next")
    assert flags == {True, False}


def test_the_best_decoy_and_the_worst_enemy_gain_what_python_says(opened, medoid):
    model, X, path = medoid
    page = opened(path)

    def objects():
        return np.array([[float(row["x0"]), float(row["x1"])] for row in page.rows()])

    before = standing(model.predict_scores(X[:1])[0], 3)
    page.select(3)
    page.do("click", "#decoy")
    with_decoy = objects()
    assert len(with_decoy) == 6
    after = standing(model.predict_scores(with_decoy[None])[0][:5], 3)
    gain = page.values("#said")[0]
    assert gain > 0
    assert gain == pytest.approx(after - before, abs=1e-5)
    places = np.array([[(a + 0.5) / 22, (b + 0.5) / 22] for b in range(22) for a in range(22)])
    spans = [np.quantile(medoid[1][..., k], (0.01, 0.99)) for k in (0, 1)]  # the axes of the page
    spans = [(min(s[0], X[0, :, k].min()), max(s[1], X[0, :, k].max())) for k, s in enumerate(spans)]
    grid = np.stack([lo - 0.06 * (hi - lo) + p * 1.12 * (hi - lo) for p, (lo, hi) in zip(places.T, spans)], 1)
    sets = np.concatenate([np.repeat(X[:1], len(grid), 0), grid[:, None]], axis=1)
    best = max(standing(one[:5], 3) for one in model.predict_scores(sets))
    assert gain == pytest.approx(best - before, abs=1e-5)
    page.do("click", "#reset")
    page.select(3)
    page.do("click", "#enemy")
    rest = objects()
    assert len(rest) == 4
    gone = next(i for i in range(5) if X[0, i].tolist() not in rest.tolist())
    whole = model.predict_scores(X[:1])[0]
    place = 3 if gone > 3 else 2
    gained = standing(model.predict_scores(rest[None])[0], place) - standing(np.delete(whole, gone), place)
    assert page.values("#said")[0] == pytest.approx(gained, abs=1e-5)


def test_two_models_of_a_table_with_text_missing_values_and_hostile_names(opened, shop):
    net, other, frame, path = shop
    page = opened(path)
    hostile = frame.columns[1]
    assert page.page.title() == hostile  # shown as text; nothing ran
    assert page.page.locator("img").count() == 0
    own = frame[frame["trip"] == frame["trip"].iloc[0]]
    np.testing.assert_allclose(page.probabilities(), net.predict_proba(own), **CLOSE)
    np.testing.assert_allclose(page.probabilities("beside"), other.predict_proba(own), **CLOSE)
    for which, model in (("own", net), ("beside", other)):
        nothing = page.values(f"#objects-foot .{which} .number")[0]
        assert nothing == pytest.approx(1 - model.predict_proba(own).sum(), abs=1e-5)
    box = page.page.locator("#situation-fields input").first
    box.fill("0.25")
    box.press("Tab")
    page.ready()
    changed = own.assign(rain=0.25)
    np.testing.assert_allclose(page.probabilities(), net.predict_proba(changed), **CLOSE)
    page.select(1)
    at = page.values("#curve-table tbody th")
    demand = page.values("#curve-table tbody td:nth-child(3)")
    for k in (0, 16, 32):
        moved = changed.copy()
        moved.iloc[1, moved.columns.get_loc("cost")] = at[k]
        assert demand[k] == pytest.approx(other.predict_proba(moved)[1], abs=1e-5)


def test_the_csv_is_a_table_that_the_model_predicts_from(opened, shop, tmp_path):
    net, _, frame, path = shop
    page = opened(path)
    page.do("click", "#next")
    page.page.locator("#objects tr[data-object='3'] input[type=checkbox]").click()
    page.ready()
    brand = page.page.locator("#objects tr[data-object='0'] td[data-label='brand'] select")
    brand.select_option("")  # missing
    cost = page.page.locator("#objects tr[data-object='1'] td[data-label='cost'] input")
    cost.fill("")
    cost.press("Enter")
    page.ready()
    saved = tmp_path / "set.csv"
    saved.write_bytes(page.csv().read_bytes())
    table = read_for(net, saved, {"sep": ",", "decimal": ".", "encoding": "utf8"})
    assert table.column_names[0] == "trip"
    predicted = predict_table(net, table).to_pandas()
    assert len(predicted) == 5  # the one that is off is not in it
    np.testing.assert_allclose(predicted["score"], predicted["explorer_score_"], **CLOSE)
    np.testing.assert_allclose(predicted["probability"], predicted["explorer_probability"], **CLOSE)
    expected = frame[frame["trip"] == frame["trip"].unique()[1]].reset_index(drop=True)
    expected.loc[0, "brand"], expected.loc[1, "cost"] = None, np.nan
    np.testing.assert_allclose(predicted["score"], net.predict_scores(expected.drop(index=3)), **CLOSE)
    assert predicted[frame.columns[1]].tolist() == expected[frame.columns[1]].drop(index=3).tolist()


def test_changes_are_those_of_the_same_object_after_another_is_dropped(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    page.page.locator("#objects tr[data-object='0'] button").click()
    page.ready()
    before, after = model.predict_proba(X[:1])[0, 1:], model.predict_proba(X[:1, 1:])[0]
    np.testing.assert_allclose(page.values("#objects .change"), after - before, **CLOSE)
