"""What each task makes of targets and scores, by hand; and the errors that users meet."""

from functools import partial
from math import exp, log

import numpy as np
import pytest

from entourage.data.sets import Sets
from entourage.errors import DataError, ParameterError, ShapeError
from entourage.losses import CHOICE_LOSSES, LOSSES, SUBSET_LOSSES, choice_loss, listnet_loss
from entourage.metrics import METRICS
from entourage.tasks.choice import Choice
from entourage.tasks.kinds import TASKS, task_of
from entourage.tasks.ranking import Ranking
from entourage.tasks.subset import SubsetChoice

SIZES = (2, 3)
RAGGED = [np.zeros((m, 1)) for m in SIZES]
EVERY = {"rank": Ranking(), "choice": Choice(), "outside": Choice(outside=True), "subset": SubsetChoice()}
every_task = pytest.mark.parametrize("task", EVERY.values(), ids=EVERY)


def sets_with(targets) -> Sets:
    """Two sets, of two and of three objects, with these packed targets."""
    return Sets.from_list(RAGGED).with_targets(np.asarray(targets, dtype=float))


# --- what all tasks share -------------------------------------------------------------------------


@every_task
def test_main_and_searched_metrics_are_among_the_metrics_of_a_task(task):
    assert task.metrics[task.main] is task.metric
    assert task.searched_by in task.metrics
    assert set(EVERY["rank"].metrics) <= set(task.metrics), "a choice can be evaluated as a ranking, too"


@every_task
def test_sets_without_targets_are_made_for_predictions_and_refused_for_training(task):
    situation = np.array([[1.0], [2.0]])
    sets = task.sets_of(RAGGED, None, situation)
    assert sets.targets is None
    assert sets.situation.tolist() == situation.tolist()
    with pytest.raises(DataError, match=r"are needed: pass y, or Sets with targets"):
        task.check(sets)


def test_each_kind_of_target_has_its_task():
    assert {kind: type(task) for kind, task in TASKS.items()} == {
        "rank": Ranking,
        "relevance": Ranking,
        "choice": Choice,
        "subset": SubsetChoice,
    }
    for kind, task in TASKS.items():
        assert task_of(kind) is task
        assert not task.outside
    assert task_of("choice", outside=True).outside
    with pytest.raises(ParameterError, match="kind='chioce' is not known; did you mean 'choice'"):
        task_of("chioce")
    with pytest.raises(ParameterError, match="goes with kind=\"choice\"; got 'subset'"):
        task_of("subset", outside=True)


def test_a_task_finds_its_own_losses_and_no_others():
    assert Ranking().find_loss("listnet") is LOSSES["listnet"]
    assert Choice().find_loss("nll") is CHOICE_LOSSES["nll"]
    assert SubsetChoice().find_loss("binary") is SUBSET_LOSSES["binary"]
    for task in (Ranking(), Choice(), SubsetChoice()):
        own = partial(listnet_loss, k=1)
        assert task.find_loss(own) is own
    with pytest.raises(ParameterError, match="loss='hinge' is not known"):
        Choice().find_loss("hinge")
    with pytest.raises(ParameterError, match="loss='nll' is not known"):
        SubsetChoice().find_loss("nll")
    with pytest.raises(ParameterError, match="Give it again"):
        Ranking().find_loss(None)


def test_with_an_outside_option_the_likelihood_knows_it_and_other_losses_stay():
    outside = Choice(outside=True)
    for given in ("nll", choice_loss):
        found = outside.find_loss(given)
        assert (found.func, found.keywords) == (choice_loss, {"outside": True})
    own = partial(listnet_loss, k=1)
    assert outside.find_loss(own) is own
    assert Choice().find_loss(choice_loss) is choice_loss


# --- rankings -------------------------------------------------------------------------------------


def test_unranked_objects_become_nan_and_the_worst_grade_stays():
    sets = sets_with([0, 1, -1, np.nan, 2.5]).with_targets(np.array([0, 1, -1, np.nan, 2.5]), worst=4.0)
    checked = Ranking().check(sets)
    np.testing.assert_array_equal(checked.targets, [0, 1, np.nan, np.nan, 2.5])
    assert checked.worst == 4.0


@pytest.mark.parametrize("strange", [-0.5, -2.0, np.inf])
def test_what_is_no_rank_is_named_by_set_and_object(strange):
    with pytest.raises(DataError, match=f"set 1, object 0 has {strange:g}. For relevance grades"):
        Ranking().check(sets_with([0, 1, strange, 0, strange]))
    with pytest.raises(DataError, match=f"set 0, object 1 has {strange:g}"):
        Ranking().check(sets_with([0, strange, 0, 1, 2]))


def test_informative_rankings_rank_two_objects_differently():
    nan = np.nan
    sets = Sets.from_list(
        [np.zeros((3, 1))] * 5,
        [[0, 1, 2], [1, 1, 1], [nan, 1, nan], [nan, nan, nan], [nan, 1, 0]],
    )
    assert Ranking().informative(sets).tolist() == [True, False, False, False, True]


def test_ranks_that_single_precision_merges_become_places():
    ranks = np.array([2**24, 2**24 + 1, 2**24 + 1, 0.0, np.nan])  # float32 has no 2^24 + 1
    trained = Ranking().in_single_precision(sets_with(ranks))
    np.testing.assert_array_equal(trained.targets, [0, 1, 1, 0, np.nan])
    huge = Ranking().in_single_precision(sets_with([1e300, 2e300, 1e-300, 0.0, 5.0]))
    assert huge.targets.tolist() == [0, 1, 1, 0, 2]


def test_ranks_that_single_precision_holds_stay_as_they_are():
    sets = sets_with([2**24, 0.5, np.nan, 0.0, 3.0])
    assert Ranking().in_single_precision(sets) is sets


def test_ranks_are_decided_by_falling_score():
    assert Ranking().decide(np.array([[0.1, 0.9, 0.1]])).tolist() == [[1, 0, 1]]


# --- choices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [False, True])
def test_an_outside_option_is_in_all_that_a_choice_is_judged_by(outside):
    task = Choice(outside=outside)
    assert task.only_differences is not outside, "a constant added to all scores changes what is chosen"
    assert task.informative_words == ("sets" if outside else "sets of at least two objects")
    assert task.metrics == {"accuracy": task.metric, "log_likelihood": task.criterion} | METRICS
    for metric, value in [(task.metric, 1.0), (task.criterion, log(1 / (1 + exp(-1))))]:
        assert metric([[-1.0]], [[1]]) == pytest.approx(value if outside else np.nan, nan_ok=True)


@every_task
def test_targets_of_training_sets_stay_where_they_are_exact(task):
    sets = sets_with([0, 1, 0, 1, 1])
    assert task.in_single_precision(sets) is sets


@pytest.mark.parametrize("y", [[1, 0], np.array([1, 0]), [[0, 1], [1, 0, 0]], (np.int64(1), 0.0)])
def test_a_choice_is_a_place_or_a_row_of_indicators(y):
    sets = Choice().sets_of(RAGGED, y)
    assert sets.targets.tolist() == [1, 0, 0, 1, 1]
    assert sets.worst == 1.0


def test_rows_of_indicators_may_come_as_one_array():
    y = np.array([[1, 0, 0], [0, 0, 1]])
    assert Choice().sets_of(np.zeros((2, 3, 1)), y).targets.tolist() == [0, 1, 1, 1, 1, 0]
    ragged = np.array([np.array([0, 1]), np.array([1, 0, 0])], dtype=object)
    assert Choice().sets_of(RAGGED, ragged).targets.tolist() == [1, 0, 0, 1, 1]


def test_the_place_of_a_choice_counts_within_its_set():
    assert Choice().sets_of(RAGGED, [0, 2]).targets.tolist() == [0, 1, 1, 1, 0]
    assert Choice().sets_of(RAGGED, [-1, 1]).targets.tolist() == [1, 1, 1, 0, 1], "-1 chooses nothing"
    situation = np.array([[1.0], [2.0]])
    for y in ([0, 0], [[1, 0], [1, 0, 0]]):
        assert Choice().sets_of(RAGGED, y, situation).situation.tolist() == situation.tolist()


@pytest.mark.parametrize(
    ("y", "says"),
    [
        ([0, 3], "set 1 has 3 objects, and its y is 3"),
        ([-1, 3], "set 1 has 3 objects, and its y is 3"),
        ([2, 0], "set 0 has 2 objects, and its y is 2"),
        ([0, -2], "set 1 has 3 objects, and its y is -2"),
        ([0, 0.5], r"set 1 has 3 objects, and its y is 0\.5"),
        ([0, np.nan], "set 1 has 3 objects, and its y is nan"),
        (np.array(["a", "b"]), "a whole number; got <U1. Give its position"),
    ],
)
def test_a_choice_outside_its_set_is_named(y, says):
    with pytest.raises(DataError, match=says):
        Choice().sets_of(RAGGED, y)


def test_a_place_is_needed_for_each_set():
    with pytest.raises(ShapeError, match=r"one place for each of 2 sets, or rows of 0 and 1; got \(3,\)"):
        Choice().sets_of(RAGGED, np.array([0, 1, 1]))


@pytest.mark.parametrize("task", [Choice(), SubsetChoice()], ids=["choice", "subset"])
def test_indicators_are_0_or_1(task):
    with pytest.raises(DataError, match="set 1 has 2."):
        task.sets_of(RAGGED, [[0, 1], [2, 0, 0]])
    for strange, name in [(2.0, "2"), (0.5, "0.5"), (np.nan, "nan")]:
        with pytest.raises(DataError, match=f"set 1 has {name}. Rankings are for Ranker"):
            task.check(sets_with([0, 1, strange, 0, 1]))
        with pytest.raises(DataError, match=f"set 0 has {name}"):
            task.check(sets_with([0, strange, 0, 1, 1]))
    with pytest.raises(DataError, match="The targets of a choice"):
        task.check(sets_with([0, 2, 0, 1, 1]))


def test_each_set_needs_one_choice_and_with_an_outside_option_at_most_one():
    one, none, two = sets_with([1, 0, 0, 1, 1]), sets_with([1, 0, 1, 1, 1]), sets_with([1, 0, 0, 0, 1])
    assert Choice().check(one) is one
    for sets in (one, none):
        assert Choice(outside=True).check(sets) is sets
    nothing = (
        r"Where nothing may be chosen, outside=True \(of DiscreteChooser and compare\), "
        r"or --outside on the command line\.$"
    )
    with pytest.raises(
        DataError, match=r"set 1, counted from 0, has 0\. .* --target-kind subset\. " + nothing
    ):
        Choice().check(none)
    for task in (Choice(), Choice(outside=True)):
        with pytest.raises(
            DataError, match=r"set 1, counted from 0, has 2\. For several, use SubsetChooser.*subset\.$"
        ):
            task.check(two)


def test_a_choice_is_informative_where_there_was_an_alternative():
    sets = Sets.from_list([np.zeros((m, 1)) for m in (1, 2, 1)], [[0], [0, 1], [1]])
    assert Choice().informative(sets).tolist() == [False, True, False]
    assert Choice(outside=True).informative(sets).tolist() == [True, True, True]


def test_the_outside_option_has_a_place_among_the_ranks():
    scores = np.array([[0.5, -1.0, 0.0], [2.0, 1.0, 3.0]])
    assert Choice().decide(scores).tolist() == [[0, 2, 1], [1, 2, 0]]
    assert Choice(outside=True).decide(scores).tolist() == [[0, 3, 2], [1, 2, 0]]


def test_the_best_place_of_each_set_is_predicted():
    sets, scores = sets_with([0, 1, 0, 1, 1]), np.array([-2.0, -1.0, 0.5, 0.7, 0.6])
    assert Choice().places(sets, scores).tolist() == [1, 1]
    assert Choice(outside=True).places(sets, scores).tolist() == [-1, 1]
    assert Choice(outside=True).places(sets, 0 * scores).tolist() == [-1, -1], "0 is not better than 0"
    equal = Sets.from_array(np.zeros((3, 2, 1)))
    packed = np.array([0.0, 1.0, -1.0, -2.0, 5.0, 4.0])
    assert Choice().places(equal, packed).tolist() == [1, 0, 0]
    assert Choice(outside=True).places(equal, packed).tolist() == [1, -1, 0]
    assert Choice().places(equal, packed).dtype == np.int64


def test_probabilities_are_a_softmax_in_each_set():
    sets, scores = sets_with([0, 1, 0, 1, 1]), np.array([0.0, 1.0, 2.0, 0.0, -1.0])
    first, second = 1 + exp(1), exp(2) + 1 + exp(-1)
    plain = [1 / first, exp(1) / first, exp(2) / second, 1 / second, exp(-1) / second]
    assert Choice().probabilities(sets, scores) == pytest.approx(plain)
    assert Choice().probability_of_nothing(sets, scores).tolist() == [0.0, 0.0]
    outside, first, second = Choice(outside=True), first + 1, second + 1  # e^0 more
    found = outside.probabilities(sets, scores)
    assert found == pytest.approx([1 / first, exp(1) / first, exp(2) / second, 1 / second, exp(-1) / second])
    assert outside.probability_of_nothing(sets, scores) == pytest.approx([1 / first, 1 / second])


@pytest.mark.parametrize("offset", [-1e4, 1e4])
def test_probabilities_stay_finite_far_from_zero(offset):
    sets, scores = sets_with([0, 1, 0, 1, 1]), offset + np.array([0.0, 0.0, 0.0, 0.0, -1e4])
    assert Choice().probabilities(sets, scores).tolist() == [0.5, 0.5, 0.5, 0.5, 0.0]
    nothing = Choice(outside=True).probability_of_nothing(sets, scores)
    assert nothing.tolist() == ([0.0, 0.0] if offset > 0 else [1.0, 1.0])
    single = Choice(outside=True).probabilities(sets, scores.astype(np.float32))
    assert single.dtype == np.float64
    assert np.isfinite(single).all()


# --- subsets --------------------------------------------------------------------------------------


def test_subsets_are_rows_of_indicators():
    sets = SubsetChoice().sets_of(RAGGED, [[1, 1], [0, 0, 1]])
    assert sets.targets.tolist() == [0, 0, 1, 1, 0]
    assert sets.worst == 1.0
    assert SubsetChoice().check(sets) is sets
    assert SubsetChoice().informative(sets).tolist() == [True, True]
    assert SubsetChoice().informative(sets).dtype == bool
    situation = np.array([[1.0], [2.0]])
    assert SubsetChoice().sets_of(RAGGED, [[1, 1], [0, 0, 1]], situation).situation is not None


def test_objects_above_the_threshold_are_chosen():
    scores = np.array([[0.5, 0.0, -0.5]])
    assert SubsetChoice().decide(scores).tolist() == [[1, 0, 0]]
    assert SubsetChoice().decide(scores).dtype == np.int64
    assert SubsetChoice(threshold=-0.5).decide(scores).tolist() == [[1, 1, 0]]
    task = SubsetChoice(threshold=0.7)  # nothing is above it
    for name in ("f1", "subset_accuracy", "hamming_accuracy", "informedness"):
        assert task.metrics[name](scores, [[0, 1, 1]]) == pytest.approx(
            {"f1": 0.0, "subset_accuracy": 0.0, "hamming_accuracy": 2 / 3, "informedness": 0.0}[name]
        )
        assert SubsetChoice().metrics[name](scores, [[0, 1, 1]]) == 1.0


def test_the_probability_of_an_object_is_a_sigmoid_of_its_score():
    sets, scores = sets_with([0, 1, 0, 1, 1]), np.array([0.0, 1.0, -2.0, 1e4, -1e4], dtype=np.float32)
    expected = [0.5, 1 / (1 + exp(-1)), 1 / (1 + exp(2)), 1.0, 0.0]
    assert SubsetChoice().probabilities(sets, scores) == pytest.approx(expected)


def test_the_best_threshold_parts_chosen_objects_from_others():
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 2, size=(30, 4))
    ranks[:, 0] = 0
    scores = 3.0 - ranks  # chosen 3, others 2: any threshold from 2 to below 3 is right
    sets = Sets.from_array(np.zeros((30, 4, 1)), ranks.astype(float))
    assert 2.0 <= SubsetChoice().best_threshold(sets, scores.ravel()) < 3.0
    # where 0 is as good as any other, it is kept
    assert SubsetChoice().best_threshold(sets, scores.ravel() - 2.5) == 0.0


def test_thresholds_are_tried_at_each_half_percent_of_the_scores():
    scores = np.arange(201.0)  # half a percent is 1
    sets = Sets.from_array(np.zeros((1, 201, 1)), (scores <= 100.0).astype(float)[None])
    assert SubsetChoice().best_threshold(sets, scores) == pytest.approx(100.0)


def test_sets_of_weight_0_have_no_say_in_the_threshold():
    ranks = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    scores = np.array([[3.0, 1.0], [3.0, 1.0], [9.0, 7.0]])
    sets = Sets.from_array(np.zeros((3, 2, 1)), ranks)
    assert 1.0 <= SubsetChoice().best_threshold(sets, scores.ravel(), np.array([1.0, 1.0, 0.0])) < 3.0
    # the third set alone: its chosen object is the lower one, so any threshold below it has 2/3, 0 first of all
    assert SubsetChoice().best_threshold(sets, scores.ravel(), np.array([0.0, 0.0, 1.0])) == 0.0
