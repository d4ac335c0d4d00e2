"""The command assort: what it prints and writes is what Python finds."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from entourage import load
from entourage.choice import ContextualLogit
from entourage.decisions import best_assortment


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4, 2))
    y = (X @ [1.0, -1.0] + rng.gumbel(size=(300, 4))).argmax(1)
    long = pd.DataFrame(X.reshape(-1, 2), columns=["quality", "price"])
    long["shelf"], long["bought"] = np.repeat(np.arange(300), 4), np.eye(4, dtype=int)[y].ravel()
    model = ContextualLogit().fit(long, set_id="shelf", target="bought", target_kind="choice")
    model.save(folder / "shop.entourage")
    products = pd.DataFrame(rng.normal(size=(7, 2)), columns=["price", "quality"])
    products["margin"], products["name"] = rng.uniform(0, 5, 7).round(2), list("abcdefg")
    products.to_csv(folder / "products.csv", index=False)
    weeks = pd.concat([products.assign(shelf=s, price=products.price + s, often=s + 1) for s in (1, 2)])
    weeks.sample(frac=1, random_state=0).to_csv(folder / "weeks.csv", index=False)
    return folder


def test_the_command_finds_what_python_finds(shop, capsys):
    given = [shop / "shop.entourage", shop / "products.csv", "--value", "margin", "--size", "2:4"]
    code, out, _ = run(capsys, "assort", *given, "--required", 1, "--json")
    told = json.loads(out)
    products = pd.read_csv(shop / "products.csv")
    found = best_assortment(load(shop / "shop.entourage"), products, "margin", size=(2, 4), required=[1])
    assert code == 0
    assert told["objects"] == found.objects.tolist()
    assert told["value"] == pytest.approx(found.value)
    assert told["method"] == found.method == "enumeration"
    named = [*given, "--object", "name", "--required", "b", "--forbidden", "c", "-o", shop / "out.html"]
    code, out, _ = run(capsys, "assort", *named)
    assert code == 0
    assert "Found by enumeration: no set is better." in out
    assert "  b: value" in out
    assert "  c: value" not in out
    assert "The set to offer" in (shop / "out.html").read_text()


def test_situations_come_as_sets_of_a_table_with_weights(shop, capsys):
    given = [
        shop / "shop.entourage",
        shop / "weeks.csv",
        "--value",
        "margin",
        "--size",
        3,
        "--weight",
        "often",
    ]
    code, out, _ = run(capsys, "assort", *given, "--object", "name", "--required", "a", "--json")
    assert code == 0
    weeks = pd.read_csv(shop / "weeks.csv")
    first = weeks.shelf.iloc[0]
    settings = {
        "size": 3,
        "object_id": "name",
        "required": ["a"],
        "weights": [2, 3] if first == 1 else [3, 2],
    }
    found = best_assortment(load(shop / "shop.entourage"), weeks, "margin", **settings)
    assert json.loads(out)["value"] == pytest.approx(found.value)
    assert json.loads(out)["labels"] == found.labels


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--size", "many"], "--size is the largest size"),
        (["--required", "coffee"], "add --object COLUMN"),
        (["--value", "profit"], "profit"),
        (["--weight", "margin"], "one situation needs no weight"),
    ],
)
def test_options_that_do_not_fit_are_refused(shop, capsys, options, said):
    code, _, error = run(capsys, "assort", shop / "shop.entourage", shop / "products.csv", *options)
    assert code == 2
    assert said in " ".join(error.split())
