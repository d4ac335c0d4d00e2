"""What estimators refuse, in words that say what to do; and rare inputs that are right."""

import numpy as np
import pandas as pd
import pytest

from entourage import FATE, DiscreteChooser, Ranker, SubsetChooser
from entourage.baselines import LambdaMART, RankSVM
from entourage.data import Sets
from entourage.errors import DataError, ParameterError, UserError
from entourage.estimators.baselines import lambda_mart
from entourage.estimators.evaluation_tables import evaluate_table
from entourage.estimators.inputs import given_sets, training_sets
from entourage.estimators.pretrained_net import draw_reference, scores_held_out
from entourage.tasks import Ranking

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3, 2))
RANKS = np.argsort(np.argsort(-X[..., 0], axis=1), axis=1)
FRAME = pd.DataFrame(
    {
        "race": np.repeat(np.arange(N), 3),
        "speed": X[..., 0].ravel(),
        "age": X[..., 1].ravel(),
        "place": RANKS.ravel(),
    }
)
PLACED = FRAME.assign(gate=np.tile(np.arange(3), N))
ROLES = {"set_id": "race", "target": "place"}
QUICK = {"steps": 5, "validation": 0, "random_state": 0, "device": "cpu"}
OF_TABLE = RankSVM().fit(FRAME, **ROLES)


def learn(X=X, y=None, **given):
    return training_sets(Ranking(), X, y, **given)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: given_sets(OF_TABLE, FRAME, np.zeros((N, 1))), "leave situation out here"),
        (lambda: learn(y=RANKS, table={"set_id": "race"}), "set_id name columns of a table; X is ndarray"),
        (
            lambda: learn(y=RANKS, sample_weight="heavy"),
            "sample_weight='heavy' names a column, but X is no table",
        ),
        (lambda: learn(y=RANKS, groups="season"), "groups='season' names a column, but X is no table"),
        (lambda: learn(FRAME, RANKS), "name the column to learn instead of y"),
        (lambda: learn(FRAME), "give set_id and target, as in"),
        (lambda: learn(FRAME, table={"set_id": "race"}), "give target, as in"),
        (
            lambda: learn(FRAME, table=ROLES | {"position": [0, 1, 2]}),
            "position is the name of a column; got list",
        ),
        (lambda: OF_TABLE.predict(np.zeros((2, 3, 3))), "3"),
        (lambda: RankSVM().fit(PLACED, **ROLES, position="gate"), "learns no effect of positions"),
        (
            lambda: learn(Sets.of(X, RANKS).with_position(RANKS), table={"position": RANKS}),
            "position came twice: these Sets carry their own",
        ),
        (lambda: RankSVM().fit(X[:, :1], RANKS[:, :1]), "Every set has one object"),
        (lambda: RankSVM().fit(X, np.zeros((N, 3))), "No set ranks two objects differently"),
        (
            lambda: Ranker(FATE(4), fine_tune=True, **QUICK).fit(X, RANKS),
            'fine_tune belongs to net="pretrained"',
        ),
    ],
)
def test_training_data_that_make_no_sense_are_refused(call, says):
    with pytest.raises(UserError, match=says):
        call()


def test_an_encoder_that_was_learnt_before_takes_no_columns_and_needs_a_target():
    encoder = Sets.from_frame(FRAME, **ROLES).encoder
    sets, _, _ = learn(FRAME, encoder=encoder)
    np.testing.assert_array_equal(sets.targets, RANKS.ravel())
    with pytest.raises(ParameterError, match="The columns were learnt in an earlier fit"):
        learn(FRAME, encoder=encoder, table={"set_id": "race"})
    with pytest.raises(ParameterError, match="Positions are learnt by fit alone"):
        learn(FRAME, encoder=encoder, table={"position": "age"})
    without = Sets.from_frame(FRAME.drop(columns="place"), set_id="race").encoder
    with pytest.raises(DataError, match="learnt without a target"):
        learn(FRAME, encoder=without)


def test_a_model_without_a_target_column_is_not_evaluated_on_a_table():
    model = RankSVM().fit(
        Sets.from_frame(FRAME.drop(columns="place"), set_id="race").with_targets(RANKS.ravel() * 1.0)
    )
    with pytest.raises(DataError, match="fitted without a target column"):
        evaluate_table(model, FRAME)


def test_lambda_mart_says_what_it_can_not_learn_from(monkeypatch):
    with pytest.raises(DataError, match="needs targets that came from relevance grades"):
        LambdaMART(objective="xendcg").fit(X, RANKS)
    monkeypatch.setattr(lambda_mart, "LARGEST_SET", 2)
    with pytest.raises(DataError, match=r"at most 2 objects; the largest here has 3\. Learn from subsets"):
        LambdaMART().fit(X, RANKS)


def test_trees_always_have_a_group_to_learn_from():
    model = LambdaMART(5, folds=1, validation=0.8).fit(X, RANKS, groups=np.arange(N) % 2)
    assert model.best_score_ is not None
    assert model.n_rounds_ > 0
    ranks = np.where(np.arange(N)[:, None] < 25, RANKS, 0)  # all that is informative is in one group
    with pytest.raises(DataError, match="at least two labels among the informative sets"):
        LambdaMART(5).fit(X, ranks, groups=np.arange(N) // 25)


def test_old_random_states_are_seeds_too():
    one, other = (
        Ranker(FATE(4), **QUICK | {"random_state": np.random.RandomState(seed)}).fit(X, RANKS)
        for seed in (3, 3)
    )
    np.testing.assert_array_equal(one.predict_scores(X), other.predict_scores(X))
    generator = Ranker(FATE(4), **QUICK | {"random_state": np.random.default_rng(3)}).fit(X, RANKS)
    assert (generator.predict_scores(X) != one.predict_scores(X)).any()


def test_the_spread_of_members_counts_shifts_only_where_they_matter():
    some = (X[..., 0] > 0).astype(int)
    subsets = SubsetChooser(FATE(4), members=2, **QUICK).fit(X, some)
    each = subsets._member_scores(Sets.of(X))
    _, spread = subsets.predict_scores(X, return_std=True)
    np.testing.assert_allclose(spread.ravel(), each.std(0, ddof=1), rtol=1e-5)
    choices = DiscreteChooser(FATE(4), members=2, **QUICK).fit(X, RANKS.argmin(1))
    each = choices._member_scores(Sets.of(X)).reshape(2, N, 3)
    _, spread = choices.predict_scores(X, return_std=True)
    centred = each - each.mean(2, keepdims=True)
    np.testing.assert_allclose(spread, centred.std(0, ddof=1), rtol=1e-5, atol=1e-7)


def test_a_net_that_is_left_in_training_mode_scores_as_it_should():
    model = Ranker(FATE(4, rounds=2, dropout=0.5), **QUICK).fit(X, RANKS)
    expected = model.predict_scores(X)
    model.scorer_.train()
    np.testing.assert_array_equal(model.predict_scores(X), expected)


def test_targets_are_needed_to_calibrate():
    model = Ranker(FATE(4), **QUICK).fit(X, RANKS)
    with pytest.raises(DataError, match="Targets are needed to calibrate|Ranks are needed"):
        model.calibrate(Sets.of(X))


def test_the_control_of_a_pretrained_net_needs_two_objects():
    with pytest.raises(DataError, match="needs a set of two objects; every set has one"):
        draw_reference(Sets.of(X[:, :1]), 0)
    assert {len(own) for own in draw_reference(Sets.of(X), 0).to_list()} == {3}


def test_scores_of_a_pretrained_net_are_held_out_only_where_each_fold_says_something():
    ranks = np.zeros((N, 3))
    ranks[:12] = [0, 1, 2]
    groups = np.where(np.arange(N) < 12, 0, np.arange(N))  # all that is informative is in one group
    assert scores_held_out(Ranking(), Sets.of(X, ranks), None, [], groups=groups) is None
    assert scores_held_out(Ranking(), Sets.of(X[:3], RANKS[:3]), None, []) is None
