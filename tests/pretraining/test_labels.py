"""Labels follow utilities, and their log-likelihoods are those worked by hand."""

import math

import pytest
import torch

from entourage.pretraining.prior import labels

NO_LAPSE = torch.zeros(1)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


U = torch.tensor([1.0, 0.0, 2.0]).log1p()  # odds 2 : 1 : 3


def many(n: int, w: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    return U.expand(w, n, 3), torch.full((w, n), 3.0)


def test_choices_have_logit_probabilities():
    u, _ = many(20_000)
    share = labels.draw_choice(u, NO_LAPSE, generator()).mean((0, 1))
    assert torch.allclose(share, torch.tensor([2, 1, 3]) / 6, atol=0.015)
    share = labels.draw_choice(u, NO_LAPSE + 1, generator()).mean((0, 1))
    assert torch.allclose(share, torch.ones(3) / 3, atol=0.015)


def test_padding_is_never_chosen_or_ranked():
    u, size = many(500)
    u = u.clone()
    u[..., 2] = labels.PADDING
    assert not labels.draw_choice(u, NO_LAPSE + 0.5, generator())[..., 2].any()
    assert not labels.draw_subset(u, NO_LAPSE + 0.5, generator())[..., 2].any()
    ranks, place = labels.draw_ranking(u, NO_LAPSE + 0.5, size - 1, generator())
    assert not ranks[..., 2].any()
    assert (place[..., 2] == 3).all()


def test_log_likelihood_of_a_choice_by_hand():
    log_p, uniform = labels.log_choice(
        U.view(1, 1, 3, 1), torch.tensor([[[0.0, 0.0, 1.0]]]), torch.tensor([[3.0]])
    )
    assert log_p.item() == pytest.approx(math.log(3 / 6))
    assert uniform.item() == pytest.approx(math.log(1 / 3))


def test_plackett_luce_log_likelihood_by_hand():
    size = torch.tensor([[3.0]])
    place = torch.tensor([[[1, 2, 0]]])
    log_p, uniform = labels.log_ranking(U.view(1, 1, 3, 1), place, size)
    assert log_p.item() == pytest.approx(math.log(3 / 6 * 2 / 3), abs=1e-6)
    assert uniform.item() == pytest.approx(math.log(1 / 6))
    only_best = torch.tensor([[[3, 3, 0]]])
    log_p, uniform = labels.log_ranking(U.view(1, 1, 3, 1), only_best, size)
    assert log_p.item() == pytest.approx(math.log(3 / 6), abs=1e-6)
    assert uniform.item() == pytest.approx(math.log(1 / 3))


def test_padding_changes_no_plackett_luce_log_likelihood():
    padded = torch.cat([U, torch.tensor([labels.PADDING])]).view(1, 1, 4, 1)
    log_p, uniform = labels.log_ranking(padded, torch.tensor([[[1, 2, 0, 4]]]), torch.tensor([[3.0]]))
    assert log_p.item() == pytest.approx(math.log(3 / 6 * 2 / 3), abs=1e-6)
    assert uniform.item() == pytest.approx(math.log(1 / 6))


def test_rankings_have_plackett_luce_probabilities_ties_and_gaps():
    u, size = many(300, w=300)
    ranks, place = labels.draw_ranking(u, torch.zeros(300), size, generator())
    best = (place == 0).float().mean((0, 1))
    assert torch.allclose(best, torch.tensor([2, 1, 3]) / 6, atol=0.015)
    gaps = ranks.isnan().any(-1).any(-1)
    ties = labels.tied(ranks, place).any(-1)
    assert abs(gaps.float().mean() - labels.TOP_ONLY) < 0.07
    assert 0.2 < ties.float().mean() < 0.4
    assert (ranks.nan_to_num(9).amin(-1) == 0).all()
    plain = ~(gaps | ties)
    assert torch.equal(ranks[plain], place[plain].float())


def test_log_likelihood_of_a_subset_by_hand():
    u = torch.tensor([0.0, math.log(3), labels.PADDING]).view(1, 1, 3, 1)
    log_p, uniform = labels.log_subset(u, torch.tensor([[[1.0, 0.0, 0.0]]]), torch.tensor([[2.0]]))
    assert log_p.item() == pytest.approx(math.log(1 / 2 * 1 / 4))
    assert uniform.item() == pytest.approx(math.log(1 / 4))


def test_on_average_one_to_half_of_the_objects_are_chosen():
    u = 2 * torch.randn(60, 200, 6, generator=generator(1))
    size = torch.full((60, 200), 6.0)
    bias = labels.chosen_bias(u, size, generator())
    chosen = labels.draw_subset(u + bias, torch.zeros(60), generator(2)).sum(-1)
    assert chosen.mean(1).amin() > 0.85
    assert chosen.mean(1).amax() < 3.2
    assert (chosen == 0).any()
    assert (chosen == 6).any()


def test_the_likelihood_is_averaged_over_people_and_lapses():
    of_people = torch.tensor([[[0.2, 0.6]]]).log()
    uniform = torch.tensor([[0.5]]).log()
    assert labels.marginal(of_people, uniform, NO_LAPSE).exp().item() == pytest.approx(0.4)
    assert labels.marginal(of_people, uniform, NO_LAPSE + 0.1).exp().item() == pytest.approx(
        0.9 * 0.4 + 0.1 * 0.5
    )
