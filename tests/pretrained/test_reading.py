"""A reading by the path users take: sets in, scores out; what must not matter does not, what can't be is refused."""

from functools import partial

import numpy as np
import pytest
import torch
from prior_fitted_cases import small_net

from entourage.data import Sets
from entourage.errors import DataError, ShapeError, UserError
from entourage.nets.prior_fitted import SLOTS, label_views
from entourage.pretrained import InstantVerdict, Reading, reading
from entourage.pretrained.fine_tune import fine_tune
from entourage.pretrained.inputs import learn
from entourage.tasks import Choice, Ranking, SubsetChoice

NET = small_net(16, 1, 4, dtype=torch.float32)
RNG = np.random.default_rng(0)
OBJECTS = RNG.normal(size=(20, 4, 3))
CHOSEN = (OBJECTS[..., 0] + RNG.gumbel(size=(20, 4))).argmax(1)
NEW = RNG.normal(size=(7, 4, 3))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(reading, "pretrained_net", lambda: NET)


def read(objects=OBJECTS, chosen=CHOSEN, task=None, situation=None, **options):
    """Read choices; ``objects`` as an array or as a list of sets."""
    sizes = [len(x) for x in objects]
    targets = np.concatenate([np.arange(m) != i for m, i in zip(sizes, chosen, strict=True)]).astype(float)
    offsets = np.append(0, np.cumsum(sizes))
    sets = Sets(np.concatenate(list(objects)), offsets, targets, situation)
    return Reading.read(sets, task or Choice(), device="cpu", **options)


def scores(found, new=NEW, situation=None):
    return found.scores(Sets.of(new, None, situation), "cpu")


def same(found, expected, tolerance=2e-4):
    assert np.abs(expected).max() > 0.05
    assert found == pytest.approx(expected, abs=tolerance)


def ragged(objects, chosen):
    """Sets of 1 to 4 objects, with what was chosen in front."""
    sizes = 1 + np.arange(len(objects)) % 4
    front = [np.concatenate([x[[i]], np.delete(x, i, 0)]) for x, i in zip(objects, chosen, strict=True)]
    return [x[:m] for x, m in zip(front, sizes, strict=True)], np.zeros(len(objects), dtype=int)


@pytest.fixture(scope="module")
def expected():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "pretrained_net", lambda: NET)
        return scores(read())


# --- what must not matter -----------------------------------------------------------------------


def test_scores_follow_their_objects_sets_and_columns(expected):
    objects, sets, columns = [2, 0, 3, 1], RNG.permutation(20), [1, 2, 0]
    moved = read(OBJECTS[sets][:, objects][..., columns], np.argsort(objects)[CHOSEN[sets]])
    found = scores(moved, NEW[::-1][:, objects][..., columns])
    same(found, expected.reshape(7, 4)[::-1][:, objects].ravel())


@pytest.mark.parametrize(("unit", "origin"), [(1e200, 0.0), (1e-200, 0.0), (60.0, 1.7e9), (1e-3, -5.0)])
def test_units_and_origins_do_not_matter(expected, unit, origin):
    same(scores(read(unit * OBJECTS + origin), unit * NEW + origin), expected)


def test_whole_numbers_are_numbers():
    whole, new = (np.round(3 * x).astype(np.int64) for x in (OBJECTS, NEW))
    same(scores(read(whole), new), scores(read(whole.astype(float)), new.astype(float)), 0)


def test_new_sets_are_scored_alone_as_among_a_thousand(expected):
    found = read()
    many = np.concatenate([RNG.normal(size=(1000, 4, 3)) * 100, NEW])
    same(scores(found, many)[-28:], expected)
    same(scores(found, NEW[3:4]), expected[12:16])
    mixed = [NEW[0], NEW[1][:2], NEW[2][:1], NEW[3]]
    same(scores(found, mixed)[[*range(4), *range(7, 11)]], expected[[*range(4), *range(12, 16)]])
    same(scores(found, mixed)[4:6], scores(found, NEW[1:2, :2]))


def test_scoring_in_parts_changes_nothing(expected, monkeypatch):
    monkeypatch.setattr(reading, "CELLS", 30)
    same(scores(read()), expected)


def test_sets_of_several_sizes_are_read_in_any_order():
    objects, chosen = ragged(OBJECTS, CHOSEN)
    found = scores(read(objects, chosen))
    order = RNG.permutation(20)
    same(scores(read([objects[i][::-1] for i in order], [len(objects[i]) - 1 for i in order])), found)
    assert np.isfinite(found).all()


def test_a_column_of_the_situation_is_one_that_is_equal_within_a_set():
    shared, later = RNG.normal(size=(20, 2)), RNG.normal(size=(7, 2))
    wide, new = (
        np.concatenate([x, np.repeat(z[:, None], 4, 1)], axis=2) for x, z in ((OBJECTS, shared), (NEW, later))
    )
    found = read(situation=shared)
    assert found.n_features == (3, 2)
    same(scores(found, NEW, later), scores(read(wide), new))


@pytest.mark.parametrize("columns", [3, SLOTS + 5])
def test_the_order_of_columns_and_of_those_of_the_situation_does_not_matter(columns):
    rng = np.random.default_rng(columns)
    objects, new = rng.normal(size=(20, 4, columns)), rng.normal(size=(7, 4, columns))
    objects[..., 1] = -objects[..., 0]  # the same column twice, turned
    levels = np.arange(20) % 4
    shared = np.column_stack([levels[:, None] == np.arange(4), rng.normal(size=(20, 1))]).astype(float)
    later = np.column_stack([levels[:7, None] == np.arange(4), rng.normal(size=(7, 1))]).astype(float)
    expected = scores(read(objects, situation=shared), new, later)
    for _ in range(3):
        own, of_set = rng.permutation(columns), rng.permutation(5)
        moved = read(objects[..., own], situation=shared[:, of_set])
        same(scores(moved, new[..., own], later[:, of_set]), expected, 2e-3)


# --- weights ------------------------------------------------------------------------------------


def test_sets_of_weight_0_are_left_out_and_only_ratios_of_weights_count(expected):
    weights = np.repeat([3.0, 0.0], [20, 5])
    more = np.concatenate([OBJECTS, 1e6 * OBJECTS[:5]]), np.append(CHOSEN, (CHOSEN[:5] + 1) % 4)
    assert np.array_equal(scores(read(*more, weights=weights)), expected)
    uneven = np.linspace(0.5, 2, 20)
    found = scores(read(weights=uneven))
    assert np.abs(found - expected).max() > 1e-3
    same(scores(read(weights=7 * uneven)), found)


def test_weights_count_with_sets_of_several_sizes_too():
    objects, chosen = ragged(OBJECTS, CHOSEN)
    uneven = np.linspace(0.5, 2, 20)
    order = RNG.permutation(20)
    moved = [objects[i] for i in order]
    same(scores(read(moved, chosen, weights=uneven[order])), scores(read(objects, chosen, weights=uneven)))


@pytest.mark.parametrize("weights", [None, np.geomspace(0.01, 10, 20)], ids=["plain", "weighted"])
def test_what_is_kept_scores_as_labelled_and_new_sets_in_one_pass(weights):
    objects, chosen = ragged(OBJECTS, CHOSEN)
    found = read(objects, chosen, weights=weights)
    padded = np.stack([np.pad(x, ((0, 4 - len(x)), (0, 0))) for x in [*objects, *NEW]])
    values = torch.from_numpy(found.standardise(padded.reshape(-1, 3), 0)).reshape(1, 27, 4, 3)
    mask = torch.arange(4) < torch.tensor([*map(len, objects), *[4] * 7])[:, None]
    ranks = torch.where(mask[:20], (torch.arange(4) > 0).float(), torch.nan)
    weight = None if weights is None else torch.from_numpy(weights / weights.mean()).float()[None]
    knowledge, seen = learn(values, ranks[None], mask[None], weight)
    labels = label_views(ranks[None], mask[None, :20])
    log = None if weight is None else weight.log()
    _, expected = NET.read(seen, labels, knowledge.columns, knowledge.table, 0, log)
    same(scores(found), (expected[0] - expected[0].mean(1, keepdim=True)).flatten().numpy())


@pytest.mark.parametrize("weights", [np.zeros(20), np.ones(19), np.full(20, np.nan), np.full(20, np.inf)])
def test_weights_that_mean_nothing_are_refused(weights):
    with pytest.raises(DataError, match="Weights"):
        read(weights=weights)


# --- tasks --------------------------------------------------------------------------------------


def test_each_task_has_utilities_of_its_own_kind(expected):
    assert expected.reshape(7, 4).mean(1) == pytest.approx(0, abs=1e-6)  # only differences count
    ranked = scores(read(task=Ranking()))
    assert ranked.reshape(7, 4).mean(1) == pytest.approx(0, abs=1e-6)
    chosen = scores(read(task=SubsetChoice()))
    assert np.abs(chosen.reshape(7, 4).mean(1)).max() > 1e-3  # logits
    assert np.abs(ranked - expected).max() > 1e-3


def test_ranks_with_ties_and_objects_that_are_not_ranked_are_read():
    ranks = np.tile([0.0, 1.0, 1.0, np.nan], 20)
    sets = Sets(OBJECTS.reshape(-1, 3), np.arange(21) * 4, ranks)
    found = scores(Reading.read(sets, Ranking(), device="cpu"))
    assert np.isfinite(found).all()
    signs = Sets(OBJECTS.reshape(-1, 3), np.arange(21) * 4, np.where(np.isnan(ranks), -1, ranks))
    assert np.array_equal(scores(Reading.read(signs, Ranking(), device="cpu")), found)


def test_a_subset_of_none_is_not_read_as_one_of_all():
    offsets = np.arange(21) * 4
    targets = np.where(np.arange(80) < 40, np.tile(np.arange(4) != 0, 20), 0.0)  # half the sets: all chosen
    every = Sets(OBJECTS.reshape(-1, 3), offsets, targets.astype(float))
    none = every.with_targets(np.where(np.arange(80) < 40, targets, 1.0))
    found = [scores(Reading.read(sets, SubsetChoice(), device="cpu")) for sets in (every, none)]
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [0, 1, 2, 4], ids=["none", "a quarter", "half", "nearly all"])
def test_as_many_labelled_objects_are_expected_to_be_chosen_as_were(first, weighted):
    chosen = np.arange(80) % 4 < first
    chosen[:4] = False
    sets = Sets(OBJECTS.reshape(-1, 3), np.arange(21) * 4, np.where(chosen, 0.0, 1.0))
    weights = np.linspace(0.5, 1.5, 20) if weighted else None
    logits = Reading.read(sets, SubsetChoice(), weights=weights, device="cpu").scores(sets, "cpu")
    each = np.ones(80) if weights is None else np.repeat(weights, 4)
    expected = (each @ chosen + 0.5) / 81  # half a choice and half a refusal more
    assert each @ (1 / (1 + np.exp(-logits))) / 80 == pytest.approx(expected, abs=1e-5)


def test_with_an_outside_option_nothing_may_be_chosen_and_sets_of_one_object_are_scored():
    nothing = np.where(np.arange(20) % 2, CHOSEN, -1)
    found = read(chosen=nothing, task=Choice(outside=True))
    utilities = scores(found)
    assert np.abs(utilities.reshape(7, 4).mean(1)).max() > 1e-3  # relative to that of nothing, 0
    order = [2, 0, 3, 1]
    moved = read(
        OBJECTS[:, order], np.where(nothing < 0, -1, np.argsort(order)[CHOSEN]), Choice(outside=True)
    )
    same(scores(moved, NEW[:, order]), utilities.reshape(7, 4)[:, order].ravel())
    assert np.abs(utilities - scores(read(task=Choice(outside=True)))).max() > 1e-3
    alone = scores(found, NEW[:, :1])
    assert np.ptp(alone) > 1e-3
    objects, chosen = ragged(OBJECTS, CHOSEN)
    assert np.isfinite(
        scores(read(objects, np.where(np.arange(20) % 3, chosen, -1), Choice(outside=True)))
    ).all()


# --- little to learn from -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "new"),
    [
        (OBJECTS[:1], NEW),
        (OBJECTS[:, :1], NEW),
        (OBJECTS[..., :1], NEW[..., :1]),
        (np.ones_like(OBJECTS), NEW),
        (OBJECTS, NEW[:, :1]),
        (OBJECTS, NEW[:1]),
    ],
    ids=["one set", "sets of one", "one column", "constant columns", "new sets of one", "one new set"],
)
def test_one_of_anything_works(objects, new):
    found = read(objects, np.minimum(CHOSEN[: len(objects)], objects.shape[1] - 1))
    assert np.isfinite(scores(found, new)).all()
    assert isinstance(found.verdict(), InstantVerdict)


def test_rankings_without_an_order_are_read():
    sets = Sets(OBJECTS.reshape(-1, 3), np.arange(21) * 4, np.zeros(80))
    assert np.isfinite(scores(Reading.read(sets, Ranking(), device="cpu"))).all()


def test_a_column_that_was_constant_plays_no_part_later(expected):
    constant = np.full((20, 4, 1), 0.1)
    found = read(np.concatenate([OBJECTS, constant], axis=2))
    one, other = (np.concatenate([NEW, np.full((7, 4, 1), value)], axis=2) for value in (0.1, 1e9))
    assert np.array_equal(scores(found, one), scores(found, other))


def test_a_stray_cell_changes_predictions_no_more_than_another_odd_one():
    """One cell in eighty; without a border for far values all others of its column looked alike."""
    odd, stray, farther = OBJECTS.copy(), OBJECTS.copy(), OBJECTS.copy()
    odd[3, 2, 1], stray[3, 2, 1], farther[3, 2, 1] = 1e3, 1e12, 1e18
    assert np.abs(scores(read(odd))).max() > 0.1
    same(scores(read(stray)), scores(read(odd)))
    same(scores(read(farther)), scores(read(odd)))


# --- larger tables ------------------------------------------------------------------------------


def test_of_a_larger_table_several_draws_are_read_and_averaged(monkeypatch):
    monkeypatch.setattr(reading, "MOST_OBJECTS", 41)
    found, again, other = (read(random_state=seed, weights=np.arange(1.0, 21.0)) for seed in (0, 0, 1))
    assert len(found.pages) == reading.DRAWS
    assert all(page.memory.states[0].shape[1] == 40 for page in found.pages)  # ten sets of four
    assert np.array_equal(scores(found), scores(again))
    assert np.abs(scores(found) - scores(other)).max() > 1e-3
    own = [scores(reading.Reading(**{**vars(found), "pages": [page]})) for page in found.pages]
    same(scores(found), np.mean(own, axis=0))
    none = [reading.Reading(**{**vars(found), "pages": [page]}).verdict().none for page in found.pages]
    assert found.verdict().none == pytest.approx(np.mean(none))


def test_a_set_larger_than_all_that_is_read_at_once_is_read(monkeypatch):
    monkeypatch.setattr(reading, "MOST_OBJECTS", 3)
    assert np.isfinite(scores(read())).all()


# --- what is refused ----------------------------------------------------------------------------


def test_what_can_not_be_read_is_refused():
    with pytest.raises(DataError, match="targets"):
        Reading.read(Sets.of(OBJECTS), Choice(), device="cpu")
    wrong = OBJECTS.copy()
    wrong[3, 1, 2] = np.nan
    with pytest.raises(UserError, match="finite"):
        read(wrong)


def test_other_features_than_those_read_are_refused():
    found = read()
    with pytest.raises(ShapeError, match="3 of objects and 0 of situations; got 1 and 0"):
        scores(found, NEW[..., :1])
    with pytest.raises(ShapeError, match="got 3 and 2"):
        scores(found, NEW, np.zeros((7, 2)))


def test_values_beyond_the_farthest_are_scored_alike():
    found = read()
    far = NEW.copy()
    far[0, 0, 0] = 1e30
    at_border = scores(found, far)
    assert np.isfinite(at_border).all()
    far[0, 0, 0] = 1e200  # beyond single precision
    assert np.array_equal(scores(found, far), at_border)
    assert np.isfinite(scores(found, far)[4:]).all()


def test_fine_tuning_helps_or_leaves_the_net_alone(small_pretrained, monkeypatch):
    monkeypatch.setattr(reading, "tune", partial(fine_tune, steps=20))
    rng = np.random.default_rng(0)
    objects = rng.normal(size=(60, 3, 2))
    chosen = objects[..., 0].argmax(1)
    sets = Choice().sets_of(objects, chosen)
    told: list[str] = []
    tuned = Reading.read(sets, Choice(), fine_tune=True, groups=np.arange(60) // 2, tell=told.append)
    plain = Reading.read(sets, Choice())
    assert len(told) == 2
    assert plain.net is None
    if tuned.net is not None:
        assert not np.array_equal(tuned.scores(sets), plain.scores(sets))
    again = Reading.read(sets, Choice(), fine_tune=True, groups=np.arange(60) // 2)
    np.testing.assert_array_equal(again.scores(sets), tuned.scores(sets))
