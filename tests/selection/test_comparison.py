"""Does context matter? Statistics by hand, folds that keep to themselves, two known answers."""

import dataclasses
import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from entourage import FATE, FETA, ContextFree, Ranker
from entourage.baselines import RandomRanker, RankSVM
from entourage.choice import MultinomialLogit
from entourage.cli.program import app
from entourage.data import Sets, make_hypervolume, make_medoid
from entourage.data.resampling import bootstrap_interval, fold_indices, sign_flip_p_value, widening_of
from entourage.errors import DataError, ParameterError, TrainingError
from entourage.nets.context_ablated import Alone
from entourage.selection import comparison
from entourage.selection.candidates import KINDS, LinearLogit, default_candidates, missing_by_default
from entourage.selection.comparison import compare, refit_chosen
from entourage.selection.verdict import verdict, warnings_of

X, RANKS = make_hypervolume(n_sets=60, random_state=0)
SETS = Sets.of(X, RANKS)
FOUR = np.arange(60) % 4  # groups
PAIR = {"linear": (RankSVM(), "context-free"), "chance": (RandomRanker(), "context")}


def small(net):
    return Ranker(
        net, steps=120, batch_size=64, learning_rate=0.01, validation=0.0, device="cpu", random_state=0
    )


# --- the twin -------------------------------------------------------------------------------------


NETS = [
    FATE(8),
    FATE(8, include_self=False),
    FATE(8, rounds=2),
    FETA(8),
    FETA(8, squash=True),
    FETA(8, order=2),
]


@pytest.mark.parametrize("net", NETS, ids=repr)
def test_a_control_has_the_same_weights_but_sees_no_context(net):
    objects = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    seeing, blind = (n.build(2, torch.Generator().manual_seed(1)) for n in (net, Alone(net)))
    weights = [w.shape for w in seeing.parameters()]
    assert weights == [w.shape for w in blind.parameters()]
    assert torch.allclose(blind(objects)[:, :2], blind(objects[:, :2]), atol=1e-6)
    assert torch.allclose(blind(objects)[1:2], blind(objects[1:2]), atol=1e-6)
    assert not torch.allclose(seeing(objects)[:, :2], seeing(objects[:, :2]), atol=1e-3)
    blind(objects).square().sum().backward()
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in blind.parameters()), "all in use"


@pytest.mark.parametrize("net", [FATE(8, include_self=False), FETA(8), FETA(8, squash=True)], ids=repr)
def test_a_control_scores_an_object_as_its_net_does_among_the_references(net):
    blind = Alone(net).build(2, torch.Generator().manual_seed(1))
    objects = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0))
    among = torch.cat([objects.view(6, 1, 2), blind.context.expand(6, -1, -1)], dim=1)
    assert torch.allclose(blind(objects).view(6), blind.scorer(among)[:, 0], atol=1e-6)


@pytest.mark.parametrize("net", [FATE(8, norm="batch"), FETA(8, norm="batch"), FATE(8, rounds=2)], ids=repr)
def test_padding_scores_zero_and_changes_no_score_of_a_control(net):
    blind = Alone(net).build(2, torch.Generator().manual_seed(1)).eval()
    objects = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True, True, True, False, False], [False] * 5])
    scores = blind(objects, mask)
    assert torch.allclose(scores[0, :3], blind(objects[:1, :3])[0], atol=1e-6)
    assert (scores[~mask] == 0).all()


# --- the folds ------------------------------------------------------------------------------------


class Watching(RankSVM):
    """Remembers which sets each fit saw."""

    seen: list = []  # noqa: RUF012 - shared by all clones, on purpose

    def fit(self, X, y=None, **kwargs):
        Watching.seen.append({row.tobytes() for row in X.to_list()})
        return super().fit(X, y, **kwargs)


def test_no_set_of_an_outer_fold_reaches_any_fit_that_it_judges():
    Watching.seen = []
    groups = np.arange(60) // 3
    candidates = {"A": (Watching(), "context-free"), "B": (Watching(C=0.1), "context-free")}
    candidates["C"] = (RandomRanker(), "context")
    rows = []
    settings = {"folds": 4, "inner": 3, "groups": groups, "random_state": 5}
    found = compare(SETS, candidates, **settings, on_row=rows.append)
    watched = [row for row in rows if row["candidate"] in "AB"]
    assert len(Watching.seen) == len(watched) == 4 * 2 * (1 + 3)
    assert len(rows) == rows[0]["fits"] == 4 * 3 + 4 * 2 * 3, "the only context model needs no choice"
    for i, (train, test) in enumerate(fold_indices(60, 4, groups=groups, random_state=5)):
        assert not set(groups[train]) & set(groups[test])
        held_out = {X[j].tobytes() for j in test}
        mine = [seen for seen, row in zip(Watching.seen, watched, strict=True) if row["fold"] == i]
        assert not any(held_out & seen for seen in mine)
        best = RankSVM().fit(X[train], RANKS[train])
        of_fold = found.values["A"]["ranking_accuracy"][test]
        assert of_fold.mean() == pytest.approx(best.score(X[test], RANKS[test]), abs=0.01)
    assert [{**row, "fits": len(rows), "seconds": 0} for row in found.rows] == [
        {**row, "seconds": 0} for row in rows
    ]


class Cheating(RankSVM):
    """Right on the sets of outer folds alone: it learns from more sets there than in any inner fit."""

    def fit(self, X, y=None, **kwargs):
        self.whole_ = len(X) >= 45
        return super().fit(X, y, **kwargs)

    def _packed_scores(self, sets):
        truth = super()._packed_scores(sets)
        return truth if self.whole_ else -truth


def test_inner_folds_choose_and_not_the_outer_ones():
    sets = Sets.of(X, np.argsort(np.argsort(X[:, :, 0], axis=1), axis=1))  # the first feature decides
    candidates = {
        "chance": (RandomRanker(), "context-free"),
        "cheating": (Cheating(), "context-free"),
        "linear": (RankSVM(), "context"),
    }
    found = compare(sets, candidates, folds=4, inner=3)  # 45 sets to learn from, 30 in an inner fit
    assert found.means["cheating"]["ranking_accuracy"] > 0.95 > found.means["chance"]["ranking_accuracy"]
    assert [fold["context-free"] for fold in found.chosen] == ["chance"] * 4
    values = found.values
    by_hand = values["linear"]["ranking_accuracy"] - values["chance"]["ranking_accuracy"]
    assert found.differences == pytest.approx(by_hand)
    assert found.gain == pytest.approx(by_hand.mean())
    assert found.p_value == sign_flip_p_value(by_hand)
    low, high = bootstrap_interval(by_hand)
    wide = np.sqrt(1 + 4 / 3)  # of four folds
    ends = found.gain - wide * (found.gain - low), found.gain + wide * (high - found.gain)
    assert found.interval == pytest.approx(ends)


def test_one_inner_split_holds_out_a_fifth():
    candidates = PAIR | {"other": (RankSVM(C=0.1), "context-free")}
    found = compare(SETS, candidates, folds=3, inner=1)
    inner = [row for row in found.rows if row["inner"] is not None]
    assert {(row["learnt_from"], row["judged_by"]) for row in inner} == {(32, 8)}
    assert len(inner) == 3 * 2


def test_every_fit_has_its_own_seed_and_the_same_seed_gives_the_same_comparison():
    seeds = []

    class Seeded(RandomRanker):
        def fit(self, X, y=None, **kwargs):
            seeds.append(self.random_state)
            return super().fit(X, y, **kwargs)

    candidates = {
        "a": (Seeded(), "context"),
        "b": (Seeded(), "context"),
        "linear": (RankSVM(), "context-free"),
    }
    first = compare(SETS, candidates, folds=3, inner=2)
    assert len(set(seeds)) == len(seeds) == 2 * 3 * 3
    again = compare(SETS, candidates, folds=3, inner=2)
    assert again.p_value == first.p_value
    assert np.array_equal(again.differences, first.differences)


def test_workers_come_to_the_same_result():
    one, two = (compare(SETS, PAIR, folds=2, workers=workers) for workers in (1, 2))
    assert np.array_equal(one.differences, two.differences)
    assert [row["means"] for row in one.rows] == [row["means"] for row in two.rows]


# --- the result -----------------------------------------------------------------------------------


def test_sets_without_an_order_take_no_part():
    ranks = RANKS.astype(float)
    ranks[::4] = 0.0  # all tied
    found = compare(Sets.of(X, ranks), PAIR, folds=3)
    told = compare(Sets.of(np.delete(X, np.s_[::4], 0), np.delete(ranks, np.s_[::4], 0)), PAIR, folds=3)
    assert found.n_sets == 45
    assert np.isnan(found.differences[::4]).all()
    assert (found.gain, found.interval, found.p_value) == (told.gain, told.interval, told.p_value)
    assert found.to_json(per_set=True)["differences"][0] is None


def test_groups_widen_the_interval_where_their_sets_are_alike():
    copies, groups = (
        Sets.of(np.repeat(X[:15], 6, axis=0), np.repeat(RANKS[:15], 6, axis=0)),
        np.arange(90) // 6,
    )
    found = compare(copies, PAIR, folds=3, groups=groups)
    low, high = bootstrap_interval(found.values["linear"]["ranking_accuracy"])
    mine = found.intervals["linear"]["ranking_accuracy"]
    assert mine[1] - mine[0] > 1.5 * (high - low)
    assert found.n_groups == 15
    assert found.p_value == sign_flip_p_value(found.differences, groups, widening=widening_of(3))


def test_a_loss_is_gained_by_lowering_it():
    right = compare(SETS, PAIR, folds=3)
    wrong = compare(SETS, PAIR, folds=3, metric="ranking_loss")
    assert wrong.gain == pytest.approx(right.gain)
    candidates = {"linear": (RankSVM(), "context"), "worse": (RandomRanker(), "context")}
    candidates["chance"] = (RandomRanker(), "context-free")
    lowered = compare(SETS, candidates, folds=3, metric="ranking_loss")
    assert [fold["context"] for fold in lowered.chosen] == ["linear"] * 3
    assert f"= +{lowered.gain:.3f}, 95 % CI" in verdict(lowered)
    assert "(0/1-ranking loss, by which it is lower)" in verdict(lowered)


def test_the_result_is_plain_data_with_everything_in_it():
    found = compare(SETS, PAIR, folds=3, metrics=("spearman",))
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["kinds"] == {"linear": "context-free", "chance": "context"}
    assert list(plain["means"]["linear"]) == ["ranking_accuracy", "spearman"]
    low, high = plain["intervals"]["linear"]["spearman"]
    assert low < plain["means"]["linear"]["spearman"] < high
    assert plain["verdict"] == verdict(found)
    assert {"python", "torch", "numpy"} <= set(plain["versions"])
    assert "values" not in plain
    assert len(found.to_json(per_set=True)["values"]["linear"]["spearman"]) == 60


def test_without_lightgbm_its_candidate_is_left_out(monkeypatch):
    without = {"lightgbm": None}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: without.get(name, "there"))
    assert "LambdaMART" not in default_candidates(100)
    assert missing_by_default("choice") == {}, "it is no chooser"
    monkeypatch.setattr(comparison, "default_candidates", lambda *_, **__: PAIR)  # as without, but fast
    found = compare(SETS, folds=2)
    assert "pip install 'entourage[boost]'" in found.left_out["LambdaMART"]
    assert found.to_json()["left_out"] == found.left_out
    assert found.to_json()["warnings"] == [f"LambdaMART was left out: {found.left_out['LambdaMART']}."]
    assert compare(SETS, PAIR, folds=2).left_out == {}, "who names candidates is told of no others"


def test_default_candidates_pair_every_net_with_its_control_and_train_by_the_amount_of_data():
    candidates = default_candidates(10)
    assert {kind for _, kind in candidates.values()} == set(KINDS)
    for name, (model, kind) in candidates.items():
        if kind == "context":
            twin, its = candidates[f"{name} ablated"]
            assert its == "context-free"
            assert repr(twin.net.net) == repr(model.net)
    assert [default_candidates(n)["FATE"][0].steps for n in (10, 2000, 10**6)] == [400, 1875, 4000]
    chosen = default_candidates(10, steps=7, device="cpu")["FETA ablated"][0]
    assert (chosen.steps, chosen.device) == (7, "cpu")


def test_the_linear_model_of_choices_is_the_exact_logit_and_never_infinite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4, 3)) * [1.0, 100.0, 0.01]
    places = (X @ [-0.9, 0.005, 40.0] + rng.gumbel(size=(400, 4))).argmax(1)
    linear = default_candidates(400, "choice")["linear"][0].fit(
        X, places, situation=rng.normal(size=(400, 2))
    )
    exact = MultinomialLogit().fit(X, places)
    assert linear.coef_ == pytest.approx(exact.coef_, rel=0.01)
    assert linear.predict_scores(X, situation=np.zeros((400, 2))) == pytest.approx(X @ linear.coef_)
    separable = LinearLogit().fit(X, X[:, :, 0].argmax(1))  # warnings are errors here
    assert np.isfinite(separable.coef_).all()
    constant = LinearLogit().fit(np.concatenate([X, np.ones((400, 4, 1))], axis=2), places)
    assert constant.coef_[3] == pytest.approx(0.0, abs=1e-6)


def test_the_linear_net_for_an_outside_option_comes_near_the_exact_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4, 2))
    with_nothing = np.concatenate([X @ [1.0, -0.7] - 0.5, np.zeros((500, 1))], axis=1)
    places = (with_nothing + rng.gumbel(size=(500, 5))).argmax(1)
    # Exact: nothing is a fifth object, of zeros, and the others have an intercept.
    wide = np.concatenate([X, np.ones((500, 4, 1))], axis=2)
    exact = MultinomialLogit().fit(np.concatenate([wide, np.zeros((500, 1, 3))], axis=1), places)
    net = default_candidates(500, "choice", outside=True)["linear"][0].set_params(random_state=0)
    net.fit(X, np.where(places == 4, -1, places))
    probes = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    assert net.predict_scores(probes)[0] == pytest.approx(
        [[1, 0, 1], [0, 1, 1], [0, 0, 1]] @ exact.coef_, abs=0.04
    )


# --- the verdict ----------------------------------------------------------------------------------


def test_on_the_medoid_task_context_matters():
    sets = Sets.of(*make_medoid(n_sets=200, random_state=0))
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FETA ablated": (small(Alone(FETA(16))), "context-free"),
        "FETA": (small(FETA(16)), "context"),
    }
    found = compare(sets, candidates, folds=3, inner=1)
    assert found.p_value <= 0.001 < 0.02 < found.interval[0]
    sentence = verdict(found)
    assert sentence.startswith(
        f"Significant context effect: FETA − FETA ablated = +{found.gain:.3f}, 95 % CI [0."
    )
    assert f"about {100 * found.gain:.1f} more are ordered rightly." in sentence
    assert "], p < 0.001, n = 200 sets (0/1-ranking accuracy): of 100 pairs" in sentence


def test_on_random_rankings_there_is_no_evidence():
    rng = np.random.default_rng(1)
    sets = Sets.of(X, np.argsort(rng.random(RANKS.shape), axis=1))
    candidates = {"net": (small(ContextFree(8)), "context-free"), "FATE": (small(FATE(8)), "context")}
    found = compare(sets, candidates, folds=3)
    assert found.p_value > 0.05
    assert verdict(found).startswith("No significant context effect: FATE − net = ")


def test_the_verdict_keeps_to_the_level_and_admits_a_narrow_margin():
    found = compare(SETS, PAIR, folds=2)
    for p, level, says in [
        (
            0.05,
            0.05,
            "Significant context effect: chance − linear = +0.020, 95 % CI [0.010, 0.030], p = 0.050",
        ),
        (0.0501, 0.05, "No significant context effect: chance − linear = +0.020, 95 % CI "),
        (0.03, 0.01, "No significant context effect: chance − linear = +0.020, 99 % CI "),
    ]:
        changed = dataclasses.replace(found, p_value=p, level=level, gain=0.02, interval=(0.01, 0.03))
        assert verdict(changed).startswith(says)
    narrow = dataclasses.replace(found, p_value=0.04, gain=0.02, interval=(-0.001, 0.041))
    assert verdict(narrow).startswith("Significant context effect (narrowly: ")
    assert "= +0.020, 95 % CI [−0.001, 0.041], p = 0.040, n = 60 sets (0/1-ranking accuracy)" in verdict(
        narrow
    )
    assert "n = 60 sets in 4 groups" in verdict(dataclasses.replace(found, n_groups=4))


@pytest.mark.parametrize(("steps", "improving"), [(20, True), (80, False)])
def test_training_that_ended_too_early_is_said(steps, improving):
    sets = Sets.of(*make_medoid(n_sets=300 if improving else 150, random_state=0))
    if not improving:  # the first feature decides, which is soon learnt
        sets = sets.with_targets(sets.objects[:, 0].copy())
    settings = {"steps": steps, "batch_size": 64, "learning_rate": 0.01, "device": "cpu"}
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FATE": (Ranker(FATE(16), **settings), "context"),
        "chance": (RandomRanker(), "context"),
    }
    found = compare(sets, candidates, folds=4, inner=2 if improving else 1)
    assert found.still_improving == ({"FATE": steps} if improving else {})
    said = "FATE was still improving when training ended (20 steps): a short training can look like context; "
    assert [sentence.partition("give")[0] for sentence in warnings_of(found)] == ([said] if improving else [])
    assert found.to_json()["warnings"] == warnings_of(found)


def gains_over_controls(seeds, *, n_sets, steps):
    """What FATE and FETA gain over their controls on rankings by a linear utility alone, judged by fresh sets."""
    gains = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n_sets + 500, 5, 4))
        ranks = np.argsort(
            np.argsort(-(x @ [1.0, -0.7, 0.4, 0.0] + rng.gumbel(size=x.shape[:2])), axis=1), axis=1
        )
        values = [
            Ranker(net, steps=steps, batch_size=64, device="cpu", random_state=seed)
            .fit(x[:n_sets], ranks[:n_sets])
            .score(x[n_sets:], ranks[n_sets:])
            for net in (FATE(), Alone(FATE()), FETA(), Alone(FETA()))
        ]
        gains.append([values[0] - values[1], values[2] - values[3]])
    return np.array(gains)


def test_without_a_context_effect_a_net_gains_nothing_over_its_control():
    gains = gains_over_controls(range(3), n_sets=100, steps=60)
    errors = gains.std(0, ddof=1) / np.sqrt(len(gains))
    assert (gains.mean(0) < 0.005 + 2 * errors).all(), "benchmarks/calibration/verdict.py has the many seeds"


# --- through the command --------------------------------------------------------------------------


def compare_by_command(tmp_path, name, *options):
    rows = X[:40].reshape(-1, X.shape[2])
    frame = pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
    frame = frame.assign(race=np.repeat(np.arange(40), X.shape[1]), place=RANKS[:40].ravel())
    frame.to_csv(tmp_path / "races.csv", index=False)
    command = [
        "compare",
        "races.csv",
        "--set-id",
        "race",
        "--target",
        "place",
        "--seed",
        "0",
        "--report",
        name,
    ]
    settings = ["--steps", "8", "--folds", "2", "--inner", "1", "--level", "0.05", *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        result = CliRunner().invoke(app, [*command, *settings], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_one_seed_gives_one_page_and_without_lightgbm_all_say_so(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lightgbm" else found(name))
    told = compare_by_command(tmp_path, "one.html")
    plain = json.loads(compare_by_command(tmp_path, "two.html", "--json"))
    page = (tmp_path / "one.html").read_bytes()
    assert page == (tmp_path / "two.html").read_bytes()
    for text in (told, plain["warnings"][0], page.decode()):
        assert "LambdaMART was left out: LightGBM is not installed" in text
    assert "LambdaMART" in plain["left_out"]
    assert plain["verdict"] in told
    assert "significant context effect: " in plain["verdict"].lower()


def test_models_are_refitted_from_seeds_of_the_comparison():
    candidates = {
        "linear": (RankSVM(), "context-free"),
        "FATE": (small(FATE(8)).set_params(steps=5), "context"),
    }
    found = compare(SETS, candidates, folds=2, random_state=3)
    one, two = (refit_chosen(found, SETS)["context"] for _ in range(2))
    assert np.array_equal(one.predict_scores(X), two.predict_scores(X))
    assert one.random_state != candidates["FATE"][0].random_state


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"metric": "ranking_acuracy"}, ParameterError, "did you mean 'ranking_accuracy'"),
        ({"metrics": ["sperman"]}, ParameterError, "did you mean 'spearman'"),
        ({"level": 0.6}, ParameterError, "level needs a number above 0 and below 0.5"),
        ({"resamples": 10}, ParameterError, "resamples needs a whole number of at least 19"),
        ({"groups": FOUR}, DataError, "5 outer folds need at least 5 groups .* there are 4"),
        ({"groups": FOUR, "folds": 4}, DataError, "at least 5 groups .* never below 0.0625"),
        ({"groups": np.arange(9)}, DataError, r"one label a set, shape \(60,\); got \(9,\)"),
        ({"candidates": {"a": (RankSVM(), "context")}}, ParameterError, "there is no context-free one"),
        ({"candidates": {"a": RankSVM()}}, ParameterError, "needs an estimator and its kind"),
        ({"candidates": {"a": (RankSVM(), "contxt")}}, ParameterError, "did you mean 'context'"),
    ],
)
def test_what_cannot_be_compared_is_said(changes, error, message):
    with pytest.raises(error, match=message):
        compare(SETS, **{"candidates": PAIR, **changes})


def test_too_few_sets_for_the_inner_folds_are_counted_before_any_fit():
    candidates = PAIR | {"other": (RankSVM(C=0.1), "context-free")}
    with pytest.raises(DataError, match="2 outer folds, each with 5 inner ones, need at least 10 sets"):
        compare(SETS[:9], candidates, folds=2, inner=5)
    compare(SETS[:10], candidates, folds=2, inner=5)


def test_sets_that_order_nothing_are_refused():
    with pytest.raises(DataError, match="rank two objects differently; there are none"):
        compare(Sets.of(X, np.zeros_like(RANKS)), PAIR)


def test_an_error_in_a_fit_names_its_candidate():
    class Failing(RankSVM):
        def fit(self, X, y=None, **kwargs):
            raise TrainingError("It went wrong.")

    with pytest.raises(TrainingError, match="bad one, fold 1: It went wrong"):
        compare(SETS, PAIR | {"bad one": (Failing(), "context-free")})
