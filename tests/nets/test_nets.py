"""What sets each net apart: its formula, checked against the plainest way to write it."""

from itertools import combinations
from math import comb

import jaxtyping
import pytest
import torch
from cases import build, random_objects

from entourage.data.ranks import ranks_from_scores
from entourage.errors import ParameterError
from entourage.nets import FATE, FETA, ContextFree, SetAttention

SEED = torch.Generator().manual_seed


def papers_example() -> torch.nn.Module:
    """FETA with U_0 = 0 and the 4 x 4 matrix of the paper as U_1, on objects given as unit vectors."""
    support = torch.tensor(
        [[0.0, 0.7, 0.5, 0.1], [0.2, 0.0, 0.8, 0.9], [0.5, 0.2, 0.0, 0.4], [0.7, 0.1, 0.5, 0.0]]
    )
    scorer = FETA(width=16, depth=1).build(4, torch.Generator())
    with torch.no_grad():
        for parameter in scorer.alone.parameters():
            parameter.zero_()
        first, last = scorer.pairs.linears
        for i in range(4):
            for j in range(4):  # unit (i, j) is 1 for the pair (i, j) and 0 for all others
                first.weight[4 * i + j] = torch.cat([torch.eye(4)[i], torch.eye(4)[j]])
        first.bias.fill_(-1.0)
        last.weight.copy_(support.reshape(1, 16))
        last.bias.zero_()
    return scorer


def test_the_papers_example_reverses_a_preference():
    a, b, c, d = torch.eye(4)
    scorer = papers_example()
    q1 = scorer(torch.stack([a, b, c])[None]).detach()
    q2 = scorer(torch.stack([a, b, d])[None]).detach()
    torch.testing.assert_close(q1, torch.tensor([[(0.7 + 0.5) / 2, (0.2 + 0.8) / 2, (0.5 + 0.2) / 2]]))
    torch.testing.assert_close(q2, torch.tensor([[(0.7 + 0.1) / 2, (0.2 + 0.9) / 2, (0.7 + 0.1) / 2]]))
    assert ranks_from_scores(q1.numpy().round(6)).tolist() == [[0, 1, 2]], "a before b before c"
    assert ranks_from_scores(q2.numpy().round(6)).tolist() == [[1, 0, 1]], (
        "b first, a and d tied (not a before d)"
    )


@pytest.mark.parametrize("include_self", [True, False])
def test_fate_equals_its_formula(include_self):
    scorer = build("fate", {"include_self": include_self})
    Q = random_objects(5, 3)
    for i in range(5):
        context = Q if include_self else torch.cat([Q[:i], Q[i + 1 :]])
        representative = scorer.embedding(context).mean(0)
        expected = scorer.joint(torch.cat([Q[i], representative]))
        torch.testing.assert_close(scorer(Q[None])[0, i : i + 1], expected)


def test_an_empty_context_is_represented_by_zero():
    scorer, x = build("fate", {"include_self": False, "embedding_size": 4}), random_objects(1, 3)
    expected = scorer.joint(torch.cat([x, torch.zeros(1, 4, dtype=torch.float64)], dim=1))
    torch.testing.assert_close(scorer(x[None])[0, 0], expected[0, 0])


@pytest.mark.parametrize("squash", [False, True])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_feta_equals_its_formula(order, squash):
    scorer = build("feta", {"order": order, "squash": squash})
    Q = random_objects(5, 3)

    def bounded(value: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(value) if squash else value

    for i in range(5):
        others = [j for j in range(5) if j != i]
        expected = scorer.alone(Q[i])
        for k in range(1, order + 1):
            total = torch.zeros(1, dtype=torch.float64)
            for chosen in combinations(others, k):
                if k == 1:
                    total = total + bounded(scorer.pairs(torch.cat([Q[i], Q[chosen[0]]])))
                else:
                    higher = scorer.higher[k - 2]
                    company = higher.embedding(Q[list(chosen)]).mean(0)
                    total = total + bounded(higher.utility(torch.cat([Q[i], company])))
            expected = expected + total / comb(4, k)
        torch.testing.assert_close(scorer(Q[None])[0, i : i + 1], expected)


def test_utilities_of_subcontexts_larger_than_the_context_are_0():
    scorer = build("feta", {"order": 3})
    pair = random_objects(1, 2, 3)
    first_order = build("feta", {"order": 1})
    first_order.load_state_dict({k: v for k, v in scorer.state_dict().items() if not k.startswith("higher")})
    torch.testing.assert_close(scorer(pair), first_order(pair))


def test_sampled_subcontexts_are_unbiased():
    objects = random_objects(1, 9, 3)
    exact = build("feta", {"order": 2, "max_subcontexts": 1000})
    sampled = build("feta", {"order": 2, "max_subcontexts": 4})
    sampled.load_state_dict(exact.state_dict())
    sampled.train()
    with torch.no_grad():
        draws = torch.stack([sampled(objects)[0] for _ in range(1500)])
        truth = exact(objects)[0]
    assert (draws.std(0) > 0).all(), "there is something to average"
    error = draws.mean(0) - truth
    assert (error.abs() < 4.5 * draws.std(0) / 1500**0.5).all()


def test_drawn_subcontexts_are_distinct_others_each_as_likely():
    sampler = build("feta", {"order": 3, "max_subcontexts": 30_000}).higher[1]
    shifts = sampler._drawn_shifts(torch.tensor([6, 9]))
    for size, rows in zip([6, 9], shifts, strict=True):
        assert rows.min() >= 1
        assert rows.max() <= size - 1
        ordered = rows.sort(dim=1).values
        assert (ordered.diff(dim=1) > 0).all(), "no partner twice"
        _, counts = ordered.unique(dim=0, return_counts=True)
        assert len(counts) == comb(size - 1, 3)
        expected = 30_000 / comb(size - 1, 3)
        assert ((counts - expected).abs() < 5 * expected**0.5).all()


def test_samples_are_seeded_by_the_net_and_fixed_in_evaluation():
    scorer, objects = build("feta", {"order": 2, "max_subcontexts": 4}), random_objects(2, 9, 3)
    assert torch.equal(scorer(objects), scorer(objects))
    scorer.train()
    assert not torch.equal(scorer(objects), scorer(objects)), "training draws anew"
    again = build("feta", {"order": 2, "max_subcontexts": 4}).train()
    again.load_state_dict(scorer.state_dict())
    assert torch.equal(scorer(objects), again(objects)), "and goes on where its state says"


def test_linear_forms_are_linear():
    for scorer in (
        build("context_free", {"depth": 0}),
        build("fate", {"depth": 0}),
        build("feta", {"depth": 0}),
    ):
        a, b = random_objects(1, 4, 3), random_objects(1, 4, 3, seed=1)
        midpoint = (scorer(a) + scorer(b)) / 2
        torch.testing.assert_close(scorer((a + b) / 2), midpoint)


def test_context_changes_a_preference_only_where_the_net_sees_context():
    pair, third = random_objects(1, 2, 3), random_objects(200, 1, 3, seed=3)
    triples = torch.cat([pair.expand(200, -1, -1), third], dim=1)
    for name, params, sees in [("context_free", {}, False), ("fate", {}, True), ("feta", {}, True)]:
        gap = build(name, params)(triples).detach()
        gap = gap[:, 0] - gap[:, 1]
        assert (gap.std() > 1e-6).item() is sees


def test_wrong_parameters_say_what_is_needed():
    for net, message in [
        (FATE(width=0), "width needs a whole number of at least 1; got 0"),
        (FATE(depth=-1), "depth"),
        (FATE(embedding_size=0), "embedding_size needs a whole number"),
        (FETA(order=-1), "order"),
        (FETA(max_subcontexts=0), "max_subcontexts"),
        (ContextFree(activation="rel"), "did you mean 'relu'"),
        (ContextFree(norm="bach"), "did you mean 'batch'"),
    ]:
        with pytest.raises(ParameterError, match=message):
            net.build(2, torch.Generator())


def test_wrong_axes_are_found_while_the_laws_run():
    scorer = build("fate", {})
    with pytest.raises(jaxtyping.TypeCheckError, match="objects"):
        scorer(torch.zeros(5, 2))


def test_set_attention_sees_features_beside_what_is_left_of_them_without_the_mean_of_the_set():
    scorer = SetAttention(width=4, heads=2).build(2, torch.Generator().manual_seed(0))
    linear = scorer.features.out
    objects = torch.tensor([[[1.0, 4.0], [3.0, 0.0], [9.0, 9.0]], [[5.0, 7.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    states = scorer.features(objects, mask)
    expected = torch.tensor([[1.0, 4.0, -1.0, 2.0], [3.0, 0.0, 1.0, -2.0]])  # their mean is (2, 2)
    torch.testing.assert_close(states[0, :2], expected @ linear.weight.T + linear.bias)
    alone = torch.tensor([5.0, 7.0, 0.0, 0.0])  # a set of one
    torch.testing.assert_close(states[1, 0], linear.weight @ alone + linear.bias)
