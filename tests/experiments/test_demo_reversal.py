"""The demonstration's search for a preference reversal."""

import numpy as np

from entourage import FATE, ContextFree, Ranker
from entourage.data import make_medoid
from entourage.experiments.demo import find_reversal, reversals_in_words


def test_a_reversal_is_one_and_a_context_free_net_predicts_none():
    train = make_medoid(1000, random_state=0)
    models = {
        "context-free": Ranker(ContextFree(width=16), steps=20, random_state=0).fit(*train),
        "FATE": Ranker(FATE(width=32), steps=150, learning_rate=0.01, random_state=0).fit(*train),
    }
    found = find_reversal(models, 2000, np.random.default_rng(5), shown="FATE")
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
    words = reversals_in_words(found)
    assert f"reverses {found.true_share:.1%} of" in words
    assert "context-free 0.0%, FATE " in words
