"""The instant verdict: the same by every way in, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from entourage import Sets, instant_verdict
from entourage.errors import DataError, ParameterError, UserError

pytestmark = pytest.mark.usefixtures("small_pretrained")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3, 2))
CHOSEN = (X[:, :, 0] + RNG.gumbel(size=(20, 3))).argmax(1)


def test_arrays_lists_sets_and_tables_have_one_verdict():
    found = instant_verdict(X, CHOSEN, device="cpu")
    assert 0 <= found.none <= 1
    assert 0 <= found.interval[0] <= found.interval[1] <= 1
    assert set(found.effects) == {"attraction", "compromise", "similarity"}
    assert "attraction" in str(found)
    sets = Sets.of(X, np.arange(3) != CHOSEN[:, None])
    frame = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"])
    frame["set"], frame["chosen"] = np.repeat(np.arange(20), 3), 1 - sets.targets.astype(int)
    assert instant_verdict(list(X), CHOSEN, device="cpu") == found
    assert instant_verdict(sets, device="cpu") == found
    by_table = instant_verdict(frame, set_id="set", target="chosen", device="cpu")
    assert by_table.share == pytest.approx(found.share, abs=1e-3)


def test_rankings_and_choices_of_some_have_one_too():
    ranks = np.argsort(np.argsort(-X[:, :, 0], 1), 1)
    assert instant_verdict(X, ranks, task="ranking", device="cpu").share >= 0
    assert instant_verdict(X, X[:, :, 0] > 0, task="subset", device="cpu").share >= 0


def test_a_weight_of_0_leaves_a_set_out():
    more = np.concatenate([X, X[:3] * 50])
    weights = np.repeat([1.0, 0.0], [20, 3])
    found = instant_verdict(more, np.append(CHOSEN, [0, 0, 0]), sample_weight=weights, device="cpu")
    assert found == instant_verdict(X, CHOSEN, sample_weight=np.ones(20), device="cpu")


def test_wrong_inputs_are_errors_that_say_what_to_do():
    with pytest.raises(UserError, match="task"):
        instant_verdict(X, CHOSEN, task="choices")
    with pytest.raises(DataError, match="one object"):
        instant_verdict(X[:, :1], np.zeros(20, dtype=int))
    with pytest.raises(ParameterError, match="with_position"):
        instant_verdict(X, CHOSEN, position=np.tile([1, 2, 3], (20, 1)))
    with pytest.raises(DataError, match="one chosen object"):
        instant_verdict(X, np.append(CHOSEN[:-1], -1))
    with pytest.raises(ParameterError, match="set_id"):
        instant_verdict(pd.DataFrame({"a": [1.0, 2.0]}))
