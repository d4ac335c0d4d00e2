"""Sets of rows and sizes of queries."""

import numpy as np
import pytest

from entourage.baselines import LinearRanker
from entourage.data import Sets, sets_from_groups
from entourage.errors import DataError, ParameterError, ShapeError

RNG = np.random.default_rng(0)
X, GROUP = RNG.normal(size=(60, 3)), [5, 20, 1, 14, 20]
GRADES = np.clip(np.round(X[:, 0] + 1), 0, 4)


def test_groups_are_sets_of_the_rows_they_count():
    sets = sets_from_groups(X, GROUP, relevance=GRADES)
    assert sets.sizes.tolist() == GROUP
    assert (sets[1].objects == X[5:25]).all()
    assert (sets.targets == GRADES.max() - GRADES).all()
    assert sets.worst == GRADES.max()


def test_groups_and_a_table_with_query_ids_are_the_same():
    import pandas as pd

    columns = {f"f{i}": X[:, i] for i in range(3)}
    frame = pd.DataFrame(columns | {"query": np.repeat(np.arange(5), GROUP), "grade": GRADES})
    table = Sets.from_frame(frame, set_id="query", target="grade", target_kind="relevance")
    groups = sets_from_groups(X, GROUP, relevance=GRADES)
    assert (groups.targets == table.targets).all()
    assert groups.worst == table.worst
    scores = [LinearRanker().fit(sets).predict_scores(sets) for sets in (groups, table)]
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_rows_that_were_not_judged_have_no_rank():
    sets = sets_from_groups(X[:4], [4], relevance=[2, -1, np.nan, 0])
    np.testing.assert_array_equal(sets.targets, [0, np.nan, np.nan, 2])


def test_ranks_may_come_instead_of_grades():
    sets = sets_from_groups(X[:4], [3, 1], ranks=[1, 0, -1, 0], situation=[[0.0], [1.0]])
    np.testing.assert_array_equal(sets.targets, [1, 0, np.nan, 0])
    assert sets.worst is None
    assert sets.n_situation_features == 1


@pytest.mark.parametrize(
    ("group", "labels", "error", "words"),
    [
        ([5, 20], {}, ShapeError, "add up to the 60 rows of X; they add up to 25"),
        (np.repeat(np.arange(1, 6), GROUP), {}, ShapeError, "queries' ids, one a row, pass a table"),
        ([60, 0], {}, DataError, "leave empty queries out"),
        ([60.0], {}, ShapeError, "whole numbers on one axis; got float64"),
        (GROUP, {"relevance": GRADES, "ranks": GRADES}, ParameterError, "both came"),
        (GROUP, {"relevance": GRADES[1:]}, ShapeError, "one number for each of the 60 rows"),
        (GROUP, {"relevance": np.full(60, np.inf)}, DataError, "infinite grade"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(group, labels, error, words):
    with pytest.raises(error, match=words):
        sets_from_groups(X, group, **labels)
