"""Noguchi and Stewart's products: effects in choices and in nets."""

import json
import math
from itertools import product

import numpy as np
import pytest

from entourage.errors import UserError
from entourage.experiments import noguchi
from entourage.experiments.paper import read_claims
from entourage.experiments.reproduce import reproduce
from entourage.experiments.rows import Options

PLACES = {  # A is better in the first attribute; the third that helps A, and the one that helps B
    "attraction": ((3, 1), (1, 3), {"Da": (2.5, 0.5), "Db": (0.5, 2.5)}),
    "compromise": ((3, 2), (2, 3), {"Ca": (4, 1), "Cb": (1, 4)}),
    "similarity": ((3, 1), (1, 3), {"Sb": (1.2, 2.8), "Sa": (2.8, 1.2)}),
}


@pytest.fixture
def products(tmp_path):
    """Ten people, two products an effect, each with both thirds; whom the third helps is taken by seven of ten."""
    lines = ["obs,participant,trial,effect,choiceset,alternative,attr1_name,attr2_name,attr1,attr2,chosen"]
    for obs, (person, effect, number, helps) in enumerate(product(range(10), PLACES, range(2), (0, 1))):
        a, b, thirds = PLACES[effect]
        name, third = list(thirds.items())[helps]
        if number == 1:  # there A is better in the second attribute
            a, b, third = a[::-1], b[::-1], third[::-1]
        taken = helps if person < 7 else 1 - helps
        for i, (alternative, values) in enumerate((("A", a), ("B", b), (name, third))):
            about = f"{obs},p{person},{obs},{effect},{number},{alternative},Comfort,Speed"
            lines.append(f"{about},{values[0]},{values[1]},{int(i == taken)}")
    folder = tmp_path / "products"
    folder.mkdir()
    (folder / "choices_long.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_effects_in_choices_are_counted_by_product_and_together(products):
    design = noguchi.Design(products)
    assert len(design.sets) == 120
    assert design.people == 10
    for effect in PLACES:
        # of ten choices with each third, 7 and 3, half a choice added to each
        assert design.in_choices(effect) == pytest.approx(math.log(7.5 / 3.5))
        assert design.in_choices(effect, pooled=True) == pytest.approx(math.log(14.5 / 6.5))
    drawn = [np.bincount(design.person[design.resampled([seed])], minlength=10) for seed in (1, 2)]
    for times in drawn:  # as many people, each with all 12 choices, some of them twice
        assert times.sum() == 120
        assert set(times % 12) == {0}
        assert times.max() > 12
    assert (drawn[0] != drawn[1]).any()


def test_noguchi_writes_table_picture_and_report_and_goes_on(tmp_path, products, monkeypatch):
    claims = read_claims("noguchi")
    claims["settings"]["steps"] = 5
    claims["modes"]["quick"]["resamples"] = 2
    claims["models"] = {
        "ContextFree": {"net": "context_free", "width": 8},
        "FATE": {"net": "fate", "width": 8},
    }
    monkeypatch.setattr(noguchi, "read_claims", lambda name: claims)
    monkeypatch.setattr(noguchi, "RESAMPLES", 20)
    options = Options(device="cpu", data=products)
    text = reproduce("noguchi", tmp_path / "out", options)
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * (3 + 5)
    assert sum(row["trials"] for row in rows if row["task"] == "held out") == 2 * 120
    alone = next(row for row in rows if row["model"] == "ContextFree" and row["task"] == "effects")
    assert {value for values in alone["effects"].values() for value in values} == {0.0}
    assert text.count("| ContextFree |") == 1
    assert "+0.76" in next(line for line in text.splitlines() if line.startswith("| people |"))
    assert (tmp_path / "out" / "noguchi.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "out" / "report.html").read_text()
    monkeypatch.setattr(noguchi, "run_jobs", None)  # nothing is left to do
    assert reproduce("noguchi", tmp_path / "out", options) == text


def test_a_net_finds_the_effects_that_were_built_in(products):
    design = noguchi.Design(products)
    model = noguchi.DiscreteChooser(
        noguchi.NETS["feta"](width=32), steps=400, batch_size=64, validation=0, device="cpu", random_state=0
    ).fit(design.sets)
    for effect in PLACES:
        assert np.mean(design.in_model(model, effect)) > 0.3


def test_the_verdict_names_what_is_sure_what_is_likely_and_what_is_not():
    none = float("nan")
    found = {
        "FATE": {"a": (0.8, 0.1), "b": (0.1, 0.2), "c": (-0.1, 0.2), "d": (-0.1, 0.05), "e": (0.1, none)}
    }
    assert noguchi.verdict(found, list("abcde")) == (
        "FATE: a found, 0 outside the interval; b in the direction of the literature, 0 inside the interval; "
        "c against the literature, 0 inside the interval; d against the literature, 0 outside the interval; "
        "e in the direction of the literature, with no interval."
    )


def test_people_held_out_alone_still_make_a_table(tmp_path, products, monkeypatch):
    claims = read_claims("noguchi")
    claims["settings"]["steps"] = 5
    claims["models"] = {"FATE": {"net": "fate", "width": 8}}
    monkeypatch.setattr(noguchi, "read_claims", lambda name: claims)
    monkeypatch.setattr(noguchi, "RESAMPLES", 20)
    text = reproduce("noguchi", tmp_path, Options(device="cpu", data=products, tasks=["held out"]))
    assert "| FATE |  |  |  | -" in text
    claims["models"]["FATE"]["width"] = 16
    with pytest.raises(UserError, match="rows of another run"):
        reproduce("noguchi", tmp_path, Options(device="cpu", data=products, tasks=["held out"]))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("sf", {}, "--data"),
        ("noguchi", {}, "--data"),
        ("noguchi", {"data": "DATA", "regions": "superpixels"}, "photographs"),
        ("sizes", {"data": "DATA"}, "makes its own data"),
        ("noguchi", {"data": "DATA", "tune": True}, "nothing to tune"),
        ("noguchi", {"data": "DATA", "models": ["FAT"]}, "FATE"),
        ("sf", {"data": "nowhere"}, "nowhere"),
        (
            "sf",
            {"data": "DATA", "tasks": ["SFwork"], "models": ["ContextFree"]},
            "SFwork has multinomial logit",
        ),
    ],
)
def test_wrong_options_of_real_choices_are_explained(tmp_path, products, name, options, words):
    given = {key: products if value == "DATA" else value for key, value in options.items()}
    with pytest.raises(UserError, match=words):
        reproduce(name, tmp_path / "out", Options(device="cpu", **given))
