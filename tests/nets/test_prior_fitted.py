"""The laws of the prior-fitted net: no order of objects or sets, and new sets see labelled ones alone."""

from dataclasses import dataclass, replace

import pytest
import torch
from prior_fitted_cases import small_net
from torch import Tensor
from torch.func import functional_call

from entourage.nets import prior_fitted
from entourage.nets.prior_fitted import SLOTS, TASK_KINDS, PriorFittedNet, Seen, label_views

NET = small_net()
close = torch.testing.assert_close


@dataclass(frozen=True)
class Case:
    """What a net is given: worlds of which the first sets are labelled."""

    seen: Seen
    labels: Tensor
    columns: Tensor
    table: Tensor
    log_weights: Tensor | None = None

    @classmethod
    def draw(cls, worlds=2, labelled=5, new=3, m=4, d=3, *, ragged=False, seed=0):
        draw = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(shape, generator=draw, dtype=torch.float64)

        n = labelled + new
        mask = None
        if ragged:
            sizes = torch.randint(1, m + 1, (worlds, n), generator=draw)
            mask = torch.arange(m) < sizes[..., None]
        ranks = torch.randint(0, 3, (worlds, labelled, m), generator=draw).double()
        seen = Seen(normal(worlds, n, m, d, 5), normal(worlds, n, m, 7), mask)
        labels = label_views(ranks, None if mask is None else mask[:, :labelled])
        return cls(seen, labels, normal(worlds, d, 10), normal(worlds, 17))

    @property
    def labelled(self):
        return self.labels.shape[1]

    def read(self, net=NET, task=0):
        return net.read(self.seen, self.labels, self.columns, self.table, task, self.log_weights)

    def sets(self, which):
        """The same worlds with only some of the sets, or with them in another order."""
        known = [i for i in which if i < self.labelled]
        weights = None if self.log_weights is None else self.log_weights[:, known]
        seen = Seen(*(None if t is None else t[:, which] for t in self.seen))
        return replace(self, seen=seen, labels=self.labels[:, known], log_weights=weights)

    def objects(self, order):
        seen = Seen(*(None if t is None else t[:, :, order] for t in self.seen))
        return replace(self, seen=seen, labels=self.labels[:, :, order])

    def padded(self, more):
        """The same with padding, of whatever values, behind the objects."""
        other = Case.draw(*self.seen.cells.shape[:1], self.labelled, 3, more, self.columns.shape[1], seed=9)
        mask = (
            torch.ones_like(self.seen.base[..., 0], dtype=bool) if self.seen.mask is None else self.seen.mask
        )
        wider = torch.cat([mask, torch.zeros_like(other.seen.base[..., 0], dtype=bool)], 2)
        cells, base = (torch.cat([a, 50 * b], 2) for a, b in zip(self.seen[:2], other.seen[:2], strict=True))
        return replace(self, seen=Seen(cells, base, wider), labels=torch.cat([self.labels, other.labels], 2))


def conclusions(memory):
    return memory.gates, memory.verdict, memory.facts


ragged = pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])


@ragged
def test_scores_follow_their_objects_and_the_verdict_knows_no_order(ragged):
    case, order = Case.draw(ragged=ragged), [2, 0, 3, 1]  # padding then stands among the objects
    memory, utilities = case.read()
    other, found = case.objects(order).read()
    real = torch.ones_like(utilities, dtype=bool) if case.seen.mask is None else case.seen.mask[:, 5:]
    close(found[real[..., order]], utilities[..., order][real[..., order]])
    close(conclusions(other), conclusions(memory))


@ragged
def test_the_order_of_labelled_sets_does_not_matter_and_scores_follow_new_ones(ragged):
    case = Case.draw(ragged=ragged)
    memory, utilities = case.read()
    other, found = case.sets([3, 1, 4, 0, 2, 7, 5, 6]).read()
    close(found, utilities[:, [2, 0, 1]])
    close(conclusions(other), conclusions(memory))


def test_a_column_is_known_by_its_slot_and_those_behind_the_last_slot_play_no_part():
    case = Case.draw(d=SLOTS + 2)
    _, utilities = case.read()

    def without(kept):
        seen = case.seen._replace(cells=case.seen.cells[..., kept, :])
        return replace(case, seen=seen, columns=case.columns[:, kept]).read()[1]

    close(without(list(range(SLOTS))), utilities)
    assert (without([1, 0, *range(2, SLOTS)]) - utilities).abs().max() > 1e-3


def test_an_empty_slot_is_a_column_of_zeros():
    case = Case.draw(d=3)
    cells, columns = torch.zeros(2, 8, 4, 1, 5).double(), torch.zeros(2, 1, 10).double()
    seen = case.seen._replace(cells=torch.cat([case.seen.cells, cells], 3))
    more = replace(case, seen=seen, columns=torch.cat([case.columns, columns], 1))
    close(more.read()[1], case.read()[1])


@ragged
def test_padding_changes_nothing(ragged):
    case = Case.draw(ragged=ragged)
    memory, utilities = case.read()
    other, found = case.padded(2).read()
    real = torch.ones_like(utilities, dtype=bool) if case.seen.mask is None else case.seen.mask[:, 5:]
    close(found[..., :4][real], utilities[real])
    close(conclusions(other), conclusions(memory))


@ragged
@pytest.mark.parametrize("task", range(len(TASK_KINDS)), ids=TASK_KINDS)
def test_scores_from_memory_are_those_of_the_joint_pass(ragged, task):
    case = Case.draw(ragged=ragged)
    memory, utilities = case.read(task=task)
    new = Seen(*(None if t is None else t[:, 5:] for t in case.seen))
    close(NET.score(memory, new, task), utilities)
    alone, nothing = case.sets(range(5)).read(task=task)  # without new sets, the memory is the same
    assert nothing.shape == (2, 0, 4)
    close(NET.score(alone, new, task), utilities)


def test_new_sets_do_not_see_each_other():
    case = Case.draw(new=40)
    memory, utilities = case.read()
    for some in ([7], [3, 12, 30]):
        new = Seen(*(None if t is None else t[:, [5 + i for i in some]] for t in case.seen))
        close(NET.score(memory, new, 0), utilities[:, some])


def test_a_world_alone_is_read_as_among_others():
    case = Case.draw(worlds=3, ragged=True)
    _, utilities = case.read()
    one = Case(Seen(*(t[1:2] for t in case.seen)), case.labels[1:2], case.columns[1:2], case.table[1:2])
    close(one.read()[1], utilities[1:2])


def test_what_is_chosen_matters():
    case = Case.draw()
    other = replace(case, labels=case.labels.flip(2))
    assert (case.read()[1] - other.read()[1]).abs().max() > 1e-3


@ragged
def test_a_weight_of_2_is_a_set_given_twice_and_one_of_0_a_set_left_out(ragged):
    case = Case.draw(ragged=ragged)
    twice = case.sets([0, 1, 1, 2, 3, 4, 5, 6, 7])
    weights = torch.ones(2, 5, dtype=torch.float64)
    weights[:, 1] = 2.0
    memory, utilities = replace(case, log_weights=weights.log()).read()
    other, found = twice.read()
    close(utilities, found)
    close(conclusions(memory), conclusions(other))
    weights[:, 1] = 0.0
    _, without = replace(case, log_weights=weights.log()).read()
    close(without, case.sets([0, 2, 3, 4, 5, 6, 7]).read()[1])


@pytest.mark.parametrize(
    "shape",
    [(1, 5, 3, 4, 3), (2, 1, 3, 4, 3), (2, 5, 1, 4, 3), (2, 5, 3, 1, 3), (2, 5, 3, 4, 1), (1, 1, 1, 1, 1)],
    ids=["one world", "one labelled set", "one new set", "sets of one object", "one column", "one of all"],
)
def test_one_of_anything_works(shape):
    memory, utilities = Case.draw(*shape).read()
    assert utilities.shape == (shape[0], shape[2], shape[3])
    assert utilities.isfinite().all()
    assert all(t.isfinite().all() for t in (*memory.verdict, memory.gates))


def test_a_set_of_one_among_others_is_scored_as_alone():
    case = Case.draw()
    mask = torch.ones(2, 8, 4, dtype=torch.bool)
    mask[:, [1, 6], 1:] = False  # a labelled one, and a new one
    case = replace(case, seen=case.seen._replace(mask=mask))
    memory, utilities = case.read()
    alone = Seen(case.seen.cells[:, 6:7, :1], case.seen.base[:, 6:7, :1], None)
    close(NET.score(memory, alone, 0), utilities[:, 1:2, :1])


def test_gradients_match_finite_differences():
    case = Case.draw(1, 2, 1, 2, 2, ragged=True)
    mask = torch.tensor([[[True, True], [True, False], [True, True]]])
    net, labelled = small_net(4, 1, 2), Seen(None, None, mask[:, :2])

    def scores(weights, cells, base):
        """Read, and score from memory, under the weights; both ways, and what is concluded."""
        known = labelled._replace(cells=cells[:, :2], base=base[:, :2])
        new = Seen(cells[:, 2:], base[:, 2:], None)

        class Both(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self):
                memory, _ = net.read(known, case.labels, case.columns, case.table, 0)
                return net.score(memory, new, 0), memory.gates, *memory.verdict

        both = Both()
        return functional_call(both, {f"net.{name}": value for name, value in weights.items()}, ())

    weights = dict(net.named_parameters())
    cells, base = case.seen.cells.requires_grad_(), case.seen.base.requires_grad_()
    assert torch.autograd.gradcheck(lambda c, b: scores(weights, c, b), (cells, base), fast_mode=True)
    generator = torch.Generator().manual_seed(3)
    along = {
        name: torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in weights.items()
    }

    def moved(t):
        return scores({k: weights[k] + t * along[k] for k in weights}, cells.detach(), base.detach())

    assert torch.autograd.gradcheck(moved, torch.zeros((), dtype=torch.float64, requires_grad=True))


def test_single_precision_is_near_double():
    case = Case.draw(ragged=True)
    single = Case(
        Seen(case.seen.cells.float(), case.seen.base.float(), case.seen.mask),
        case.labels.float(),
        case.columns.float(),
        case.table.float(),
    )
    memory, found = single.read(small_net(dtype=torch.float32))
    assert found.dtype == memory.gates.dtype == torch.float32
    close(found.double(), case.read()[1], rtol=1e-3, atol=1e-3)


@ragged
def test_attention_as_sums_of_products_is_attention(ragged):  # a GPU takes the one, a CPU the other
    case = Case.draw(ragged=ragged)
    q, k, v = torch.randn(3, 2, 8, 4, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bias = None
    if case.seen.mask is not None:
        bias = torch.zeros_like(case.seen.mask, dtype=q.dtype).masked_fill(~case.seen.mask, -1e9)
        bias = bias[:, :, None, None].expand(-1, -1, 4, 4, -1)
    close(prior_fitted._attend_few(q, k, v, 4, case.seen.mask), prior_fitted._attend(q, k, v, 4, bias))


def test_a_new_net_gives_the_mean_of_the_ridge_logits():
    case = Case.draw()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = PriorFittedNet(8, 1, 2).double()
    close(case.read(net)[1], case.seen.base[:, 5:].mean(-1))


def test_the_memory_moves_as_a_whole():
    memory, _ = Case.draw(ragged=True).read()
    moved = memory.to(torch.device("meta"))
    tensors = [*moved.states, *moved.verdict, moved.facts, moved.bias, moved.gates]
    assert all(t.is_meta for t in tensors)


def test_views_of_labels_equal_those_worked_by_hand():
    ranks = torch.tensor([[[0.0, 1.0, 1.0, torch.nan], [1.0, 0.0, 9.0, 9.0]]])
    mask = torch.tensor([[[True] * 4, [True, True, False, False]]])
    first, second = label_views(ranks, mask)[0]
    # three are ranked: the best has place 1; the two tied share places 0 and -1
    assert first.tolist() == [[1, 1, 1, 0], [-0.5, 0.25, 0, 0], [-0.5, 0.25, 0, 0], [0, 0, 0, 1]]
    assert second.tolist() == [[-1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    alone = label_views(torch.zeros(1, 1, 1), None)
    assert alone[0, 0, 0].tolist() == [1, 1, 1, 0]


def test_of_subsets_all_chosen_and_none_chosen_are_opposites():
    every, none, some = label_views(torch.tensor([[[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]]), None, subset=True)[
        0
    ]
    assert every.tolist() == [[1, 1, 1, 0]] * 2
    assert none.tolist() == [[-1, 1, 0, 0]] * 2
    assert some.tolist() == [[-1, 1, 0, 0], [1, 1, 1, 0]]
