"""The gallery of the docs: its models are small, and what its buttons say is true of them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from entourage import load
from entourage.data.synthetic.medoid import medoid_distances

MAKE = Path(__file__).parents[2] / "docs" / "explorers" / "make.py"


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("gallery_make", MAKE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery_make"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gallery_make"]


@pytest.fixture
def shown(make, monkeypatch):
    """Return a function that makes a page of simulated data, without its graph: model, sets and options."""
    calls = []
    monkeypatch.setattr(make, "explore", lambda model, X, **options: calls.append((model, X, options)))

    def page(name):
        one = make.PAGES[name]
        file = MAKE.with_name(f"{name}.entourage")
        assert file.stat().st_size < 150_000
        one.make(one.title, load(file))
        return calls.pop()

    return page


def test_the_medoid_changes_when_the_selected_point_is_taken_off(shown):
    model, X, options = shown("medoid")
    preset = options["presets"][0]
    one, rest = X[preset.set], np.delete(X[preset.set], preset.selected, axis=0)
    best, other = medoid_distances(one[None]).argmin(), medoid_distances(rest[None]).argmin()
    assert best != other
    assert model.predict(one[None])[0].argmin() == best
    assert model.predict(rest[None])[0].argmin() == other


def test_hypervolume_is_learnt_and_a_neighbour_costs(shown, make):
    model, X, options = shown("hypervolume")
    assert model.score(*make.make_hypervolume(300, n_objects=8, random_state=5)) > 0.85
    preset = options["presets"][0]
    one = X[preset.set]
    beside = np.concatenate([one, one[preset.selected][None] + 0.001])
    alone, crowded = (model.predict(x[None])[0][preset.selected] for x in (one, beside))
    assert crowded > alone


def test_rooms_of_the_middle_price_are_favoured_and_demand_falls_with_the_price(shown, make):
    model, table, options = shown("assortment")
    assert options["price"] == "price"
    new = make.rooms(400, seed=7)
    frame = new.to_pandas()
    p = model.predict_proba(new)
    middle = frame.groupby("guest").price.transform("median") == frame.price
    assert p[middle].mean() > p[~middle].mean()
    dearer = frame.assign(price=frame.price.where(frame.groupby("guest").cumcount() > 0, frame.price + 30))
    first = frame.groupby("guest").cumcount() == 0
    assert (model.predict_proba(dearer)[first] <= p[first] + 1e-6).all()
    assert "room" in table.column_names


def test_pages_of_real_data_name_their_source_and_its_licence(make):
    for name in ("menus", "formula1"):
        assert make.PAGES[name].fit is None
        assert "CC BY 4.0" in make.PAGES[name].title
