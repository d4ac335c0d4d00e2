"""Conditions and changes as text: values by hand, and refusals in words."""

import numpy as np
import pytest

from entourage.decisions.expressions import condition, parse_changes
from entourage.errors import UserError

COLUMNS = {
    "brand": np.array(["x", "y", "x", None], dtype=object),
    "price": np.array([1.0, 4.0, np.nan, 9.0]),
    "promo": np.array([True, False, False, True]),
    "unit price": np.array([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('brand=="x"', [0, 2]),
        ('brand != "x"', [1]),  # a missing value satisfies no comparison
        ("price > 3", [1, 3]),
        ("not price > 3", [0, 2]),
        ("1 <= price < 9", [0, 1]),
        ('brand in ["y", "z"]', [1]),
        ('brand not in ["y"]', [0, 2]),
        ('brand == "x" and price > 0 or promo', [0, 3]),
        ("price is None", [2]),
        ("brand is not None", [0, 1, 2]),
        ("`unit price` * 2 >= 6", [2, 3]),
        ("-price < -3", [1, 3]),
        ("promo == True", [0, 3]),
        ("log(`unit price`) == 0", [0]),
        ("price**2 == 16 or price % 2 == 1", [0, 1, 3]),
        ("True", [0, 1, 2, 3]),
    ],
)
def test_conditions_find_the_rows_worked_by_hand(text, rows):
    assert np.flatnonzero(condition(text, COLUMNS)).tolist() == rows


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("price*=2", [2, 8, np.nan, 18]),
        ("price = 3", [3, 3, 3, 3]),
        ("price+=1", [2, 5, np.nan, 10]),
        ("price -= price / 2", [0.5, 2, np.nan, 4.5]),
        ("price = `unit price` * 1.5", [1.5, 3, 4.5, 6]),
    ],
)
def test_changes_give_the_values_worked_by_hand(text, values):
    (change,) = parse_changes(text)
    assert change.column == "price"
    np.testing.assert_allclose(change.of(COLUMNS).astype(float), values)


def test_several_changes_and_text_are_read():
    first, second = parse_changes('price*=2; brand="new"')
    assert (first.column, second.column) == ("price", "brand")
    assert second.of(COLUMNS).tolist() == ["new"] * 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prize > 3", "did you mean 'price'"),
        ("brand == x", "no column 'x'.*quotes"),
        ("brand == 3", "is text"),
        ("brand = 'x'", "write =="),
        ("price >", "can't be read"),
        ("unit price > 3", "can't be read.*stands in backquotes: `unit price`"),
        ("price", "neither"),
        ("brand * 2 > 1", "calculates"),
        ("price == None", "is None"),
        ("__import__('os').system('true')", "not known"),
        ("price.__class__ == 1", "not known"),
        ("(lambda: 1)() == 1", "not known"),
        ("[p for p in price]", "not known"),
        ("price > 3 if promo else promo", "not known"),
        ("max(price) > 1", "functions are"),
        ("(" * 500 + "price" + ")" * 500, "can't be read"),
    ],
)
def test_what_is_no_condition_is_refused_in_words(text, words):
    with pytest.raises(UserError, match=words):
        condition(text, COLUMNS)


@pytest.mark.parametrize(
    "text", ["price > 3", "a, b = 1, 2", "price[0] = 3", "import os", "", "price: int = 3", "del price"]
)
def test_what_is_no_change_is_refused(text):
    with pytest.raises(UserError, match="change"):
        parse_changes(text)


def test_nested_comparisons_cost_no_more_than_their_length():
    text = "x"
    for _ in range(12):  # days, if the left side were computed for each element
        text = f"({text} in [0, 1, 2, 3, 4, 5, 6, 7])"
    assert condition(text, {"x": np.array([1.0, 9.0])}).shape == (2,)
