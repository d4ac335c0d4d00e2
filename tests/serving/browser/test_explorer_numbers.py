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


@pytest.mark.parametrize("name", ["medoid", "shop"])
def test_the_flag_of_a_price_is_the_verdict_of_the_audit(opened, request, name):
    model, *_, X, path = request.getfixturevalue(name)
    price = 0 if name == "medoid" else "cost"
    found = audit(model, X, {price: -1}, most_sets=None, most_offenders=1000).signs[0]
    rules = ("gradient", "move", "monotone")
    amounts = [{one.row: one.amount for one in getattr(found, rule).worst} for rule in rules]
    page = opened(path)
    row, flags = 0, []
    for _ in range(2):
        for j in range(page.page.locator("#picture .point").count()):
            page.select(j)
            shown = page.page.evaluate(
                "JSON.parse(document.getElementById('audit').dataset.verdict || 'null')"
            )
            words = page.page.inner_text("#audit")
            if "missing" in words:
                assert shown[:3] == [0, 0, 0]
            else:
                for rule, amount, near in zip(amounts, shown, (0.02, 1e-5, 1e-5), strict=False):
                    if row in rule:
                        assert amount == pytest.approx(rule[row], rel=near, abs=near)
                    else:
                        assert amount < 1.05e-3  # the tolerance of the audit
                assert shown[3] == any(row in rule for rule in amounts)
                assert words.startswith("Flagged by the audit" if shown[3] else "Audit passed")
                flags.append(shown[3])
            row += 1
        page.do("click", "#next")
    assert any(flags) if name == "medoid" else not all(flags)


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
    ranges = []  # of the axes of the page
    for k in (0, 1):
        ends = np.quantile(X[..., k], (0.01, 0.99))
        low, high = min(ends[0], X[0, :, k].min()), max(ends[1], X[0, :, k].max())
        ranges.append((low - 0.06 * (high - low), 1.12 * (high - low)))
    steps = (np.arange(22) + 0.5) / 22
    x, y = (low + steps * size for low, size in ranges)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 1, 2)
    sets = np.concatenate([np.repeat(X[:1], len(grid), 0), grid], axis=1)
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
