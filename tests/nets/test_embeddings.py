"""Vectors of levels: rare ones are shrunk towards that of a level never seen, which is 0."""

import pytest
import torch

from entourage.errors import ParameterError
from entourage.nets import ContextFree
from entourage.nets.embeddings import build_with_categories, vector_size


def build(counts=(), seed=0):
    return build_with_categories(
        ContextFree(width=4), 2, [(1, 3)], torch.Generator().manual_seed(seed), counts
    ).eval()


def score(scorer, code):
    return float(scorer(torch.tensor([[[0.5, code]]])).detach())


def test_the_vector_of_a_level_seen_n_times_is_shrunk_by_n_over_n_plus_5():
    plain, shrunk = build(), build([[0, 5, 45]])
    with torch.no_grad():
        plain.vectors[0][:] = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        shrunk.vectors[0][:] = plain.vectors[0]
        plain.vectors[0][0] *= 0 / (0 + 5)
        plain.vectors[0][1] *= 5 / (5 + 5)
        plain.vectors[0][2] *= 45 / (45 + 5)
    for code in (1.0, 2.0, 3.0):
        assert score(shrunk, code) == pytest.approx(score(plain, code), abs=1e-6)
    assert score(shrunk, 1.0) == score(shrunk, 0.0), "never seen in training"


def test_all_codes_beyond_the_levels_are_one_level_never_seen():
    scorer = build([[9, 9, 9]])
    assert score(scorer, 0.0) == score(scorer, 4.0) == score(scorer, -7.0) == score(scorer, 1e9)
    assert score(scorer, 1.0) != score(scorer, 0.0)


def test_at_first_a_level_hardly_counts():
    scorer = build()
    assert scorer.vectors[0].abs().max() < 0.3
    assert scorer.vectors[0].shape == (3, vector_size(3))


def test_no_gradient_reaches_a_level_that_was_not_there():
    scorer = build([[9, 9, 9]])
    scorer(torch.tensor([[[0.5, 1.0], [0.1, 0.0]]])).sum().backward()
    gradient = scorer.vectors[0].grad
    assert (gradient[0] != 0).any()
    assert (gradient[1:] == 0).all()


@pytest.mark.parametrize("category", [(2, 3), (-1, 3), (1, 0)])
def test_a_category_has_a_place_and_levels(category):
    with pytest.raises(ParameterError, match="category"):
        build_with_categories(ContextFree(), 2, [category], torch.Generator())
