"""Chromium, the pages that the tests open in it, and what every page must keep to."""

import csv
import json
import os
import shutil
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, SetAttention
from entourage.data import make_medoid
from entourage.serving import explore

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
REQUIRED = bool(os.environ.get("REQUIRE_BROWSER") or os.environ.get("CI"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
HOSTILE = '<img src=x onerror="document.title=1">'
TEXTS = ["bus", 'a "b", c', "=1+1", "NA", "7", " ü\n"]  # levels that a CSV could lose


def missing(reason):
    """Skip, or fail where CI asks for the browser."""
    if REQUIRED:
        pytest.fail(f"{reason}, and REQUIRE_BROWSER or CI is set")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def need():
    return missing


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        missing("no Chromium here; `make browser` installs it")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install 'entourage[browser]'")
    with sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Page:
    """A page of the explorer, what it asked the network for, and what went wrong in it."""

    def __init__(self, browser, path, hash="", width=1280, scheme="light", motion="no-preference", slower=1):
        self.page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion
        )
        if slower > 1:  # as a machine with so much less to give would show it
            session = self.page.context.new_cdp_session(self.page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        self.requests, self.errors = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.goto(path.as_uri() + hash)
        self.ready()

    def ready(self):
        """Wait until everything is drawn and nothing more is asked for."""
        self.page.wait_for_selector("body[data-ready]:not([data-busy])", timeout=60_000)

    def do(self, action, *args, **options):
        """Call a method of playwright's page, and wait for what follows."""
        getattr(self.page, action)(*args, **options)
        self.ready()

    def values(self, selector):
        """Return the exact numbers behind those that are shown; NaN where there is none."""
        found = self.page.locator(selector).evaluate_all("all => all.map(e => e.dataset.value ?? '')")
        return np.array([float(text) if text else np.nan for text in found])

    def probabilities(self, which="own"):
        return self.values(f"#objects .{which} .number")

    def csv(self):
        with self.page.expect_download() as found:
            self.page.click("#save-csv")
        return found.value.path()

    def rows(self):
        with self.csv().open(newline="") as file:
            return list(csv.DictReader(file))

    def scores(self):
        return np.array([float(row["explorer_score"]) for row in self.rows()])

    def state(self):
        return json.loads(unquote(self.page.url.partition("#")[2]))

    def said(self):
        return self.page.inner_text("#said")

    def point(self, i, picture="#picture"):
        return self.page.locator(f'{picture} .point[data-object="{i}"]')

    def select(self, i):
        self.point(i).focus()
        self.ready()

    def close(self):
        outside = [url for url in self.requests if not url.startswith(("file:", "blob:", "data:"))]
        assert outside == []
        assert self.errors == []
        self.page.close()


@pytest.fixture
def opened(browser):
    """Open pages; at the end, none has asked the network for anything or raised an error."""
    pages = []

    def open_page(path, *args, **options):
        pages.append(Page(browser, path, *args, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def medoid(tmp_path_factory):
    X, ranks = make_medoid(n_sets=400, n_features=2, n_objects=5, random_state=0)
    model = DiscreteChooser(FATE(width=16), steps=150, random_state=0).fit(X, ranks.argmin(1))
    path = tmp_path_factory.mktemp("medoid") / "medoid.html"
    explore(model, X[:8], price=0, title="Medoid").save(path)
    return model, X[:8], path


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """Two models of a table with text, flags, missing values, a situation, an outside option and hostile names."""
    rng = np.random.default_rng(0)
    n, m = 60, len(TEXTS)
    frame = pd.DataFrame(
        {
            "trip": np.repeat([f"{HOSTILE} {i}" for i in range(n)], m),
            HOSTILE: np.tile(TEXTS, n),
            "cost": rng.uniform(1, 9, n * m),
            "explorer_score": rng.normal(size=n * m),  # a name that the page would take
            "direct": rng.random(n * m) < 0.5,
            "brand": rng.choice([HOSTILE, "B", "C"], n * m),
            "rain": np.repeat(rng.random(n), m),
        }
    )
    frame.loc[rng.random(n * m) < 0.1, "cost"] = np.nan
    frame.loc[rng.random(n * m) < 0.1, "brand"] = None
    noise = frame["cost"].fillna(5) + rng.gumbel(size=n * m)
    frame["taken"] = (noise == noise.groupby(frame["trip"]).transform("min")).astype(int)
    columns = {"set_id": "trip", "target": "taken", "situation": ["rain"]}
    net = DiscreteChooser(
        SetAttention(width=8, rounds=1), steps=40, outside=True, random_state=1
    )  # its audit flags some, not all
    net.fit(frame, **columns)
    other = DiscreteChooser(FATE(width=8), steps=40, outside=True, random_state=0).fit(frame, **columns)
    path = tmp_path_factory.mktemp("shop") / "shop.html"
    names = (HOSTILE, "FATE")
    explore(net, frame, compare=other, label=HOSTILE, price="cost", names=names, title=HOSTILE).save(path)
    return net, other, frame, path
