"""Hypervolume contributions, ours and HVC-Net: its arithmetic and figures, the loss, the experiment that goes on."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from data_files import real
from safetensors.numpy import save_file

from entourage.data import Sets, exact_contributions, make_fronts
from entourage.errors import DataError, ParameterError, UserError
from entourage.experiments import hvc
from entourage.experiments.hvc_data import FrontFile, Labelled, load_fronts, make_files, permuted_copies
from entourage.experiments.hvc_loss import contribution_loss
from entourage.experiments.hvc_net import HVCNet
from entourage.experiments.paper import read_claims
from entourage.experiments.reproduce import reproduce
from entourage.experiments.rows import Options

pytest.importorskip("numba", reason="fronts need numba, of the extra [hypervolume]")

CPU = torch.device("cpu")
RELEASED = {
    "least": 0.692,
    "largest": 0.784,
    "pairs": 0.920,
}  # of their weights, M = 5, 2,000 sets of their protocol


def part(rng, sizes, *, norm):
    """Return weights of a part of HVC-Net: linear layers at 0, 2, 4, 6, and a layer norm at 7."""
    weights = {}
    for layer, (a, b) in zip((0, 2, 4, 6), sizes, strict=True):
        weights[f"{layer}.weight"] = rng.normal(0, 1 / np.sqrt(a), (b, a)).astype(np.float32)
        weights[f"{layer}.bias"] = rng.normal(0, 0.1, b).astype(np.float32)
    if norm:
        weights["7.weight"], weights["7.bias"] = rng.normal(1, 0.1, (2, sizes[-1][1])).astype(np.float32)
    return weights


def write_weights(folder, d=3, width=8, rounds=3):
    """Write made-up weights as those of HVC-Net are kept; return them."""
    rng = np.random.default_rng(d)
    inside = [(width, width)] * 3
    parts = {"phi": part(rng, [(d, width), *inside], norm=True)}
    parts |= {f"etas.{k}": part(rng, [(width, width), *inside], norm=True) for k in range(rounds)}
    parts["rho"] = part(rng, [(width, width), *inside[1:], (width, 1)], norm=False)
    weights = {f"{name}.{key}": value for name, own in parts.items() for key, value in own.items()}
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / f"M{d}_K{rounds}.safetensors")
    return weights


def apply(weights, name, x):
    """Compute a part in float64: ReLU between linear layers, then the layer norm where there is one."""
    own = {key.removeprefix(f"{name}."): w for key, w in weights.items() if key.startswith(f"{name}.")}
    for layer in (0, 2, 4, 6):
        x = x @ own[f"{layer}.weight"].T.astype(np.float64) + own[f"{layer}.bias"]
        x = np.maximum(x, 0) if layer < 6 else x
    if "7.weight" in own:
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        x = x * own["7.weight"] + own["7.bias"]
    return x


# --- HVC-Net ------------------------------------------------------------------------------------


def test_hvc_net_is_what_its_formula_says(tmp_path):
    weights = write_weights(tmp_path, d=4)
    net = HVCNet.find(tmp_path, 4)
    points = [np.random.default_rng(m).random((m, 4), dtype=np.float32) for m in (1, 5, 9, 5)]
    expected = []
    for own in points:
        states = apply(weights, "phi", own.astype(np.float64))
        for k in range(3):
            states = states + apply(weights, f"etas.{k}", states.mean(0, keepdims=True))
        expected.append(1 / (1 + np.exp(-apply(weights, "rho", states)[:, 0])))
    found = net.contributions(Sets.from_list(points), CPU)
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-6)
    padded = torch.zeros(2, 9, 4)
    padded[0, :5], padded[1] = torch.from_numpy(points[1]), torch.from_numpy(points[2])
    mask = torch.arange(9) < torch.tensor([[5], [9]])
    with torch.no_grad():
        np.testing.assert_allclose(net(padded, mask)[0, :5], expected[1], atol=1e-6)


def test_published_weights_reach_what_was_measured_with_them():
    """Shares of 200 other sets lie within three standard errors of those measured on 2,000."""
    net = HVCNet.find(real("hvc_net"), 5)
    made = make_fronts(200, 5, random_state=7, check_below=0)
    found = hvc.metrics_of(Labelled(made.sets, made.contributions), net.contributions(made.sets, CPU))
    for name in ("least", "largest"):
        share = RELEASED[name]
        uncertain = np.sqrt(share * (1 - share) * (1 / found["sets"] + 1 / 2000))
        assert found[name] == pytest.approx(share, abs=3 * uncertain)
    assert found["pairs"] == pytest.approx(RELEASED["pairs"], abs=0.015)


def test_weights_that_are_not_there_or_not_theirs_are_refused(tmp_path):
    write_weights(tmp_path, d=3)
    with pytest.raises(UserError, match=r"no weights of HVC-Net for 5 objectives, M5_K10\.safetensors"):
        HVCNet.find(tmp_path, 5)
    with pytest.raises(UserError, match="no weights of HVC-Net for 3 objectives"):
        HVCNet.find(tmp_path / "nowhere", 3)
    save_file({"a": np.zeros(1)}, tmp_path / "M5_K1.safetensors")
    (tmp_path / "M10_K1.safetensors").write_text("no weights")
    for d in (5, 10):
        with pytest.raises(UserError, match="doesn't hold the weights of HVC-Net"):
            HVCNet.find(tmp_path, d)
    (tmp_path / "M3_K3.safetensors").rename(tmp_path / "M4_K3.safetensors")
    with pytest.raises(UserError, match="for 3 objectives, not 4"):
        HVCNet.find(tmp_path, 4)


# --- the loss and the metrics -------------------------------------------------------------------


def test_the_loss_equals_the_formula_worked_by_hand():
    truth, scores = [0.0, -1.0, -2.0], [0.5, -0.5, -2.0]
    huber = (2 * (0.5 - 0.05 / 2) + 0.0) / 3  # errors 0.5, 0.5 and 0, of which 0.05 are squared
    pairs = sum(np.log1p(np.exp(-2 * margin)) / 2 for margin in (1.0, 2.5, 1.5)) / 3
    tops = np.log1p(np.exp(-2 * 1.0) + np.exp(-2 * 2.5)) + np.log1p(np.exp(-2 * 2.5) + np.exp(-2 * 1.5))
    found = contribution_loss(
        torch.tensor([[*scores, 9.0]]),
        torch.tensor([[*(-t for t in truth), float("nan")]]),
        torch.tensor([[True, True, True, False]]),
        sharpness=2.0,
        extremes=0.1,
    )
    assert found.item() == pytest.approx(huber + pairs + 0.1 * tops, rel=1e-5)


def test_the_loss_has_no_nan_gradient_under_a_full_mask():
    scores = torch.randn(3, 4, requires_grad=True)
    ranks = torch.full((3, 4), float("nan"))
    ranks[1, 0] = 2.0
    value = contribution_loss(scores, ranks, ~ranks.isnan())
    value.sum().backward()
    assert value[0] == value[2] == 0
    assert scores.grad.isfinite().all()
    assert (scores.grad[[0, 2]] == 0).all()


def test_metrics_are_counted_over_sets_with_something_to_order():
    sets = Sets.from_list([np.zeros((3, 2)), np.zeros((1, 2)), np.zeros((2, 2))])
    truth = np.array([0.1, 0.2, 0.4, 0.5, 0.3, 0.2])
    found = hvc.metrics_of(Labelled(sets, truth), np.array([0.1, 0.5, 0.4, 0.5, 0.3, 0.1]))
    pairs = np.mean([2 / 3, 1])
    errors = np.median([0, 1.5, 0, 0, 0, 0.5])
    assert found == {"sets": 2, "least": 1.0, "largest": 0.5, "pairs": round(pairs, 4), "error": errors}


# --- data ---------------------------------------------------------------------------------------


def test_copies_have_permuted_objectives_and_the_same_contributions():
    made = make_fronts(4, 3, random_state=0, sizes=(3, 6), population=300)
    features = np.arange(len(made.sets.objects), dtype=np.float32)[:, None]
    sets = Sets(np.hstack([made.sets.objects, features]), made.sets.offsets, made.sets.targets)
    copies = permuted_copies(sets, 3, 3, seed=0)
    assert len(copies) == 12
    whole = np.concatenate([exact_contributions(points[:, :3]) for points in copies.to_list()])
    np.testing.assert_allclose(whole, np.tile(made.contributions, 3), rtol=1e-12)
    np.testing.assert_array_equal(copies.objects[:, 3], np.tile(features[:, 0], 3))
    assert not np.array_equal(copies.objects[len(features) : 2 * len(features), :3], made.sets.objects)


def test_files_are_made_once_and_say_when_they_are_broken(tmp_path):
    file = FrontFile(seed=0, n_features=2, role="test", part=0, n_sets=3, sizes=(2, 4))
    told = []
    assert make_files([file], tmp_path, workers=1, on_sets=lambda done, total: told.append((done, total)))
    assert told == [(3, 3)]
    before = file.path(tmp_path).stat()
    assert make_files([file], tmp_path, workers=1, on_sets=told.append)
    assert file.path(tmp_path).stat() == before
    found = load_fronts([file], tmp_path)
    assert found.sets.n_features == 2
    np.testing.assert_allclose(found.sets.targets, -np.log(found.contributions), rtol=1e-6)
    file.path(tmp_path).write_text("broken")
    with pytest.raises(DataError, match="delete it, and it is made again"):
        load_fronts([file], tmp_path)


# --- the experiment -----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Make the experiment small: few sets, few steps, made-up weights; return its options."""
    claims = read_claims("hvc")
    claims |= {"sizes": [1, 8], "larger": [9, 12], "part": 20}
    claims["nets"]["SetAttention"]["net"] = {"width": 8, "rounds": 1, "dropout": 0.0}
    claims["modes"]["quick"] |= {"n_validation": 5, "n_test": 10, "n_larger": 3, "steps": 6}
    claims["modes"]["quick"]["n_train"] = dict.fromkeys(claims["tasks"], 25)
    claims["modes"]["quick"]["copies"] = {"M = 3": 2}
    monkeypatch.setattr(hvc, "read_claims", lambda name: claims)
    write_weights(tmp_path / "weights", d=3)
    models = ["HVC-Net", "64 rays", "bounds, tolerance 3", "learnt, tolerance 3", "SetAttention"]
    return Options(device="cpu", data=tmp_path / "weights", tasks=["M = 3"], models=models)


def test_hvc_writes_rows_table_and_report_and_goes_on(tmp_path, small, monkeypatch):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="Time was up while sets were made"):
        reproduce("hvc", out, replace(small, seconds=0))
    text = reproduce("hvc", out, small)
    assert reproduce("hvc", out, replace(small, seconds=0)) == text  # all is there
    rows = {row["model"]: row for row in map(json.loads, (out / "rows.jsonl").read_text().splitlines())}
    assert list(rows) == sorted(small.models)
    assert {(row["n_test"], row["test"]["sets"] <= 10, row["larger"]["sets"]) for row in rows.values()} == {
        (10, True, 3)
    }
    for model in ("learnt, tolerance 3", "SetAttention"):
        learnt = rows[model]
        assert (learnt["n_train"], learnt["copies"], learnt["steps"]) == (30, 2, 6)
    assert rows["HVC-Net"]["fit_seconds"] == rows["HVC-Net"]["n_train"] == 0
    assert rows["64 rays"]["test"]["error"] < 1
    assert rows["bounds, tolerance 3"]["test"]["error"] < 0.1
    assert rows["SetAttention"]["settings"]["standardize"] == "moments"
    assert rows["learnt, tolerance 3"]["net"] == {"width": 32, "depth": 2}
    for model in small.models:
        assert f"| {model} | {rows[model]['test']['least']:.3f} |" in text
    assert "| *exact* | 1 | 1 | 1 | 0 |" in text
    assert "sets of 101 to 200 points" in text
    assert "learnt, tolerance 3" in (out / "report.html").read_text(encoding="utf-8")
    monkeypatch.setattr(hvc, "run_jobs", None)  # nothing is left to do
    assert reproduce("hvc", out, small) == text


def test_training_that_was_out_of_time_ends_as_if_it_had_not_been(tmp_path, small, monkeypatch):
    small = replace(small, models=["learnt, tolerance 3"])
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    reproduce("hvc", whole, small)
    make_files_only(parts, whole)
    text = reproduce("hvc", parts, replace(small, seconds=0))
    assert "Not finished: M = 3, learnt, tolerance 3" in text
    assert not (parts / "rows.jsonl").exists()
    assert "Not finished" not in reproduce("hvc", parts, small)
    one, two = (json.loads((folder / "rows.jsonl").read_text()) for folder in (whole, parts))
    for name in ("validation", "learning_curve"):
        assert one[name] == two[name]
    assert {k: v for k, v in one["test"].items() if "seconds" not in k} == {
        k: v for k, v in two["test"].items() if "seconds" not in k
    }


def make_files_only(folder, other):
    """Let a folder have the sets that another one made."""
    (folder / "fronts").mkdir(parents=True)
    for file in (other / "fronts").iterdir():
        (folder / "fronts" / file.name).write_bytes(file.read_bytes())


def test_what_hvc_needs_and_does_not_know_is_said(tmp_path, small):
    with pytest.raises(UserError, match="give the folder of M3_K10"):
        reproduce("hvc", tmp_path / "out", replace(small, data=None))
    with pytest.raises(UserError, match="no weights of HVC-Net for 3 objectives"):
        reproduce("hvc", tmp_path / "out", replace(small, data=tmp_path))
    with pytest.raises(ParameterError, match="did you mean 'M = 3'"):
        reproduce("hvc", tmp_path / "out", replace(small, tasks=["M=3"]))
    with pytest.raises(UserError, match="--seconds is about training that goes on"):
        reproduce("sizes", tmp_path / "out", Options(seconds=5))
    assert not (tmp_path / "out").exists()
