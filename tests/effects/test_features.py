"""Which features have an order: as the table says."""

import pandas as pd

from entourage.data.encoder import TableEncoder
from entourage.data.table_places import ordered_features
from entourage.effects.features import Features


def test_numbers_and_flags_have_an_order_and_categories_have_none():
    frame = pd.DataFrame(
        {
            "set": [0, 0, 1],
            "age": [1.0, 1.0, 2.0],
            "brand": ["x", "y", "x"],
            "price": [1.0, None, 2.0],
            "new": [True, False, True],
        }
    )
    encoder = TableEncoder.fit(frame, set_id="set", target=None, situation=["age"])
    assert encoder.feature_names == ["brand=x", "brand=y", "price", "price is missing", "new"]
    assert ordered_features(encoder) == [2, 4]
    known = Features.of(encoder(frame).sets)
    assert (known.names, known.ordered, known.missing) == (encoder.feature_names, [2, 4], {2: 3})
    assert list(known.varied(encoder(frame).sets)) == ["price", "new"]
