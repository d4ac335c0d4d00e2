"""Repeated choice sets: observed shares, counted by hand."""

import numpy as np
import pytest
from effect_cases import Known

from entourage.data import Sets
from entourage.effects import repeated_menus
from entourage.tasks import Choice, Ranking


def menus_of(model=None, **options):
    a, b, c = [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]
    X = [[a, b, c]] * 6 + [[c, b, a]] * 4 + [[a, b]] * 9 + [[c, c, a]] * 12
    won = [0] * 5 + [2] + [2] * 3 + [1] + [0] * 9 + [0, 1, 2] * 4
    rows = [(np.arange(len(x)) != w).astype(float) for x, w in zip(X, won, strict=True)]
    own = model or Known(lambda sets: np.log(1.0 + sets.objects[:, 1]))
    return repeated_menus(own, Sets.from_list([np.array(x) for x in X], rows), **options)


def test_raw_shares_count_the_same_alternatives_in_any_order():
    copies, plain = menus_of()
    assert (copies.n, plain.n) == (12, 10)
    # a was chosen 5 times in one order and 3 times in the other, b once, c once; utilities have powers of 2, 1, 3
    assert [share.share for share in plain.shares] == [0.8, 0.1, 0.1]
    assert sorted(round(share.model, 6) for share in plain.shares) == pytest.approx(
        [1 / 6, 2 / 6, 3 / 6], abs=1e-6
    )
    assert plain.shares[0].model == pytest.approx(2 / 6)
    # two copies of c were chosen in 8 of 12; Wilson: (p + z²/2n ± z sqrt(p q / n + z²/4n²)) / (1 + z²/n)
    first = copies.shares[0]
    assert (first.copies, first.share, first.model) == (2, pytest.approx(8 / 12), pytest.approx(6 / 8))
    p, n, z = 8 / 12, 12, 1.959964
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert first.interval == pytest.approx(
        ((middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n))
    )
    assert len(menus_of(least=9)) == 3
    assert len(menus_of(most=1)) == 1
    assert menus_of(least=13) == []


def test_rankings_have_shares_of_first_places_and_nothing_has_its_own():
    X = np.tile([[[0.0], [1.0]]], (12, 1, 1))
    ranks = np.repeat(
        [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]], [8, 3, 1], axis=0
    )  # the last is a tie, and not counted
    (menu,) = repeated_menus(Known(lambda sets: -sets.objects[:, 0], Ranking), Sets.from_array(X, ranks))
    assert (menu.n, menu.shares[0].share) == (11, 8 / 11)
    extra = np.concatenate([X, np.full((12, 1, 1), 5.0)], axis=1)
    marked, unmarked = (  # an unranked third object, by -1 or by NaN
        repeated_menus(
            Known(lambda sets: -sets.objects[:, 0], Ranking),
            Sets.from_array(extra, np.column_stack([ranks, np.full(12, value)])),
        )
        for value in (-1.0, np.nan)
    )
    assert marked == unmarked
    targets = np.repeat([[0.0, 1.0], [1.0, 1.0]], [9, 3], axis=0)
    outside = Known(lambda sets: np.zeros(len(sets.objects)), Choice(outside=True))
    (menu,) = repeated_menus(outside, Sets.from_array(X, targets))
    assert [(share.place is None, share.share) for share in menu.shares] == [
        (False, 0.75),
        (False, 0),
        (True, 0.25),
    ]
    assert [share.model for share in menu.shares] == pytest.approx([1 / 3] * 3)
