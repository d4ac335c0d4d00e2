"""Refits to resampled groups: what each may learn from, simulated targets, and intervals that keep their level."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binomtest
from typer.testing import CliRunner

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser, load
from entourage.baselines import RankSVM
from entourage.cli.program import app
from entourage.data import Sets, make_medoid
from entourage.data.encoder import TableEncoder
from entourage.effects import effects_report
from entourage.effects.intervals import Measured, calibrated_intervals
from entourage.effects.menus import repeated_menus
from entourage.effects.refit_nets import Refitter
from entourage.effects.refits import refit_resampled, refits_in, resample_groups, seconds_of_refits
from entourage.effects.report import QUANTITIES
from entourage.effects.simulate import plackett_luce_scale, simulate_targets
from entourage.errors import DataError, ParameterError, UserError
from entourage.tasks import Choice, Ranking, SubsetChoice

TINY = {"steps": 8, "device": "cpu", "random_state": 0}


class Known:
    """A model made of a function of packed sets."""

    def __init__(self, utility, task=Choice):
        self.utility, self.task = utility, task() if isinstance(task, type) else task

    def predict_scores(self, sets):
        return self.utility(sets)


def choices(seed, n=60, sizes=(2, 3, 4), context=0.0, situation=False):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(m, 2)) for m in rng.choice(sizes, n)]
    rows = []
    for x in X:
        utility = x @ [1.0, 0.7] - context * np.square(x - x.mean(0)).sum(1) + rng.gumbel(size=len(x))
        rows.append((np.arange(len(x)) != utility.argmax()).astype(float))
    return Sets.from_list(X, rows, rng.normal(size=(n, 1)) if situation else None)


def small(sets, net=None, **settings):
    return DiscreteChooser(net or FATE(width=8), **(TINY | settings)).fit(sets)


# --- what a member learns from --------------------------------------------------------------------


def test_a_member_never_learns_from_the_groups_that_were_not_drawn_for_it():
    sets = choices(0)
    model = small(sets, validation=0.0)
    counts = resample_groups(np.repeat(np.arange(20), 3), np.random.default_rng(1))
    own = np.asarray(sets.targets)
    other = own.copy()
    left_out = np.repeat(counts == 0, sets.sizes)
    other[left_out] = 1 - other[left_out]  # nonsense, where it must not matter
    scores = []
    for targets in (own, other):
        refit = Refitter(model, sets, 1)
        (one,) = refit(targets[None], counts[None], np.random.default_rng(0))
        scores.append(one.predict_scores(sets))
    np.testing.assert_array_equal(*scores)


def test_a_member_is_judged_by_the_groups_that_were_not_drawn_for_it_and_no_others():
    sets = choices(0, n=80)
    trainer = Refitter(small(sets), sets, 2).trainer
    counts = np.stack([resample_groups(np.arange(80), np.random.default_rng(i)) for i in range(2)])
    run = trainer.run(np.tile(sets.targets, (2, 1)), counts, np.arange(2))
    found = run.held_out_scores(run.scorer)
    for i in range(2):
        held_out = sets[np.flatnonzero(counts[i] == 0)]
        model = trainer.fitted(run.scorer.scorer(i))
        assert found[i] == pytest.approx(model.log_likelihood(held_out), abs=1e-5)


def test_groups_are_drawn_whole_and_as_many_as_there_are():
    labels = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 5, 4, 3, 2, 1])
    for seed in range(20):
        counts = resample_groups(labels, np.random.default_rng(seed))
        per_group = [set(counts[labels == label].tolist()) for label in range(10)]
        assert all(len(one) == 1 for one in per_group)
        assert sum(one.pop() for one in per_group) == 10


def test_the_same_seed_gives_the_same_bits_and_members_differ():
    sets = choices(0)
    model = small(sets)
    first, again = (refit_resampled(model, sets, refits=2, random_state=3) for _ in range(2))
    for mine, others in ((first.people[0], again.people[0]), (first.null, again.null)):
        for one, other in zip(mine, others, strict=True):
            np.testing.assert_array_equal(one.predict_scores(sets), other.predict_scores(sets))
    scores = [first.people[i][j].predict_scores(sets) for i, j in ((0, 0), (0, 1), (1, 0))]
    assert not np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], model.predict_scores(sets))


def test_refitting_leaves_the_model_as_it_was():
    sets = choices(0)
    model = small(sets)
    before = model.predict_scores(sets)
    state = torch.random.get_rng_state()
    refit_resampled(model, sets, refits=2)
    assert torch.equal(state, torch.random.get_rng_state())
    np.testing.assert_array_equal(model.predict_scores(sets), before)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (small(choices(1, situation=True)), choices(1, situation=True)),
        lambda: (small(choices(1, sizes=(3,)), SetAttention(width=8, heads=2)), choices(1, sizes=(3,))),
        lambda: (small(choices(1), FETA(width=8), members=2), choices(1)),
        lambda: (small(choices(1), FETA(width=8, order=2)), choices(1)),
        lambda: (DiscreteChooser(ContextFree(width=8), outside=True, **TINY).fit(choices(1)), choices(1)),
        lambda: (SubsetChooser(FATE(width=8), **TINY).fit(choices(1)), choices(1)),
    ],
)
def test_any_net_task_and_shape_can_be_refitted(make):
    model, sets = make()
    found = refit_resampled(model, sets, groups=np.arange(60) // 3, refits=2)
    assert (len(found.people), len(found.null), len(found.known), found.groups) == (2, 2, 3, 20)
    for one in [*found.people[1], *found.null, *found.truths, *found.known[2]]:
        assert np.isfinite(one.predict_scores(sets)).all()


def test_rankings_and_models_without_a_net_can_be_refitted():
    X, ranks = make_medoid(n_sets=60, random_state=0)
    sets = Sets.of(X, ranks)
    for model in (Ranker(FATE(width=8), subset_size=3, **TINY), RankSVM()):
        found = refit_resampled(model.fit(sets), sets, refits=2)
        report = effects_report(model, sets, refits=found, draws=0)
        assert np.isfinite(report.iia_violation.interval).all()


# --- simulated targets ----------------------------------------------------------------------------


def test_simulated_choices_have_the_probabilities_of_the_model():
    sets = Sets.from_array(np.tile([[[0.0], [1.0], [2.0]]], (4000, 1, 1)), np.tile([0, 1, 1], (4000, 1)))
    own = Known(lambda given: given.objects[:, 0])
    drawn = simulate_targets(own, sets, np.random.default_rng(0)).reshape(-1, 3)
    assert (np.sort(drawn, axis=1) == [0, 1, 1]).all()
    expected = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    np.testing.assert_allclose((drawn == 0).mean(0), expected, atol=0.03)
    outside = Known(lambda given: given.objects[:, 0], Choice(outside=True))
    drawn = simulate_targets(outside, sets, np.random.default_rng(0)).reshape(-1, 3)
    assert (drawn == 0).any(1).mean() == pytest.approx(1 - 1 / (1 + np.exp([0.0, 1.0, 2.0]).sum()), abs=0.03)
    some = Known(lambda given: given.objects[:, 0], SubsetChoice)
    drawn = simulate_targets(some, sets, np.random.default_rng(0)).reshape(-1, 3)
    np.testing.assert_allclose((drawn == 0).mean(0), 1 / (1 + np.exp([0.0, -1.0, -2.0])), atol=0.03)


def test_simulated_rankings_keep_ties_and_unranked_objects_and_the_noise_of_the_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4, 1))
    ranks = np.argsort(np.argsort(-(2.0 * x[:, :, 0] + rng.gumbel(size=(3000, 4))), axis=1), axis=1).astype(
        float
    )
    sets = Sets.from_array(x, ranks)
    assert plackett_luce_scale(sets, 40.0 * sets.objects[:, 0]) == pytest.approx(2 / 40, rel=0.06)
    ranks[:, 0], ranks[::2, 1] = np.nan, ranks[::2, 2]
    sets = Sets.from_array(x, ranks)
    drawn = simulate_targets(Known(lambda given: given.objects[:, 0], Ranking), sets, rng).reshape(-1, 4)
    np.testing.assert_array_equal(np.sort(drawn, axis=1), np.sort(ranks, axis=1))
    assert np.isnan(drawn[:, 0]).all()


# --- intervals ------------------------------------------------------------------------------------


def test_an_interval_undoes_what_fitting_shrinks():
    # Truths of 1, 2 and 4 come back as halves beside a reference of 0.1, and people show 0.6: an effect of 1.
    wiggle = np.array([-0.01, 0.0, 0.01])
    known = 0.1 + np.array([[0.5], [1.0], [2.0]]) + wiggle
    one = Measured(0.6 + wiggle, 0.1 + wiggle, np.array([1.0, 2.0, 4.0]), known)
    found = calibrated_intervals({"one": one}, least=0.0)["one"]
    assert found.estimate == pytest.approx(1.0, rel=0.1)
    assert (found.reference, found.refits) == pytest.approx((0.1, 0.6))
    low, high = found.interval
    # t with 2 degrees of freedom is 4.303; the spread is that of a draw and of the mean of the references
    half = 4.303 * 0.01 * np.sqrt(1 + 1 / 3)
    assert low == pytest.approx((0.5 - half) / 0.5, rel=0.1)
    assert high == pytest.approx((0.5 + half) / 0.5**2, rel=0.15)  # as if it had shrunk twice
    less = Measured(-one.people, -one.null, -one.truths, -known)
    assert calibrated_intervals({"one": less})["one"].interval == pytest.approx((-high, -low))


def test_what_cannot_be_negative_has_no_interval_below_zero():
    one = Measured(np.array([0.1, 0.2]), np.array([0.2, 0.3]), np.ones(3), np.tile([1.2, 1.3], (3, 1)))
    found = calibrated_intervals({"one": one}, least=0.0)["one"]
    assert found.estimate == found.interval[0] == 0


def test_without_context_intervals_hold_zero():
    # Two small data sets without context, seven quantities each; of 95 % intervals hardly any may leave 0 out.
    excluded, widths = [], []
    for seed in range(2):
        sets = choices(seed, n=80)
        model = small(sets, steps=25, learning_rate=0.01)
        refits = refit_resampled(model, sets, refits=4, random_state=seed)
        better = {"x0": "more", "x1": "more"}
        report = effects_report(model, sets, refits=refits, draws=0, better=better, most_triples=100)
        for name in QUANTITIES:
            excluded.append(getattr(report, name).interval[0] > 0)
            assert getattr(report, name).value > 0  # which by itself looks like context
        for name in ("attraction", "compromise", "similarity"):
            low, high = report.natural_effects.quantity(name).interval
            excluded.append(low > 0 or high < 0)
            widths.append(high - low)
    assert binomtest(sum(excluded), len(excluded), 0.07, alternative="greater").pvalue > 0.01
    assert np.isfinite(widths).all()


def test_the_number_of_refits_fits_into_the_time():
    sets = choices(0)
    seconds = seconds_of_refits(small(sets), sets)
    assert 0 < seconds(8) < seconds(16)
    assert refits_in(1e9, seconds) == 16
    assert refits_in(0, seconds) == 0


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"refits": 1}, ParameterError, "refits"),
        ({"groups": np.zeros(60)}, DataError, "at least two groups"),
        ({"groups": np.zeros(3)}, DataError, "one label a set"),
    ],
)
def test_what_cannot_be_resampled_is_an_error(wrong, error, words):
    sets = choices(0)
    with pytest.raises(error, match=words):
        refit_resampled(small(sets), sets, **wrong)


def test_more_objects_than_single_precision_tells_apart_are_refused(monkeypatch):
    sets = choices(0)
    model = small(sets)
    monkeypatch.setattr("entourage.effects.refits.MOST_OBJECTS", 50)
    with pytest.raises(ParameterError, match="at most 50 objects"):
        refit_resampled(model, sets, refits=2)


# --- choice sets that repeat ----------------------------------------------------------------------


def menus_of(model=None, **options):
    a, b, c = [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]
    X = [[a, b, c]] * 6 + [[c, b, a]] * 4 + [[a, b]] * 9 + [[c, c, a]] * 12
    won = [0] * 5 + [2] + [2] * 3 + [1] + [0] * 9 + [0, 1, 2] * 4
    rows = [(np.arange(len(x)) != w).astype(float) for x, w in zip(X, won, strict=True)]
    own = model or Known(lambda sets: np.log(1.0 + sets.objects[:, 1]))
    return repeated_menus(own, Sets.from_list([np.array(x) for x in X], rows), **options)


def test_raw_shares_count_the_same_alternatives_in_any_order():
    copies, plain = menus_of()
    assert (copies.n, plain.n) == (12, 10)
    # a was chosen 5 times in one order and 3 times in the other, b once, c once; utilities have powers of 2, 1, 3
    assert [share.share for share in plain.shares] == [0.8, 0.1, 0.1]
    assert sorted(round(share.model, 6) for share in plain.shares) == pytest.approx(
        [1 / 6, 2 / 6, 3 / 6], abs=1e-6
    )
    assert plain.shares[0].model == pytest.approx(2 / 6)
    # two copies of c were chosen in 8 of 12; Wilson: (p + z²/2n ± z sqrt(p q / n + z²/4n²)) / (1 + z²/n)
    first = copies.shares[0]
    assert (first.copies, first.share, first.model) == (2, pytest.approx(8 / 12), pytest.approx(6 / 8))
    p, n, z = 8 / 12, 12, 1.959964
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert first.interval == pytest.approx(
        ((middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n))
    )
    assert len(menus_of(least=9)) == 3
    assert len(menus_of(most=1)) == 1
    assert menus_of(least=13) == []


def test_rankings_have_shares_of_first_places_and_nothing_has_its_own():
    X = np.tile([[[0.0], [1.0]]], (12, 1, 1))
    ranks = np.repeat(
        [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]], [8, 3, 1], axis=0
    )  # the last is a tie, and not counted
    (menu,) = repeated_menus(Known(lambda sets: -sets.objects[:, 0], Ranking), Sets.from_array(X, ranks))
    assert (menu.n, menu.shares[0].share) == (11, 8 / 11)
    extra = np.concatenate([X, np.full((12, 1, 1), 5.0)], axis=1)
    marked, unmarked = (  # an unranked third object, by -1 or by NaN
        repeated_menus(
            Known(lambda sets: -sets.objects[:, 0], Ranking),
            Sets.from_array(extra, np.column_stack([ranks, np.full(12, value)])),
        )
        for value in (-1.0, np.nan)
    )
    assert marked == unmarked
    targets = np.repeat([[0.0, 1.0], [1.0, 1.0]], [9, 3], axis=0)
    outside = Known(lambda sets: np.zeros(len(sets.objects)), Choice(outside=True))
    (menu,) = repeated_menus(outside, Sets.from_array(X, targets))
    assert [(share.place is None, share.share) for share in menu.shares] == [
        (False, 0.75),
        (False, 0),
        (True, 0.25),
    ]
    assert [share.model for share in menu.shares] == pytest.approx([1 / 3] * 3)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """A table of choices by 20 people, from sets that repeat, and a small net fitted to it."""
    folder = tmp_path_factory.mktemp("trips")
    rng = np.random.default_rng(0)
    menus = [rng.normal(size=(m, 2)).round(1) for m in (3, 3, 4, 2)]
    rows = []
    for i in range(120):
        x = menus[i % 4][rng.permutation(len(menus[i % 4]))]
        chosen = (x.sum(1) + rng.gumbel(size=len(x))).argmax()
        rows += [
            {"trip": i, "who": f"p{i % 20}", "speed": a, "cheap": b, "chosen": int(j == chosen)}
            for j, (a, b) in enumerate(x)
        ]
    frame = pd.DataFrame(rows)
    frame.to_csv(folder / "trips.csv", index=False)
    frame.drop(columns="chosen").to_csv(folder / "new.csv", index=False)
    encoder = TableEncoder.fit(frame, set_id="trip", target="chosen", target_kind="choice", ignore=["who"])
    model = DiscreteChooser(FATE(width=8), **TINY)
    model.fit(encoder(frame).sets)
    model.save(folder / "trips.entourage")
    return folder


def run_command(folder, table, *options):
    files = [folder / "trips.entourage", folder / table, "--report", folder / "page.html"]
    result = CliRunner().invoke(
        app, ["effects", *map(str, files), "--draws", "0", "--device", "cpu", *map(str, options)]
    )
    assert result.exception is None, result.exception
    return result


def test_the_command_resamples_people_and_says_so(trips, monkeypatch):
    result = run_command(trips, "trips.csv", "--group", "who", "--refits", 2, "--json")
    found = json.loads(result.stdout)
    assert "2 refits, for confidence intervals: about" in result.stderr
    assert (found["groups"], found["no_intervals"]) == (20, None)
    entry = found["iia_violation"]
    assert entry["interval"][0] <= entry["estimate"] <= entry["interval"][1]
    assert entry["reference"] > 0
    assert found["natural_effects"]["extrapolated"] is False
    assert [menu["n"] for menu in found["menus"]] == [30] * 4
    monkeypatch.setattr("entourage.effects.refits.REFITS", 2)
    monkeypatch.setattr("entourage.effects.refits.LEAST_REFITS", 2)
    told = run_command(trips, "trips.csv", "--group", "who").stdout  # as many by default now
    assert "refits to 20 resampled groups" in told
    assert f"95 % CI [{entry['interval'][0]:.4f}, {entry['interval'][1]:.4f}]" in told
    assert told.count("offered 30 times: row ") == 2
    monkeypatch.setattr("entourage.cli.effects._PATIENCE", 0.0)
    late = json.loads(run_command(trips, "trips.csv", "--json").stdout)
    assert late["no_intervals"].endswith("no confidence intervals. Ask for them by --refits 2.")
    page = (trips / "page.html").read_text()
    assert "Repeated choice sets" in page
    assert "context-ablated control" in page


def test_a_table_without_its_target_has_no_intervals(trips):
    told = run_command(trips, "new.csv").stdout
    assert "TABLE has no column 'chosen': no refits, so no confidence intervals." in told
    found = json.loads(run_command(trips, "new.csv", "--json").stdout)
    assert found["iia_violation"]["interval"] is found["context_test"] is None
    assert found["menus"] == []


def test_a_table_in_python_gives_what_the_command_prints(trips):
    options = ["--group", "who", "--refits", 2, "--help-row", 3, "--against", 5, "--less-is-better", "speed"]
    told = json.loads(run_command(trips, "trips.csv", *options, "--json").stdout)
    model, frame = load(trips / "trips.entourage").set_params(device="cpu"), pd.read_csv(trips / "trips.csv")
    better = {"speed": "less"}
    found = effects_report(model, frame, groups="who", refits=2, pair=(3, 5), better=better, draws=0)
    assert json.loads(json.dumps(found.to_json())) == told
    assert found.pair.map.names == ("speed", "cheap")
    assert sorted(found.rows.tolist()) == list(range(len(frame)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"groups": "who"}, "no table"),
        ({"rows": [1, 2]}, "rows needs one for each of"),
        ({"map_names": ("x0", "x1")}, "A map is of a pair"),
        ({"pair": (1, 1)}, "two different rows"),
        ({"pair": (1, 10**6)}, "got 1,000,000"),
        ({"pair": (0, 1), "map_names": ("x0", "speed")}, "got 'speed'. Choose from 'x0', 'x1'"),
        ({"better": {"speed": "less"}}, "'speed' is none of them"),
    ],
)
def test_a_report_says_what_is_wrong_before_it_refits(wrong, words, monkeypatch):
    monkeypatch.setattr("entourage.effects.report.refit_resampled", lambda *_, **__: pytest.fail("refitted"))
    model = Known(lambda sets: sets.objects[:, 0])
    with pytest.raises(UserError, match=words):
        effects_report(model, choices(0), refits=2, draws=0, **wrong)
