"""What the paper claims, as data."""

import pytest

from entourage.errors import UserError
from entourage.experiments.paper import read_claims


def test_table_1_holds_every_published_cell():
    table = read_claims("table1")
    for task in ("medoid", "hypervolume"):
        published = table["tasks"][task]["published"]
        assert set(published) == set(table["metrics"])
        for cells in published.values():
            assert list(cells) == table["models"]
            assert all(-0.01 <= cell["mean"] <= 1 and cell["sd"] >= 0 for cell in cells.values())


def test_a_table_the_paper_has_not_is_a_clear_error():
    with pytest.raises(UserError, match="there is effects, expressivity, hvc, noguchi, sf, sizes, table1"):
        read_claims("table9")
