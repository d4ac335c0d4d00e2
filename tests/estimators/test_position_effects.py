"""An effect of the position is learnt beside a model, and no part of its predictions."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

import entourage
from entourage import FATE, DiscreteChooser, Ranker, SetAttention, SubsetChooser
from entourage.baselines import RankSVM
from entourage.choice import MixedLogit, MultinomialLogit, NestedLogit
from entourage.data import Sets
from entourage.errors import DataError, ModelFileError, ParameterError
from entourage.estimators.fit_together import fit_together
from entourage.nets import ContextFree
from entourage.selection import compare
from entourage.training import tensor_file

EFFECTS = np.array([1.0, 0.3, 0.0, -0.5])
QUICK = {"batch_size": 128, "device": "cpu", "random_state": 0}
TINY = QUICK | {"steps": 4}


def shown(n=1500, seed=0, confounded=True):
    """Choices of one of four objects, of which better ones tend to be shown first, as shops do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4, 2))
    order = (-(X[:, :, 0] * confounded + rng.gumbel(size=(n, 4)))).argsort(1).argsort(1)
    utility = X @ [1.0, -0.5] + EFFECTS[order]
    return X, (utility + rng.gumbel(size=(n, 4))).argmax(1), order, utility


def table_of(X, y, position):
    n, m = X.shape[:2]
    rows = pd.DataFrame(X.reshape(n * m, -1), columns=["a", "b"])
    chosen = (np.arange(m) == y[:, None]).astype(int).ravel()
    return rows.assign(s=np.repeat(np.arange(n), m), chosen=chosen, at=position.ravel())


def test_the_logit_finds_the_effects_and_unbiased_coefficients():
    X, y, position, _ = shown(4000)
    model = MultinomialLogit().fit(X, y, position=position)
    np.testing.assert_allclose(model.coef_, [1.0, -0.5, *(EFFECTS[1:] - 1.0)], atol=0.15)
    assert (
        MultinomialLogit().fit(X, y).coef_[0] > model.coef_[0] + 0.2
    )  # what is shown first seemed to be better
    assert (model.standard_errors_[2:] < 0.1).all()
    assert model.parameter_names_ == ["x0", "x1", "position 1", "position 2", "position 3"]
    assert "position 3" in model.summary(["price", "size"])
    centred = EFFECTS - EFFECTS.mean()
    np.testing.assert_allclose(list(model.position_effects_.values()), centred, atol=0.15)
    np.testing.assert_allclose(model.predict_scores(X), X @ model.coef_[:2])
    assert len(model.fit(X, y).coef_) == 2, "an earlier fit leaves nothing"


def test_a_net_finds_the_effects_too_and_its_scores_hold_none_of_them():
    X, y, position, _ = shown()
    model = DiscreteChooser(ContextFree(width=16), steps=400, **QUICK).fit(X, y, position=position)
    exact = MultinomialLogit().fit(X, y, position=position)
    found, known = (np.array(list(m.position_effects_.values())) for m in (model, exact))
    np.testing.assert_allclose(found, known, atol=0.1)
    without = DiscreteChooser(ContextFree(width=16), steps=400, **QUICK).fit(X, y)
    slope, biased = (
        np.polyfit(X[:, :, 0].ravel(), m.predict_scores(X).ravel(), 1)[0] for m in (model, without)
    )
    assert biased > slope + 0.1  # what is shown first seemed to be better


@pytest.mark.parametrize("net", [FATE(8), SetAttention(8)])
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("kind", [Ranker, DiscreteChooser, SubsetChooser])
def test_every_task_net_and_ensemble_learns_and_leaves_them_out(net, members, kind, tmp_path):
    X, y, position, utility = shown(60)
    y = {Ranker: (-utility).argsort(1).argsort(1), DiscreteChooser: y, SubsetChooser: utility > 0}[kind]
    model = kind(net, members=members, **TINY).fit(X, y, position=position)
    assert list(model.position_effects_) == [0, 1, 2, 3]
    assert sum(model.position_effects_.values()) == pytest.approx(0, abs=1e-6)
    assert any(model.position_effects_.values())
    sets = Sets.of(X).with_position(position)
    np.testing.assert_array_equal(model.predict_scores(X).ravel(), model.predict_scores(sets))
    model.save(tmp_path / "m")
    loaded = entourage.load(tmp_path / "m")
    assert loaded.position_effects_ == model.position_effects_
    np.testing.assert_array_equal(loaded.predict_scores(X), model.predict_scores(X))
    before = model.predict_scores(X)
    loaded.partial_fit(X, y)  # goes on without them
    assert not np.array_equal(loaded.predict_scores(X), before)


def test_scores_are_those_at_an_average_position_where_their_level_matters():
    """Half of the objects are shown first, which makes all of them chosen: alone an object is even."""
    rng = np.random.default_rng(0)
    X, position = rng.normal(size=(400, 2, 1)), rng.integers(0, 2, (400, 2))
    model = SubsetChooser(ContextFree(width=8), steps=200, **QUICK).fit(X, position == 0, position=position)
    assert model.position_effects_[0] > 1
    assert abs(model.predict_scores(X).mean()) < 0.5
    asked = DiscreteChooser(ContextFree(width=8), outside=True, **TINY)
    assert asked.fit(X, np.where(position[:, 0] == 0, 0, -1), position=position).position_effects_ is not None


def test_tables_arrays_lists_and_sets_say_the_same_and_rows_may_be_shuffled():
    X, y, position, _ = shown(80)
    model = DiscreteChooser(FATE(8), **TINY)
    expected = model.fit(X, y, position=position).position_effects_
    scores = model.predict_scores(X)
    assert model.fit(list(X), y, position=[list(row) for row in position]).position_effects_ == expected
    sets = model.task.sets_of(X, y).with_position(position)
    assert model.fit(sets).position_effects_ == expected
    table = table_of(X, y, position)
    roles = {"set_id": "s", "target": "chosen", "target_kind": "choice", "position": "at"}
    assert model.fit(table, **roles).position_effects_ == expected
    assert [column["name"] for column in model.table_["columns"]] == ["a", "b"]
    np.testing.assert_array_equal(model.predict_scores(table), scores.ravel())
    np.testing.assert_array_equal(
        model.predict_scores(table.drop(columns="at")), scores.ravel()
    )  # not needed
    assert model.score(table.drop(columns="at")) == model.score(X, y)
    order = np.random.default_rng(0).permutation(320)
    logit = MultinomialLogit().fit(table, **roles)
    mixed = MultinomialLogit().fit(table.iloc[order], **roles)
    np.testing.assert_allclose(mixed.coef_, logit.coef_, rtol=1e-8)
    text = MultinomialLogit().fit(table.assign(at=table["at"].map(lambda p: f"p{p}")), **roles)
    np.testing.assert_allclose(text.coef_, logit.coef_, rtol=1e-8)
    assert list(text.position_effects_) == ["p0", "p1", "p2", "p3"]
    assert DiscreteChooser(FATE(8), **TINY).fit(X, y).position_effects_ is None
    assert model.fit(X, y).position_effects_ is None, "an earlier fit leaves nothing"


def test_sets_of_weight_0_have_no_say_in_positions():
    X, y, position, _ = shown(80)
    table = table_of(X, y, position)
    table["w"] = (table.s < 60).astype(float)
    table.loc[table.s >= 60, "at"] = 9
    roles = {"set_id": "s", "target": "chosen", "target_kind": "choice", "position": "at"}
    model = DiscreteChooser(FATE(8), **TINY).fit(table, sample_weight="w", **roles)
    assert list(model.position_effects_) == [0, 1, 2, 3]
    fewer = DiscreteChooser(FATE(8), **TINY).fit(table[table.s < 60].drop(columns="w"), **roles)
    assert fewer.position_effects_ == pytest.approx(model.position_effects_, rel=0.01)


def test_what_cannot_learn_positions_says_so():
    X, y, position, utility = shown(40)
    ranks = (-utility).argsort(1).argsort(1)
    for model, target in [(RankSVM(), ranks), (MixedLogit([0]), y), (NestedLogit([[0.0]]), y)]:
        with pytest.raises(ParameterError, match="learns no effect of positions"):
            model.fit(X, target, position=position)
    model = Ranker(FATE(8), **TINY)
    with pytest.raises(ParameterError, match="fit alone"):
        model.partial_fit(X, ranks, position=position)
    with pytest.raises(DataError, match="no effect"):
        model.fit(X, ranks, position=np.zeros_like(position))
    with pytest.raises(ParameterError, match="twice"):
        model.fit(Sets.of(X, ranks).with_position(position), position=position)
    table = table_of(X, y, position)
    for wrong, message in [
        ("s", "set id"),
        ("chosen", "target"),
        ("a", "a feature"),
        ("att", "did you mean 'at'"),
    ]:
        with pytest.raises((DataError, ParameterError), match=message):
            DiscreteChooser(FATE(8), **TINY).fit(
                table, set_id="s", target="chosen", features=["a", "b"], position=wrong
            )
    with pytest.raises(ParameterError, match="name of a column"):
        DiscreteChooser(FATE(8), **TINY).fit(table, set_id="s", target="chosen", position=position)


def test_a_checkpoint_of_other_positions_is_refused_and_one_of_the_same_resumes(tmp_path):
    X, y, position, _ = shown(60)
    settings = TINY | {"steps": 8, "evaluate_every": 4, "checkpoint": tmp_path / "c"}
    whole = DiscreteChooser(FATE(8), **settings).fit(X, y, position=position)
    again = DiscreteChooser(FATE(8), **settings).fit(X, y, position=position)
    assert again.position_effects_ == whole.position_effects_
    with pytest.raises(Exception, match="another|other"):
        DiscreteChooser(FATE(8), **settings).fit(X, y, position=position[::-1].copy())


def test_models_fitted_together_learn_their_own_positions():
    X, y, position, _ = shown(60)
    sets = DiscreteChooser().task.sets_of(X, y).with_position(position)
    together = [DiscreteChooser(FATE(8), **TINY | {"random_state": seed}) for seed in range(2)]
    fit_together(together, [(sets, None)] * 2)
    alone = DiscreteChooser(FATE(8), **TINY | {"random_state": 1}).fit(sets)
    assert together[1].position_effects_ == alone.position_effects_


@pytest.mark.parametrize(
    "effects", [[], [[0, 1.0]], [[0, 1.0], [0, 2.0]], [[0, 1.0], ["a", 2.0]], [[0, None]], 3]
)
def test_a_file_with_odd_effects_is_refused(effects, tmp_path):
    X, y, position, _ = shown(30)
    model = DiscreteChooser(FATE(4), **TINY).fit(X, y, position=position)
    model.save(tmp_path / "m")
    content, tensors = tensor_file.read(tmp_path / "m", "model")
    content["fitted"]["position_effects"] = effects
    tensor_file.write(tmp_path / "m", "model", content, tensors)
    with pytest.raises(ModelFileError):
        entourage.load(tmp_path / "m")


def test_a_logit_from_a_file_keeps_its_positions_and_odd_ones_are_refused(tmp_path):
    X, y, position, _ = shown(200)
    model = MultinomialLogit().fit(X, y, position=position)
    model.save(tmp_path / "m")
    loaded = entourage.load(tmp_path / "m")
    assert loaded.position_effects_ == model.position_effects_
    assert loaded.summary() == model.summary()
    np.testing.assert_array_equal(loaded.predict_scores(X), model.predict_scores(X))
    content, tensors = tensor_file.read(tmp_path / "m", "model")
    for odd in ([0, 1, 2], [1, 0, 2, 3], [0], [0, 1, 2, "a"], "0123", {}):
        content["fitted"]["positions_"] = odd
        tensor_file.write(tmp_path / "n", "model", content, tensors)
        with pytest.raises(ModelFileError):
            entourage.load(tmp_path / "n")


def test_a_comparison_gives_positions_to_those_who_can_learn_them():
    X, _, position, utility = shown(60)
    sets = Sets.of(X, (-utility).argsort(1).argsort(1)).with_position(position)
    candidates = {"linear": (RankSVM(), "context-free"), "net": (Ranker(FATE(4), **TINY), "context")}
    found = compare(sets, candidates, folds=2)
    plain = compare(sets.with_position(None), candidates, folds=2)
    assert found.means["linear"] == plain.means["linear"]
    assert found.means["net"] != plain.means["net"]


def test_the_command_learns_and_shows_them(tmp_path, capsys):
    X, y, position, _ = shown(60)
    table_of(X, y, position).to_csv(tmp_path / "t.csv", index=False)
    asked = ("fit", tmp_path / "t.csv", "--set-id", "s", "--target", "chosen", "--target-kind", "choice")
    asked += ("--model", "fate", "--steps", "5", "--device", "cpu", "-o", tmp_path / "m")
    code, _, err = run(capsys, *asked, "--position", "at", "--json")
    assert code == 0, err
    loaded = entourage.load(tmp_path / "m")
    assert list(loaded.position_effects_) == [0, 1, 2, 3]
    assert [column["name"] for column in loaded.table_["columns"]] == ["a", "b"]
    code, out, _ = run(capsys, "info", tmp_path / "m")
    assert "effects of positions" in out
    code, out, _ = run(capsys, "info", tmp_path / "m", "--table", tmp_path / "t.csv", "--json")
    assert {column["name"] for column in json.loads(out)["columns"]} == {"a", "b"}
    for wrong in ("s", "chosen", "nowhere"):
        code, _, err = run(capsys, *asked, "--position", wrong)
        assert code == 2, wrong
        assert "Traceback" not in err
