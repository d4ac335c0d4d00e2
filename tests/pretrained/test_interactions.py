"""Interactions with the situation: which products there are, and what a second reading with them counts."""

import numpy as np
import pandas as pd
import pytest
import torch

from entourage import DiscreteChooser
from entourage.data import Sets
from entourage.errors import UserError
from entourage.pretrained import Reading, reading
from entourage.pretrained.interactions import MIX, MOST_PRODUCTS, find_products, with_products
from entourage.tasks import Choice, Ranking

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(12, 3, 4)).astype(np.float32)
VALUES[..., 1] = np.where(np.arange(3) == 1, 2.0, -1.0)  # an alternative
VALUES[..., 3] = np.arange(12)[:, None]  # of the situation


def products(values, mask=None):
    return find_products(torch.as_tensor(values), None if mask is None else torch.as_tensor(mask))


def test_products_are_of_indicators_and_columns_of_the_situation():
    assert products(VALUES).tolist() == [[1.0, -1.0, 3.0, 3.0]]


def test_padding_plays_no_part_in_which_products_there_are():
    mask = np.arange(3) < np.where(np.arange(12) % 2, 3, 2)[:, None]
    padded = np.where(mask[..., None], VALUES, 77.0)
    assert products(padded, mask).tolist() == [[1.0, -1.0, 3.0, 3.0]]


@pytest.mark.parametrize("lacking", ["indicator", "situation", "few"])
def test_there_may_be_no_product(lacking):
    if lacking == "indicator":
        assert products(VALUES[..., [0, 2, 3]]) is None
    elif lacking == "situation":
        assert products(VALUES[..., :3]) is None
    else:  # too many
        many = np.concatenate([VALUES, np.repeat(VALUES[..., 3:], MOST_PRODUCTS, axis=2)], axis=2)
        assert products(many) is None


def test_a_product_is_the_column_of_the_situation_where_the_indicator_is_on():
    made = with_products(torch.as_tensor(VALUES), products(VALUES))
    expected = np.where(np.arange(3) == 1, VALUES[..., 3], 0.0)
    assert made[..., :4].numpy() == pytest.approx(VALUES)
    assert made[..., 4].numpy() == pytest.approx(expected)


def test_an_infinite_situation_makes_no_product_that_is_none():
    far = torch.as_tensor(VALUES).clone()
    far[0, :, 3] = torch.inf
    assert with_products(far, products(VALUES))[..., 4].isfinite().all()


# --- a second reading ---------------------------------------------------------------------------


def interacting(n, seed):
    """Three alternatives; which is best depends on the situation alone."""
    rng = np.random.default_rng(seed)
    situation = rng.normal(size=(n, 2))
    indicators = np.broadcast_to(np.eye(3)[:, 1:], (n, 3, 2))
    worth = 4 * situation * [1.0, -1.0]
    chosen = (np.column_stack([np.zeros(n), worth]) + rng.gumbel(size=(n, 3))).argmax(1)
    return np.concatenate([indicators, rng.normal(size=(n, 3, 1))], axis=2), situation, chosen


@pytest.mark.usefixtures("small_pretrained")
def test_what_depends_on_the_situation_is_read_a_second_time():
    X, situation, chosen = interacting(150, 0)
    X_new, new, chosen_new = interacting(200, 1)
    model = DiscreteChooser("pretrained", device="cpu").fit(X, chosen, situation=situation)
    assert model.reading_.mix == MIX
    assert model.reading_.products.shape == (4, 4)
    gains = []
    for given in (True, False):
        one = Reading.read(sets_of(X, chosen, situation), Choice(), interactions=given, device="cpu")
        u = one.scores(Sets.of(X_new, None, new), "cpu").reshape(-1, 3)
        gains.append((u - np.logaddexp.reduce(u, axis=1, keepdims=True))[np.arange(200), chosen_new].mean())
    assert gains[0] > gains[1] + 0.05
    assert model.predict_scores(X_new, situation=new) == pytest.approx(
        Reading.read(sets_of(X, chosen, situation), Choice(), device="cpu")
        .scores(Sets.of(X_new, None, new), "cpu")
        .reshape(-1, 3),
        abs=1e-6,
    )


def sets_of(X, chosen, situation):
    return Sets.of(X, (np.arange(X.shape[1]) != chosen[:, None]).astype(float), situation)


@pytest.mark.usefixtures("small_pretrained")
def test_a_table_with_a_situation_is_read_as_arrays_are():
    X, situation, chosen = interacting(40, 0)
    frame = pd.DataFrame(X.reshape(-1, 3), columns=["bus", "car", "cost"])
    frame["trip"] = np.repeat(np.arange(40), 3)
    frame["income"], frame["age"] = np.repeat(situation, 3, axis=0).T
    frame["taken"] = (np.arange(3) == chosen[:, None]).ravel().astype(int)
    arrays = DiscreteChooser("pretrained", device="cpu").fit(X, chosen, situation=situation)
    table = DiscreteChooser("pretrained", device="cpu").fit(
        frame, set_id="trip", target="taken", situation=["income", "age"]
    )
    assert table.reading_.mix == arrays.reading_.mix == MIX
    found = np.asarray(
        table.predict_proba(frame.sample(frac=1, random_state=0).sort_values("trip", kind="stable"))
    )
    assert np.sort(found.reshape(40, 3)) == pytest.approx(
        np.sort(arrays.predict_proba(X, situation=situation)), abs=1e-5
    )


@pytest.mark.usefixtures("small_pretrained")
def test_the_order_of_sets_objects_and_columns_changes_nothing_with_a_second_reading():
    X, situation, chosen = interacting(60, 0)
    new = Sets.of(*interacting(20, 1)[:1], None, interacting(20, 1)[1])
    plain = Reading.read(sets_of(X, chosen, situation), Choice(), device="cpu")
    assert plain.mix == MIX
    order, objects, columns = RNG.permutation(60), [1, 2, 0], [2, 0, 1]
    moved = Reading.read(
        sets_of(
            X[order][:, objects][..., columns], np.argsort(objects)[chosen[order]], situation[order][:, ::-1]
        ),
        Choice(),
        device="cpu",
    )
    again = Sets(new.objects[:, columns], new.offsets, None, new.situation[:, ::-1])
    assert moved.mix == plain.mix
    assert moved.scores(again, "cpu") == pytest.approx(plain.scores(new, "cpu"), abs=2e-4)


@pytest.mark.usefixtures("small_pretrained")
def test_with_an_outside_option_and_after_fine_tuning_there_is_no_second_reading():
    X, situation, chosen = interacting(30, 0)
    every = sets_of(X, chosen, situation)
    for found in (
        Reading.read(every, Choice(outside=True), device="cpu"),
        Reading.read(every, Choice(), fine_tune=True, device="cpu"),
    ):
        assert found.mix == 0
        assert not found.more


@pytest.mark.usefixtures("small_pretrained")
@pytest.mark.parametrize("task", [Choice(), Ranking()], ids=["choice", "ranking"])
def test_a_second_reading_comes_back_from_a_file_to_the_bit(task, monkeypatch):
    monkeypatch.setattr(reading, "MOST_OBJECTS", 120)  # several pages of each
    X, situation, chosen = interacting(60, 0)
    sets = sets_of(X, chosen, situation)
    found = Reading.read(sets, task, device="cpu")
    assert len(found.more) == len(found.pages) > 1
    content, tensors = found.describe()
    assert np.array_equal(
        Reading.from_file(content, dict(tensors)).scores(sets, "cpu"), found.scores(sets, "cpu")
    )
    for name, value in [("mix", 1.0), ("mix", -0.1), ("mix", 0.0)]:
        with pytest.raises(UserError):
            Reading.from_file(content | {name: value}, dict(tensors))
    for wrong in (tensors["products"][:, :3], tensors["products"] + 9, tensors["products"].float()):
        with pytest.raises(UserError, match="interactions are malformed"):
            Reading.from_file(content, tensors | {"products": wrong})
