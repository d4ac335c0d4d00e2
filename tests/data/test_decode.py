"""Codes of levels as indicators: by hand, with many levels, and with an encoder that says what the columns are."""

import numpy as np
import pandas as pd
import pytest

from entourage.data import Sets
from entourage.data.decode import place_without_codes, without_codes
from entourage.data.encoder import TableEncoder


@pytest.mark.parametrize("levels", [1, 31, 32, 33, 40])
def test_each_code_is_one_indicator_and_one_never_seen_is_none(levels):
    codes = np.arange(levels + 2.0)  # 0 and levels + 1 were never seen
    objects = np.stack([codes * 10, codes, -codes], axis=1)
    found = without_codes(Sets(objects, [0, len(codes)]), [(1, levels)]).objects
    assert found.shape[1] == 2 + min(levels, 32)
    assert found[:, 1:-1].sum(1).tolist() == [0] + levels * [1] + [0]
    np.testing.assert_array_equal(found[:, [0, -1]], objects[:, [0, 2]])
    assert place_without_codes(2, [(1, levels)]) == found.shape[1] - 1
    if levels > 32:
        assert (found[32 : levels + 1, 32] == 1).all(), "all beyond the 31 first share one"


def test_the_encoder_gives_the_same_for_the_same_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"s": np.repeat(np.arange(50), 4), "y": np.tile([1, 0, 0, 0], 50)})
    frame["jockey"] = [f"j{i}" for i in rng.integers(45, size=200)]
    frame["x"], frame["colour"] = rng.normal(size=200), rng.choice(["red", "blue"], 200)
    packed = TableEncoder.fit(frame, set_id="s", target="y", target_kind="choice", codes=True)(frame)
    sets = without_codes(packed.sets, packed.sets.encoder.categories)
    assert not sets.encoder.categories
    assert sets.encoder.number_places == {"x": 32}
    np.testing.assert_array_equal(sets.encoder(frame).sets.objects, sets.objects)
    np.testing.assert_array_equal(sets.objects[:, 32], packed.sets.objects[:, 1])


def test_several_codes_at_any_place():
    sets = Sets([[2.0, 7.0, 1.0], [1.0, 8.0, 3.0]], [0, 2])
    found = without_codes(sets, [(0, 2), (2, 3)]).objects
    assert found.tolist() == [[0, 1, 7, 1, 0, 0], [1, 0, 8, 0, 0, 1]]
    assert place_without_codes(1, [(0, 2), (2, 3)]) == 2
