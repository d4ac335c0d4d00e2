"""The net that says where between its bounds a contribution lies."""

import numpy as np
import pytest
import torch

from entourage import Ranker, load
from entourage.data import front_features, make_fronts
from entourage.errors import ShapeError
from entourage.experiments.hvc_bounds import BetweenBounds
from entourage.experiments.hvc_loss import contribution_loss
from entourage.nets.laws import check_net


def scorer_of(**settings):
    return BetweenBounds(**settings).build(5, torch.Generator().manual_seed(0))


def test_it_obeys_the_laws_of_nets():
    assert check_net(BetweenBounds(width=4), n_features=5)


def test_what_has_learnt_nothing_returns_the_estimate():
    scorer = scorer_of()
    with torch.no_grad():
        for weights in scorer.parameters():
            weights.zero_()
        known = torch.tensor([[[9.0, -5.0, -4.5, -3.0, 1.0], [9.0, -2.0, -2.0, -2.0, 0.0]]])
        np.testing.assert_allclose(scorer(known), [[-4.5, -2.0]], atol=1e-6)


def test_scores_stay_within_the_bounds_whatever_the_weights():
    scorer = scorer_of()
    rng = np.random.default_rng(0)
    lower = rng.normal(-10, 5, (4, 30))
    gap = rng.exponential(1.0, (4, 30))
    estimate = lower + rng.random((4, 30)) * gap
    known = torch.tensor(np.stack([lower, lower, estimate, lower + gap, rng.random((4, 30))], -1)).float()
    with torch.no_grad():
        for weights in scorer.parameters():
            weights.mul_(100)
        scores = scorer(known).numpy()
    assert ((lower - 1e-5 <= scores) & (scores <= lower + gap + 1e-5)).all()


def test_too_few_features_are_refused():
    with pytest.raises(ShapeError, match="needs what front_features returns, at least 4 features; got 3"):
        BetweenBounds().build(3, torch.Generator())


def test_it_learns_what_the_estimate_misses_and_fits_into_a_file(tmp_path):
    pytest.importorskip("numba", reason="fronts need numba, of the extra [hypervolume]")
    made = make_fronts(240, 6, random_state=0, sizes=(5, 40), population=3000)
    targets = -np.log(made.contributions).astype(np.float32)
    seen = front_features(made.sets, tolerance=3.0).with_targets(targets)
    model = Ranker(
        BetweenBounds(), loss=contribution_loss, standardize=False, steps=400, validation=0, random_state=0
    ).fit(seen[:200])
    new = seen[200:]
    learnt = np.abs(model.predict_scores(new) + new.targets)
    estimated = np.abs(new.objects[:, -3] + new.targets)
    assert np.median(learnt) < 0.7 * np.median(estimated)
    with pytest.warns(UserWarning, match="A model file holds no code"):
        model.save(tmp_path / "model.entourage")
    again = load(tmp_path / "model.entourage")
    np.testing.assert_array_equal(again.predict_scores(new), model.predict_scores(new))
