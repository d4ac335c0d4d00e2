"""Ensembles: several nets trained at once, averaged, and what they disagree on."""

import numpy as np
import pytest

from entourage import FATE, FETA, ContextFree, Ranker, load
from entourage.data import make_medoid
from entourage.data.sets import Sets
from entourage.errors import ParameterError
from entourage.nets import SetAttention

X, RANKS = make_medoid(n_sets=300, random_state=0)
SETTINGS = {"steps": 30, "batch_size": 64, "random_state": 0}
NETS = [
    ContextFree(width=8),
    FATE(width=8),
    FATE(width=8, activation="relu", norm="batch"),
    FETA(width=8),
    FETA(width=4, order=2),
    SetAttention(width=8, dropout=0.2),
    SetAttention(width=8, points=3),
]


@pytest.mark.parametrize("net", NETS, ids=repr)
def test_the_score_is_the_mean_of_the_members(net):
    model = Ranker(net, members=3, **SETTINGS).fit(X, RANKS)
    each = [model.scorer_.scorer(i) for i in range(3)]
    import torch

    with torch.no_grad():
        objects = torch.from_numpy(X[:20]).float()
        own = torch.stack([scorer(objects) for scorer in each])
        assert not torch.allclose(own[0], own[1]), "the members are different nets"
        torch.testing.assert_close(model.scorer_(objects), own.mean(0))


def test_a_member_ends_where_it_would_have_ended_alone():
    settings = SETTINGS | {"validation": 0}
    alone = Ranker(FATE(width=8), **settings).fit(X, RANKS)
    ensemble = Ranker(FATE(width=8), members=3, **settings).fit(X, RANKS)
    for own, stacked in zip(
        alone.scorer_.state_dict().values(), ensemble.scorer_.scorer(0).state_dict().values(), strict=True
    ):
        np.testing.assert_allclose(own.numpy(), stacked.numpy(), rtol=2e-3, atol=2e-4)


def test_an_ensemble_is_better_than_its_members_are_on_average():
    held_out, truth = make_medoid(n_sets=1000, random_state=1)
    model = Ranker(FATE(width=16), members=5, **SETTINGS | {"steps": 150}).fit(X, RANKS)
    whole = model.score(held_out, truth)
    scorer = model.scorer_
    singles = []
    for i in range(5):
        model.scorer_ = scorer.scorer(i)
        singles.append(model.score(held_out, truth))
    assert whole > np.mean(singles)


def test_the_same_seed_gives_the_same_ensemble_and_a_saved_one_comes_back(tmp_path):
    net = SetAttention(width=8, dropout=0.3)
    first, second = (Ranker(net, members=3, **SETTINGS).fit(X, RANKS) for _ in range(2))
    np.testing.assert_array_equal(first.predict_scores(X), second.predict_scores(X))
    first.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_scores(X), first.predict_scores(X))
    np.testing.assert_array_equal(
        loaded.predict_scores(X, return_std=True)[1], first.predict_scores(X, return_std=True)[1]
    )


def test_disagreement_is_the_spread_of_centred_scores():
    model = Ranker(FATE(width=8), members=4, **SETTINGS).fit(X, RANKS)
    scores, std = model.predict_scores(X[:7], return_std=True)
    each = np.stack([part.reshape(7, 5) for part in model._member_scores(Sets.of(X[:7]))])
    each = each - each.mean(2, keepdims=True)
    np.testing.assert_allclose(std, each.std(0, ddof=1), rtol=1e-5)
    np.testing.assert_array_equal(scores, model.predict_scores(X[:7]))


def test_pairs_are_shares_of_members_and_sum_to_one():
    model = Ranker(FATE(width=8), members=4, **SETTINGS).fit(X, RANKS)
    shares = model.predict_pairs(X[:7])
    assert shares.shape == (7, 5, 5)
    np.testing.assert_allclose(shares + shares.transpose(0, 2, 1), 1.0)
    assert set(np.unique(shares * 4)) <= {0, 1, 2, 3, 4}
    ragged = model.predict_pairs([X[0], X[1, :3]])
    assert [part.shape for part in ragged] == [(5, 5), (3, 3)]
    np.testing.assert_array_equal(ragged[0], shares[0])


def test_uncertain_pairs_are_more_often_wrong():
    held_out, truth = make_medoid(n_sets=2000, random_state=1)
    model = Ranker(FATE(width=16), members=6, **SETTINGS | {"steps": 300}).fit(X, RANKS)
    shares = model.predict_pairs(held_out)
    first = truth[:, :, None] < truth[:, None, :]
    agreed, split = shares[first] % 1 == 0, np.abs(shares[first] - 0.5) < 0.2
    right = model.predict(held_out)
    right = (right[:, :, None] < right[:, None, :])[first]
    assert right[agreed].mean() > right[split].mean() + 0.1


def test_ensembles_learn_from_sets_of_many_sizes_with_weights_and_sub_sets():
    sets = [part[: 2 + i % 4] for i, part in enumerate(X)]
    ranks = [row[: 2 + i % 4] for i, row in enumerate(RANKS)]
    model = Ranker(FATE(width=8), members=2, **SETTINGS).fit(sets, ranks, sample_weight=np.arange(300) + 1.0)
    assert model.score(sets, ranks) > 0.5
    Ranker(FATE(width=8), members=2, subset_size=(2, 4), **SETTINGS).fit(X, RANKS)


def test_an_interrupted_ensemble_goes_on_to_the_same_end(tmp_path):
    settings = SETTINGS | {"evaluate_every": 20}
    net = SetAttention(width=8, dropout=0.2)
    whole = Ranker(net, members=2, **settings).fit(X, RANKS)

    class StopError(Exception):
        pass

    def stop(score):
        stop.count += 1
        if stop.count == 2:
            raise StopError

    stop.count = 0
    parted = Ranker(net, members=2, **settings, checkpoint=tmp_path / "run")
    with pytest.raises(StopError):
        parted.fit(X, RANKS, on_evaluation=stop)
    parted.fit(X, RANKS)
    np.testing.assert_array_equal(parted.predict_scores(X), whole.predict_scores(X))


def test_one_net_alone_has_no_disagreement():
    model = Ranker(FATE(width=8), **SETTINGS).fit(X, RANKS)
    with pytest.raises(ParameterError, match="members=8"):
        model.predict_scores(X, return_std=True)
    with pytest.raises(ParameterError, match="members=8"):
        model.predict_pairs(X)


def test_no_members_are_refused():
    with pytest.raises(ParameterError, match="members"):
        Ranker(FATE(width=8), members=0, **SETTINGS).fit(X, RANKS)


@pytest.mark.parametrize(
    "net", [FETA(width=8), SetAttention(width=8, dropout=0.0), FETA(width=8, rounds=2)], ids=repr
)
def test_sets_too_large_for_all_members_at_once_are_worked_off_one_by_one(net, monkeypatch):
    from entourage.nets import message_passing, pairs

    settings = SETTINGS | {"steps": 10, "validation": 0}
    at_once = Ranker(net, members=2, **settings).fit(X, RANKS)
    monkeypatch.setattr(pairs, "GRADIENT_NUMBERS", 10_000)
    monkeypatch.setattr(message_passing, "GRADIENT_NUMBERS", 10_000)
    in_turn = Ranker(net, members=2, **settings).fit(X, RANKS)
    first, second = (m.predict_scores(X) for m in (in_turn, at_once))
    first, second = (s - s.mean(1, keepdims=True) for s in (first, second))  # a shift of all means nothing
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)


def test_a_model_whose_parameters_were_changed_does_not_go_on(tmp_path):
    model = Ranker(FATE(width=8), members=2, **SETTINGS).fit(X, RANKS)
    model.set_params(members=3)
    with pytest.raises(ParameterError, match=r"fitted as 2 × FATE.*call fit"):
        model.partial_fit(X, RANKS)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").members == 2
    model.set_params(members=2, net=FETA(width=8))
    with pytest.raises(ParameterError, match="call fit"):
        model.partial_fit(X, RANKS)
