"""Estimators of the pretrained net: every way in, what is refused, and model files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from entourage import DiscreteChooser, Ranker, Sets, SubsetChooser, load
from entourage.errors import DataError, ModelFileError, ParameterError, UserError
from entourage.pretrained import InstantVerdict, Reading

pytestmark = pytest.mark.usefixtures("small_pretrained")

SETTINGS = {"random_state": 0, "device": "cpu"}
BARE = {**SETTINGS, "validation": 0}


def make_arrays(n=24, m=3, seed=0):
    """Choices by the first column, of sets of one size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m, 2))
    utilities = X[:, :, 0] * 2 + rng.gumbel(size=(n, m))
    return X, utilities.argmax(1), np.argsort(np.argsort(-utilities, 1), 1)


X, CHOSEN, RANKS = make_arrays()


@pytest.fixture(scope="module")
def chooser():
    return DiscreteChooser("pretrained", **SETTINGS).fit(X, CHOSEN)


@pytest.fixture(scope="module")
def ranker():
    return Ranker("pretrained", **SETTINGS).fit(X, RANKS)


@pytest.fixture(scope="module")
def bare():
    return DiscreteChooser("pretrained", **BARE).fit(X, CHOSEN)


def frame_of():
    """The same as a table, its rows shuffled, with a category of two levels that says which column is positive."""
    n, m, _ = X.shape
    frame = pd.DataFrame(
        {"set": np.repeat(np.arange(n), m), "a": X[:, :, 0].ravel(), "b": X[:, :, 1].ravel()}
    )
    frame["colour"] = np.where(frame.b > 0, "red", "blue")
    frame["size"] = np.repeat(np.arange(n) % 4, m)
    frame["chosen"] = (np.arange(m) == CHOSEN[:, None]).ravel().astype(int)
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


# --- predictions ----------------------------------------------------------------------------------


def test_a_chooser_reads_labelled_sets_and_predicts(chooser):
    assert isinstance(chooser.reading_, Reading)
    assert isinstance(chooser.reading_.verdict(), InstantVerdict)
    assert chooser.n_labelled_sets_ == len(X)
    assert chooser.held_out_score_ is None
    assert chooser.score(X, CHOSEN) > 0.5
    assert chooser.predict_proba(X[:4]).sum(1) == pytest.approx(1)
    assert chooser.predict(X[:4]).tolist() == chooser.predict_scores(X[:4]).argmax(1).tolist()
    assert chooser.predict_sets(X[:4], coverage=0.8).any(1).all()
    assert chooser.calibration_.n_sets == len(X)  # each was held out once


def test_a_ranker_has_probabilities_of_places_with_and_without_calibration(ranker):
    assert ranker.score(X, RANKS) > 0.6
    assert ranker.predict_places(X[:2]).sum(2) == pytest.approx(1)
    low, high = ranker.predict_place_intervals(X[:2], coverage=0.8)
    assert (low <= high).all()
    few = Ranker("pretrained", **SETTINGS).fit(X[:10], RANKS[:10])  # too few to hold some out
    assert few.temperature_ == 1.0  # its scores are utilities already
    scores = few.predict_scores(X[:2])
    powers = np.exp(scores - scores.max(1, keepdims=True))
    assert few.predict_proba(X[:2]) == pytest.approx(powers / powers.sum(1, keepdims=True))
    with pytest.raises(UserError, match="calibrate"):
        few.predict_place_intervals(X[:2])
    few.calibrate(X[10:], RANKS[10:])
    assert few.predict_place_intervals(X[:2], coverage=0.8)[0].shape == (2, 3)


def test_a_chooser_of_some_finds_its_threshold_on_sets_held_out():
    some = (X[:, :, 0] > 0).astype(int)
    model = SubsetChooser("pretrained", **SETTINGS).fit(X, some)
    assert model.score(X, some) > 0.6
    fixed = SubsetChooser("pretrained", threshold=50.0, **SETTINGS).fit(X, some)
    assert not fixed.predict(X).any()
    assert SubsetChooser("pretrained", **BARE).fit(X, some).threshold_ == 0.0


def test_an_outside_option_has_utility_0_and_is_learnt():
    chosen = np.where(X[:, :, 0].max(1) > 0.5, CHOSEN, -1)
    model = DiscreteChooser("pretrained", outside=True, **BARE).fit(X, chosen)
    nothing = 1 - model.predict_proba(X).sum(1)
    assert nothing[chosen < 0].mean() > nothing[chosen >= 0].mean()
    scores = model.predict_scores(X)
    powers = np.exp(scores)
    assert nothing == pytest.approx(1 / (1 + powers.sum(1)))
    assert (model.predict(X) == -1).any()
    alone = model.predict_scores([X[0][:1]])  # sets of one object are fine where nothing may be chosen
    assert np.isfinite(alone[0]).all()


# --- ways in --------------------------------------------------------------------------------------


def test_arrays_lists_and_sets_are_the_same(bare):
    expected = bare.predict_scores(X)
    for given, chosen in [(list(X), CHOSEN), (Sets.of(X, np.arange(3) != CHOSEN[:, None]), None)]:
        found = DiscreteChooser("pretrained", **BARE).fit(given, chosen).predict_scores(given)
        assert np.array_equal(np.stack(found).ravel(), expected.ravel())


def test_a_table_in_any_order_of_rows_is_the_same_as_its_sets():
    frame = frame_of()
    columns = {"set_id": "set", "target": "chosen", "situation": ["size"]}
    model = DiscreteChooser("pretrained", **BARE).fit(frame, **columns)
    again = DiscreteChooser("pretrained", **BARE).fit(frame.sort_values("set", kind="stable"), **columns)
    assert model.predict_scores(frame) == pytest.approx(again.predict_scores(frame), abs=1e-4)
    assert model.predict(frame).sum() == len(X)
    assert list(model.feature_names_in_) == ["a", "b", "colour", "size"]


def test_codes_of_many_levels_become_indicators():
    rng = np.random.default_rng(1)
    codes = rng.integers(1, 4, size=(24, 3, 1)).astype(float)
    coded = np.concatenate([X, codes], axis=2)
    spread = np.concatenate([X, codes == [1, 2, 3]], axis=2)
    model = DiscreteChooser("pretrained", categories=[(2, 3)], **BARE).fit(coded, CHOSEN)
    plain = DiscreteChooser("pretrained", **BARE).fit(spread, CHOSEN)
    assert model.predict_scores(coded) == pytest.approx(plain.predict_scores(spread), abs=1e-6)


def test_a_weight_of_0_leaves_a_set_out(bare):
    other = np.concatenate([X, 100 * X[:6]]), np.concatenate([CHOSEN, (CHOSEN[:6] + 1) % 3])
    weights = np.repeat([2.0, 0.0], [24, 6])
    equal = DiscreteChooser("pretrained", **BARE).fit(X, CHOSEN, sample_weight=np.ones(24))
    model = DiscreteChooser("pretrained", **BARE).fit(*other, sample_weight=weights)
    assert model.n_labelled_sets_ == 24
    assert np.array_equal(model.predict_scores(X), equal.predict_scores(X))
    assert equal.predict_scores(X) == pytest.approx(bare.predict_scores(X), abs=1e-3)


def test_groups_and_sets_of_one_object_are_taken():
    ragged = [*X, X[0][:1]]
    chosen = np.append(CHOSEN, 0)
    model = DiscreteChooser("pretrained", **SETTINGS).fit(ragged, chosen, groups=np.arange(25) // 3)
    assert model.predict_proba([X[0][:1]])[0] == pytest.approx([1.0])


def test_ties_and_objects_that_are_not_ranked_are_taken():
    ranks = RANKS.astype(float)
    ranks[::3, 0] = np.nan
    ranks[1::3] = np.minimum(ranks[1::3], 1)
    model = Ranker("pretrained", **BARE).fit(X, ranks)
    assert np.isfinite(model.predict_scores(X)).all()
    assert model.score(X, ranks) > 0.6


def test_the_control_knows_no_context():
    control = DiscreteChooser("pretrained_ablated", **BARE).fit(X, CHOSEN)
    scores = control.predict_scores(X[:4])
    assert control.predict_scores(X[:4, :2]) == pytest.approx(scores[:, :2], abs=1e-4)
    assert control.score(X, CHOSEN) > 0.5
    with pytest.raises(ModelFileError, match="control"):
        control.save("nowhere")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": 2},
        {"relative": True},
        {"subset_size": 2},
        {"checkpoint": "somewhere"},
        {"steps": 10},
        {"loss": lambda scores, ranks, mask: scores.sum(1)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_parameters_that_would_mislead_are_refused(wrong):
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} plays no part"):
        DiscreteChooser("pretrained", **SETTINGS, **wrong).fit(X, CHOSEN)


def test_other_wrong_inputs_are_errors_that_say_what_to_do(tmp_path, bare):
    with pytest.raises(ParameterError, match='belongs to net="pretrained"'):
        DiscreteChooser("fate", fine_tune=True).fit(X, CHOSEN)
    with pytest.raises(ParameterError, match='belongs to net="pretrained"'):
        DiscreteChooser("auto", fine_tune=True).fit(X, CHOSEN)
    with pytest.raises(ParameterError, match="True or False"):
        DiscreteChooser("pretrained", fine_tune="yes").fit(X, CHOSEN)
    with pytest.raises(ParameterError, match="call fit with all"):
        DiscreteChooser("pretrained").partial_fit(X, CHOSEN)
    with pytest.raises(
        ParameterError, match=r'DiscreteChooser\("pretrained"\) learns no effect of positions'
    ):
        DiscreteChooser("pretrained").fit(X, CHOSEN, position=np.tile([1, 2, 3], (24, 1)))
    with pytest.raises(ParameterError, match="did you mean|pretrained"):
        DiscreteChooser("pretraind").fit(X, CHOSEN)
    with pytest.raises(ParameterError, match="no spread"):
        bare.predict_scores(X, return_std=True)
    with pytest.raises(DataError, match="one object"):
        DiscreteChooser("pretrained").fit(X[:, :1], np.zeros(24, dtype=int))
    with pytest.raises(UserError, match="fitted on 2 features"):
        bare.predict(np.zeros((1, 3, 5)))
    disk = Sets.from_disk(*write_on_disk(tmp_path))
    with pytest.raises(DataError, match="on disk"):
        DiscreteChooser("pretrained").fit(disk)


def write_on_disk(folder):
    """Lay the sets out on disk; return what `Sets.from_disk` takes."""
    np.save(folder / "objects.npy", X.reshape(-1, 2).astype(np.float32))
    mapped = np.load(folder / "objects.npy", mmap_mode="r")
    return mapped, np.arange(25) * 3, (np.arange(3) != CHOSEN[:, None]).ravel().astype(float), None


# --- keeping --------------------------------------------------------------------------------------


def test_scores_are_the_same_to_the_bit_after_saving(tmp_path, chooser, ranker):
    for model in (chooser, ranker):
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert np.array_equal(loaded.predict_scores(X), model.predict_scores(X))
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.reading_.verdict() == model.reading_.verdict()
        assert loaded.n_labelled_sets_ == 24
        assert loaded.net == "pretrained"
        assert loaded.held_out_score_ is None


def test_a_table_with_an_outside_option_and_a_threshold_come_back(tmp_path):
    frame = frame_of()
    frame.loc[frame["set"] < 5, "chosen"] = 0
    model = DiscreteChooser("pretrained", outside=True, **BARE)
    model.fit(frame, set_id="set", target="chosen").save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_scores(frame), model.predict_scores(frame))
    some = SubsetChooser("pretrained", **SETTINGS).fit(X, X[:, :, 0] > 0)
    some.save(tmp_path / "model")
    assert load(tmp_path / "model").threshold_ == some.threshold_


def test_scikit_learn_clones_it_and_a_second_fit_forgets_the_first(chooser):
    copy = clone(chooser)
    assert copy.get_params() == chooser.get_params()
    assert copy.get_params()["fine_tune"] is False
    assert not hasattr(copy, "n_labelled_sets_")
    model = clone(chooser).set_params(validation=0).fit(X, CHOSEN)
    model.set_params(net="context_free", steps=1).fit(X, CHOSEN)
    assert model.reading_ is None
    assert model.predict_scores(X).shape == (24, 3)
    model.set_params(net="pretrained", steps=chooser.steps).fit(X, CHOSEN)
    assert not hasattr(model, "scorer_")
