"""Base levels of categories, and tables of several models."""

import numpy as np
import pandas as pd
import pytest

from entourage import load
from entourage.choice import (
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    compare_logits,
    likelihood_ratio_test,
)
from entourage.choice.comparison import LikelihoodRatio
from entourage.data.encoder import TableEncoder
from entourage.errors import DataError, ParameterError

ROLES = {"set_id": "set", "target": "taken"}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"set": np.repeat(np.arange(300), 3), "mode": np.tile(["car", "bus", "rail"], 300)})
    found["price"] = rng.normal(size=900)
    u = found["mode"].map({"car": 1.0, "bus": 0.0, "rail": 0.5}) - found["price"] + rng.gumbel(size=900)
    found["taken"] = (u == u.groupby(found["set"]).transform("max")).astype(int)
    return found


def test_one_level_is_the_base_and_any_gives_the_same_model(frame, tmp_path):
    first = MultinomialLogit().fit(frame, **ROLES)  # warnings are errors: all is identified
    assert first.parameter_names_ == ["mode=car", "mode=rail", "price"]
    chosen = MultinomialLogit(base={"mode": "car"}).fit(frame, **ROLES)
    assert chosen.parameter_names_ == ["mode=bus", "mode=rail", "price"]
    assert chosen.log_likelihood_ == pytest.approx(first.log_likelihood_)
    assert chosen.coef_[0] == pytest.approx(-first.coef_[0])
    assert chosen.predict_proba(frame) == pytest.approx(first.predict_proba(frame))
    chosen.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(frame), chosen.predict_proba(frame))
    assert loaded.summary() == chosen.summary()


@pytest.mark.parametrize("kind", [NestedLogit, CrossNestedLogit])
def test_the_alternative_whose_intercept_is_0_can_be_named(frame, kind, tmp_path):
    first = kind([["car", "bus"]], alternative="mode").fit(frame, **ROLES)
    assert first.parameter_names_[:2] == ["alternative car", "alternative rail"]
    named = kind([["car", "bus"]], alternative="mode", base={"mode": "rail"}).fit(frame, **ROLES)
    assert named.parameter_names_[:2] == ["alternative bus", "alternative car"]
    assert named.log_likelihood_ == pytest.approx(first.log_likelihood_, abs=1e-6)
    assert named.coef_[0] == pytest.approx(-first.coef_[1], abs=1e-4)
    assert named.coef_[1] == pytest.approx(first.coef_[0] - first.coef_[1], abs=1e-4)
    assert named.dissimilarities_ == pytest.approx(first.dissimilarities_, abs=1e-4)
    named.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(frame), named.predict_proba(frame))
    assert loaded.summary() == named.summary()
    with pytest.raises(ParameterError, match="did you mean 'rail'"):
        kind([["car", "bus"]], alternative="mode", base={"mode": "rial"}).fit(frame, **ROLES)
    with pytest.raises(ParameterError, match="intercepts=False leaves out"):
        kind([["car", "bus"]], alternative="mode", base={"mode": "rail"}, intercepts=False).fit(
            frame, **ROLES
        )


def test_a_penalty_identifies_all_levels(frame):
    assert len(MultinomialLogit(l2=1.0).fit(frame, **ROLES).coef_) == 4
    assert len(MultinomialLogit(l2=1.0, base={"mode": "car"}).fit(frame, **ROLES).coef_) == 3


def test_rows_without_a_level_are_the_base(frame):
    holes = frame.copy()
    holes.loc[::7, "mode"] = None
    model = MultinomialLogit().fit(holes, **ROLES)
    assert sorted(model.parameter_names_) == ["mode=bus", "mode=car", "mode=rail", "price"]
    with pytest.raises(DataError, match="missing in some rows"):
        MultinomialLogit(base={"mode": "car"}).fit(holes, **ROLES)


def test_a_base_that_is_not_there_is_refused(frame):
    with pytest.raises(ParameterError, match="did you mean 'car'"):
        MultinomialLogit(base={"mode": "cra"}).fit(frame, **ROLES)
    with pytest.raises(ParameterError, match="base names 'price', which is no column of text"):
        MultinomialLogit(base={"price": "1"}).fit(frame, **ROLES)
    with pytest.raises(ParameterError, match="columns of a table"):
        MultinomialLogit(base={"mode": "car"}).fit(np.zeros((2, 2, 1)), [0, 1])


def test_codes_of_levels_are_not_taken_for_numbers(frame):
    many = frame.assign(maker=[f"m{i % 40}" for i in range(len(frame))])
    encoder = TableEncoder.fit(many, **ROLES, target_kind="choice", codes=True)
    with pytest.raises(DataError, match="encoded as codes"):
        MultinomialLogit().fit(encoder(many).sets)


def test_nested_models_are_tested_and_others_are_not(frame):
    full = MultinomialLogit().fit(frame, **ROLES)
    small = MultinomialLogit().fit(frame, **ROLES, features=["mode"])
    nested = NestedLogit([["car", "bus"]], alternative="mode").fit(frame, **ROLES)
    classes = LatentClassLogit(2, restarts=1, l2=1.0).fit(frame, **ROLES)
    found = compare_logits({"full": full, "small": small, "nested": nested, "classes": classes})
    tested = {(test.restricted, test.full): test for test in found.tests}
    assert set(tested) == {("small", "full"), ("small", "nested"), ("full", "nested")}
    test = tested["small", "full"]
    assert test.statistic == pytest.approx(2 * (full.log_likelihood_ - small.log_likelihood_))
    assert test.degrees == 1
    assert test.p_value < 1e-6
    assert test.statistic == likelihood_ratio_test(small, full).statistic
    assert found.to_frame().column("bic").to_pylist()[0] == full.bic_
    assert "full against small: χ² = " in str(found)
    for pair in ((full, small), (full, classes), (classes, full)):
        with pytest.raises(ParameterError, match="can't be tested by their likelihood ratio"):
            likelihood_ratio_test(*pair)
    other = MultinomialLogit().fit(frame.head(600), **ROLES)
    with pytest.raises(ParameterError, match="they learnt from other choices"):
        compare_logits({"full": full, "other": other})


def test_models_with_other_bases_are_nested_all_the_same(frame):
    small = MultinomialLogit(base={"mode": "car"}).fit(frame, **ROLES)
    full = MixedLogit(["price"], draws=20, base={"mode": "bus"}).fit(frame, **ROLES)
    test = likelihood_ratio_test(small, full)
    assert test.degrees == 1
    assert "of a single one twice as large" in str(test)


def test_bic_counts_the_same_for_all_models_of_a_table(frame):
    who = np.arange(300) % 40
    alone = MultinomialLogit().fit(frame, **ROLES)
    grouped = MultinomialLogit().fit(frame, **ROLES, groups=who)
    panel = MixedLogit(["price"], draws=20).fit(frame, **ROLES, groups=who)
    found = compare_logits({"alone": alone, "panel": panel})
    assert found.n_units == 40
    assert "BIC counts 40 " in str(found)
    assert found.rows[0].bic == pytest.approx(np.log(40) * 3 - 2 * alone.log_likelihood_)
    assert found.rows[1].bic == panel.bic_
    assert compare_logits({"alone": alone, "grouped": grouped}).n_units == 300
    small = MultinomialLogit().fit(frame, **ROLES, features=["mode"], groups=who)
    assert "taken for independent" in likelihood_ratio_test(small, grouped).note
    assert likelihood_ratio_test(small, alone).note == ""


def test_a_p_value_too_small_for_a_number_is_no_0():
    assert "p < 1e-300" in str(LikelihoodRatio("a", "b", 5000.0, 1.0, 0.0))


def test_the_coefficient_of_a_feature_is_found_by_its_place(frame):
    features = ["mode=bus", "mode=car", "mode=rail", "price"]  # what objects have
    models = [
        MultinomialLogit(base={"mode": "car"}).fit(frame, **ROLES),
        MixedLogit({"mode=car": ("normal", 0.0, 1.0)}, draws=5).fit(frame, **ROLES),
        NestedLogit([["car", "bus"]], alternative="mode").fit(frame, **ROLES),
    ]
    for model in models:
        for column, name in enumerate(features):
            place = model.linear_place(column)
            assert (place is None) == (name not in model.parameter_names_)
            assert place is None or model.parameter_names_[place] == name
    assert LinearContextLogit().fit(frame, **ROLES).linear_place(3) is None
