"""What people do in the explorer: drag, toggle, type, undo, share."""

import re

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.baselines import LinearRanker
from entourage.choice import MultinomialLogit
from entourage.data import make_medoid
from entourage.effects import influence_matrix
from entourage.selection import candidates
from entourage.serving import explore
from entourage.serving.explorer import Preset

pytestmark = pytest.mark.browser

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def drag(page, i, dx, dy, picture="#picture"):
    disc = page.point(i, picture).locator(".disc")
    disc.scroll_into_view_if_needed()
    box = disc.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + dx, y + dy, steps=4)
    page.page.mouse.up()
    page.ready()


def cells(page):
    return np.array([[float(row["x0"]), float(row["x1"])] for row in page.rows()])


def test_dragging_editing_undoing_and_sharing(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    before = page.probabilities()
    drag(page, 1, -60, -60)
    moved = cells(page)
    assert moved[1, 0] < X[0, 1, 0]
    assert moved[1, 1] > X[0, 1, 1]
    np.testing.assert_array_equal(np.delete(moved, 1, 0), np.delete(X[0], 1, 0))
    np.testing.assert_allclose(page.scores(), model.predict_scores(moved[None])[0], **CLOSE)
    assert page.state()["rows"][1] == moved[1].tolist()
    page.do("check", "#show-map")
    page.do("uncheck", "#show-arrows")
    page.do("select_option", "#beside", "")
    page.do("select_option", "#x-axis", "1")
    hash = page.page.url.partition("#")[2]
    again = opened(path, "#" + hash)  # the address holds the state
    np.testing.assert_array_equal(again.probabilities(), page.probabilities())
    assert again.state() == page.state()
    assert again.page.is_checked("#show-map")
    assert not again.page.is_checked("#show-arrows")
    assert not again.page.is_visible("#picture-beside")
    page.do("select_option", "#beside", "control")
    page.do("click", "#undo")  # the axis
    page.do("click", "#undo")  # the drag
    np.testing.assert_array_equal(page.probabilities(), before)
    page.do("click", "#redo")
    np.testing.assert_array_equal(cells(page), moved)
    drag(page, 1, 30, 0, "#picture-beside")  # both pictures move
    assert cells(page)[1, 0] > moved[1, 0]
    assert page.point(1).get_attribute("transform") == page.point(1, "#picture-beside").get_attribute(
        "transform"
    )
    page.do("click", "#reset")
    np.testing.assert_array_equal(page.probabilities(), before)
    field = page.page.locator('#objects tr[data-object="2"] td.value input').first
    field.fill("0.5")
    field.press("Enter")
    page.ready()
    edited = X[0].copy()
    edited[2, 0] = 0.5
    np.testing.assert_allclose(page.probabilities(), model.predict_proba(edited[None])[0], **CLOSE)
    field.fill("no number")
    field.press("Enter")
    page.ready()
    np.testing.assert_allclose(cells(page), edited)
    for broken in ("#%7Bnonsense", "#null", '#{"set":99}', '#{"set":0,"rows":[[1]]}'):
        np.testing.assert_array_equal(opened(path, broken).probabilities(), before)


def test_everything_by_keyboard_alone(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    keys = page.page.keyboard
    for _ in range(40):  # from the top of the page to the first object
        keys.press("Tab")
        if page.page.evaluate("document.activeElement.matches('#picture .point')"):
            break
    for _ in range(3):  # the focus stays while the object moves
        keys.press("Shift+ArrowRight")
        page.ready()
    moved = np.array(page.state()["rows"])
    assert moved[0, 0] > X[0, 0, 0] + 0.1  # three times a twentieth of about 1
    assert moved[0, 1] == X[0, 0, 1]
    ring = "getComputedStyle(document.activeElement.querySelector('.disc')).strokeWidth"
    assert page.page.evaluate(ring) == "6px"
    keys.press("Tab")
    assert page.page.evaluate("document.activeElement.dataset.object") == "1"
    keys.press(" ")
    page.ready()
    shown = page.probabilities()
    assert np.isnan(shown[1])
    rest = np.delete(moved, 1, 0)[None]
    np.testing.assert_allclose(np.delete(shown, 1), model.predict_proba(rest)[0], **CLOSE)
    assert page.said().startswith("Without B:")
    assert "gains" in page.said()
    keys.press("Control+z")
    page.ready()
    assert not np.isnan(page.probabilities()[1])
    labels = page.page.locator(".point").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert len(labels) == 10
    assert all("rank" in label and "probability" in label for label in labels)


def test_the_slider_is_one_step_of_undo_and_stays_in_its_range(opened, medoid):
    _, X, path = medoid
    page = opened(path)
    page.page.locator("#curve-slider").scroll_into_view_if_needed()
    box = page.page.locator("#curve-slider").bounding_box()
    page.page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 80, box["y"] + box["height"] / 2, steps=6)
    page.page.mouse.up()
    page.ready()
    assert X[..., 0].min() <= cells(page)[0, 0] <= X[..., 0].max()
    assert cells(page)[0, 0] != X[0, 0, 0]
    page.do("click", "#undo")
    np.testing.assert_array_equal(cells(page), X[0])


def test_a_reversal_is_found_and_is_one(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    page.do("click", "#reversal")
    found = re.search(r"with (\w).* on offer, (\w).* is better than (\w)", page.said())
    third, better, worse = (ord(one) - 65 for one in found.groups())
    X = X[page.state()["set"]]
    whole = model.predict_scores(X[None])[0]
    rest = [i for i in range(5) if i != third]
    left = dict(zip(rest, model.predict_scores(X[None, rest])[0], strict=True))
    assert whole[better] > whole[worse]
    assert left[better] < left[worse]
    page.do("click", "#reset")
    page.do("check", "#show-map")
    assert page.page.locator("#picture .layer-map rect").count() == 22**2
    assert "would change which" in page.page.inner_text("#map-text")


def test_a_logit_has_no_influence_and_nothing_from_context(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4, 2))
    model = MultinomialLogit().fit(X, (X[..., 0] + rng.gumbel(size=(200, 4))).argmax(1))
    explore(model, X[:3]).save(tmp_path / "logit.html")
    page = opened(tmp_path / "logit.html")
    matrix = page.values("#matrix tbody td:not(.none)")
    assert len(matrix) == 12
    assert not matrix.any()
    assert page.page.locator("#picture .layer-arrows path").count() == 0
    assert page.page.inner_text("#gap") == "Context adds nothing here."
    page.do("click", "#reversal")
    assert "No preference reverses" in page.said()


def test_sets_of_one_two_and_thirty_presets_search_and_a_subset_chooser(opened, tmp_path):
    rng = np.random.default_rng(0)
    sizes = [1, 2, 30, 45] + [6] * 40
    frame = pd.DataFrame({"day": np.repeat([f"day {i}" for i in range(len(sizes))], sizes)})
    frame["price"], frame["size"] = rng.normal(size=(2, len(frame)))
    frame["name"] = "the same name"
    frame["bought"] = (frame["price"] < 0).astype(int)
    model = SubsetChooser(FATE(width=8), steps=20, random_state=0)
    model.fit(frame, set_id="day", target="bought", target_kind="subset", ignore=["name"])
    presets = (Preset("Thirty", 2, 7, "A large set."), Preset("Two", 1))
    explore(model, frame, label="name", price="price", presets=presets).save(tmp_path / "days.html")
    page = opened(tmp_path / "days.html")
    for i, size in enumerate([1, 2, 30]):
        own = frame[frame["day"] == f"day {i}"]
        assert len(own) == size
        np.testing.assert_allclose(page.probabilities(), model.predict_proba(own), **CLOSE)
        assert page.page.locator("#matrix").is_visible() == (size > 2)
        page.do("click", "#next")
    assert "15 of its objects are left out" in page.page.inner_text("#count")
    assert {row["day"] for row in page.rows()} == {"day 3"}
    page.do("click", "#presets button:has-text('Thirty')")
    assert page.page.inner_text("#where") == "day 2"
    assert page.said() == "A large set."
    assert page.state()["selected"] == 7
    page.page.fill("#search", "no such day")
    page.do("press", "#search", "Enter")
    assert "no such day" in page.said()
    page.page.fill("#search", "day 9")
    page.do("press", "#search", "Enter")
    assert page.page.inner_text("#where") == "day 9"
    page.do("click", "#presets button:has-text('Two')")
    page.do("click", "#enemy")
    assert "at least two others" in page.said()
    page.page.locator("#objects input[type=checkbox]").first.click()
    page.ready()
    page.page.locator("#objects tr[data-object='1'] input[type=checkbox]").click()
    page.ready()
    assert page.said() == "One object must stay on offer."
    assert page.page.locator("#objects input[type=checkbox]").nth(1).is_checked()


def test_scores_without_probabilities_and_columns_of_any_magnitude(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = np.stack([1e9 + rng.random((60, 5)) * 1e-3, rng.random((60, 5)) * 1e-7], axis=-1)
    model = LinearRanker().fit(X, X[..., 0].argsort(1).argsort(1))
    explore(model, X[:3], price=0).save(tmp_path / "extreme.html")
    page = opened(tmp_path / "extreme.html")
    scores = model.predict_scores(X[:1])[0]
    np.testing.assert_allclose(page.probabilities(), scores - scores.mean(), rtol=1e-4, atol=1e-5)
    fields = page.page.locator("#objects td.value input").evaluate_all("all => all.map(e => e.value)")
    shown = np.array([float(text) for text in fields]).reshape(5, 2)
    np.testing.assert_allclose(shown[:, 0], X[0, :, 0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(shown[:, 1], X[0, :, 1], rtol=0, atol=1e-10)
    ticks = page.page.locator("#picture .tick:not(.side)").all_text_contents()
    assert len(set(ticks)) == len(ticks) > 2
    assert "from 1" in page.page.locator("#picture .name").first.text_content()
    assert "No audit" in page.page.inner_text("#audit")
    drag(page, 0, 50, -40)
    found = cells(page)
    assert X[..., 0].min() - 1e-3 < found[0, 0] < X[..., 0].max() + 1e-3
    assert np.isfinite(page.scores()).all()


def test_an_object_without_a_value_keeps_it_missing_until_it_is_given_one(opened, shop):
    net, _, frame, path = shop
    sets = frame[frame["cost"].isna()]
    name, at = sets["trip"].iloc[0], int(sets.index[0] % 6)
    page = opened(path)
    page.page.fill("#search", name)
    page.do("press", "#search", "Enter")
    page.do("select_option", "#x-axis", label="cost")
    page.do("select_option", "#y-axis", label="explorer_score")
    place = page.page.locator("#x-axis").input_value()
    assert "missing" in page.point(at).get_attribute("class")
    page.select(at)
    assert "missing" in page.page.inner_text("#audit")
    page.page.keyboard.press("ArrowUp")
    page.ready()
    row = page.state()["rows"][at]
    assert row[int(place)] is None  # moved along the other axis only
    page.page.keyboard.press("ArrowRight")
    page.ready()
    assert isinstance(page.state()["rows"][at][int(place)], float)
    assert np.isfinite(page.probabilities()).all()
    own = frame[frame["trip"] == name]
    page.do("click", "#reset")
    np.testing.assert_allclose(page.probabilities(), net.predict_proba(own), **CLOSE)


def test_a_model_that_refuses_missing_values_says_so(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4, 1))
    model = MultinomialLogit().fit(X, (X[..., 0] + rng.gumbel(size=(100, 4))).argmax(1))
    explore(model, X[:2], price=0).save(tmp_path / "one.html")
    page = opened(tmp_path / "one.html")
    before = page.page.inner_text("#headline")
    page.select(3)  # another object overlaps it; the selected one is above all others
    drag(page, 3, 40, 30)  # one column: along a line
    assert page.state()["rows"][3][0] > X[0, 3, 0]
    field = page.page.locator("#objects td.value input").first
    field.fill("")
    field.press("Enter")
    page.ready()
    assert "gives no scores" in page.page.inner_text("#headline")
    assert np.isnan(page.probabilities()).all()
    page.do("click", "#reset")
    assert page.page.inner_text("#headline") == before


def test_a_blend_of_choosers_has_no_control(opened, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, size=(80, 4, 2))
    chosen = (X @ [1.0, -1.0] + 0.5 * rng.gumbel(size=(80, 4))).argmax(1)
    every = candidates.list_candidates

    def some(*args, **settings):
        return [one for one in every(*args, **settings) if one.name in ("linear relative", "FATE small")]

    monkeypatch.setattr("entourage.selection.auto.list_candidates", some)
    monkeypatch.setattr("entourage.selection.auto.FEW_SETS", 0)
    monkeypatch.setattr("entourage.selection.auto.MANY_SETS", 0)
    model = DiscreteChooser("auto", steps=4, budget=600.0, device="cpu", random_state=0).fit(X, chosen)
    assert model.blend_ is not None
    explore(model, X[:2]).save(tmp_path / "auto.html")
    page = opened(tmp_path / "auto.html")
    np.testing.assert_allclose(page.probabilities(), model.predict_proba(X[:1])[0], **CLOSE)
    np.testing.assert_allclose(
        page.values("#matrix tbody td"), influence_matrix(model, X[:1])[0].ravel(), **CLOSE
    )
    assert page.page.locator("#beside option").all_inner_texts() == ["nothing"]
    assert not page.page.is_visible("#picture-beside")
    assert not page.page.is_visible("#beside-box")


def test_the_control_of_a_ranker_is_its_probability_at_its_temperature(opened, tmp_path):
    X, ranks = make_medoid(n_sets=200, n_features=2, n_objects=5, random_state=0)
    model = Ranker(SetAttention(width=8), steps=30, random_state=0).fit(X, ranks)
    explore(model, X[:2]).save(tmp_path / "ranker.html")
    page = opened(tmp_path / "ranker.html")
    np.testing.assert_allclose(page.probabilities(), model.predict_proba(X[:1])[0], **CLOSE)
    alone = model.predict_scores(np.repeat(X[0][:, None], 5, axis=1))[:, 0] / model.temperature_
    powers = np.exp(alone - alone.max())
    np.testing.assert_allclose(page.probabilities("beside"), powers / powers.sum(), **CLOSE)
    assert page.page.inner_text("#headline").endswith("of 5 on offer.")


def test_utilities_of_one_ranker_are_no_probabilities_of_the_other(opened, tmp_path):
    X, ranks = make_medoid(n_sets=100, n_features=2, n_objects=5, random_state=0)
    net, linear = Ranker(FATE(width=8), steps=20, random_state=0).fit(X, ranks), LinearRanker().fit(X, ranks)
    scores = linear.predict_scores(X[:1])[0]
    utilities, probabilities = scores - scores.mean(), net.predict_proba(X[:1])[0]
    for model, other, own, beside, words in [
        (net, linear, probabilities, utilities, ("FATE: ranked first", "LinearRanker: utility")),
        (linear, net, utilities, probabilities, ("LinearRanker: utility", "FATE: ranked first")),
    ]:
        explore(model, X[:2], compare=other).save(tmp_path / "two.html")
        page = opened(tmp_path / "two.html")
        np.testing.assert_allclose(page.probabilities(), own, **CLOSE)
        np.testing.assert_allclose(page.probabilities("beside"), beside, **CLOSE)
        for which, name, numbers in zip(("own", "beside"), words, (own, beside), strict=True):
            assert name in page.page.inner_text("#objects-head")
            shown = page.page.locator(f"#objects .{which} .number").all_inner_texts()
            assert all(("%" in text) == name.endswith("ranked first") for text in shown)
            factor = 100 if name.endswith("ranked first") else 1
            said = [float(text.replace("%", "").replace("−", "-")) for text in shown]
            np.testing.assert_allclose(said, factor * numbers, atol=0.06 if factor > 1 else 0.006)
        assert np.isnan(page.values("#objects .gap")).all()  # no common scale
        gap = page.page.inner_text("#gap")
        assert gap.startswith("Only one of the two has probabilities: compare the ranks.")
        assert "gives more" not in gap


def test_gains_of_a_calibrated_ranker_are_log_odds_of_the_probabilities_that_are_shown(opened, tmp_path):
    X, ranks = make_medoid(n_sets=200, n_features=2, n_objects=5, random_state=0)
    model = Ranker(SetAttention(width=8), steps=60, random_state=0).fit(X, ranks)
    assert abs(model.temperature_ - 1) > 0.05
    explore(model, X[:2]).save(tmp_path / "ranker.html")
    page = opened(tmp_path / "ranker.html")

    def log_odds(rows, others):
        p = model.predict_proba(rows[None])[0]
        return np.log(p[0] / p[others].sum())

    page.do("click", "#decoy")
    gain = log_odds(cells(page), slice(1, 5)) - log_odds(X[0], slice(1, 5))
    assert page.values("#said")[0] == pytest.approx(gain, abs=1e-5)
    page.do("click", "#undo")
    assert page.said().startswith("Select an object")  # what was said of the decoy holds no more
    assert len(cells(page)) == 5


def test_the_headline_knows_nothing_and_ties(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4, 2))
    chosen = np.where(rng.random(100) < 0.1, X[..., 0].argmax(1), -1)  # mostly nothing
    model = DiscreteChooser(FATE(width=8), outside=True, steps=60, random_state=0).fit(X, chosen)
    explore(model, X[:2]).save(tmp_path / "nothing.html")
    page = opened(tmp_path / "nothing.html")
    p = model.predict_proba(X[:1])[0]
    assert 1 - p.sum() > p.max()
    best = "ABCD"[p.argmax()]
    headline = page.page.inner_text("#headline")
    assert headline.startswith(
        f"Nothing (the outside option) is the most likely choice: {1 - p.sum():.1%}".replace("%", " %")
    )
    assert f"{best} is next" in headline
    X, ranks = make_medoid(n_sets=30, n_features=2, n_objects=5, random_state=0)
    linear = LinearRanker().fit(X, ranks)
    explore(linear, X[:2]).save(tmp_path / "tie.html")
    page = opened(tmp_path / "tie.html")
    best = int(linear.predict_scores(X[:1])[0].argmax())
    page.select(best)
    page.do("click", "#add")
    assert page.page.inner_text("#headline") == (
        f"{'ABCDE'[best]} and F are tied for the first place, of 6 on offer."
    )


def test_whole_numbers_stay_whole_by_pointer_keys_slider_and_decoy(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(1, 6, (60, 4)), rng.integers(0, 300, (60, 4))], axis=-1).astype(float)
    model = DiscreteChooser(FATE(width=8), steps=20, random_state=0).fit(X, X[..., 0].argmax(1))
    explore(model, X[:2]).save(tmp_path / "whole.html")
    page = opened(tmp_path / "whole.html")
    page.select(0)
    page.page.keyboard.press("ArrowRight")  # no step is too small to be one
    page.ready()
    assert cells(page)[0].tolist() == [X[0, 0, 0] + 1, X[0, 0, 1]]
    drag(page, 0, 37, -23)
    page.do("click", "#decoy")
    slider = page.page.locator("#curve-slider")
    slider.focus()
    slider.press("ArrowLeft")
    page.ready()
    found = cells(page)
    assert len(found) == 5
    np.testing.assert_array_equal(found, found.round())


def test_a_number_that_could_be_two_is_refused_and_a_file_has_the_scores_of_its_values(opened, medoid):
    model, X, path = medoid
    page = opened(path)
    field = page.page.locator('#objects tr[data-object="2"] td.value input').first
    for text, why in (("1,234", "can be read in two ways"), ("no number", "is no number")):
        field.fill(text)
        field.press("Enter")
        assert why in page.said()
        np.testing.assert_array_equal(cells(page), X[0])
    with page.page.expect_download() as found:  # before anything is scored again
        page.page.evaluate(
            """() => {
                const field = document.querySelector('#objects tr[data-object="2"] td.value input');
                field.value = "0,5";
                field.dispatchEvent(new Event("change"));
                document.querySelector("#save-csv").click();
            }"""
        )
    saved = pd.read_csv(found.value.path())
    edited = X[0].copy()
    edited[2, 0] = 0.5
    np.testing.assert_allclose(saved[["x0", "x1"]], edited)
    np.testing.assert_allclose(saved["explorer_score"], model.predict_scores(edited[None])[0], **CLOSE)
    hash = page.page.url.partition("#")[2].replace("0.5", '"<b>"')  # no value of a number
    again = opened(path, "#" + hash)
    np.testing.assert_allclose(cells(again), X[0])


def test_a_notebook_shows_it_in_a_frame_of_its_own(browser, medoid, tmp_path):
    model, X, _ = medoid
    (tmp_path / "notebook.html").write_text(explore(model, X[:2])._repr_html_())
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto((tmp_path / "notebook.html").as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("body[data-ready]:not([data-busy])").wait_for(timeout=60_000)
    inside.locator("#next").click()
    inside.locator("body[data-ready]:not([data-busy])").wait_for()
    values = inside.locator("#objects .own .number").evaluate_all("all => all.map(e => +e.dataset.value)")
    np.testing.assert_allclose(values, model.predict_proba(X[1:2])[0], **CLOSE)
    assert errors == []
    page.close()
