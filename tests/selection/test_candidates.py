"""The models that are compared by default, and the controls beside them."""

import numpy as np
import pytest

from entourage.choice import MultinomialLogit
from entourage.errors import ModelFileError
from entourage.estimators import DiscreteChooser
from entourage.pretrained import weights
from entourage.selection import candidates
from entourage.selection.candidates import KINDS, LinearLogit, default_candidates, list_candidates


@pytest.mark.usefixtures("small_pretrained")
def test_default_candidates_pair_every_net_with_its_control_and_train_by_the_amount_of_data():
    candidates = default_candidates(10)
    assert {kind for _, kind in candidates.values()} == set(KINDS)
    for name, (model, kind) in candidates.items():
        if kind == "context":
            twin, its = candidates[f"{name} ablated"]
            assert its == ("relative" if model.relative else "context-free")
            assert twin.relative == model.relative
            own = twin.net if name == "pretrained" else repr(twin.net.net)
            assert own == ("pretrained_ablated" if name == "pretrained" else repr(model.net))
    assert [default_candidates(n)["FATE"][0].steps for n in (10, 2000, 10**6)] == [400, 1875, 2000]
    chosen = default_candidates(10, steps=7, device="cpu")["FATE ablated"][0]
    assert (chosen.steps, chosen.device) == (7, "cpu")


def test_without_weights_the_pretrained_net_is_no_candidate(monkeypatch):
    for module in (candidates, weights):
        monkeypatch.setattr(module, "available", lambda: False)
    for n in (100, 3000):
        assert not [one.name for one in list_candidates(n, "choice") if "pretrained" in one.name]
    for name in ("pretrained", "pretrained ablated"):
        with pytest.raises(
            ModelFileError, match="weights of the pretrained net aren't in this copy.*install it anew"
        ):
            default_candidates(100, "choice", names=[name])
    own = {
        "mine": (DiscreteChooser("pretrained"), "context"),
        "linear": (DiscreteChooser("fate"), "context-free"),
    }
    with pytest.raises(ModelFileError, match="aren't in this copy"):  # before anything is fitted
        candidates.check_candidates(own)


@pytest.mark.usefixtures("small_pretrained")
@pytest.mark.parametrize("kind", ["rank", "choice", "subset"])
def test_the_pretrained_net_is_tried_with_few_sets_and_not_with_many_or_large_ones(kind):
    def order(n, pairs=25.0):
        listed = list_candidates(n, kind, pairs=pairs)
        return [one.name for one in listed if one.compared], [one.name for one in listed if one.blended]

    for tried in order(100):
        assert tried.index("pretrained") == tried.index("linear") + 1
    for tried in (*order(1001), *order(100, pairs=23.0**2)):
        assert not [name for name in tried if name.startswith("pretrained")]
    assert "pretrained" in default_candidates(6000, kind, names=["linear", "pretrained"])
    assert "pretrained ablated" not in order(100)[1]


@pytest.mark.usefixtures("small_pretrained")
def test_the_pretrained_candidate_takes_over_only_what_it_has_a_use_for():
    base = DiscreteChooser("auto", members=3, relative=True, outside=True, categories=[(0, 2)], device="cpu")
    listed = list_candidates(50, "choice", outside=True, base=base)
    model = next(one.model for one in listed if one.name == "pretrained")
    assert (model.outside, model.categories, model.device) == (True, [(0, 2)], "cpu")
    assert (model.members, model.relative, model.validation) == (1, False, 0.0)


def test_the_linear_model_of_choices_is_the_exact_logit_and_never_infinite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4, 3)) * [1.0, 100.0, 0.01]
    places = (X @ [-0.9, 0.005, 40.0] + rng.gumbel(size=(400, 4))).argmax(1)
    linear = default_candidates(400, "choice")["linear"][0].fit(
        X, places, situation=rng.normal(size=(400, 2))
    )
    exact = MultinomialLogit().fit(X, places)
    assert linear.coef_ == pytest.approx(exact.coef_, rel=0.01)
    assert linear.predict_scores(X, situation=np.zeros((400, 2))) == pytest.approx(X @ linear.coef_)
    separable = LinearLogit().fit(X, X[:, :, 0].argmax(1))  # warnings are errors here
    assert np.isfinite(separable.coef_).all()
    constant = LinearLogit().fit(np.concatenate([X, np.ones((400, 4, 1))], axis=2), places)
    assert constant.coef_[3] == pytest.approx(0.0, abs=1e-6)


def test_the_linear_net_for_an_outside_option_comes_near_the_exact_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4, 2))
    with_nothing = np.concatenate([X @ [1.0, -0.7] - 0.5, np.zeros((500, 1))], axis=1)
    places = (with_nothing + rng.gumbel(size=(500, 5))).argmax(1)
    # Exact: nothing is a fifth object, of zeros, and the others have an intercept.
    wide = np.concatenate([X, np.ones((500, 4, 1))], axis=2)
    exact = MultinomialLogit().fit(np.concatenate([wide, np.zeros((500, 1, 3))], axis=1), places)
    net = default_candidates(500, "choice", outside=True)["linear"][0].set_params(random_state=0)
    net.fit(X, np.where(places == 4, -1, places))
    probes = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    assert net.predict_scores(probes)[0] == pytest.approx(
        [[1, 0, 1], [0, 1, 1], [0, 0, 1]] @ exact.coef_, abs=0.04
    )
