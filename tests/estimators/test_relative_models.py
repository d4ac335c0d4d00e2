"""``relative=`` of baselines and choice models: the same as columns made by hand, kept in files, refused when wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from entourage import Ranker, load
from entourage.baselines import (
    BoostedLogit,
    BoostedSubset,
    ExpectedRankRegression,
    LambdaMART,
    LinearRanker,
    RankBoost,
    RankSVM,
)
from entourage.choice import ContextualLogit, MixedLogit, MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.data.relative import within_sets
from entourage.errors import DataError, ParameterError, UserError

RNG = np.random.default_rng(0)
SIZES = np.tile([1, 2, 4, 5], 15)
PARTS = [RNG.normal(size=(m, 2)) + 3 * RNG.normal(size=(1, 2)) for m in SIZES]  # sets lie apart
RANKS = [p[:, 0].argsort().argsort() for p in PARTS]
CHOSEN = [r.argmin() for r in RANKS]
SOME = [(p[:, 0] > np.median(p[:, 0])).astype(int) for p in PARTS]
WHOLE, PLACES = PARTS[2::4], [1, 0]

RANKERS = [
    LinearRanker(l2=1.0),
    RankSVM(),
    LambdaMART(8, min_child_samples=5),
    ExpectedRankRegression(),
    RankBoost(5),
]
CHOOSERS = [
    MultinomialLogit(l2=1.0),
    ContextualLogit(rank=1, l2=1.0),
    BoostedLogit(5, min_child_samples=2),
]


def target_of(model):
    kinds = {BoostedSubset: SOME, MultinomialLogit: CHOSEN, ContextualLogit: CHOSEN, BoostedLogit: CHOSEN}
    return kinds.get(type(model), RANKS)


@pytest.mark.parametrize("model", [*RANKERS, *CHOOSERS, BoostedSubset(5, min_child_samples=2)], ids=repr)
def test_a_relative_model_is_one_of_columns_made_by_hand_and_its_file_keeps_them(model, tmp_path):
    y, sets = target_of(model), Sets.of(PARTS)
    seen = within_sets(sets.objects, sets, PLACES, model.standings)
    wider = np.split(np.concatenate([sets.objects, seen], axis=1), sets.offsets[1:-1])
    relative = clone(model).set_params(relative=PLACES).fit(PARTS, y)
    by_hand = clone(model).fit(wider, y)
    scores = np.concatenate(relative.predict_scores(PARTS))
    np.testing.assert_allclose(scores, np.concatenate(by_hand.predict_scores(wider)), atol=1e-9)
    assert relative.n_features_in_ == 2
    plain = clone(model).fit(PARTS, y)
    assert np.abs(scores - np.concatenate(plain.predict_scores(PARTS))).max() > 1e-6
    if isinstance(model, ExpectedRankRegression | RankBoost):
        return  # which have no files
    relative.save(tmp_path / "m")
    np.testing.assert_array_equal(np.concatenate(load(tmp_path / "m").predict_scores(PARTS)), scores)


@pytest.mark.parametrize(
    "model",
    [NestedLogit([[2, 3]], relative=[1, 2]), MixedLogit({0: "normal"}, draws=10, relative=[1])],
    ids=repr,
)
def test_nested_and_mixed_logits_keep_their_relative_columns(model, tmp_path):
    X = np.concatenate([np.tile([[[1.0], [2.0], [3.0]]], (80, 1, 1)), RNG.normal(size=(80, 3, 2))], axis=2)
    y = (X[..., 1] + RNG.gumbel(size=(80, 3))).argmax(1)
    model.fit(X, y).save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_scores(X), model.predict_scores(X))


@pytest.mark.parametrize("model", [LinearRanker(), MultinomialLogit(), Ranker(steps=2)], ids=repr)
@pytest.mark.parametrize("relative", [[2], [0, 0], ["x"], 1.5, [True], b"x"], ids=repr)
def test_wrong_columns_are_refused(model, relative):
    with pytest.raises(ParameterError, match="relative"):
        clone(model).set_params(relative=relative).fit(PARTS, target_of(model))


def test_columns_of_a_table_are_named_and_text_has_no_standing():
    frame = pd.DataFrame({"s": np.repeat(np.arange(30), 4), "x": RNG.normal(size=120)})
    frame["colour"] = RNG.choice(["red", "blue", "green"], 120)
    frame["place"] = frame.groupby("s").x.rank().astype(int) - 1
    named = LinearRanker(relative=["x"]).fit(frame, set_id="s", target="place")
    every = LinearRanker(relative=True).fit(frame, set_id="s", target="place")
    np.testing.assert_array_equal(named.predict_scores(frame), every.predict_scores(frame))
    shuffled = frame.sample(frac=1, random_state=0)
    np.testing.assert_allclose(named.predict_scores(shuffled), named.predict_scores(frame)[shuffled.index])
    with pytest.raises(ParameterError, match="'colour', which is no numeric column"):
        LinearRanker(relative=["colour"]).fit(frame, set_id="s", target="place")
    with pytest.raises(DataError, match="no numeric|there is none"):
        LinearRanker(relative=True).fit(frame.drop(columns="x"), set_id="s", target="place")


def test_alternatives_without_features_have_no_standing():
    with pytest.raises(UserError, match="relative"):
        MultinomialLogit(alternatives=3, relative=True).fit(
            np.tile([[[0.0], [1.0], [2.0]]], (9, 1, 1)), [0] * 9
        )


@pytest.mark.parametrize("model", [LinearRanker(), RankSVM()], ids=repr)
def test_a_column_of_huge_numbers_spoils_no_linear_model(model):
    X = RNG.normal(size=(60, 4, 2))
    ranks = X[..., 0].argsort(1).argsort(1)
    X[::7, 0, 1] = 1e300
    assert clone(model).fit(X, ranks).score(X, ranks) > 0.95
