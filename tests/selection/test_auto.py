"""The automatic model: reproducible, within its budget, on any table; wrong settings are refused beforehand."""

import time

import numpy as np
import pandas as pd
import pytest
from pickling_pool import PicklingPool, sent

from entourage import DiscreteChooser, Ranker, SubsetChooser, load
from entourage.data import make_medoid
from entourage.errors import DataError, ParameterError
from entourage.selection import candidates
from entourage.selection.auto import plan_blend

QUICK = {"steps": 4, "random_state": 0, "budget": 600.0, "device": "cpu"}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4, 3))
UTILITY = X @ [1.0, -1.0, 0.0] + 0.3 * RNG.normal(size=(40, 4))
RANKS = (-UTILITY).argsort(1).argsort(1)
CHOSEN = UTILITY.argmax(1)
NOTHING = np.where(UTILITY.max(1) > 1, CHOSEN, -1)
SOME = (UTILITY > 0).astype(int)


@pytest.fixture
def few(monkeypatch):
    """Let auto try three candidates on one fold only: a linear one, trees and a net."""
    kept = ("linear relative", "LambdaMART", "BoostedLogit", "BoostedSubset", "FATE small")
    every = candidates.list_candidates

    def shorter(*args, **settings):
        return [one for one in every(*args, **settings) if one.name in kept]

    monkeypatch.setattr("entourage.selection.auto.list_candidates", shorter)
    monkeypatch.setattr("entourage.selection.auto.FEW_SETS", 0)
    monkeypatch.setattr("entourage.selection.auto.MANY_SETS", 0)  # a fifth is held out once


@pytest.fixture
def few_on_folds(few, monkeypatch):
    """The same on three folds."""
    monkeypatch.setattr("entourage.selection.auto.MANY_SETS", 8000)
    monkeypatch.setattr("entourage.selection.auto.LONGER", np.inf)  # divided once, not twice


def same(first, second, *args):
    assert {t.name: (t.score, t.weight) for t in first.tried_} == {
        t.name: (t.score, t.weight) for t in second.tried_
    }
    np.testing.assert_array_equal(first.predict_scores(*args), second.predict_scores(*args))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (Ranker("auto", **QUICK), RANKS),
        (DiscreteChooser("auto", **QUICK), CHOSEN),
        (DiscreteChooser("auto", outside=True, **QUICK), NOTHING),
        (SubsetChooser("auto", **QUICK), SOME),
    ],
)
def test_every_task_has_its_blend_and_its_file_gives_the_same_scores(model, y, few, tmp_path):
    model.fit(X, y).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    same(model, loaded, X)
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    known = [t.score for t in model.tried_]
    assert known == sorted(known, reverse=True)
    assert sum(t.weight for t in model.tried_) == pytest.approx(1)
    assert model.score(X, y) > 0.5
    loaded.save(tmp_path / "again")
    same(model, load(tmp_path / "again"), X)
    if isinstance(model, DiscreteChooser):
        sums = model.predict_proba(X).sum(1)
        assert (sums < 1).all() if model.outside else sums == pytest.approx(1)


def test_candidates_of_all_tiers_are_tried():
    model = DiscreteChooser("auto", **QUICK).fit(X, CHOSEN)
    assert {t.tier for t in model.tried_} == {"alone", "relative", "net"}
    listed = candidates.list_candidates(32, "choice")
    assert {t.name for t in model.tried_} == {one.name for one in listed if one.blended}
    assert all(t.note == "" for t in model.tried_)
    assert model.held_out_score_ > np.log(1 / 4), "better than chance"


def test_the_same_seed_gives_the_same_blend_to_the_bit_and_another_seed_another(few):
    first = Ranker("auto", **QUICK).fit(X, RANKS)
    same(first, Ranker("auto", **QUICK).fit(X, RANKS), X)
    other = Ranker("auto", **QUICK | {"random_state": 1}).fit(X, RANKS)
    assert (first.predict_scores(X) != other.predict_scores(X)).any()


def test_two_workers_find_what_one_finds(few, monkeypatch):
    here = DiscreteChooser("auto", **QUICK).fit(X, CHOSEN)
    monkeypatch.setattr("entourage.selection.auto.open_pool", PicklingPool)
    same(here, DiscreteChooser("auto", workers=2, **QUICK).fit(X, CHOSEN), X)


def test_the_budget_holds_while_models_train_and_what_was_not_tried_is_named():
    big, ranks = make_medoid(n_sets=2_000, n_objects=10, random_state=0)
    begin = time.monotonic()
    model = Ranker("auto", budget=3, random_state=0).fit(big, ranks)
    assert time.monotonic() - begin < 25
    late = [t for t in model.tried_ if t.note]
    assert any("not tried: the time was up" in t.note for t in late)
    assert any(t.weight > 0 for t in model.tried_)
    assert np.isfinite(model.predict_scores(big[:10])).all()


@pytest.mark.parametrize(
    ("n", "kind"),
    [(4, "rank"), (10, "rank"), (25, "rank"), (4, "choice"), (10, "choice"), (4, "subset"), (10, "subset")],
)
def test_few_sets_are_enough_or_refused_in_a_sentence(n, kind, few, tmp_path):
    model, y = {
        "rank": (Ranker("auto", **QUICK), RANKS),
        "choice": (DiscreteChooser("auto", **QUICK), CHOSEN),
        "subset": (SubsetChooser("auto", **QUICK), SOME),
    }[kind]
    model.fit(X[:n], y[:n]).save(tmp_path / "model")
    same(model, load(tmp_path / "model"), X)


def test_three_sets_are_too_few():
    with pytest.raises(DataError, match="too few sets.*such as fate"):
        Ranker("auto", **QUICK).fit(X[:3], RANKS[:3])
    with pytest.raises(DataError, match="40 sets in 2 groups"):
        Ranker("auto", **QUICK).fit(X, RANKS, groups=np.arange(40) % 2)


def test_groups_are_parted_neither_by_folds_nor_within_them(few_on_folds, monkeypatch):
    groups = np.array([f"person {i}" for i in np.arange(40) // 4])
    plan = plan_blend(Ranker("auto", **QUICK), Ranker().task.sets_of(X, RANKS), groups=groups)
    assert len(plan.folds) == 3
    for train, held in plan.folds:
        assert not set(groups[train]) & set(groups[held])
    seen = []
    for kind in (Ranker, candidates.LambdaMART, candidates.LinearRanker):
        fit = kind.fit

        def spy(self, X, y=None, *, fit=fit, **settings):
            seen.append((type(self).__name__, settings.get("groups") is not None))
            return fit(self, X, y, **settings)

        monkeypatch.setattr(kind, "fit", spy)
    Ranker("auto", **QUICK).fit(X, RANKS, groups=groups)
    assert {name for name, _ in seen} >= {"Ranker", "LinearRanker", "LambdaMART"}
    assert all(given for _, given in seen)


def test_a_set_of_weight_0_is_left_out_and_weights_count(few):
    weights = (np.arange(40) % 4 > 0).astype(float)
    kept = weights > 0
    first = DiscreteChooser("auto", **QUICK).fit(X, CHOSEN, sample_weight=weights)
    second = DiscreteChooser("auto", **QUICK).fit(X[kept], CHOSEN[kept])
    same(first, second, X)
    third = DiscreteChooser("auto", **QUICK).fit(X, CHOSEN, sample_weight=1 + np.arange(40.0))
    assert (third.predict_scores(X) != first.predict_scores(X)).any()


def table(kind="rank", n=40):
    frame = pd.DataFrame({"race": np.repeat(np.arange(n), 4)})
    frame["odds"] = np.exp(3 * RNG.normal(size=4 * n))
    frame["jockey"] = [f"j{i}" for i in RNG.integers(60, size=4 * n)]
    frame["colour"] = RNG.choice(["red", "blue"], size=4 * n)
    frame["gate"] = np.tile(np.arange(4), n)
    utility = -np.log(frame.odds) + RNG.normal(size=4 * n)
    place = (-utility).groupby(frame.race).rank().astype(int) - 1
    frame["place"] = {
        "rank": place,
        "relevance": 3 - place,
        "choice": (place == 0) * 1,
        "subset": (place < 2) * 1,
    }[kind]
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.mark.parametrize("kind", ["rank", "relevance", "choice", "subset"])
def test_tables_with_many_levels_and_positions_in_any_order_of_rows(kind, few, tmp_path):
    frame = table(kind)
    model = {"choice": DiscreteChooser, "subset": SubsetChooser}.get(kind, Ranker)("auto", **QUICK)
    model.fit(frame, set_id="race", target="place", target_kind=kind, position="gate")
    assert model.categories_ == [(1, frame.jockey.nunique())]
    model.save(tmp_path / "model")
    scores = model.predict_scores(frame)
    np.testing.assert_array_equal(load(tmp_path / "model").predict_scores(frame), scores)
    shuffled = frame.sample(frac=1, random_state=1)
    np.testing.assert_allclose(model.predict_scores(shuffled), scores[shuffled.index], rtol=1e-5, atol=1e-6)
    new = frame.assign(jockey="never seen").drop(columns=["place", "gate"])
    assert np.isfinite(model.predict_scores(new)).all()


def test_places_of_relative_columns_mean_the_same_to_models_without_codes(few):
    codes = RNG.integers(1, 50, size=(40, 4, 1))
    model = Ranker("auto", categories=[(0, 49)], relative=[2], **QUICK)
    model.fit(np.concatenate([codes, X], axis=2), RANKS)
    plan = plan_blend(model, model.task.sets_of(np.concatenate([codes, X], axis=2), RANKS))
    relative = {one.name: one.model.relative for one in plan.candidates if one.model.relative}
    assert relative["linear relative"] == [33], "32 indicators stand where the code was"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relative": ["speed"]}, "no table"),
        ({"relative": [3]}, "from 0 to 2"),
        ({"loss": "hinges"}, "did you mean 'hinge'"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"members": 0}, "members"),
        ({"budget": 0}, "budget"),
        ({"workers": 0}, "workers"),
        ({"standardize": "quantile"}, "standardize"),
    ],
)
def test_wrong_settings_are_errors_and_no_blend_without_the_nets(settings, message, few):
    with pytest.raises(ParameterError, match=message):
        Ranker("auto", **QUICK | settings).fit(X, RANKS)


def test_without_lightgbm_the_blend_does_without_trees_and_says_so(monkeypatch, few):
    monkeypatch.setattr(candidates.importlib.util, "find_spec", lambda name: None)
    model = DiscreteChooser("auto", **QUICK).fit(X, CHOSEN)
    notes = {t.name: t.note for t in model.tried_}
    assert "LightGBM is not installed" in notes["BoostedLogit"]
    with_nothing = DiscreteChooser("auto", outside=True, **QUICK).fit(X, NOTHING)
    assert "BoostedLogit" not in {t.name for t in with_nothing.tried_}, "it would not help there"


def test_tied_sets_ragged_sets_and_sets_of_one(few):
    sizes = np.tile([1, 2, 4, 4], 10)
    ragged = [x[:m] for x, m in zip(X, sizes, strict=True)]
    ranks = [
        r[:m].argsort().argsort() * (i % 3 > 0) for i, (r, m) in enumerate(zip(RANKS, sizes, strict=True))
    ]
    model = Ranker("auto", **QUICK).fit(ragged, ranks)
    assert [len(s) for s in model.predict_scores(ragged)] == sizes.tolist()
    with pytest.raises(DataError, match="tied|differ|nothing"):
        Ranker("auto", **QUICK).fit(X, np.zeros((40, 4)))


def test_a_named_net_after_an_automatic_fit_leaves_nothing_of_the_blend(few):
    model = Ranker("auto", **QUICK).fit(X, RANKS)
    model.set_params(net="context_free").fit(X, RANKS)
    assert model.blend_ is None
    assert not hasattr(model, "tried_")
    fresh = Ranker("context_free", **QUICK).fit(X, RANKS)
    np.testing.assert_array_equal(model.predict_scores(X), fresh.predict_scores(X))
    model.set_params(net="auto").fit(X, RANKS)
    assert not hasattr(model, "net_")
    assert not hasattr(model, "scorer_")


def test_an_automatic_model_can_be_pickled_and_has_no_spread_over_members(few):
    model = Ranker("auto", **QUICK).fit(X, RANKS)
    same(model, sent(model), X)
    with pytest.raises(ParameterError, match="blend of several models.*no spread"):
        model.predict_scores(X, return_std=True)


def test_four_informative_sets_among_many_are_enough(few_on_folds, tmp_path):
    ranks = np.zeros((40, 4))
    ranks[3:7] = RANKS[3:7]
    model = Ranker("auto", **QUICK).fit(X, ranks)
    model.save(tmp_path / "model")
    same(model, load(tmp_path / "model"), X)
