"""What the net sees: no units, no order, nothing of padding, and the same of new sets whenever they come."""

from dataclasses import fields

import pytest
import torch
from torch import Tensor

from entourage.nets.prior_fitted import BASES, COLUMN_FACTS, SLOTS, TABLE_FACTS, VIEWS
from entourage.pretrained.inputs import Scales, learn, soften
from entourage.pretrained.ridge import Comparisons

GENERATOR = torch.Generator().manual_seed(0)
VALUES = torch.randn(2, 14, 4, 3, generator=GENERATOR, dtype=torch.float64)  # the last 4 sets are new
VALUES[..., 2] = VALUES[..., 2].exp()
RANKS = torch.rand(2, 10, 4, generator=GENERATOR, dtype=torch.float64).argsort(-1).argsort(-1).double()
SIZES = torch.tensor([4, 3, 4, 2, 4, 1, 4, 4, 3, 4, 4, 2, 4, 1])
MASK = (torch.arange(4) < SIZES[:, None]).expand(2, -1, -1)


def close(one, other, **tolerance):
    torch.testing.assert_close(one, other, **{"rtol": 1e-6, "atol": 1e-8, **tolerance})


def parts(knowledge, seen):
    return knowledge.columns, knowledge.table, seen.cells, seen.base


def tensors_of(value):
    if isinstance(value, Tensor):
        return [value]
    return [t for f in fields(value) for t in tensors_of(getattr(value, f.name))]


def test_shapes_are_those_the_net_reads():
    columns, table, cells, base = parts(*learn(VALUES, RANKS))
    assert columns.shape == (2, 3, COLUMN_FACTS)
    assert table.shape == (2, TABLE_FACTS)
    assert cells.shape == (2, 14, 4, 3, VIEWS)
    assert base.shape == (2, 14, 4, BASES)


@pytest.mark.parametrize(("unit", "origin"), [(1000.0, 5.0), (1e-9, 0.0), (1.0, 1e6), (1e150, 0.0)])
def test_units_and_origins_of_columns_change_nothing(unit, origin):
    found = parts(*learn(VALUES * unit + origin, RANKS))
    close(found, parts(*learn(VALUES, RANKS)), atol=1e-6, rtol=1e-5)


def test_a_stray_cell_hardly_changes_the_mean_and_the_scale_of_a_column():
    values = torch.arange(60.0, dtype=torch.float64).reshape(1, 15, 4, 1)
    stray = values.clone()
    stray[0, 3, 2, 0] = 1e12
    plain, found = Scales.of(values, None), Scales.of(stray, None)
    # without the outermost value on either side from 1 to 59; two widths further it counts as 59 + 2 * 58
    border = torch.tensor([[175.0]], dtype=torch.float64)
    close(found.mean, plain.mean + (border - 14) / 60)
    assert found.scale < 1.5 * plain.scale
    far = found.standardised(stray)[0, 3, 2, 0]
    assert far == pytest.approx(3 + 4)
    assert found.standardised(stray * 1e3)[0, 3, 2, 0] == far


def test_a_rare_value_is_not_taken_for_a_stray_one():
    values = torch.zeros(1, 50, 4, 1, dtype=torch.float64)
    values[0, 7, 1] = 1.0
    found = Scales.of(values, None)
    close(found.mean, torch.tensor([[1 / 200]], dtype=torch.float64))
    close(found.scale**2, torch.tensor([[1 / 200 * 199 / 200]], dtype=torch.float64))


def own_column(knowledge, cells, column):
    """Return the cells (W, n, m, 5) of a column that had this place among the raw ones."""
    at = (knowledge.order == column).nonzero()[:, 1]
    return torch.stack([one[:, :, i] for one, i in zip(cells, at, strict=True)])


def wide(columns):
    return torch.randn(2, 14, 4, columns, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def of_sets(rows):
    """Columns of a situation, (14, columns) to those of all objects."""
    return torch.as_tensor(rows, dtype=torch.float64)[None, :, None].expand(2, 14, 4, -1)


LEVELS = (
    torch.arange(14)[:, None] % 4 == torch.arange(4)
).double()  # of a situation; two pairs are as frequent
ALTERNATING = torch.stack([(torch.arange(14) // k) % 2 for k in (1, 7)], -1)  # as often 0 as 1: skewness 0
COLUMNS = {
    "plain": VALUES,
    "one": VALUES[..., :1],
    "situations": torch.cat([VALUES, of_sets(wide(3)[0, :, 0])], 3),
    "levels of a situation": torch.cat([VALUES, of_sets(LEVELS)], 3),
    "situations level in every moment": torch.cat([VALUES, of_sets(ALTERNATING)], 3),
    "situations alone": of_sets(wide(3)[0, :, 0]),
    "the same in another order": torch.cat(
        [VALUES, of_sets(wide(1)[0, :, 0]), of_sets(wide(1)[0, :, 0].flip(0))], 3
    ),
    "duplicates": torch.cat([VALUES, VALUES[..., :2], -VALUES[..., 2:]], 3),
    "constants": torch.cat([VALUES, torch.full_like(VALUES[..., :2], 7.0)], 3),
    "more than there are slots": torch.cat([wide(SLOTS + 2), of_sets(LEVELS)], 3),
}


@pytest.mark.parametrize("precision", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("case", COLUMNS)
def test_the_order_of_columns_does_not_matter(case, precision):
    values, ranks = COLUMNS[case].to(precision), RANKS.to(precision)
    expected = parts(*learn(values, ranks))
    d = values.shape[-1]
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if precision == torch.float32 else {}
    for seed in range(4):
        order = torch.randperm(d, generator=torch.Generator().manual_seed(seed))
        found = parts(*learn(values[..., order], ranks))
        close(found, expected, **tolerance)


def test_the_strongest_column_comes_first_and_more_of_it_is_better():
    for column, sign in ((0, 1.0), (2, -1.0)):
        best = (sign * VALUES[:, :10, :, column]).argsort(-1, descending=True).argsort(-1).double()
        knowledge, seen = learn(VALUES, best)
        assert (knowledge.order[:, 0] == column).all()
        assert (knowledge.sign[:, 0] == sign).all()
        assert (knowledge.columns[:, 0, 2:] > 0).all()
        highest = best.argmin(-1)
        assert torch.equal(seen.cells[:, :10, :, 0, 0].argmax(-1), highest)


def test_the_order_of_sets_and_objects_does_not_matter():
    columns, table, cells, base = parts(*learn(VALUES, RANKS, MASK))
    sets, objects = [3, 1, 0, 2, *range(9, 3, -1), 13, 11, 12, 10], [1, 0, 3, 2]
    moved = [t[:, sets][:, :, objects] for t in (VALUES, MASK, cells, base)]
    found = parts(*learn(moved[0], RANKS[:, sets[:10]][:, :, objects], moved[1]))
    close(found, (columns, table, moved[2], moved[3]))


def test_padding_changes_nothing():
    columns, table, cells, base = parts(*learn(VALUES, RANKS, MASK))
    other = torch.where(MASK[..., None], VALUES, 77.0)
    ranks = RANKS.masked_fill(~MASK[:, :10], torch.nan)
    wide = torch.cat([other, torch.full_like(other[:, :, :2], -9.0)], 2)
    mask = torch.cat([MASK, torch.zeros_like(MASK[..., :2])], 2)
    found = parts(*learn(wide, torch.cat([ranks, torch.zeros_like(ranks[..., :2])], 2), mask))
    close(found[:2], (columns, table))
    close((found[2][:, :, :4], found[3][:, :, :4]), (cells, base))
    assert not any(t[~mask].any() for t in found[2:])


def test_a_mask_without_padding_is_no_mask():
    close(parts(*learn(VALUES, RANKS, torch.ones_like(MASK))), parts(*learn(VALUES, RANKS)))


def test_new_sets_are_seen_later_as_at_once_each_for_itself():
    knowledge, seen = learn(VALUES, RANKS)
    later = knowledge.see(VALUES[:, 10:], None)
    close((later.cells, later.base), (seen.cells[:, 10:], seen.base[:, 10:]))
    one = knowledge.see(VALUES[:, 12:13], None)
    close((one.cells, one.base), (seen.cells[:, 12:13], seen.base[:, 12:13]))
    alone, _ = learn(VALUES[:, :10], RANKS)  # and teach nothing
    close(tensors_of(alone), tensors_of(knowledge))


def test_labelled_sets_have_utilities_of_models_that_did_not_see_them():
    choices = RANKS.clamp_max(1)
    knowledge, seen = learn(VALUES, choices)
    as_new = knowledge.see(VALUES[:, :10], None)
    close(as_new.cells, seen.cells[:, :10])
    made = Comparisons.of(choices)
    fitted, left_out = (made.gains(t.permute(0, 3, 1, 2)) for t in (as_new.base, seen.base[:, :10]))
    assert (left_out < fitted).all()


def test_a_constant_column_says_nothing():
    values = VALUES.clone()
    values[..., 1] = 0.1
    knowledge, seen = learn(values, RANKS)
    assert not own_column(knowledge, seen.cells, 1).any()
    assert not knowledge.columns[:, -1, 2:].any()  # the weakest of all
    assert (knowledge.order[:, -1] == 1).all()
    later = values[:, 10:].clone()
    later[..., 1] = 5.0
    assert not own_column(knowledge, knowledge.see(later, None).cells, 1).any()


def test_a_column_of_the_situation_differs_between_sets_alone():
    values = VALUES.clone()
    values[..., 1] = torch.arange(14)[:, None]
    knowledge, seen = learn(values, RANKS)
    own = own_column(knowledge, seen.cells, 1)
    assert (own[..., 0].std(1) > 0.5).all()
    assert own[..., 2:].abs().max() < 1e-6
    assert (knowledge.order[:, -1] == 1).all()
    assert (knowledge.sign[:, -1] == 1).all()  # no coefficient, no turn
    assert knowledge.columns[:, -1, 0].abs().max() < 1e-6  # the part of its variance within sets


def test_sets_of_one_object_choices_that_are_tied_and_a_single_set_are_finite():
    cases = [
        (VALUES[:, :, :1], torch.zeros(2, 10, 1).double()),
        (VALUES, torch.zeros_like(RANKS)),
        (VALUES, torch.full_like(RANKS, torch.nan)),
        (VALUES[..., :1], RANKS),
        (VALUES[:, 9:], RANKS[:, 9:]),
        (torch.zeros_like(VALUES), RANKS),
    ]
    for values, ranks in cases:
        for precision in (torch.float32, torch.float64):
            found = parts(*learn(values.to(precision), ranks.to(precision)))
            assert all(t.isfinite().all() for t in found)


def test_far_values_stay_finite():
    knowledge, _ = learn(VALUES[:, :10].float(), RANKS.float())
    for far in (1e6, 1e30, -1e30):
        values = VALUES[:, 10:].float().clone()
        values[0, 0, 0, 0] = far
        seen = knowledge.see(values, None)
        assert seen.cells.isfinite().all()
        assert seen.cells.abs().max() < 100
        assert seen.base.isfinite().all()


def test_weights_count_in_the_ridge_logits():
    weights = torch.ones(2, 10, dtype=torch.float64)
    close(parts(*learn(VALUES, RANKS, None, weights)), parts(*learn(VALUES, RANKS)))
    weights[:, 0] = 5.0
    knowledge, _ = learn(VALUES, RANKS, None, weights)
    assert (knowledge.linear.coefficients - learn(VALUES, RANKS)[0].linear.coefficients).abs().max() > 0.05


def test_views_of_a_value_equal_those_worked_by_hand():
    values = torch.tensor([[[[1.0], [3.0]], [[3.0], [5.0]]]], dtype=torch.float64)  # mean 3, variance 2
    z, quantile, apart, standing, place = Scales.of(values, None).cells(values, None)[0, ..., 0, :].unbind(-1)
    unit = 2**-0.5
    close(z, unit * torch.tensor([[-2.0, 0.0], [0.0, 2.0]]).double())
    # below 3 is one of four, up to 3 are three: the middle of both is a half, which is 0 between -1 and 1
    close(quantile, torch.tensor([[-0.75, 0.0], [0.0, 0.75]]).double())
    close(apart, unit * torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]).double())
    close(standing, apart / (0.5 + 0.01) ** 0.5)
    close(place, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]).double())


def test_values_are_softened_far_out_only():
    values = torch.tensor([-3.0, 0.5, 3.0, 3.0 + torch.e - 1, -1e30])
    assert soften(values).tolist() == pytest.approx([-3.0, 0.5, 3.0, 4.0, -3 - 4])
