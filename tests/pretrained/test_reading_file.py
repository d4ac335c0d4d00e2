"""What a file keeps of a reading: it comes back to the bit, and what it can't be is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from entourage.data import Sets
from entourage.errors import UserError
from entourage.nets.prior_fitted import PriorFittedNet
from entourage.pretrained import Reading, reading_file
from entourage.tasks import Choice, Ranking, SubsetChoice

pytestmark = pytest.mark.usefixtures("small_pretrained")

RNG = np.random.default_rng(0)
OFFSETS = np.array([0, 3, 5, 9, 11, 14])
SETS = Sets(  # of several sizes, the first object of each the best
    RNG.normal(size=(14, 3)),
    OFFSETS,
    np.where(np.isin(np.arange(14), OFFSETS), 0.0, 1.0),
    RNG.normal(size=(5, 2)),
)
CASES = {
    "choice": (Choice(), None),
    "outside": (Choice(outside=True), None),
    "ranking": (Ranking(), None),
    "weighted": (Ranking(), np.arange(1.0, 6.0)),
    "subset": (SubsetChoice(), None),
}


@pytest.fixture(scope="module")
def reading():
    return Reading.read(SETS, Choice(), device="cpu")


@pytest.mark.parametrize("case", CASES)
def test_a_reading_comes_back_to_the_bit(case):
    task, weights = CASES[case]
    reading = Reading.read(SETS, task, weights=weights, device="cpu")
    again = Reading.from_file(*reading.describe())
    assert np.array_equal(again.scores(SETS, "cpu"), reading.scores(SETS, "cpu"))
    assert again.verdict() == reading.verdict()
    assert (again.n_features, again.n_sets) == ((3, 2), 5)


def test_a_net_of_its_own_and_several_pages_come_back(reading):
    own = PriorFittedNet(**reading_file.pretrained_net().settings).eval()
    tuned = replace(reading, net=own, pages=reading.pages * 2)
    again = Reading.from_file(*tuned.describe())
    assert np.array_equal(again.scores(SETS, "cpu"), tuned.scores(SETS, "cpu"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("kind", "scores"),
        ("n_features", [4, 2]),
        ("n_features", [10**9, 2]),
        ("pages", 2),
        ("pages", 10**9),
        ("weighted", True),
        ("fine_tuned", True),
        ("n_sets", 0),
    ],
)
def test_contents_that_no_reading_has_are_refused(reading, place, value):
    content, tensors = reading.describe()
    with pytest.raises(UserError):
        Reading.from_file(content | {place: value}, tensors)


def test_numbers_that_no_reading_has_are_refused(reading):
    content, tensors = reading.describe()
    longest = max(tensors, key=lambda name: tensors[name].numel())
    cut = tensors[longest].narrow(1, 0, 1).contiguous()
    order, sign = (f"page0.knowledge.{name}" for name in ("order", "sign"))
    for wrong in (
        {longest: cut},
        {"more": torch.zeros(1)},
        {longest: tensors[longest] * torch.nan},
        {order: tensors[order] + 1},
        {order: torch.zeros_like(tensors[order])},
        {order: tensors[order].float()},
        {sign: 2 * tensors[sign]},
    ):
        with pytest.raises(UserError):
            Reading.from_file(content, tensors | wrong)
