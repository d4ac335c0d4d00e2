"""Choosing one object of a set, or some of them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SubsetChooser, load
from entourage.baselines import RankSVM
from entourage.choice import MultinomialLogit
from entourage.cli.program import app
from entourage.data import Sets, make_choice, make_medoid
from entourage.data.resampling import fold_indices
from entourage.errors import CheckpointError, DataError, DataWarning, ParameterError, ShapeError
from entourage.estimators.base import OneChoicePredictor
from entourage.losses import CHOICE_LOSSES, SUBSET_LOSSES, choice_loss, plackett_luce_loss, subset_loss
from entourage.selection import compare, default_candidates, spaces, verdict
from entourage.selection.tuning import nested_cross_validation, tune
from entourage.tasks import Choice, SubsetChoice, task_of

X, RANKS = make_medoid(n_sets=300, n_objects=4, random_state=0)
PLACES = RANKS.argmin(1)
SOME = (RANKS < 2).astype(int)
QUICK = {"steps": 80, "batch_size": 64, "random_state": 0}


def chooser(net=None, **settings):
    return DiscreteChooser(net or FATE(width=16), **QUICK | settings)


# --- losses ---------------------------------------------------------------------------------------


def test_the_loss_of_a_choice_is_that_of_a_top_1_ranking():
    scores = torch.randn(5, 4, dtype=torch.float64)
    ranks = (torch.arange(4) != 2).double().expand(5, 4)
    mask = torch.ones(5, 4, dtype=torch.bool)
    torch.testing.assert_close(choice_loss(scores, ranks, mask), plackett_luce_loss(scores, ranks, mask))


def test_not_choosing_has_utility_0():
    scores = torch.tensor([[0.0, 0.0, 0.0]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    for ranks in ([[1.0, 1.0, 1.0]], [[1.0, 0.0, 1.0]]):
        value = choice_loss(scores, torch.tensor(ranks), mask, outside=True)
        assert value.item() == pytest.approx(np.log(4))


@pytest.mark.parametrize("loss", [*CHOICE_LOSSES.values(), *SUBSET_LOSSES.values()])
def test_losses_are_blind_to_padding_follow_a_shuffle_and_have_right_gradients(loss):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    ranks = (torch.arange(5) != torch.tensor([[0], [2], [1]])).double()
    mask = torch.arange(5) < torch.tensor([[5], [3], [2]])
    values = loss(scores, ranks, mask)
    assert values.shape == (3,)
    assert torch.equal(loss(torch.where(mask, scores, 9.0), ranks, mask), values)
    torch.testing.assert_close(loss(scores[2:, :2], ranks[2:, :2], mask[2:, :2]), values[2:])
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(loss(scores[:, order], ranks[:, order], mask[:, order]), values)
    assert torch.autograd.gradcheck(lambda s: loss(s, ranks, mask), scores.requires_grad_())
    assert loss(scores[:, :1], ranks[:, :1] * 0, mask[:, :1]).isfinite().all()


def test_the_loss_of_a_subset_is_the_mean_cross_entropy():
    scores = torch.tensor([[2.0, -1.0, 9.0]])
    ranks, mask = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([[True, True, False]])
    expected = (np.log1p(np.exp(-2.0)) + np.log1p(np.exp(-1.0))) / 2
    assert subset_loss(scores, ranks, mask).item() == pytest.approx(expected)


# --- metrics --------------------------------------------------------------------------------------


def test_metrics_of_choices():
    metrics = Choice().metrics
    scores, ranks = [[2.0, 1.0, 1.0], [0.0, 0.0, -1.0]], [[0, 1, 1], [1, 0, 1]]
    assert metrics["accuracy"](scores, ranks, per_set=True).tolist() == [1.0, 0.5]
    expected = np.log([np.e**2 / (np.e**2 + 2 * np.e), 1 / (2 + np.exp(-1))])
    np.testing.assert_allclose(metrics["log_likelihood"](scores, ranks, per_set=True), expected)
    outside = Choice(outside=True).metrics
    assert outside["accuracy"]([[-1.0, -2.0]], [[1, 1]]) == 1.0
    assert outside["log_likelihood"]([[0.0, 0.0]], [[1, 1]]) == pytest.approx(-np.log(3))
    assert np.isnan(metrics["accuracy"]([[1.0, 2.0]], [[1, 1]]))


def test_metrics_of_subsets():
    metrics = SubsetChoice(threshold=0.5).metrics
    scores, ranks = [[1.0, 0.0, 1.0, 0.2]], [[0, 0, 1, 1]]
    mask = np.array([[True, True, True, True]])
    values = {
        name: metrics[name](scores, ranks, mask) for name in ("f1", "subset_accuracy", "hamming_accuracy")
    }
    assert values == {"f1": 0.5, "subset_accuracy": 0.0, "hamming_accuracy": 0.5}
    assert metrics["informedness"](scores, ranks) == pytest.approx(0.0)
    assert metrics["f1"]([[0.0, 0.0]], [[1, 1]]) == 1.0
    assert metrics["f1"](scores, ranks, [[True, False, False, False]]) == 1.0


# --- estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [FATE(width=16), FETA(width=16), ContextFree(width=16)], ids=repr)
def test_choices_are_learnt_from_places_and_from_rows(net):
    by_place, by_row = chooser(net).fit(X, PLACES), chooser(net).fit(X, np.eye(4)[PLACES])
    np.testing.assert_array_equal(by_place.predict_scores(X), by_row.predict_scores(X))
    assert by_place.score(X, PLACES) > (0.35 if isinstance(net, ContextFree) else 0.45)
    assert by_place.score(X, PLACES) == pytest.approx((by_place.predict(X) == PLACES).mean())


def test_probabilities_sum_to_1_whatever_the_form():
    model = chooser().fit(X, PLACES)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0)
    ragged = [X[0, :2], X[1], X[2, :1]]
    parts = model.predict_proba(ragged)
    assert [len(p) for p in parts] == [2, 4, 1]
    np.testing.assert_allclose([p.sum() for p in parts], 1.0)
    assert model.predict(ragged).shape == (3,)
    packed = model.predict_proba(Sets.of(ragged))
    np.testing.assert_allclose(np.concatenate(parts), packed, rtol=1e-6)


def test_in_sets_the_chosen_object_has_rank_0():
    ranks = (np.arange(4) != PLACES[:, None]).astype(float)
    by_sets = chooser().fit(Sets.of(X, ranks))
    np.testing.assert_array_equal(by_sets.predict(X), chooser().fit(X, PLACES).predict(X))


def test_nothing_may_be_chosen():
    far = np.abs(X - 0.5).max((1, 2)) > 0.48
    y = np.where(far, -1, PLACES)
    model = chooser(outside=True, steps=200).fit(X, y)
    assert (model.predict(X) == -1).mean() > 0.1
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())
    left = 1 - model.predict_proba(X).sum(1)
    assert left.min() > 0
    assert left[far].mean() > left[~far].mean()
    with pytest.raises(DataError, match="outside=True"):
        chooser().fit(X, y)


def test_subsets_are_learnt_with_a_threshold_from_held_out_sets(tmp_path):
    model = SubsetChooser(FATE(width=16), **QUICK | {"steps": 200}).fit(X, SOME)
    plain = SubsetChooser(FATE(width=16), threshold=0.0, **QUICK | {"steps": 200}).fit(X, SOME)
    assert model.threshold_ != 0.0
    assert plain.threshold_ == 0.0
    assert model.score(X, SOME) > 0.6
    assert set(np.unique(model.predict(X))) == {0, 1}
    np.testing.assert_array_equal(model.predict(X), model.predict_scores(X) > model.threshold_)
    np.testing.assert_allclose(plain.predict_proba(X) > 0.5, plain.predict(X) == 1)
    model.save(tmp_path / "some.entourage")
    again = load(tmp_path / "some.entourage")
    assert isinstance(again, SubsetChooser)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_chooser_is_a_scikit_learn_citizen(tmp_path):
    model = chooser(outside=True, weight_decay=0.2)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert clone(model).outside is True
    assert {"net__width", "loss", "outside", "random_state"} <= set(model.get_params())
    assert set(Ranker().get_params()) < set(model.get_params()) | {"outside"}
    assert cross_val_score(chooser(), X, PLACES, cv=3).mean() > 0.3
    fitted = chooser(outside=True).fit(X, PLACES)
    fitted.save(tmp_path / "one.entourage")
    again = load(tmp_path / "one.entourage")
    assert again.outside is True
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_ensembles_and_weights_serve_choosers():
    weights = np.where(PLACES == 0, 2.0, 1.0)
    model = chooser(members=2).fit(X, PLACES, sample_weight=weights)
    assert model.predict_scores(X, return_std=True)[1].shape == (300, 4)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(300, 4), "set 0 has 4 objects"),
        (np.zeros((300, 4)), "set 0, counted from 0, has 0"),
        (np.ones((300, 4)), "For several, use SubsetChooser"),
        (RANKS, "1 for chosen objects"),
        (np.full(300, 0.5), "the place of the chosen object"),
    ],
)
def test_what_is_no_choice_is_refused(y, words):
    with pytest.raises(DataError, match=words):
        chooser().fit(X, y)


def test_wrong_settings_are_refused():
    with pytest.raises(ParameterError, match="loss"):
        chooser(loss="hinge").fit(X, PLACES)
    with pytest.raises(ParameterError, match="held-out"):
        SubsetChooser(threshold="best", **QUICK).fit(X, SOME)
    with pytest.raises(ParameterError, match="subset_size is for rankings"):
        chooser(subset_size=2).fit(X, PLACES)
    with pytest.raises(ShapeError, match="for each of 300 sets"):
        chooser().fit(X, PLACES[:-1])
    with pytest.raises(DataError, match="Rankings are for Ranker"):
        chooser().fit(Sets.of(X, RANKS))


# --- tables, comparison, command line -------------------------------------------------------------


def table(y):
    frame = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"])
    return frame.assign(offer=np.repeat(np.arange(300), 4), taken=np.ravel(y))


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize(("kind", "y"), [("choice", np.eye(4)[PLACES]), ("subset", SOME)])
def test_tables_of_choices_through_the_command_line(kind, y, tmp_path):
    table(y).to_csv(tmp_path / "offers.csv", index=False)
    model, out = tmp_path / "m.entourage", tmp_path / "out.csv"
    roles = ["--set-id", "offer", "--target", "taken", "--target-kind", kind]
    told = run("fit", tmp_path / "offers.csv", *roles, "--model", "fate", "--steps", 60, "-o", model)
    assert "log-likelihood" in told
    run("predict", model, tmp_path / "offers.csv", "-o", out)
    predicted = pd.read_csv(out)
    assert {"score", "probability", "rank" if kind == "choice" else "chosen"} <= set(predicted.columns)
    if kind == "choice":
        np.testing.assert_allclose(predicted.groupby("offer").probability.sum(), 1.0, rtol=1e-6)
    judged = json.loads(run("evaluate", model, tmp_path / "offers.csv", "--json"))
    assert {"accuracy", "log_likelihood"} <= set(judged["metrics"]) or "f1" in judged["metrics"]
    assert "DiscreteChooser" in run("info", model) or "SubsetChooser" in run("info", model)


def test_a_comparison_of_choosers():
    sets = Sets.of(X[:120], (np.arange(4) != PLACES[:120, None]).astype(float))
    candidates = {
        "alone": (chooser(ContextFree(width=8), steps=30), "context-free"),
        "FATE": (chooser(FATE(width=8), steps=30), "context"),
    }
    result = compare(
        sets, candidates, kind="choice", metric="log_likelihood", metrics=["accuracy"], folds=2, resamples=100
    )
    assert set(result.means["FATE"]) == {"log_likelihood", "accuracy"}
    assert result.means["FATE"]["log_likelihood"] < 0
    assert all(isinstance(m, OneChoicePredictor) for m, _ in default_candidates(100, "choice").values())


def test_outside_goes_with_choices_alone(tmp_path):
    table(SOME).to_csv(tmp_path / "offers.csv", index=False)
    roles = ["--set-id", "offer", "--target", "taken", "--target-kind", "subset", "--outside"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "offers.csv"), *roles, "-o", str(tmp_path / "m")])
    assert "goes with --target-kind choice" in str(result.exception)


@pytest.mark.parametrize("with_target", [True, False])
def test_what_company_does_through_the_command_line(with_target, tmp_path):
    frame = table(np.eye(4)[PLACES])
    frame.to_csv(tmp_path / "offers.csv", index=False)
    model, page = tmp_path / "m.entourage", tmp_path / "effects.html"
    roles = ["--set-id", "offer", "--target", "taken", "--target-kind", "choice"]
    run("fit", tmp_path / "offers.csv", *roles, "--model", "fate", "--steps", 60, "-o", model)
    if not with_target:
        frame.drop(columns="taken").to_csv(tmp_path / "offers.csv", index=False)
    told = run("effects", model, tmp_path / "offers.csv", "--draws", 19, "--refits", 0, "--report", page)
    assert "preference-reversal rate" in told
    assert ("score test of context" in told) == ("assumes: " in told) == with_target
    assert ("TABLE has no column" in told) != with_target
    assert "influence" in page.read_text().lower()
    found = json.loads(
        run(
            "effects", model, tmp_path / "offers.csv", "--draws", 0, "--refits", 0, "--report", page, "--json"
        )
    )
    assert 0 < found["reversal_rate"]["value"] < 1


def test_a_threshold_of_ones_own_counts_at_once():
    model = SubsetChooser(FATE(width=8), threshold=50.0, **QUICK).partial_fit(X, SOME)
    assert not model.predict(X).any()
    fitted = SubsetChooser(FATE(width=8), **QUICK).fit(X, SOME)
    assert not fitted.set_params(threshold=50.0).predict(X).any()


def test_a_checkpoint_of_another_task_is_refused(tmp_path):
    chooser(checkpoint=tmp_path).fit(X, PLACES)
    with pytest.raises(CheckpointError, match="other data or settings"):
        chooser(checkpoint=tmp_path, outside=True).fit(X, PLACES)


def test_rankers_can_be_judged_on_choices():
    sets = Sets.of(X[:90], 1.0 - SOME[:90])
    candidates = {
        "svm": (RankSVM(), "context-free"),
        "FATE": (SubsetChooser(FATE(width=8), **QUICK | {"steps": 20}), "context"),
    }
    result = compare(sets, candidates, kind="subset", metric="f1", metrics=[], folds=2, resamples=50)
    assert 0 <= result.means["svm"]["f1"] <= 1


def test_nested_cross_validation_of_choosers():
    pytest.importorskip("optuna")
    folds = nested_cross_validation(
        SubsetChooser(FATE(width=16), **QUICK),
        X,
        SOME,
        outer=2,
        folds=1,
        trials=1,
        space={"steps": spaces.Choice((150,))},
    )
    assert np.mean([np.nanmean(fold.per_set) for fold in folds]) > 0.6


# --- a set may end without a choice ---------------------------------------------------------------

FAR = np.abs(X - 0.5).max((1, 2)) > 0.48  # where nothing is chosen
MAYBE = np.where(FAR, -1, PLACES)
ROWS = (np.arange(4) == MAYBE[:, None]).astype(int)
OPEN = Sets.of(X[:120], 1.0 - ROWS[:120])
PAIR = {
    "alone": (chooser(ContextFree(width=8), steps=30), "context-free"),
    "FATE": (chooser(FATE(width=8), steps=30), "context"),
}


def test_a_comparison_judges_choosing_nothing_by_hand():
    found = compare(
        OPEN, PAIR, kind="choice", outside=True, metrics=["accuracy", "top1_accuracy"], folds=2, resamples=100
    )
    assert found.metric == "log_likelihood", "what choices are compared by, unless it is said"
    assert found.n_sets == 120
    for i, (train, test) in enumerate(fold_indices(120, 2)):
        seed = int(np.random.default_rng([0, 1, i, 0]).integers(2**31))  # of the second candidate
        model = clone(PAIR["FATE"][0]).set_params(outside=True, random_state=seed).fit(OPEN[train])
        chances = model.predict_proba(X[test])
        nothing = 1 - chances.sum(1)
        place = MAYBE[test]
        hit = np.where(place < 0, nothing, chances[np.arange(len(test)), place])
        np.testing.assert_allclose(found.values["FATE"]["log_likelihood"][test], np.log(hit), atol=1e-5)
        np.testing.assert_array_equal(found.values["FATE"]["accuracy"][test], model.predict(X[test]) == place)
        undefined = np.isnan(found.values["FATE"]["top1_accuracy"][test])
        np.testing.assert_array_equal(undefined, place < 0)
    assert PAIR["FATE"][0].outside is False, "candidates stay as they are"
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (plain["target_kind"], plain["outside"]) == ("choice", True)


def test_the_words_of_a_verdict_are_those_of_the_task():
    settings = {"folds": 2, "resamples": 100, "metrics": []}
    found = compare(OPEN, PAIR, kind="choice", outside=True, **settings)
    assert "(log-likelihood of a choice)" in verdict(found)
    assert "rank" not in verdict(found)
    assert "n = 120 sets" in verdict(found)
    ordered = compare(OPEN, PAIR, kind="choice", outside=True, metric="top1_accuracy", **settings)
    assert f"n = {int((MAYBE[:120] >= 0).sum())} sets" in verdict(ordered), "those it means something for"


def test_who_cannot_choose_nothing_is_left_out_with_a_sentence():
    candidates = PAIR | {
        "svm": (RankSVM(), "context-free"),
        "logit": (MultinomialLogit(), "context-free"),
        "some": (SubsetChooser(FATE(width=8), **QUICK), "context"),
    }
    found = compare(OPEN, candidates, kind="choice", outside=True, folds=2, metrics=[], resamples=50)
    assert set(found.means) == set(PAIR)
    assert set(found.left_out) == {"svm", "logit", "some"}
    assert "RankSVM has no option of choosing nothing" in found.left_out["svm"]
    with pytest.raises(
        ParameterError, match="No context-free candidate is left.*MultinomialLogit has no option"
    ):
        compare(OPEN, {n: candidates[n] for n in ("logit", "FATE")}, kind="choice", outside=True)


def test_default_candidates_have_the_option_and_what_does_not_go_together_is_said():
    given = default_candidates(100, "choice", outside=True)
    assert all(isinstance(m, DiscreteChooser) and m.outside for m, _ in given.values())
    with pytest.raises(DataError, match=r"outside=True .*compare.*--outside"):
        compare(OPEN, PAIR, kind="choice")
    for wrong in (
        lambda: compare(OPEN, PAIR, kind="subset", outside=True),
        lambda: task_of("rank", outside=True),
    ):
        with pytest.raises(ParameterError, match='goes with kind="choice"'):
            wrong()
    nobody = Sets.of(X[:20], np.ones((20, 4)))
    with pytest.raises(DataError, match="at least 2 sets in which something was chosen; there are 0"):
        compare(nobody, PAIR, kind="choice", outside=True)
    single = Sets.of(X[:20, :1], np.zeros((20, 1)))
    with pytest.raises(DataError, match="needs sets of at least two objects; there are none"):
        compare(single, PAIR, kind="choice")
    with pytest.raises(
        DataError, match="5 outer folds need at least 5 sets of at least two objects; there are 3"
    ):
        compare(Sets.of(X[:3], (np.arange(4) != PLACES[:3, None]) * 1.0), PAIR, kind="choice")


def test_tuning_takes_sets_without_a_choice_with_the_option_alone():
    pytest.importorskip("optuna")
    space = {"steps": spaces.Choice((20, 30))}
    model = chooser(outside=True, steps=20)
    found = tune(model, X, MAYBE, space=space, trials=1, folds=2, metric="log_likelihood")
    by_hand = []
    for train, test in fold_indices(len(X), 2):
        fitted = clone(model).fit(X[train], MAYBE[train])
        by_hand.append(Choice(outside=True).criterion(fitted.predict_scores(X[test]), 1 - ROWS[test]))
    assert found.score == pytest.approx(np.mean(by_hand), abs=1e-6)
    with pytest.raises(DataError, match=r"outside=True"):
        tune(chooser(), X, MAYBE, space=space, trials=1)


def test_columns_of_predictions_say_where_nothing_is_chosen():
    model = chooser(outside=True, steps=200).fit(X, MAYBE)
    sets = Sets.of(X)
    scores = model.predict_scores(sets)
    found = model.columns(sets, scores)
    assert list(found) == ["probability", "score", "rank", "probability_of_nothing"]
    first = found["rank"].reshape(-1, 4) == 0
    places = model.predict(X)
    assert 0 < (places == -1).sum() < len(X)
    np.testing.assert_array_equal(first.any(1), places >= 0)
    np.testing.assert_array_equal(first.argmax(1)[places >= 0], places[places >= 0])
    nothing = found["probability_of_nothing"].reshape(-1, 4)
    np.testing.assert_allclose(nothing[:, 0], 1 - model.predict_proba(X).sum(1), atol=1e-6)
    assert (nothing == nothing[:, :1]).all()
    by_hand = 1 / (1 + np.exp(scores.reshape(-1, 4).astype(np.float64)).sum(1))
    np.testing.assert_allclose(nothing[:, 0], by_hand, rtol=1e-6)
    # nothing is an alternative of utility 0, between the first and the others
    assert model.task.decide(np.array([[2.0, -1.0, -3.0], [-1.0, -1.0, -2.0]])).tolist() == [
        [0, 2, 3],
        [1, 1, 3],
    ]
    assert list(chooser().fit(X, PLACES).columns(sets, scores)) == ["probability", "score", "rank"]


def test_a_choice_of_nothing_through_the_command_line(tmp_path):
    table(ROWS).to_csv(tmp_path / "offers.csv", index=False)
    model, out, page = tmp_path / "m.entourage", tmp_path / "out.csv", tmp_path / "page.html"
    roles = ["--set-id", "offer", "--target", "taken", "--target-kind", "choice"]
    nets = ["--model", "fate", "--steps", 60]
    tries = ["--trials", 1, "--folds", 1]
    for command in (
        ["fit", *nets, "-o", model],
        ["tune", *nets, *tries, "-o", model],
        ["compare", "--report", page],
    ):
        refused = CliRunner().invoke(
            app, [command[0], str(tmp_path / "offers.csv"), *roles, *map(str, command[1:])]
        )
        assert "--outside on the command line" in str(refused.exception)
        subset = [
            command[0],
            str(tmp_path / "offers.csv"),
            *roles[:-1],
            "subset",
            "--outside",
            *map(str, command[1:]),
        ]
        assert "goes with --target-kind choice" in str(CliRunner().invoke(app, subset).exception)
    roles.append("--outside")
    run("tune", tmp_path / "offers.csv", *roles, *nets, *tries, "-o", model)
    assert load(model).outside is True
    run("predict", model, tmp_path / "offers.csv", "-o", out)
    predicted = pd.read_csv(out)
    whole = (
        predicted.groupby("offer").probability.sum()
        + predicted.groupby("offer").probability_of_nothing.first()
    )
    np.testing.assert_allclose(whole, 1.0, rtol=1e-6)
    told = run("effects", model, tmp_path / "offers.csv", "--draws", 19, "--refits", 0, "--report", page)
    assert f"Left out: {FAR.sum()} sets in which nothing was chosen or ranked." in told
    assert f"Left out: {FAR.sum()} sets" in page.read_text()
    table(ROWS)[:240].to_csv(tmp_path / "few.csv", index=False)
    settings = [
        "--steps",
        5,
        "--folds",
        2,
        "--inner",
        1,
        "--workers",
        1,
        "--models",
        "linear,FATE,FATE ablated",
        "--report",
        page,
    ]
    told = " ".join(run("compare", tmp_path / "few.csv", *roles, *settings).split())
    assert "log_likelihood" in told
    assert "significant context effect" in told.lower()
    written = page.read_text()
    assert f"in {FAR[:60].sum()} sets nothing was chosen" in written
    assert "leave them out" in written


def test_a_chooser_has_the_log_likelihood_of_choice_models():
    X, y = make_choice(n_sets=60, n_objects=4, random_state=0)
    model = DiscreteChooser(ContextFree(width=8), steps=20, random_state=0).fit(X, y)
    chances = model.predict_proba(X)[np.arange(60), y]
    assert model.log_likelihood(X, y) == pytest.approx(np.log(chances).mean(), rel=1e-5)
    weights = np.arange(60) < 30
    assert model.log_likelihood(X, y, sample_weight=weights) == pytest.approx(
        np.log(chances[:30]).mean(), rel=1e-5
    )


def test_places_that_are_no_numbers_and_ranks_that_look_like_choices_are_said(tmp_path):
    X, y = make_choice(n_sets=30, n_objects=3, random_state=0)
    with pytest.raises(DataError, match="whole number"):
        DiscreteChooser(FATE(width=8), steps=2).fit(X, y.astype(str))
    frame = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"]).assign(set=np.repeat(np.arange(30), 3))
    frame["taken"] = np.eye(3, dtype=int)[y].ravel()
    frame.to_csv(tmp_path / "t.csv", index=False)
    call = ["fit", "t.csv", "--set-id", "set", "--target", "taken", "--model", "context_free", "--steps", "2"]
    call = [str(tmp_path / part) if part == "t.csv" else part for part in call] + ["-o", str(tmp_path / "m")]
    with pytest.warns(DataWarning, match="--target-kind choice"):
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert CliRunner().invoke(app, [*call, "--target-kind", "choice"], catch_exceptions=False).exit_code == 0


def test_few_choices_are_looked_at_before_they_are_learnt_by_heart():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4, 3)), rng.integers(4, size=100)  # nothing to learn
    settings = {"random_state": 0, "patience": 4}
    model = DiscreteChooser(FATE(width=32), **settings).fit(X, y)
    assert [row["step"] for row in model.history_[:5]] == [12, 25, 50, 100, 200]
    late = DiscreteChooser(FATE(width=32), evaluate_every=100, **settings).fit(X, y)
    fresh, chosen = rng.normal(size=(1_000, 4, 3)), rng.integers(4, size=1_000)
    assert model.log_likelihood(fresh, chosen) > late.log_likelihood(fresh, chosen)


def test_auto_and_tune_go_by_the_log_likelihood_of_choices():
    X, y = make_choice(n_sets=120, n_objects=4, random_state=0)
    model = DiscreteChooser("auto", steps=20, random_state=0, budget=1).fit(X, y)
    assert model.tried_[0].score < 0
    assert model.held_out_score_ < 0
    found = tune(DiscreteChooser(ContextFree(width=8), steps=5), X, y, trials=1, folds=1)
    assert found.score < 0
