"""The command prices: what it prints and writes is what Python finds."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import load
from entourage.choice import MultinomialLogit
from entourage.decisions import best_prices


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=(300, 4)), rng.uniform(1, 5, (300, 4))], axis=2)
    y = (X @ [1.0, -1.0] + rng.gumbel(size=(300, 4))).argmax(1)
    long = pd.DataFrame(X.reshape(-1, 2), columns=["quality", "price"])
    long["shelf"], long["bought"] = np.repeat(np.arange(300), 4), np.eye(4, dtype=int)[y].ravel()
    model = MultinomialLogit().fit(long, set_id="shelf", target="bought", target_kind="choice")
    model.save(folder / "shop.entourage")
    products = pd.DataFrame({"price": [2.0, 3.0, 4.0], "quality": [0.0, 1.0, -1.0], "cost": [0.5, 1.0, 1.0]})
    products["name"] = ["tea", "coffee", "water"]
    products.to_csv(folder / "products.csv", index=False)
    weeks = pd.concat([products.assign(shelf=s, quality=products.quality * s, often=s) for s in (1, 2)])
    weeks.to_csv(folder / "weeks.csv", index=False)
    return folder


def test_the_command_finds_what_python_finds(shop, capsys):
    given = [shop / "shop.entourage", shop / "products.csv", "--cost", "cost", "--bounds", "0.5:9"]
    code, out, _ = run(capsys, "prices", *given, "--own", 0, "--own", 1, "--json")
    told, products = json.loads(out), pd.read_csv(shop / "products.csv")
    found = best_prices(
        load(shop / "shop.entourage"), products, cost="cost", bounds=(0.5, 9), own=[0, 1], intervals="auto"
    )
    assert code == 0
    assert [one["price"] for one in told["objects"]] == pytest.approx(found.prices.tolist())
    assert told["value"] == pytest.approx(found.value)
    assert told["interval"] == pytest.approx([found.interval.low, found.interval.high])
    named = [
        "--object",
        "name",
        "--own",
        "coffee",
        "--own",
        "tea",
        "--fixed",
        "tea",
        "-o",
        shop / "prices.html",
    ]
    code, out, _ = run(capsys, "prices", *given, *named)
    assert code == 0
    assert "  coffee: price 3 to " in out
    assert "  tea: price 2, probability" in out
    page = (shop / "prices.html").read_text()
    assert "The prices" in page
    assert page.count("as before") == 2


def test_situations_come_as_sets_of_a_table_with_weights(shop, capsys):
    given = [shop / "shop.entourage", shop / "weeks.csv", "--cost", 1, "--bounds", "1:9", "--object", "name"]
    code, out, _ = run(capsys, "prices", *given, "--own", "tea", "--weight", "often", "--json")
    settings = {"cost": 1.0, "bounds": (1, 9), "object_id": "name", "own": ["tea"], "weights": [1, 2]}
    found = best_prices(load(shop / "shop.entourage"), pd.read_csv(shop / "weeks.csv"), **settings)
    assert code == 0
    assert json.loads(out)["value"] == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bounds", "9"], "1:10"),
        (["--bounds", "1:2:3"], "1:10"),
        (["--bounds", "1:9", "--cost", "cst"], "did you mean 'cost'"),
        (["--bounds", "1:9", "--own", "tea"], "add --object"),
        (["--bounds", "1:9", "--price", "name"], "no numeric column"),
        (["--bounds", "9:1"], "none of the lowest above"),
    ],
)
def test_what_does_not_fit_is_said(shop, capsys, options, said):
    code, _, error = run(capsys, "prices", shop / "shop.entourage", shop / "products.csv", *options)
    assert code == 2
    assert said in " ".join(error.split())
