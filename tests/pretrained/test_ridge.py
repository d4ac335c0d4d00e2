"""Ridge logits: the optimum of a plain optimiser, leave-one-out, weights, and choices from which nothing is learnt."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from entourage.pretrained.ridge import Comparisons, fit_ridge

close = torch.testing.assert_close
PENALTIES = torch.tensor([0.5, 4.0], dtype=torch.float64)


def draw(worlds=2, n=12, m=4, d=3, seed=0):
    """Return features centred in their sets, and ranks by noisy utilities."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(worlds, n, m, d, generator=generator, dtype=torch.float64)
    features = features - features.mean(2, keepdim=True)
    noise = torch.rand(worlds, n, m, generator=generator, dtype=torch.float64)
    utilities = features @ torch.linspace(-1, 1, d, dtype=torch.float64) - (-noise.log()).log()
    return features, (-utilities).argsort(-1).argsort(-1).double()


FEATURES, RANKS = draw()


def tied_with_gaps(ranks):
    """Two objects of the second place, the last one not ranked, and a choice alone."""
    ranks = ranks.clone()
    ranks[:, :4][ranks[:, :4] == 2] = 1
    ranks[:, 2:6][ranks[:, 2:6] == 3] = torch.nan
    ranks[:, 6:] = ranks[:, 6:].clamp_max(1)
    return ranks


def log_likelihood(beta, features, ranks, weights):
    """Each object that is ranked before another was chosen from those ranked with or behind it."""
    total = 0.0
    for x, own, weight in zip(features, ranks, weights, strict=True):
        for i in range(len(own)):
            among = own >= own[i]  # False for NaN
            if (own > own[i]).any():
                total += weight * (x[i] @ beta - np.logaddexp.reduce(x[among] @ beta))
    return total


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("labels", ["ranking", "choice", "ties and gaps"])
def test_the_fit_is_the_optimum_of_a_plain_optimiser(labels, weighted):
    ranks = {"ranking": RANKS, "choice": RANKS.clamp_max(1), "ties and gaps": tied_with_gaps(RANKS)}[labels]
    weights = torch.linspace(0.2, 2, 12, dtype=torch.float64).expand(2, -1) if weighted else torch.ones(2, 12)
    comparisons = Comparisons.of(ranks, None, weights if weighted else None)
    fit, _ = fit_ridge(FEATURES, comparisons, PENALTIES)
    for k, penalty in enumerate(PENALTIES.tolist()):
        x, own, weight = (t[1].numpy() for t in (FEATURES, ranks, weights))
        best = minimize(
            lambda b, p=penalty, x=x, r=own, w=weight: p * (b @ b) / 2 - log_likelihood(b, x, r, w),
            np.zeros(3),
            tol=1e-10,
        )
        assert fit.coefficients[1, k].numpy() == pytest.approx(best.x, abs=1e-5)


def test_the_covariance_is_the_inverse_of_the_hessian():
    ranks = tied_with_gaps(RANKS)
    fit, _ = fit_ridge(FEATURES, Comparisons.of(ranks), PENALTIES)

    def loss(beta):
        made = Comparisons.of(ranks[:1])
        return PENALTIES[0] * beta @ beta / 2 - made.gains((FEATURES[:1] @ beta).unsqueeze(1)).sum()

    hessian = torch.autograd.functional.hessian(loss, fit.coefficients[0, 0])
    close(fit.covariance[0, 0], hessian.inverse())


def test_leave_one_out_is_a_newton_step_on_the_other_sets_and_near_a_refit():
    features, ranks = draw(1, 40, 4, 3)
    comparisons = Comparisons.of(ranks)
    fit, found = fit_ridge(features, comparisons, PENALTIES[1:])
    beta = fit.coefficients[0, 0].requires_grad_()
    plain = fit.utilities(features)[0, 0].detach()
    refits, steps = [], []
    for i in range(40):
        rest = [j for j in range(40) if j != i]
        other = Comparisons.of(ranks[:, rest])

        def loss(b, rest=rest, other=other):
            return PENALTIES[1] * b @ b / 2 - other.gains((features[:, rest] @ b).unsqueeze(1)).sum()

        if i < 3:
            gradient = torch.autograd.grad(loss(beta), beta)[0]
            step = torch.linalg.solve(torch.autograd.functional.hessian(loss, beta), gradient)
            steps.append(features[0, i] @ (beta - step).detach())
        again, _ = fit_ridge(features[:, rest], other, PENALTIES[1:])
        refits.append(again.utilities(features[:, [i]])[0, 0, 0])
    close(found[0, 0, :3], torch.stack(steps), atol=1e-4, rtol=0)
    moved = torch.stack(refits) - plain
    assert moved.norm() > 0.2
    assert (found[0, 0] - plain - moved).norm() < 0.05 * moved.norm()


def test_a_weight_of_2_is_a_set_given_twice_and_one_of_0_a_set_left_out():
    twice, without = [0, 0, *range(1, 12)], list(range(1, 12))
    weights = torch.ones(2, 12, dtype=torch.float64)
    for weight, which in ((2.0, twice), (0.0, without)):
        weights[:, 0] = weight
        fit, found = fit_ridge(FEATURES, Comparisons.of(RANKS, None, weights), PENALTIES)
        other, left = fit_ridge(FEATURES[:, which], Comparisons.of(RANKS[:, which]), PENALTIES)
        close(fit.coefficients, other.coefficients)
        close(fit.covariance, other.covariance)
        close(found[:, :, 1:], left[:, :, -11:])


def test_a_world_or_a_penalty_alone_is_fitted_as_among_others():
    fit, found = fit_ridge(FEATURES, Comparisons.of(RANKS), PENALTIES)
    one, left = fit_ridge(FEATURES[1:], Comparisons.of(RANKS[1:]), PENALTIES[:1])
    close(one.coefficients, fit.coefficients[1:, :1])
    close(left, found[1:, :1])


def test_padding_and_the_order_of_sets_objects_and_columns_change_nothing():
    fit, found = fit_ridge(FEATURES, Comparisons.of(RANKS), PENALTIES)
    wide = torch.cat([FEATURES, torch.zeros(2, 12, 2, 3)], 2).double()
    ranks = torch.cat([RANKS, torch.zeros(2, 12, 2)], 2).double()
    mask = torch.arange(6).expand(2, 12, -1) < 4
    padded, left = fit_ridge(wide, Comparisons.of(ranks, mask), PENALTIES)
    close(padded.coefficients, fit.coefficients)
    close(left[..., :4], found)
    sets, objects, columns = [*range(5, 12), *range(5)], [2, 0, 3, 1], [1, 2, 0]
    moved, left = fit_ridge(
        FEATURES[:, sets][:, :, objects][..., columns],
        Comparisons.of(RANKS[:, sets][..., objects]),
        PENALTIES,
    )
    close(moved.coefficients, fit.coefficients[..., columns])
    close(left, found[:, :, sets][..., objects])


@pytest.mark.parametrize(
    "ranks", [torch.zeros(2, 12, 4), torch.full((2, 12, 4), torch.nan)], ids=["tied", "not ranked"]
)
def test_choices_from_which_nothing_is_learnt_leave_utilities_at_0(ranks):
    comparisons = Comparisons.of(ranks.double())
    fit, found = fit_ridge(FEATURES, comparisons, PENALTIES)
    assert not fit.coefficients.any()
    assert not found.any()
    assert not comparisons.gains(torch.ones(2, 1, 12, 4, dtype=torch.float64)).any()


def test_sets_of_one_object_and_a_single_set_work():
    alone, found = fit_ridge(torch.ones(1, 3, 1, 2), Comparisons.of(torch.zeros(1, 3, 1)), torch.ones(1))
    assert not alone.coefficients.any()
    assert not found.any()
    fit, found = fit_ridge(FEATURES[:, :1], Comparisons.of(RANKS[:, :1]), PENALTIES)
    assert fit.coefficients.abs().amax() > 0.1
    assert found.abs().amax() < 0.2 * fit.utilities(FEATURES[:, :1]).abs().amax()  # without its only set: 0


def test_separable_choices_have_finite_coefficients_in_single_precision():
    features = draw(1, 200, 5, 12)[0].float()
    ranks = (features[..., 0] < features[..., 0].amax(-1, keepdim=True)).float()
    fit, found = fit_ridge(features, Comparisons.of(ranks), torch.tensor([1.0]))
    assert fit.coefficients.isfinite().all()
    assert found.isfinite().all()
    assert (fit.utilities(features).argmax(-1) == features[..., 0].argmax(-1)).float().mean() > 0.95


def test_gains_equal_the_formula_worked_by_hand():
    utilities = torch.tensor([[[[0.0, np.log(3.0), 0.0]]]], dtype=torch.float64)
    choice = Comparisons.of(torch.tensor([[[1.0, 0.0, 1.0]]], dtype=torch.float64))
    assert choice.gains(utilities).item() == pytest.approx(np.log(3 / 5) + np.log(3))
    order = Comparisons.of(torch.tensor([[[1.0, 0.0, 2.0]]], dtype=torch.float64))
    assert order.gains(utilities).item() == pytest.approx(np.log(3 / 5) + np.log(1 / 2) + np.log(6))
    close(choice.probabilities(utilities)[0, 0, 0, 1], torch.tensor([0.2, 0.6, 0.2], dtype=torch.float64))
