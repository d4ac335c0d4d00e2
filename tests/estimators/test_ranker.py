"""The estimator contract: a scikit-learn citizen over arrays, ragged lists and Sets."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import entourage
from entourage import FATE, FETA, ContextFree, Ranker, SetAttention, load
from entourage.data import Sets, make_medoid
from entourage.errors import DataError, ModelFileError, ParameterError, ShapeError, TrainingError
from entourage.estimators import DiscreteChooser, SubsetChooser
from entourage.estimators.base import NotFittedError
from entourage.losses import hinge_ranking_loss
from entourage.metrics import ranking_accuracy
from entourage.nets import NETS, Net
from entourage.selection import candidates

X, RANKS = make_medoid(n_sets=200, random_state=0)
LISTS = [one[: 3 + i % 3] for i, one in enumerate(X)]
LIST_RANKS = [np.argsort(np.argsort(one[:, 0])) for one in LISTS]


def quick(net: Net | None = None, **params) -> Ranker:
    return Ranker(net or FATE(width=8), **({"steps": 40, "random_state": 0} | params))


@pytest.mark.parametrize("estimator", [Ranker, DiscreteChooser, SubsetChooser])
def test_constructors_only_store(estimator):
    model = estimator()
    for name, value in model.get_params(deep=False).items():
        assert getattr(model, name) is value
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("name", NETS)
def test_parameters_go_through_the_net(name):
    model = quick(NETS[name](width=8))
    assert model.get_params()["net__width"] == 8
    model.set_params(net__width=9, learning_rate=0.5)
    assert (model.net.width, model.learning_rate) == (9, 0.5)
    with pytest.raises(ValueError, match="widht"):
        model.set_params(net__widht=9)


@pytest.mark.parametrize("name", NETS)
def test_a_clone_is_unfitted_equal_and_apart(name):
    model = quick(NETS[name](width=8)).fit(X, RANKS)
    copy = clone(model)
    assert repr(copy) == repr(clone(quick(NETS[name](width=8))))
    assert not hasattr(copy, "scorer_")
    copy.set_params(net__width=3)
    assert model.net.width == 8


@pytest.mark.parametrize("name", NETS)
def test_the_same_seed_gives_the_same_model_to_the_bit(name):
    a, b = (quick(NETS[name](width=8)).fit(X, RANKS) for _ in range(2))
    assert np.array_equal(a.predict_scores(X), b.predict_scores(X))
    other = quick(NETS[name](width=8), random_state=1).fit(X, RANKS)
    assert not np.array_equal(a.predict_scores(X), other.predict_scores(X))


def test_fitting_touches_no_global_generator():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    quick().fit(X, RANKS)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_a_generator_as_random_state_gives_another_model_each_time():
    rng = np.random.default_rng(0)
    a, b = (quick(random_state=rng).fit(X, RANKS).predict_scores(X[:3]) for _ in range(2))
    assert not np.array_equal(a, b)


def test_what_comes_out_has_the_form_of_what_went_in():
    model = quick().fit(X, RANKS)
    scores = model.predict_scores(X)
    assert scores.shape == (200, 5)
    as_list = model.predict_scores(list(X))
    assert isinstance(as_list, list)
    np.testing.assert_allclose(np.stack(as_list), scores, atol=1e-6)
    packed = model.predict_scores(Sets.of(X))
    np.testing.assert_allclose(packed, scores.reshape(-1), atol=1e-6)
    ranks = model.predict(X)
    assert ranks.dtype == np.int64
    assert np.array_equal(ranks, np.argsort(np.argsort(-scores, axis=1), axis=1))
    ragged = model.predict(LISTS)
    assert [len(r) for r in ragged] == [len(one) for one in LISTS]
    assert all(sorted(r) == list(range(len(r))) for r in ragged)


def test_ranks_of_ragged_sets_equal_those_of_each_set_alone():
    model = quick().fit(LISTS, LIST_RANKS)
    together = model.predict(LISTS[:20])
    for one, ranks in zip(LISTS[:20], together, strict=True):
        assert np.array_equal(model.predict(one[None])[0], ranks)


@pytest.mark.parametrize("net", [FATE(width=16), FETA(width=16), SetAttention(width=16)], ids=repr)
def test_equal_objects_of_a_set_share_a_rank(net):
    X, ranks = make_medoid(n_sets=60, n_features=6, random_state=0)
    model = Ranker(net, steps=20, random_state=0).fit(X, ranks)
    half = np.random.default_rng(0).normal(size=(3, 50, 6))
    found = model.predict(np.concatenate([half, half], axis=1))
    np.testing.assert_array_equal(found[:, :50], found[:, 50:])


@pytest.mark.parametrize("data", ["array", "ragged", "sets", "ragged sets"])
def test_cross_validation_and_grid_search_work_on_every_form(data):
    some, y = {
        "array": (X, RANKS),
        "ragged": (LISTS, LIST_RANKS),
        "sets": (Sets.of(X, RANKS), None),
        "ragged sets": (Sets.of(LISTS, LIST_RANKS), None),
    }[data]
    scores = cross_val_score(quick(), some, y, cv=KFold(3))
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    search = GridSearchCV(quick(), {"net__width": [4, 8], "learning_rate": [0.01]}, cv=2).fit(some, y)
    assert search.best_params_["net__width"] in (4, 8)
    assert 0 <= search.score(some, y) <= 1


@pytest.mark.parametrize("name", NETS)
def test_pickled_and_saved_models_predict_the_same_to_the_bit(name, tmp_path):
    model = quick(NETS[name](width=4)).fit(X, RANKS)
    expected = model.predict_scores(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_scores(X), expected)  # noqa: S301
    model.save(tmp_path / "m.entourage")
    back = load(tmp_path / "m.entourage")
    assert np.array_equal(back.predict_scores(X), expected)
    assert repr(back) == repr(model)
    assert back.history_ == model.history_
    assert back.best_score_ == model.best_score_


def test_a_model_is_saved_as_it_was_fitted_whatever_was_set_since(tmp_path):
    model = quick(FATE(width=6)).fit(X, RANKS)
    expected = model.predict_scores(X)
    model.set_params(net__width=9)
    model.save(tmp_path / "m.entourage")
    assert np.array_equal(load(tmp_path / "m.entourage").predict_scores(X), expected)


def test_a_saved_model_goes_on_learning_as_if_it_had_never_been_saved(tmp_path):
    model = quick().partial_fit(X, RANKS)
    model.save(tmp_path / "m.entourage")
    back = load(tmp_path / "m.entourage")
    a, b = (m.partial_fit(X, RANKS).predict_scores(X) for m in (model, back))
    assert np.array_equal(a, b)


def test_models_with_a_situation_are_saved_whole(tmp_path):
    situation = np.random.default_rng(0).normal(size=(200, 2))
    model = quick().fit(X, RANKS, situation=situation)
    model.save(tmp_path / "m.entourage")
    back = load(tmp_path / "m.entourage")
    assert np.array_equal(back.predict(X, situation=situation), model.predict(X, situation=situation))


def test_a_net_of_ones_own_is_pickled_not_saved(tmp_path):
    class Mine(FATE):
        pass

    model = quick(Mine(width=4)).fit(X, RANKS)
    with pytest.raises(ModelFileError, match="this net is a Mine"):
        model.save(tmp_path / "m")


def test_partial_fit_learns_pass_by_pass():
    train, test = make_medoid(n_sets=2000, random_state=1), make_medoid(n_sets=500, random_state=2)
    model = Ranker(FATE(width=32), random_state=0, batch_size=64)
    scores = [model.partial_fit(*train).score(*test) for _ in range(12)]
    assert scores[-1] > scores[0]
    assert scores[-1] > 0.7


@pytest.mark.parametrize("order", [("adamw", "sgd"), ("sgd", "adamw")])
def test_partial_fit_goes_on_after_a_change_of_optimiser(order):
    model = quick(optimizer=order[0]).fit(X, RANKS)
    model.set_params(optimizer=order[1], learning_rate=0.001).partial_fit(X, RANKS)
    assert np.isfinite(model.predict_scores(X)).all()


def test_the_situation_tells_users_apart():
    """The same objects, one user likes them large and the other small."""
    rng = np.random.default_rng(0)
    objects, user = rng.normal(size=(2000, 4, 1)), rng.choice([-1.0, 1.0], size=(2000, 1))
    ranks = np.argsort(np.argsort(-objects[..., 0] * user, axis=1), axis=1)
    blind = Ranker(FATE(width=16), steps=300, random_state=0).fit(objects, ranks)
    seeing = Ranker(FATE(width=16), steps=300, random_state=0).fit(objects, ranks, situation=user)
    assert abs(blind.score(objects, ranks) - 0.5) < 0.05
    assert seeing.score(objects, ranks, situation=user) > 0.95
    assert seeing.score(Sets.of(objects, ranks, user)) > 0.95


def test_features_are_standardised_inside():
    shift, scale = np.array([1e6, -3.0]), np.array([1e3, 1e-4])
    plain = quick(steps=200).fit(X.astype(float), RANKS)
    moved = quick(steps=200).fit(X.astype(float) * scale + shift, RANKS)
    agree = (plain.predict(X.astype(float)) == moved.predict(X.astype(float) * scale + shift)).mean()
    assert agree > 0.95
    constant = np.concatenate([X, np.full((200, 5, 1), 5.0)], axis=2)
    assert np.isfinite(quick().fit(constant, RANKS).predict_scores(constant)).all()


def test_ties_and_unranked_objects_are_learnt_around():
    y = RANKS.astype(float)
    y[:, 3] = np.nan
    y[:, 4] = -1
    y[::2, 1] = y[::2, 0]
    model = quick().fit(X, y)
    assert 0 <= model.score(X, y) <= 1


@pytest.mark.parametrize("net", [FATE(width=16), FETA(width=8), ContextFree(width=8)])
def test_a_model_trained_on_5_objects_predicts_on_any_number(net):
    model = quick(net).fit(X, RANKS)
    for size in [1, 2, *range(3, 25), 3355]:
        other, ranks = make_medoid(n_sets=2, n_objects=size, random_state=size)
        predicted = model.predict(other)
        assert predicted.shape == (2, size)
        if size > 1:
            assert 0 <= model.score(other, ranks) <= 1


def test_a_single_set_and_tiny_data_can_be_learnt_from():
    model = quick().fit(X[:1], RANKS[:1])
    assert model.best_score_ is None, "too few to hold any out"
    assert model.score(X[:1], RANKS[:1]) == 1.0


WRONG = [
    (lambda: quick().predict(X), NotFittedError, "is not fitted yet"),
    (lambda: quick().save("x"), NotFittedError, "is not fitted yet"),
    (lambda: quick().fit(X), DataError, "Ranks are needed"),
    (lambda: quick().fit(X[0], RANKS[0]), ShapeError, "pass X\\[None\\]"),
    (lambda: quick().fit(X, RANKS[:, :3]), ShapeError, "one entry per object"),
    (lambda: quick().fit(X, RANKS * 0), DataError, "nothing to learn"),
    (lambda: quick().fit(X, -5 - RANKS), DataError, "set 0, object 0 has -"),
    (lambda: quick().fit(X, RANKS + np.inf), DataError, "has inf"),
    (lambda: quick().fit(np.where(X > 2, X, np.nan), RANKS), DataError, "Features must be finite"),
    (lambda: quick().fit(X, RANKS, sample_weight=[1.0]), ShapeError, "one entry a set"),
    (lambda: quick().fit(X, RANKS, sample_weight=-np.ones(200)), DataError, "none negative"),
    (
        lambda: quick().fit(X, RANKS).predict(X[..., :1]),
        ShapeError,
        "fitted on 2 features; these sets have 1",
    ),
    (
        lambda: quick().fit(X, RANKS).predict(X, situation=np.ones((200, 1))),
        ShapeError,
        "fitted on 0 situation features; these sets have 1",
    ),
    (lambda: quick().fit(X, RANKS).partial_fit(X[..., :1], RANKS), ShapeError, "fitted on 2 features"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_bad_input_says_what_is_needed(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


def test_a_failed_fit_leaves_the_fitted_model_as_it_was():
    model = quick().fit(X, RANKS)
    before = model.predict_scores(X)
    with pytest.raises(DataError):
        model.fit(X * np.nan, RANKS)
    assert np.array_equal(model.predict_scores(X), before)


def test_a_failed_pass_leaves_the_fitted_model_as_it_was():
    model = quick().fit(X, RANKS)
    before = model.predict_scores(X)
    model.set_params(learning_rate=1e30, optimizer="sgd", clip=None)
    with pytest.raises(TrainingError):
        model.partial_fit(X, RANKS)
    assert np.array_equal(model.predict_scores(X), before)


def test_features_beyond_all_bounds_are_an_error_not_a_ranking():
    model = quick().fit(X.astype(float), RANKS)
    far = X[:3].astype(float)
    far[1] *= 1e300
    with pytest.raises(DataError, match="scores of set 1 are not finite"):
        model.predict(far)


def test_numpy_numbers_are_as_good_as_plain_ones(tmp_path):
    model = quick(batch_size=np.int64(16), learning_rate=np.float32(0.01), standardize=np.True_)
    model.set_params(device=torch.device("cpu"), checkpoint=tmp_path / "run").fit(X, RANKS).save(
        tmp_path / "m"
    )
    assert np.array_equal(load(tmp_path / "m").predict(X), model.predict(X))
    GridSearchCV(quick(), {"batch_size": np.array([8, 16])}, cv=2, error_score="raise").fit(X, RANKS)


def test_ranks_finer_than_float32_are_told_apart():
    fine = quick(steps=100).fit(X, 1 + RANKS * 1e-9)
    plain = quick(steps=100).fit(X, RANKS).predict(X)
    assert np.array_equal(fine.predict(X), plain)
    assert np.array_equal(quick(steps=100).fit(X, RANKS * 1e300).predict(X), plain), "without a warning, too"


@pytest.mark.parametrize("scale", [1e-14, 1e150, 1e200])
def test_features_of_any_scale_are_learnt_from(scale):
    plain, scaled = quick(steps=100).fit(X, RANKS), quick(steps=100).fit(X.astype(float) * scale, RANKS)
    assert (plain.predict(X) == scaled.predict(X.astype(float) * scale)).mean() > 0.95


def test_a_loss_of_ones_own_is_left_out_of_a_model_file_and_asked_for_again(tmp_path):
    model = quick(loss=lambda s, r, m: hinge_ranking_loss(s, r, m)).fit(X, RANKS)
    with pytest.warns(UserWarning, match="the loss is left out"):
        model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert np.array_equal(back.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match="Give it again"):
        back.partial_fit(X, RANKS)


def test_partial_fit_goes_on_with_the_story():
    model = quick().fit(X, RANKS)
    rows, steps = len(model.history_), model.n_steps_
    model.partial_fit(X, RANKS)
    assert len(model.history_) == rows + 1
    assert model.n_steps_ == steps + 1
    assert model.history_[-1]["step"] == steps + 1


def test_pickling_leaves_the_model_where_it_is():
    model = quick().fit(X, RANKS)
    before = model.scorer_
    pickle.dumps(model)
    assert model.scorer_ is before


def test_metrics_of_ragged_sets_go_through_padding():
    sets = Sets.of(LISTS, LIST_RANKS)
    model = quick().fit(sets)
    assert ranking_accuracy(sets.pad(model.predict_scores(sets)), sets.pad(sets.targets)) == pytest.approx(
        model.score(sets)
    )


def test_the_score_is_weighted_by_set():
    model = quick().fit(X, RANKS)
    one, two = model.score(X[:1], RANKS[:1]), model.score(X[1:2], RANKS[1:2])
    assert model.score(X[:2], RANKS[:2], sample_weight=[3, 1]) == pytest.approx((3 * one + two) / 4)


def test_the_public_names_are_there_and_importing_them_is_lazy():
    assert set(dir(entourage)) == {
        "FATE", "FETA", "ContextFree", "DiscreteChooser", "Ranker", "SetAttention", "Sets", "SubsetChooser",
        "__version__", "cross_validate", "instant_verdict", "load",
    }  # fmt: skip
    code = "import entourage, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'Rankr'"):
        _ = entourage.Rankr


def test_context_is_learnt_where_there_is_some():
    train, test = make_medoid(n_sets=2000, random_state=3), make_medoid(n_sets=1000, random_state=4)
    scores = {
        net.__class__.__name__: Ranker(net, steps=300, batch_size=128, random_state=0)
        .fit(*train)
        .score(*test)
        for net in (ContextFree(width=32), FETA(width=16), FATE(width=32))
    }
    assert scores["FATE"] > scores["ContextFree"] + 0.1
    assert scores["FETA"] > scores["ContextFree"] + 0.1


def test_auto_takes_nets_where_the_task_needs_the_context(tmp_path, monkeypatch):
    every = candidates.list_candidates
    kept = ("linear", "linear relative", "ContextFree", "FATE small")
    monkeypatch.setattr(
        "entourage.selection.auto.list_candidates",
        lambda *args, **settings: [one for one in every(*args, **settings) if one.name in kept],
    )
    monkeypatch.setattr("entourage.selection.auto.FEW_SETS", 0)  # three folds, not five
    X, ranks = make_medoid(n_sets=250, random_state=0)
    model = Ranker("auto", steps=100, random_state=0).fit(X, ranks)
    assert all(len(part.models) == 6 for part in model.blend_.parts), "three folds, divided twice"
    assert [t.score for t in model.tried_] == sorted((t.score for t in model.tried_), reverse=True)
    assert {t.tier for t in model.tried_} == {"alone", "relative", "net"}
    assert model.tried_[0].tier == "net"
    assert sum(t.weight for t in model.tried_ if t.tier == "net") > 0.5
    best_alone = max(t.score for t in model.tried_ if t.tier == "alone")
    assert model.held_out_score_ > best_alone, "this task needs the context"
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_scores(X), model.predict_scores(X))


def test_auto_begins_with_no_other_candidate_once_its_time_is_up():
    X, ranks = make_medoid(n_sets=50, random_state=0)
    model = Ranker("auto", steps=5, budget=1e-6, random_state=0).fit(X, ranks)
    assert [t.weight for t in model.tried_ if t.weight] == [1.0]
    notes = {t.note for t in model.tried_ if not t.weight and "LightGBM is not installed" not in t.note}
    assert notes == {"not tried: the time was up"}


def test_another_word_than_auto_is_no_net():
    X, ranks = make_medoid(n_sets=50, random_state=0)
    with pytest.raises(ParameterError, match="auto"):
        Ranker("autos", steps=5).fit(X, ranks)


def test_auto_has_no_checkpoint_and_no_partial_fit(tmp_path):
    X, ranks = make_medoid(n_sets=50, random_state=0)
    with pytest.raises(ParameterError, match="checkpoint is of one net"):
        Ranker("auto", steps=5, checkpoint=tmp_path / "run").fit(X, ranks)
    with pytest.raises(ParameterError, match="partial_fit trains one net"):
        Ranker("auto", steps=5).partial_fit(X, ranks)


@pytest.mark.parametrize(
    "setting", [{"dropout": 0.1}, {"features": "periodic"}, {"pooling": "spread"}], ids=repr
)
def test_settings_of_rounds_that_are_not_there_are_refused(setting):
    X, ranks = make_medoid(n_sets=50, random_state=0)
    with pytest.raises(ParameterError, match="rounds=2"):
        Ranker(FATE(width=8, **setting), steps=5).fit(X, ranks)
