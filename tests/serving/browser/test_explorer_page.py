"""The explorer in a real browser: ``make browser``, which installs Chromium where that is possible."""

import csv
import json
import re
import shutil
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, Ranker, SetAttention
from entourage.choice import MultinomialLogit
from entourage.data import make_medoid
from entourage.effects import influence_matrix
from entourage.serving import explore

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here; `make browser` installs it")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def medoid(tmp_path_factory):
    X, ranks = make_medoid(n_sets=400, n_features=2, n_objects=5, random_state=0)
    model = DiscreteChooser(FATE(width=16), steps=150, random_state=0).fit(X, ranks.argmin(1))
    path = tmp_path_factory.mktemp("medoid") / "medoid.html"
    explore(model, X[:8], price=0, title="Medoid").save(path)
    return model, X[:8], path


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two models of a table with text, flags, missing values, a situation and hostile names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "trip": np.repeat([f"{HOSTILE} {i}" for i in range(60)], 4),
            HOSTILE: np.tile(["bus", "train", HOSTILE, "car"], 60),
            "cost": rng.uniform(1, 9, 240),
            "direct": rng.random(240) < 0.5,
            "rain": np.repeat(rng.random(60), 4),
        }
    )
    frame.loc[rng.random(240) < 0.1, "cost"] = np.nan
    frame["taken"] = (frame.groupby("trip", sort=False)["cost"].rank(method="first") == 1).astype(int)
    columns = {"set_id": "trip", "target": "taken", "situation": ["rain"]}
    frame = frame[frame.groupby("trip")["taken"].transform("sum") == 1]
    net = DiscreteChooser(SetAttention(width=8, rounds=1), steps=30, outside=True, random_state=0)
    net.fit(frame, **columns)
    other = DiscreteChooser(FATE(width=8), steps=30, outside=True, random_state=0).fit(frame, **columns)
    path = tmp_path_factory.mktemp("shop") / "shop.html"
    explore(
        net, frame, compare=other, label=HOSTILE, price="cost", names=(HOSTILE, "FATE"), title=HOSTILE
    ).save(path)
    return net, other, frame, path


class Page:
    """A page, what it asked the network for, and what went wrong in it."""

    def __init__(self, browser, path, hash="", width=1280):
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.requests, self.errors = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.goto(path.as_uri() + hash)
        self.ready()

    def ready(self):
        """Wait until everything is drawn and nothing more is asked for."""
        self.page.wait_for_selector("body[data-ready]", timeout=60_000)
        last = None
        while last != (now := self.page.get_attribute("body", "data-ready")):
            last = now
            self.page.wait_for_timeout(400)

    def probabilities(self, column=".wide .number"):
        texts = self.page.locator(f"#objects {column}").all_inner_texts()
        return [None if text == "–" else float(text.replace("%", "").replace("−", "-")) for text in texts]

    def scores(self):
        with self.page.expect_download() as found:
            self.page.click("#save-csv")
        with found.value.path().open(newline="") as file:
            return list(csv.DictReader(file))

    def close(self):
        outside = [url for url in self.requests if not url.startswith(("file:", "blob:", "data:"))]
        assert outside == []
        assert self.errors == []
        self.page.close()


def test_numbers_in_the_page_are_those_of_python_and_nothing_is_fetched(browser, medoid):
    model, X, path = medoid
    page = Page(browser, path)
    for i in (0, 1, 2):
        scores = np.array([float(row["score"]) for row in page.scores()])
        np.testing.assert_allclose(scores, model.predict_scores(X[i : i + 1])[0], rtol=1e-5, atol=1e-5)
        shown = np.array(page.probabilities()) / 100
        np.testing.assert_allclose(shown, model.predict_proba(X[i : i + 1])[0], atol=6e-4)
        page.page.click("#next")
        page.ready()
    page.page.click("#previous")
    page.ready()
    cells = page.page.locator("#matrix tbody td").all_inner_texts()
    matrix = influence_matrix(model, X[2:3])[0]
    found = np.array([np.nan if text == "" else float(text.replace("−", "-")) for text in cells]).reshape(
        5, 5
    )
    np.testing.assert_allclose(found, matrix, atol=6e-3)
    page.close()


def test_two_models_of_a_table_with_text_missing_values_and_hostile_names(browser, shop):
    net, other, frame, path = shop
    page = Page(browser, path)
    assert page.page.title() == HOSTILE  # shown as text; nothing ran
    assert page.page.locator("img").count() == 0
    own = frame[frame["trip"] == frame["trip"].iloc[0]]
    rows = page.scores()
    np.testing.assert_allclose(
        [float(row["score"]) for row in rows], net.predict_scores(own), rtol=1e-5, atol=1e-5
    )
    assert [row[HOSTILE] for row in rows] == own[HOSTILE].tolist()
    shown = np.array(page.probabilities()) / 100
    np.testing.assert_allclose(shown, net.predict_proba(own), atol=6e-4)
    nothing = float(re.search(r"([\d.]+) %", page.page.inner_text("#outside")).group(1)) / 100
    assert nothing == pytest.approx(1 - net.predict_proba(own).sum(), abs=6e-4)
    marks = [
        float(re.search(r"left:\s*([\d.]+)%", style).group(1)) / 100
        for style in page.page.locator("#objects .mark").evaluate_all("all => all.map(e => e.style.cssText)")
    ]
    np.testing.assert_allclose(marks, other.predict_proba(own), atol=1e-5)
    page.page.fill("#situation-fields input", "0.25")
    page.page.press("#situation-fields input", "Tab")
    page.ready()
    changed = np.array(page.probabilities()) / 100
    np.testing.assert_allclose(changed, net.predict_proba(own.assign(rain=0.25)), atol=6e-4)
    page.page.fill("#search", "no such set")
    page.page.press("#search", "Enter")
    assert "no such set" in page.page.inner_text("#said")
    page.page.fill("#search", f"{HOSTILE} 7")
    page.page.press("#search", "Enter")
    page.ready()
    assert f"{HOSTILE} 7" in page.page.inner_text("#where")
    page.close()


def test_dragging_editing_and_undoing(browser, medoid):
    model, X, path = medoid
    page = Page(browser, path)
    before = page.probabilities()
    point = page.page.locator('.point[data-object="1"]')
    box = point.locator("circle").last.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x - 60, y - 60, steps=4)
    page.page.mouse.up()
    page.ready()
    rows = page.scores()
    moved = np.array([[float(row["x0"]), float(row["x1"])] for row in rows])
    assert moved[1, 0] < X[0, 1, 0]
    assert moved[1, 1] > X[0, 1, 1]
    np.testing.assert_array_equal(np.delete(moved, 1, 0), np.delete(X[0], 1, 0))
    np.testing.assert_allclose(
        [float(row["score"]) for row in rows], model.predict_scores(moved[None])[0], rtol=1e-5, atol=1e-5
    )
    hash = page.page.url.partition("#")[2]
    assert json.loads(unquote(hash))["rows"][1] == moved[1].tolist()
    page.page.click("#undo")
    page.ready()
    assert page.probabilities() == before
    page.page.click("#redo")
    page.ready()
    again = Page(browser, path, "#" + hash)  # the address holds the state
    assert again.probabilities() == page.probabilities()
    again.close()
    page.page.click("#reset")
    page.ready()
    assert page.probabilities() == before
    field = page.page.locator('#objects tr[data-object="2"] input[type=number]').first
    field.fill("0.5")
    field.press("Enter")
    page.ready()
    edited = X[0].copy()
    edited[2, 0] = 0.5
    np.testing.assert_allclose(
        np.array(page.probabilities()) / 100, model.predict_proba(edited[None])[0], atol=6e-4
    )
    page.close()
    broken = Page(browser, path, "#%7Bnonsense")
    assert broken.probabilities() == before
    broken.close()


def test_objects_go_off_the_offer_and_come_back_by_keyboard_alone(browser, medoid):
    model, X, path = medoid
    page = Page(browser, path)
    first = page.page.locator('.point[data-object="0"]')
    first.focus()
    page.page.keyboard.press("Shift+ArrowRight")
    page.ready()
    assert float(page.scores()[0]["x0"]) > X[0, 0, 0]
    page.page.locator('.point[data-object="0"]').focus()
    page.page.keyboard.press(" ")
    page.ready()
    shown = page.probabilities()
    assert shown[0] is None
    np.testing.assert_allclose(np.array(shown[1:]) / 100, model.predict_proba(X[:1, 1:])[0], atol=6e-4)
    page.page.keyboard.press("Control+z")
    page.ready()
    assert page.probabilities()[0] is not None
    labels = page.page.locator(".point").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert all("rank" in label and "probability" in label for label in labels)
    page.close()


def test_buttons_find_decoys_enemies_and_reversals(browser, medoid):
    model, _, path = medoid
    page = Page(browser, path)

    def rows():
        found = [row for row in page.scores() if row["on_offer"] == "1"]
        return np.array([[float(row["x0"]), float(row["x1"])] for row in found])

    def standing(objects, i, among):
        scores = model.predict_scores(objects[None])[0][:among]
        return scores[i] - np.log(np.exp(np.delete(scores, i)).sum())

    start = rows()
    page.page.locator('.point[data-object="3"]').focus()
    page.ready()
    page.page.click("#decoy")
    page.ready()
    with_decoy = rows()
    assert len(with_decoy) == len(start) + 1
    gain = float(re.search(r"by (\d+\.\d+)", page.page.inner_text("#said")).group(1))
    assert gain == pytest.approx(standing(with_decoy, 3, 5) - standing(start, 3, 5), abs=0.01)
    assert gain > 0
    page.page.click("#reset")
    page.ready()
    page.page.locator('.point[data-object="3"]').focus()
    page.ready()
    page.page.click("#enemy")
    page.ready()
    assert len(rows()) == 4
    page.page.click("#reset")
    page.ready()
    page.page.click("#reversal")
    page.ready()
    said = page.page.inner_text("#said")
    assert "Preference reversal" in said
    third, better, worse = re.search(r"with (\w).* on offer, (\w).* is better than (\w)", said).groups()
    at = json.loads(unquote(page.page.url.partition("#")[2]))["set"]
    X = medoid[1][at]
    places = [ord(one) - 65 for one in (third, better, worse)]
    whole = model.predict_scores(X[None])[0]
    rest = [i for i in range(5) if i != places[0]]
    left = dict(zip(rest, model.predict_scores(X[None, rest])[0], strict=True))
    assert whole[places[1]] > whole[places[2]]
    assert left[places[1]] < left[places[2]]
    page.page.check("#show-map")
    page.ready()
    assert page.page.locator("#layer-map rect").count() > 100
    page.close()


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_nothing_overflows_at_any_width_and_pictures_are_saved(browser, shop, width, tmp_path):
    page = Page(browser, shop[3], width=width)
    assert page.page.evaluate("() => document.documentElement.scrollWidth") <= width
    for kind, begins in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.page.expect_download() as found:
            page.page.click(f"#save-{kind}")
        assert found.value.path().read_bytes().startswith(begins)
    page.close()


def test_a_drag_is_painted_at_once_with_twenty_objects(browser, tmp_path):
    X, ranks = make_medoid(n_sets=200, n_features=2, n_objects=20, random_state=0)
    model = Ranker(FATE(width=32), steps=20, random_state=0).fit(X, ranks)
    explore(model, X[:2]).save(tmp_path / "large.html")
    page = Page(browser, tmp_path / "large.html")
    times = []
    for _ in range(9):
        page.page.locator('.point[data-object="0"]').focus()
        page.page.keyboard.press("ArrowRight")
        page.page.wait_for_timeout(250)
        times.append(float(page.page.get_attribute("body", "data-paint")))
    assert np.median(times) < 50
    page.close()


def test_a_logit_has_no_influence(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4, 2))
    model = MultinomialLogit().fit(X, (X[..., 0] + rng.gumbel(size=(200, 4))).argmax(1))
    explore(model, X[:3]).save(tmp_path / "logit.html")
    page = Page(browser, tmp_path / "logit.html")
    cells = [text for text in page.page.locator("#matrix tbody td").all_inner_texts() if text]
    assert {float(text.replace("−", "-")) for text in cells} == {0.0}
    page.page.click("#reversal")
    page.ready()
    assert "No preference reverses" in page.page.inner_text("#said")
    page.close()


def test_changes_are_those_of_the_same_object_after_another_is_dropped(browser, medoid):
    model, X, path = medoid
    page = Page(browser, path)
    page.page.locator("#objects tr[data-object='0'] button").click()
    page.ready()
    shown = [text.replace("−", "-") for text in page.page.locator("#objects .change").all_inner_texts()]
    before, after = model.predict_proba(X[:1])[0, 1:], model.predict_proba(X[:1, 1:])[0]
    found = [0.0 if text.strip() == "" else float(text) for text in shown]
    np.testing.assert_allclose(found, 100 * (after - before), atol=0.06)
    page.close()
