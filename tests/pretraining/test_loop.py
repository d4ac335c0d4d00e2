"""Pretraining: a seed gives the same weights again, a run goes on from weights, and nothing beats the oracle."""

import itertools
import json

import numpy as np
import pytest
import torch
from prior_fitted_cases import small_net
from typer.testing import CliRunner

from entourage.nets.prior_fitted import PriorFittedNet
from entourage.pretrained.weights import read_weights, write_weights
from entourage.pretraining import __main__ as command
from entourage.pretraining import evaluate, loop
from entourage.pretraining.loop import Lesson, Plan, loss_of, pretrain
from entourage.pretraining.prior import Shape, draw_worlds

CPU = torch.device("cpu")
PLAN = Plan(5.0, objects=300, cells=1_500, queries=4, warmup=2, average=0.9)
TASKS = ("choice", "ranking", "subset")


@pytest.fixture
def clock(monkeypatch):
    """Time passes by one second whenever it is looked at, so that steps are counted, not timed."""

    def start():
        seconds = itertools.count()
        monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(seconds)))

    monkeypatch.setattr(loop, "TELL", 4)
    for table, most in (("SIZES", 4), ("LABELLED", 16), ("COLUMNS", 4)):
        some = {key: share for key, share in getattr(loop, table).items() if key <= most}
        monkeypatch.setattr(loop, table, some)
    return start


def trained(clock, net=None, plan=PLAN):
    clock()
    rows = []
    return pretrain(
        small_net(16, 1, 4, dtype=torch.float32).requires_grad_() if net is None else net,
        plan,
        CPU,
        rows.append,
    ), rows


def lesson_of(task, ragged=False, labelled=8):
    worlds = draw_worlds(Shape(6, labelled + 5, 4, 3, task, ragged), torch.Generator().manual_seed(0))
    return Lesson.of(worlds, task, labelled)


def test_the_same_seed_gives_the_same_weights_to_the_bit(clock):
    (one, rows), (other, again) = trained(clock), trained(clock)
    assert rows == again
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert all(value.isfinite().all() for value in one.values())
    third, _ = trained(clock, plan=Plan(**{**vars(PLAN), "seed": 1}))
    assert any(not torch.equal(one[name], third[name]) for name in one)
    start = small_net(16, 1, 4, dtype=torch.float32).state_dict()
    moved = {name.split(".")[0] for name in one if not torch.equal(one[name], start[name])}
    assert moved == {name.split(".")[0] for name in start}  # every part of the net learns
    assert {"step", "seconds", "loss", "left out", "gain", "reached", "by"} <= set(rows[0])
    assert rows[0]["left out"] == 0


def test_a_run_goes_on_from_weights_in_a_file(clock, tmp_path):
    path, net = tmp_path / "weights.safetensors", small_net(16, 1, 4, dtype=torch.float32)
    write_weights(path, net.settings, net.state_dict(), torch.bfloat16)
    found, _ = trained(clock, read_weights(path), Plan(**{**vars(PLAN), "decay": 0.5}))
    moved = max((found[name] - value).abs().max() for name, value in net.state_dict().items())
    assert 0 < moved < 0.1  # from there on, not from new weights


def test_no_time_is_no_training(clock):
    net = small_net(16, 1, 4, dtype=torch.float32).requires_grad_()
    found, rows = trained(clock, net, Plan(0.0))
    assert rows == []
    assert all(torch.equal(found[name], value) for name, value in net.state_dict().items())


@pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])
@pytest.mark.parametrize("task", TASKS)
def test_nothing_gains_more_than_the_oracle(task, ragged):
    lesson = lesson_of(task, ragged)
    reading = lesson.read_by(small_net(16, 1, 4, dtype=torch.float32))
    assert (reading.gains() <= lesson.ideal() + 1e-4).all()
    assert (lesson.ideal() > -1e-4).all()  # nor less than a uniform choice
    assert (lesson.ideal() <= lesson.stakes() + 1e-4).all()
    loss = loss_of(reading, lesson)
    assert loss.ndim == 0
    assert loss.isfinite()


def test_equal_utilities_gain_nothing():
    for task in TASKS:
        lesson = lesson_of(task, ragged=True)
        even = loop.Reading(
            lesson.read_by(small_net(16, 1, 4, dtype=torch.float32)).memory, 0 * lesson.aims, lesson
        )
        torch.testing.assert_close(even.gains(), torch.zeros(6, 5), atol=1e-5, rtol=0)
        if task == "ranking":
            assert even.ranking_gains().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_parts_of_a_lesson_are_read_as_the_whole(task):
    net, lesson = small_net(16, 1, 4, dtype=torch.float32), lesson_of(task, ragged=True)
    parts = list(lesson.parts(4))
    assert [len(part.share) for part in parts] == [2, 2, 2]
    found = torch.cat([part.read_by(net).utilities for part in parts])
    torch.testing.assert_close(found, lesson.read_by(net).utilities, rtol=1e-4, atol=1e-4)


def test_labels_of_scored_sets_are_not_seen():
    worlds = draw_worlds(Shape(3, 13, 4, 3), torch.Generator().manual_seed(0))
    net = small_net(16, 1, 4, dtype=torch.float32)
    found = Lesson.of(worlds, "choice", 8).read_by(net).utilities
    worlds.labels[:, 8:] = worlds.labels[:, 8:].flip(-1)
    worlds.probabilities[:, 8:] = worlds.probabilities[:, 8:].flip(-1)
    assert torch.equal(Lesson.of(worlds, "choice", 8).read_by(net).utilities, found)


def test_shapes_stay_within_the_plan():
    random, plan = np.random.default_rng(0), Plan(1.0)
    for _ in range(300):
        shape, labelled = loop.draw_shape(plan, random)
        assert shape.sets == labelled + plan.queries
        assert labelled * shape.objects <= 4_096
        size = shape.worlds * shape.sets * shape.objects
        assert shape.worlds == 1 or (size <= plan.objects and size * shape.columns <= plan.cells)


def test_the_command_trains_goes_on_evaluates_and_keeps(tmp_path, clock, monkeypatch):
    clock()
    monkeypatch.setattr(command, "FILE", tmp_path / "kept.safetensors")
    monkeypatch.setattr(command, "CHECKSUM", tmp_path / "kept.sha256")
    monkeypatch.setattr(evaluate, "LABELLED", (8,))
    one, two, rows = tmp_path / "one", tmp_path / "two", tmp_path / "rows.jsonl"
    small = ["--width", "16", "--blocks", "1", "--objects", "500"]
    start = str(one / "weights.safetensors")
    calls = [
        ["train", "--out", str(one), "--seconds", "3", *small],
        ["train", "--out", str(two), "--seconds", "3", "--start", start, "--objects", "500", "--seed", "1"],
        ["evaluate", start, "--out", str(rows), "--worlds", "8"],
        ["keep", str(two / "weights.safetensors")],
    ]
    for call in calls:
        found = CliRunner().invoke(command.app, [*call, *(["--device", "cpu"] if call[0] != "keep" else [])])
        assert found.exit_code == 0, found.output
    assert [json.loads(line)["seed"] for line in (two / "log.jsonl").read_text().splitlines()] == [1]
    first = json.loads(rows.read_text().splitlines()[0])
    assert first["sets"] == 8
    assert first["reached"]["all"][0] <= 1
    assert isinstance(read_weights(tmp_path / "kept.safetensors"), PriorFittedNet)
    assert (tmp_path / "kept.sha256").read_text().endswith("  kept.safetensors\n")
