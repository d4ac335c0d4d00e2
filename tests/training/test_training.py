"""The training loop: what it learns, keeps, refuses, and how it goes on."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch

from entourage import FATE, FETA, ContextFree, Ranker, SetAttention
from entourage.data import Sets, make_medoid
from entourage.errors import CheckpointError, ParameterError, TrainingError
from entourage.losses import hinge_ranking_loss, listnet_loss
from entourage.training.batches import Resident, predict_packed
from entourage.training.plan import Plan

CPU = torch.device("cpu")


def small_ranker(net=None, **params) -> Ranker:
    settings = {"steps": 60, "batch_size": 32, "evaluate_every": 10, "random_state": 0, "device": "cpu"}
    return Ranker(net or FATE(width=8), **(settings | params))


def medoid(n: int = 200, seed: int = 0):
    return make_medoid(n_sets=n, random_state=seed)


def ragged(n: int = 200, seed: int = 0) -> Sets:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, 2)) for size in rng.integers(2, 7, size=n)]
    return Sets.from_list(parts, [np.argsort(np.argsort(-p[:, 0])) for p in parts], rng.normal(size=(n, 1)))


def weights(model: Ranker) -> list[np.ndarray]:
    return [value.numpy() for value in model.scorer_.state_dict().values()]


def equal(a: Ranker, b: Ranker) -> bool:
    return all(np.array_equal(p, q) for p, q in zip(weights(a), weights(b), strict=True))


class StopAt:
    """A loss that interrupts training in a given step, as Ctrl-C would."""

    def __init__(self, step: int) -> None:
        self.step, self.calls = step, 0

    def __call__(self, scores, ranks, mask):
        self.calls += 1
        if self.calls == self.step:
            raise KeyboardInterrupt
        return hinge_ranking_loss(scores, ranks, mask)


RUNS = {
    "fate": (FATE(width=8), {}),
    "sgd-batch-norm": (
        FATE(width=8, activation="relu", norm="batch"),
        {"optimizer": "sgd", "learning_rate": 0.05},
    ),
    "sampled-subcontexts": (FETA(width=4, order=2, max_subcontexts=2), {"ema": None}),
    "weighted-penalised": (ContextFree(width=8), {"l1": 1e-4, "l2": 1e-4}),
}


@pytest.mark.parametrize(("net", "params"), RUNS.values(), ids=RUNS.keys())
@pytest.mark.parametrize("stop", [5, 27, 58])
@pytest.mark.parametrize("data", ["array", "ragged"])
def test_interrupted_and_resumed_equals_never_interrupted(net, params, stop, data, tmp_path):
    X, y = medoid() if data == "array" else (ragged(), None)
    weight = np.linspace(1, 2, 200) if "l1" in params else None
    whole = small_ranker(net, **params).fit(X, y, sample_weight=weight)
    folder = tmp_path / "run"
    with pytest.warns(UserWarning, match=f"Interrupted in step {stop - 1} of 60.*fit again to resume"):
        cut = small_ranker(net, loss=StopAt(stop), checkpoint=folder, on_interrupt="keep", **params).fit(
            X, y, sample_weight=weight
        )
    assert cut.interrupted_
    resumed = small_ranker(net, loss=StopAt(-1), checkpoint=folder, **params).fit(X, y, sample_weight=weight)
    assert equal(resumed, whole)
    assert resumed.history_ == whole.history_
    assert resumed.n_steps_ == whole.n_steps_


def test_a_finished_run_found_in_its_folder_is_not_run_again(tmp_path):
    X, y = medoid()
    first = small_ranker(loss=StopAt(-1), checkpoint=tmp_path).fit(X, y)
    loss = StopAt(1)  # would interrupt the first step of a second run
    again = small_ranker(loss=loss, checkpoint=tmp_path).fit(X, y)
    assert loss.calls == 0
    assert equal(first, again)


@pytest.mark.parametrize(
    "change", [{"learning_rate": 0.01}, {"random_state": 1}, {"net": FATE(width=9)}, {"loss": "logistic"}]
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change):
    X, y = medoid()
    small_ranker(checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError, match="other data or settings"):
        small_ranker(checkpoint=tmp_path).set_params(**change).fit(X, y)
    with pytest.raises(CheckpointError, match="other data or settings"):
        small_ranker(checkpoint=tmp_path).fit(*medoid(seed=1))


def test_a_checkpoint_of_other_held_out_groups_is_refused(tmp_path):
    X, y = medoid()
    small_ranker(checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError, match="other data or settings"):
        small_ranker(checkpoint=tmp_path).fit(X, y, groups=np.arange(len(X)) // 4)


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(1)])
def test_a_run_without_a_seed_of_its_own_resumes_with_that_of_its_checkpoint(tmp_path, random_state):
    X, y = medoid()
    with pytest.warns(UserWarning, match="fit again to resume"):
        small_ranker(
            loss=StopAt(35), checkpoint=tmp_path, random_state=random_state, on_interrupt="keep"
        ).fit(X, y)
    resumed = small_ranker(loss=StopAt(-1), checkpoint=tmp_path, random_state=random_state).fit(X, y)
    assert resumed.n_steps_ == 60
    assert equal(resumed, small_ranker(loss=StopAt(-1), random_state=resumed.seed_).fit(X, y))


def test_a_checkpoint_of_another_loss_is_refused_even_if_both_are_callables(tmp_path):
    X, y = medoid()
    small_ranker(loss=partial(listnet_loss, k=1), checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError):
        small_ranker(loss=partial(listnet_loss, k=2), checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError):
        small_ranker(loss=lambda s, r, m: s.sum(1), checkpoint=tmp_path).fit(X, y)


def test_a_checkpoint_path_that_is_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(CheckpointError, match="can't be a folder"):
        small_ranker(checkpoint=tmp_path / "taken").fit(*medoid())


def test_interrupting_a_pass_leaves_the_model_and_the_loop_it_runs_in():
    X, y = medoid()
    model = small_ranker().fit(X, y)
    before = weights(model)
    model.set_params(loss=StopAt(3))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, weights(model), strict=True))


def test_a_last_step_that_ruins_the_model_is_an_error():
    X, y = medoid()
    model = small_ranker(
        optimizer="sgd", learning_rate=1e30, steps=1, validation=0, warmup=0, ema=None, clip=None
    )
    with pytest.raises(TrainingError, match="scores became infinite or NaN in step 1"):
        model.fit(X, y)


def test_higher_orders_work_in_mixed_precision():
    X, y = medoid()
    for limit in (2, 64):
        small_ranker(FETA(width=4, order=2, max_subcontexts=limit), precision="bfloat16", steps=3).fit(X, y)


def test_sets_too_large_for_all_pairs_are_a_clear_error():
    X = np.random.default_rng(0).normal(size=(1, 50_000, 1))
    with pytest.raises(ParameterError, match="plackett_luce"):
        small_ranker(steps=1).fit(X, np.arange(50_000)[None])
    small_ranker(steps=1, loss="plackett_luce").fit(X, np.arange(50_000)[None])


def test_interruption_keeps_the_best_weights_so_far():
    X, y = medoid()
    with pytest.warns(UserWarning, match="the best weights so far are kept"):
        model = small_ranker(loss=StopAt(35), on_interrupt="keep").fit(X, y)
    assert model.n_steps_ == 34
    assert model.best_score_ == max(row["score"] for row in model.history_)
    assert model.score(X, y) > 0.5


def test_the_best_weights_are_kept_and_training_stops_when_they_stay_the_best():
    X, y = medoid()
    model = small_ranker(steps=5000, patience=3, learning_rate=0.02).fit(X, y)
    scores = [row["score"] for row in model.history_]
    assert model.n_steps_ < 5000
    assert len(scores) == int(np.argmax(scores)) + 1 + 3
    shorter = small_ranker(steps=5000, patience=3, learning_rate=0.02).fit(X, y)
    assert equal(model, shorter)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_an_error_that_says_when(bad):
    calls = 0

    def loss(scores, ranks, mask):
        nonlocal calls
        calls += 1
        return hinge_ranking_loss(scores, ranks, mask) + (bad if calls == 7 else 0.0)

    X, y = medoid()
    model = small_ranker(loss=loss)
    with pytest.raises(TrainingError, match=r"in step 7 of 60.*Lower the learning rate"):
        model.fit(X, y)
    assert not hasattr(model, "scorer_"), "no garbage model is left behind"


def test_an_exploding_run_is_an_error():
    X, y = medoid()
    with pytest.raises(TrainingError, match="The loss became"):
        small_ranker(FETA(width=8), optimizer="sgd", learning_rate=1e30, clip=None, schedule="constant").fit(
            X, y
        )


def test_the_schedule_warms_up_and_decays_to_nothing():
    plan = Plan(
        steps=100, batch_size=1, optimizer="adamw", learning_rate=1.0, momentum=0.9, schedule="cosine",
        warmup=0.1, weight_decay=0.0, l1=0.0, l2=0.0, clip=None, ema=None, evaluate_every=1, patience=None,
        precision="float32", seed=0,
    )  # fmt: skip
    rates = [plan.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(1 / 11)
    assert rates[9] == pytest.approx(10 / 11)
    assert max(rates) == rates[10] == 1.0
    assert rates[-1] < 0.001
    assert all(a <= b for a, b in itertools.pairwise(rates[:11]))
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))


def test_penalties_shrink_the_weights():
    X, y = medoid()

    def size(**params) -> float:
        model = small_ranker(ContextFree(width=8), weight_decay=0.0, ema=None, **params).fit(X, y)
        return sum(np.abs(w).sum() for w in weights(model) if w.ndim > 1)

    plain = size()
    assert size(l1=0.01) < plain
    assert size(l2=0.05) < plain


def test_weighted_sets_pull_harder():
    X, y = medoid()
    flipped = np.concatenate([y, y.max() - y])
    doubled = np.concatenate([X, X])
    for trusted in (0, 1):
        weight = np.repeat([1.0, 0.0] if trusted == 0 else [0.0, 1.0], len(X))
        model = small_ranker(steps=200, validation=0).fit(doubled, flipped, sample_weight=weight)
        assert (model.score(X, y) > 0.6) is (trusted == 0)


def test_a_callable_may_return_the_mean_or_one_value_a_set():
    X, y = medoid()
    by_mean = small_ranker(loss=lambda s, r, m: hinge_ranking_loss(s, r, m).mean()).fit(X, y)
    assert equal(by_mean, small_ranker().fit(X, y))
    with pytest.raises(ParameterError, match="when sets are weighted"):
        small_ranker(loss=lambda s, r, m: s.mean()).fit(X, y, sample_weight=np.ones(200))
    for wrong in (lambda s, r, m: s, lambda s, r, m: s.mean(0)):
        with pytest.raises(ParameterError, match="one value for each of the 32 sets"):
            small_ranker(loss=wrong).fit(X, y)
    for wrong in (lambda s, r, m: 0.5, lambda s, r, m: s.detach().mean(1)):
        with pytest.raises(ParameterError, match="computed from the scores"):
            small_ranker(loss=wrong).fit(X, y)


def test_packed_scores_come_in_the_order_of_the_objects():
    sets = ragged()
    scorer = FATE(width=4).build(3, torch.Generator().manual_seed(0)).eval()
    packed = predict_packed(scorer, Resident(sets, CPU)).numpy()
    for i, one in enumerate(sets):
        objects = np.concatenate([one.objects, np.repeat(one.situation, len(one.objects), axis=0)], axis=1)
        with torch.no_grad():
            alone = scorer(torch.from_numpy(objects[None].astype(np.float32))).numpy()[0]
        np.testing.assert_allclose(packed[sets.offsets[i] : sets.offsets[i + 1]], alone, atol=1e-5)


def test_epochs_go_through_all_sets_in_another_order_each_time():
    for sets in (ragged(), Sets.of(*medoid())):
        data = Resident(sets, CPU)
        first, second = (
            torch.cat(data.epoch(32, np.random.default_rng([0, epoch]))).tolist() for epoch in (0, 1)
        )
        assert sorted(first) == sorted(second) == list(range(200))
        assert first != second
        assert len(data.epoch(32, np.random.default_rng(0))) == data.n_batches(32)


def test_batches_of_huge_sets_hold_fewer_of_them(monkeypatch):
    monkeypatch.setattr("entourage.training.batches.BATCH_OBJECTS", 50)
    assert {len(b) for b in Resident(Sets.of(*medoid()), CPU).epoch(32, np.random.default_rng(0))} == {10}
    data = Resident(ragged(), CPU)
    assert all(len(b) * int(data.sizes[b].max()) <= 50 for b in data.epoch(32, np.random.default_rng(0)))


def test_mixed_precision_learns_too():
    X, y = medoid()
    model = small_ranker(precision="bfloat16", steps=150).fit(X, y)
    assert model.score(X, y) > 0.6


def test_the_progress_bar_is_shown_on_request(capsys):
    X, y = medoid()
    small_ranker(verbose=True).fit(X, y)
    assert "60/60" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"steps": 0}, "steps needs a whole number"),
        ({"epochs": 0}, "epochs needs a number above 0"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"optimizer": "adam"}, "did you mean 'adamw'"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"precision": "float16"}, "Choose from 'float32', 'bfloat16'"),
        ({"momentum": 1.0}, "below 1"),
        ({"validation": 1.0}, "validation"),
        ({"ema": 1.5}, "ema"),
        ({"patience": 0}, "patience"),
        ({"clip": 0}, "clip"),
        ({"l1": -1}, "l1"),
        ({"device": "gpu"}, "device='gpu' can't be used here"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": 2**64}, "random_state"),
        ({"steps": 10.0}, "steps needs a whole number"),
        ({"learning_rate": float("inf")}, "learning_rate"),
        ({"net": FATE}, "did you mean FATE\\(\\)"),
        ({"net": "fata"}, "net='fata' is not known; did you mean"),
        ({"net": 3}, "net needs a net such as FATE"),
    ],
)
def test_wrong_parameters_say_what_is_needed(params, message):
    X, y = medoid(30)
    with pytest.raises(ParameterError, match=message):
        small_ranker().set_params(**params).fit(X, y)


def test_a_step_that_can_not_be_compiled_goes_on_with_a_warning(monkeypatch):
    def broken(function, **options):
        def fail(*arguments):
            raise RuntimeError("no compiler here\nand more")

        return fail

    X, y = medoid()
    plain = small_ranker(steps=20).fit(X, y)
    monkeypatch.setattr(torch, "compile", broken)
    with pytest.warns(UserWarning, match="no compiler here"):
        model = small_ranker(steps=20, compile=True).fit(X, y)
    np.testing.assert_array_equal(model.predict_scores(X), plain.predict_scores(X))


def test_compiled_steps_are_of_full_batches_alone(monkeypatch):
    shapes = []

    def look(function, **options):
        def run(*arguments):
            shapes.append(len(arguments[0]))
            return function(*arguments)

        return run

    X, y = medoid()
    monkeypatch.setattr(torch, "compile", look)
    model = small_ranker(epochs=2, batch_size=64, validation=0, compile=True).fit(X, y)
    assert set(shapes) == {64}
    assert len(shapes) == 2 * (len(X) // 64)
    assert model.n_steps_ == 2 * -(-len(X) // 64)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"compile": "yes"}, 'True, False or "auto"'),
        ({"compile": True, "net": SetAttention(width=8, dropout=0.1)}, "nets without dropout"),
        ({"compile": True, "subset_size": 3}, "on whole sets"),
    ],
)
def test_what_can_not_be_compiled_is_refused(settings, words):
    X, y = medoid()
    with pytest.raises(ParameterError, match=words):
        small_ranker(steps=2, **settings).fit(X, y)
