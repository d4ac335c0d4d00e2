"""What the paper claims, as data, and the demonstration's search for a preference reversal."""

import numpy as np
import pytest

from entourage import FATE, ContextFree, Ranker
from entourage.data import make_medoid
from entourage.errors import UserError
from entourage.experiments.demo import find_reversal
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
    with pytest.raises(UserError, match="there is effects, expressivity, noguchi, sf, sizes, table1"):
        read_claims("table9")


def test_a_reversal_is_one_and_a_context_free_net_follows_none():
    train = make_medoid(2000, random_state=0)
    models = {
        "context-free": Ranker(ContextFree(width=16), steps=200, random_state=0).fit(*train),
        "FATE": Ranker(FATE(width=32), steps=400, random_state=0).fit(*train),
    }
    found = find_reversal(models, 2000, np.random.default_rng(5))
    assert found.before[found.a] < found.before[found.b]
    assert found.after[found.a] > found.after[found.b]
    assert found.found["context-free"] == 0
    assert found.found["FATE"] > 0.2
    assert 0.1 < found.true_share < 0.3
    four, five = (
        models["FATE"].predict(found.points[None, :4])[0],
        models["FATE"].predict(found.points[None])[0],
    )
    assert np.array_equal(four, found.before)
    assert np.array_equal(five, found.after)
