"""Model files that somebody made up, with checksums that are right: refused at once, or models like any other."""

import copy
import hashlib
import json
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as tensors_to_bytes

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, SubsetChooser, load
from entourage.baselines import BestColumn, BestColumnLogit, BoostedSubset, LinearRanker, RankSVM
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.data.encoder import TableEncoder
from entourage.errors import CheckpointError, ModelFileError, UserError
from entourage.selection.candidates import LinearLogit, list_candidates
from entourage.training import tensor_file as files

GOLDEN = Path(__file__).parent / "golden" / "fate.entourage"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3, 2))
Y = (X @ [1.0, -0.5] + RNG.gumbel(size=(40, 3))).argmax(1)
WITH_IDS = np.concatenate([np.tile([[[1.0], [2.0], [3.0]]], (40, 1, 1)), X], axis=2)
RANKS = X[..., 0].argsort(1).argsort(1)
QUICK = {"steps": 4, "random_state": 0, "device": "cpu"}


def of_a_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"set": np.repeat(np.arange(60), 2), "chosen": np.tile([1, 0], 60)})
    frame["price"] = rng.normal(size=120)
    frame["maker"] = [f"maker {i % 40}" for i in range(120)]
    frame["colour"] = [["red", "green", "blue"][i % 3] for i in range(120)]
    encoder = TableEncoder.fit(frame, set_id="set", target="chosen", target_kind="subset", codes=True)
    model = SubsetChooser(ContextFree(width=2, norm="batch"), members=3, **QUICK)
    model.fit(encoder(frame).sets)
    return model


def of_a_view():
    """Return a model of columns with heavy tails, which are also seen piecewise and relative to their set."""
    model = Ranker(ContextFree(width=2), standardize="piecewise", relative=[1, 0], **QUICK)
    return model.fit(np.exp(3 * X), RANKS, situation=np.exp(4 * X[:, 0, :1]))


def of_a_blend():
    """Return an automatic model of a linear one, trees and a net."""

    def few(*args, **settings):
        kept = ("linear relative", "LambdaMART", "ContextFree relative")
        return [one for one in list_candidates(*args, **settings) if one.name in kept]

    def equal_weights(contributions, *_):
        return dict.fromkeys(contributions, 1 / len(contributions))

    auto = "entourage.selection.auto"
    with patch(f"{auto}.list_candidates", few), patch(f"{auto}.select_weights", equal_weights):
        return Ranker("auto", budget=600, **QUICK).fit(X, RANKS)


MODELS = {
    "golden": lambda: load(GOLDEN),
    "table": of_a_table,
    "sgd": lambda: Ranker(SetAttention(width=4, rounds=1, points=2), optimizer="sgd", **QUICK).fit(X, RANKS),
    "feta": lambda: DiscreteChooser(FETA(width=2, order=2), outside=True, **QUICK).fit(X, Y),
    "logit": lambda: MultinomialLogit(l2=1.0).fit(X, Y),
    "nested": lambda: NestedLogit([[2, 3]]).fit(WITH_IDS, Y),
    "mixed": lambda: MixedLogit({1: "normal"}, draws=20).fit(X, Y),
    "cross nested": lambda: CrossNestedLogit([[1, 2], [2, 3]], allocation="equal").fit(WITH_IDS, Y),
    "correlated": lambda: MixedLogit([0, 1], correlated=True, draws=10).fit(X, Y, groups=np.arange(40) // 4),
    "latent": lambda: LatentClassLogit(2, restarts=1, l2=1.0).fit(X, Y, situation=X[:, 0]),
    "regret": lambda: RandomRegret(scale="estimated", linear=[1]).fit(X, Y),
    "linear context": lambda: LinearContextLogit(l2=1.0).fit(X, Y),
    "contextual": lambda: ContextualLogit(rank=1, l2=1.0).fit(X, Y),
    "linear": lambda: LinearLogit().fit(X, Y),
    "svm": lambda: RankSVM().fit(X, RANKS),
    "linear ranker": lambda: LinearRanker(relative=[1]).fit(np.exp(3 * X), RANKS),  # with heavy tails
    "boosted": lambda: BoostedSubset(3, min_child_samples=2).fit(X, RANKS == 0),
    "view": of_a_view,
    "blend": of_a_blend,
    "pretrained": lambda: DiscreteChooser(
        "pretrained", outside=True, validation=0.0, random_state=0, device="cpu"
    ).fit(X, Y),
    "column": lambda: BestColumn().fit(X, RANKS),
    "column logit": lambda: BestColumnLogit().fit(X, Y),
}


class Files(dict):
    def __repr__(self):  # which Hypothesis would print in full
        return f"Files({', '.join(self)})"


@pytest.fixture(scope="module")
def honest(tmp_path_factory, small_pretrained):
    """Return a good file of each model, as its content and tensors."""
    folder = tmp_path_factory.mktemp("honest")
    found = Files()
    for name, make in MODELS.items():
        with warnings.catch_warnings(action="ignore"):  # of what few data do not identify
            model = make()
        model.save(folder / name)
        found[name] = (*files.read(folder / name, "model"), model)
    return found


def forge(path, content, tensors=None, packed=None):
    """Write a file of any content, under a checksum that is right."""
    text = content if isinstance(content, bytes) else json.dumps({"kind": "model"} | content).encode()
    body = text + b"\n" + (tensors_to_bytes(tensors) if packed is None else packed)
    path.write_bytes(b"entourage-file 1 sha256:" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    return path


def changed(content, place, value):
    """Return a copy of the content with one value set, at a place such as "net.params.width"."""
    content = copy.deepcopy(content)
    *way, last = place.split(".")
    section = content
    for key in way:
        section = section[int(key)] if isinstance(section, list) else section[key]
    section[int(last) if isinstance(section, list) else last] = value
    return content


def peak_memory():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024  # MiB


def is_refused(path):
    """See that a file is refused, at once and without taking memory."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    memory, start = peak_memory(), time.process_time()
    with pytest.raises(
        ModelFileError, match="can't be used|malformed|holds no model|models are made of"
    ) as caught:
        load(path)
    assert time.process_time() - start < 5  # mostly far less; coverage traces each of a million values
    assert peak_memory() - memory < 200
    assert torch.is_grad_enabled()  # nothing is left behind
    return str(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_comes_back_whole(honest, name, tmp_path):
    content, tensors, model = honest[name]
    loaded = load(forge(tmp_path / "m", content, tensors))
    assert set(vars(loaded)) == set(vars(model))
    inputs = WITH_IDS if "nested" in name else X
    if name == "table":
        inputs = np.abs(RNG.normal(size=(5, 3, model.n_features_in_)))
    situated = {"view": {"situation": X[:, 0, :1]}, "latent": {"situation": X[:, 0]}}.get(name, {})
    scores = model.predict_scores(inputs, **situated)
    np.testing.assert_array_equal(loaded.predict_scores(inputs, **situated), scores)
    loaded.save(tmp_path / "again")
    again, same = files.read(tmp_path / "again", "model")
    for key, value in tensors.items():  # NaN where few data don't identify a parameter
        assert "step" in key or torch.equal(torch.nan_to_num(same[key], 7.0), torch.nan_to_num(value, 7.0))
    if name != "golden":  # which keeps what versions wrote it
        assert again == content


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("params.members", 100_000),
        ("params.members", 2**62),
        ("params.members", 0),
        ("params.members", True),
        ("net.params.width", 200_000),
        ("net.params.width", 2**63),
        ("net.params.width", -5),
        ("net.params.width", 6.0),
        ("net.params.width", [6]),
        ("net.params.depth", 10**9),
        ("net.params.depth", 10**6),
        ("net.params.rounds", 10**6),
        ("net.params.rounds", 10**12),
        ("net.params.embedding_size", 10**6),
        ("net.params.embedding_depth", 10**6),
        ("net.params.norm", {"layer": 1}),
        ("net.params.secret", 1),
        ("net.name", "os.system"),
        ("net.name", ["fate"]),
        ("net", None),
        ("estimator", "NetEstimator"),
        ("estimator", "__import__"),
        ("estimator", {}),
        ("estimator", "R" * 10**6),
        ("params.predict", 1),
        ("params.net", "auto"),
        ("params.steps", {"steps": 4}),
        ("params.learning_rate", float("nan")),
        ("params.learning_rate", 10**30),
        ("params.categories", [[0, 10**9]]),
        ("params.categories", [[7, 3]]),
        ("params.categories", [[0, 3], [0, 3]]),
        ("params.categories", "ab"),
        ("params.loss", "exec"),
        ("params.precision", "x"),
        ("params", []),
        ("fitted", 3),
        ("fitted.seed", -1),
        ("fitted.seed", 2**64),
        ("fitted.seed", "0"),
        ("fitted.steps", float("inf")),
        ("fitted.history", None),
        ("fitted.history", [1, 2]),
        ("fitted.history.0.loss", float("nan")),
        ("fitted.history.0.loss", None),
        ("fitted.best_score", float("-inf")),
        ("fitted.interrupted", "no"),
        ("fitted.partial_fits", 2**70),
        ("table", []),
        ("table", {"set_id": "a", "target": None, "target_kind": "rank", "columns": [{"name": "x"}]}),
        ("table", {"set_id": "a", "target": None, "target_kind": "rank", "columns": []}),
        ("calibration", []),
        ("calibration", {"temperature": -1.0, "choice_thresholds": [], "place_thresholds": [], "n_sets": 9}),
        ("calibration", {"temperature": 1.0, "choice_thresholds": [], "place_thresholds": [0.5] * 10**6, "n_sets": 9}),
        ("versions", None),
        ("versions", {"torch": 2}),
    ],
)  # fmt: skip
def test_contents_that_no_model_has_are_refused_at_once(honest, place, value, tmp_path):
    content, tensors, _ = honest["golden"]
    is_refused(forge(tmp_path / "m", changed(content, place, value), tensors))


def test_a_small_file_that_speaks_of_a_large_model_says_what_does_not_fit(honest, tmp_path):
    content, tensors, _ = honest["golden"]
    wide = forge(tmp_path / "wide", changed(content, "net.params.width", 200_000), tensors)
    assert r"need shape (200000, 2) of torch.float32; there is (6, 2)" in is_refused(wide)
    content, tensors, _ = honest["table"]
    many = forge(tmp_path / "many", changed(content, "params.members", 100_000), tensors)
    assert "need shape (100000," in is_refused(many)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("feta", "net.params.order", 10**6),
        ("feta", "net.params.order", 10**12),
        ("feta", "net.params.max_subcontexts", -1),
        ("sgd", "net.params.heads", 3),
        ("sgd", "net.params.points", 10**6),
        ("sgd", "net.params.rounds", 10**6),
        ("table", "fitted.categories.0.1", 10**6),
        ("table", "fitted.categories.0.0", -1),
        ("table", "fitted.threshold", float("nan")),
        ("table", "fitted.threshold", "high"),
        ("table", "table.columns.0.kind", "eval"),
        ("table", "table.columns.0.role", "root"),
        ("table", "table.columns.0.fill", float("inf")),
        ("table", "table.columns.1.levels", [1, 2]),
        ("table", "table.columns.2.levels", ["red"]),
        ("table", "table.target_kind", "x"),
        ("table", "table.set_id", 3),
        ("logit", "params.alternatives", 10**9),
        ("logit", "params.predict", 3),
        ("logit", "params.l2", -1),
        ("logit", "fitted.n_features_in_", 10**12),
        ("logit", "fitted.parameter_names_", ["a"]),
        ("logit", "fitted.log_likelihood_", "0"),
        ("logit", "fitted.converged_", None),
        ("logit", "fitted", []),
        ("nested", "params.nests", 5),
        ("nested", "params.nests", [["a", "b"]]),
        ("nested", "params.nests", [[2, 9]]),
        ("nested", "params.nests", [[1, 2]]),
        ("nested", "params.alternative", 9),
        ("nested", "params.intercepts", "x"),
        ("mixed", "params.draws", 10**12),
        ("mixed", "params.draws", -1),
        ("mixed", "params.random", {"pairs": [[0, "cauchy"]]}),
        ("mixed", "params.random", {"pairs": [[9, "normal"]]}),
        ("mixed", "params.random", {"pairs": 3}),
        ("mixed", "params.random_state", -1),
        ("mixed", "params.correlated", True),
        ("mixed", "fitted.n_features_in_", 10**12),
        ("nested", "fitted.n_features_in_", 10**12),
        ("correlated", "params.correlated", False),
        ("correlated", "fitted.people_", [1, 2]),
        ("correlated", "fitted.people_", [[1]] * 10),
        ("cross nested", "params.allocation", "estimated"),
        ("cross nested", "params.allocation", "exec"),
        ("latent", "params.classes", 10**9),
        ("latent", "params.classes", 3),
        ("latent", "fitted.n_situation_features_in_", 1),
        ("regret", "params.scale", 1.0),
        ("regret", "params.scale", -1.0),
        ("contextual", "params.rank", 10**9),
        ("contextual", "params.alternatives", 2),
        ("linear", "params.alternatives", 3),
        ("linear", "fitted.n_situation_features_in_", -1),
        ("svm", "params.C", -1),
        ("svm", "params.max_pairs", 0.5),
        ("svm", "fitted.n_features_in_", 3),
        ("svm", "fitted.n_features_in_", 0),
        ("svm", "fitted.n_situation_features_in_", 1),
        ("svm", "fitted.table_", {"set_id": "a", "target": None, "target_kind": "rank", "columns": []}),
        ("linear ranker", "fitted.relative_.places", [7]),
        ("linear ranker", "fitted.relative_", None),
        ("linear ranker", "fitted.map_", [1]),
        ("linear ranker", "fitted.map_.places", [99, 1]),
        ("linear ranker", "fitted.map_.knots.0.1", -1e9),
        ("linear ranker", "fitted.map_.scores.0.1", float("nan")),
        ("boosted", "params.n_estimators", -1),
        ("boosted", "params.folds", 10**30),
        ("boosted", "params.threshold", "exec"),
        ("boosted", "fitted.threshold_", float("nan")),
        ("boosted", "fitted.best_score_", float("inf")),
        ("boosted", "fitted.n_rounds_", -1),
        ("boosted", "fitted.n_features_in_", 1),
        ("view", "view.n_features", [0, 1]),
        ("view", "view.n_features", [2, 0]),
        ("view", "view.n_features", [2]),
        ("view", "view.relative.places", [0, 0]),
        ("view", "view.relative.places", [2, 0]),
        ("view", "view.relative.places", [-1, 0]),
        ("view", "view.relative.places", [0.0, 1.0]),
        ("view", "view.relative.places", []),
        ("view", "view.relative.standings", ["exec"]),
        ("view", "view.relative.standings", ["rank", "rank"]),
        ("view", "view.relative.standings", []),
        ("view", "view.relative.standings", ["rank"]),
        ("view", "view.relative", None),
        ("view", "view.relative", [0]),
        ("view", "view.maps", []),
        ("view", "view.maps", None),
        ("view", "view.maps.0", [1]),
        ("view", "view.maps.0.places", [0, 9]),
        ("view", "view.maps.0.places", [0]),
        ("view", "view.maps.0.knots.0", [1.0]),
        ("view", "view.maps.0.knots.0", [1.0, 1.0]),
        ("view", "view.maps.0.knots.0.3", float("nan")),
        ("view", "view.maps.0.knots.0.3", 1e300),
        ("view", "view.maps.0.knots", "ab"),
        ("view", "view.maps.0.scores.0.2", 9.0),
        ("view", "view.maps.1.places", [1]),
        ("view", "view.piecewise.edges.0.1", float("inf")),
        ("view", "view.piecewise.edges.0.1", "x"),
        ("view", "view.piecewise", None),
        ("view", "view.piecewise.places", [1, 2]),
        ("view", "view.level_counts", [[-1]]),
        ("view", "view.level_counts", [["x"]]),
        ("view", "view.level_counts", [[1, 2, 3]]),
        ("table", "view.level_counts.0", [1]),
        ("view", "view", 3),
        ("blend", "blend", []),
        ("blend", "blend", None),
        ("blend", "blend", {"a": 1}),
        ("blend", "blend.0", 3),
        ("blend", "blend.0", []),
        ("blend", "blend.0.models", []),
        ("blend", "blend.0.models.0", {}),
        ("blend", "blend.0.models.0", [1]),
        ("blend", "blend.0.models.0.estimator", "os.system"),
        ("blend", "blend.0.models.0.estimator", "LinearLogit"),
        ("blend", "blend.0.models.0.estimator", "Ranker"),
        ("blend", "blend.0.models.0.fitted.n_features_in_", 3),
        ("blend", "blend.0.models.0.blend", []),
        ("blend", "blend.0.models.0.blend", [{"name": "a", "weight": 1.0, "scales": [1.0], "models": []}]),
        ("blend", "blend.2.models.0.params.net", "auto"),
        ("blend", "blend.2.models.0.net.name", "auto"),
        ("blend", "blend.2.models.0.net.params.width", 200_000),
        ("blend", "blend.2.models.0.params.members", 100_000),
        ("blend", "blend.0.weight", 0.0),
        ("blend", "blend.0.weight", -1.0),
        ("blend", "blend.0.weight", float("nan")),
        ("blend", "blend.0.weight", 1e9),
        ("blend", "blend.0.scales", [1.0]),
        ("blend", "blend.0.scales.0", 0.0),
        ("blend", "blend.0.scales.0", float("inf")),
        ("blend", "blend.0.scales.0", float("nan")),
        ("blend", "blend.0.name", 3),
        ("blend", "fitted.n_features", [3, 0]),
        ("blend", "fitted.n_features", [0, 0]),
        ("blend", "fitted.categories", [[0, 10**9]]),
        ("blend", "fitted.categories", [[0, 5], [0, 5]]),
        ("blend", "fitted.categories", [[0, 5]]),
        ("blend", "fitted.seed", -1),
        ("blend", "fitted.best_score", float("nan")),
        ("blend", "fitted.tried", 3),
        ("blend", "fitted.tried", [3]),
        ("blend", "fitted.tried.0.score", "x"),
        ("blend", "fitted.tried.0.weight", None),
        ("blend", "params.net", "auto"),
        ("blend", "params.loss", "exec"),
        ("blend", "params.relative", {"a": 1}),
        ("blend", "estimator", "DiscreteChooser"),
        ("blend", "estimator", "LinearRanker"),
        ("column", "fitted.index_", 2),
        ("column", "fitted.index_", -1),
        ("column", "fitted.column_", 3),
        ("column", "fitted.ascending_", "yes"),
        ("column logit", "fitted.coef_", float("nan")),
    ],
)  # fmt: skip
def test_so_are_those_of_other_models(honest, name, place, value, tmp_path):
    content, tensors, _ = honest[name]
    is_refused(forge(tmp_path / "m", changed(content, place, value), tensors))


@pytest.mark.parametrize("name", MODELS)
def test_every_key_that_is_needed_is_missed(honest, name, tmp_path):
    content, tensors, _ = honest[name]
    optional = {
        "table",
        "view",
        "calibration",
        "fitted.threshold",
        "fitted.categories",
        "fitted.table_",
        "fitted.relative_",
    }
    places = [*content, *(f"fitted.{key}" for key in content["fitted"])]
    places += [f"net.{key}" for key in content.get("net", {})]
    for place in set(places) - optional:
        less = copy.deepcopy(content)
        section, _, key = place.rpartition(".")
        del (less[section] if section else less)[key]
        is_refused(forge(tmp_path / "m", less, tensors))


@pytest.mark.parametrize("name", MODELS)
def test_attributes_are_not_taken_from_a_file_because_it_names_them(honest, name, tmp_path):
    content, tensors, _ = honest[name]
    for key in ("predict", "predict_", "__class__", "scorer_", "task", "_design"):
        loaded = load(forge(tmp_path / "m", changed(content, f"fitted.{key}", "evil"), tensors))
        assert getattr(loaded, key, None) != "evil"
        is_refused(forge(tmp_path / "m", content, tensors | {key: torch.zeros(1)}))


def test_neither_a_path_nor_a_device_comes_from_a_file(honest, tmp_path):
    content, tensors, _ = honest["golden"]
    assert not {"checkpoint", "device"} & set(honest["feta"][0]["params"])
    for path, device in ((str(tmp_path / "run"), "cuda:7"), ({}, []), ("/etc", "meta")):
        params = content["params"] | {"checkpoint": path, "device": device}
        loaded = load(forge(tmp_path / "m", content | {"params": params}, tensors))
        assert (loaded.checkpoint, loaded.device) == (None, "auto")
        loaded.partial_fit(X, RANKS)
    assert not (tmp_path / "run").exists()


def some(tensors, count=5):
    """Return a few names, from all kinds of tensors."""
    return sorted(tensors)[:: 1 + len(tensors) // count]


TENSORS = {
    "half": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "other float": lambda t: t.double() if t.dtype == torch.float32 else t.float(),
    "whole": lambda t: t.to(torch.int32),
    "longer": lambda t: torch.cat([t.reshape(-1), t.reshape(-1)]),
    "another axis": lambda t: t[None],
    "empty": lambda t: t.reshape(-1)[:0],
}


@pytest.mark.parametrize("change", TENSORS)
@pytest.mark.parametrize("name", MODELS)
def test_numbers_of_another_type_or_shape_are_refused(honest, name, change, tmp_path):
    content, tensors, _ = honest[name]
    for key in some(tensors):
        other = TENSORS[change](tensors[key]).contiguous()
        if key == "alternatives_" and change == "other float":
            continue  # ids have the type of the features that were learnt from
        is_refused(forge(tmp_path / "m", content, tensors | {key: other}))


@pytest.mark.parametrize("name", MODELS)
def test_missing_numbers_are_refused(honest, name, tmp_path):
    content, tensors, _ = honest[name]
    for key in some(tensors, 12):
        if not key.endswith("momentum_buffer"):  # a weight that never had a gradient has none
            is_refused(forge(tmp_path / "m", content, {k: v for k, v in tensors.items() if k != key}))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["golden", "table", "sgd", "feta", "svm", "boosted", "column logit"])
def test_numbers_that_are_none_are_refused(honest, name, bad, tmp_path):
    content, tensors, _ = honest[name]
    for key in some(tensors, 8):
        value = tensors[key]
        if value.is_floating_point() and not (key.startswith("scale") and bad > 0):
            other = value.clone().reshape(-1)
            other[-1] = bad
            is_refused(forge(tmp_path / "m", content, tensors | {key: other.reshape(value.shape)}))


def test_scales_are_above_zero_and_may_be_infinite(honest, tmp_path):
    content, tensors, _ = honest["golden"]
    for bad in (0.0, -1.0, np.nan):
        scale = torch.tensor([bad, 1.0], dtype=torch.float64)
        is_refused(forge(tmp_path / "m", content, tensors | {"scale.0": scale}))
    scale = torch.tensor([np.inf, 1.0], dtype=torch.float64)
    loaded = load(forge(tmp_path / "m", content, tensors | {"scale.0": scale}))
    assert np.isfinite(loaded.predict_scores(X)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name", ["logit", "nested", "mixed", "contextual", "latent", "regret", "linear context", "correlated"]
)
def test_choice_models_without_finite_parameters_are_refused(honest, name, bad, tmp_path):
    content, tensors, _ = honest[name]
    is_refused(forge(tmp_path / "m", content, tensors | {"theta_": tensors["theta_"] * bad}))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"model"',
        b"{}",
        b'{"kind": ["model"]}',
        b'{"kind": "model"}',
        b'{"kind": "checkpoint"}',
        b'{"kind": "model", "estimator": "\xff\xfe"}',
        b'{"kind": "model", "estimator": ' + b"9" * 5000 + b"}",
        b'{"kind": "model", "params": ' + b"[" * 200_000,
        b'{"kind": "model", "params": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}",
    ],
    ids=lambda text: text[:40].decode(errors="replace"),
)
def test_text_that_is_no_content_is_refused(honest, text, tmp_path):
    is_refused(forge(tmp_path / "m", text, honest["golden"][1]))


def test_deep_nesting_in_every_place_is_refused(honest, tmp_path):
    content, tensors, _ = honest["golden"]
    deep = []
    for _ in range(400):
        deep = [deep]
    for place in (
        "params.steps",
        "params.categories",
        "net.params.width",
        "fitted.history",
        "table",
        "estimator",
    ):
        is_refused(forge(tmp_path / "m", changed(content, place, deep), tensors))


def test_numbers_cut_short_or_lying_about_their_size_are_refused(honest, tmp_path):
    content, tensors, _ = honest["golden"]
    good = tensors_to_bytes(tensors)
    for length in (0, 7, 8, 20, len(good) // 2, len(good) - 1):
        is_refused(forge(tmp_path / "m", content, packed=good[:length]))
    for shape in ([2**40], [2**62, 2**62], [-1], ["a"]):
        head = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
        is_refused(forge(tmp_path / "m", content, packed=len(head).to_bytes(8, "little") + head + b"0000"))
    is_refused(forge(tmp_path / "m", content, packed=(2**62).to_bytes(8, "little") + b"{}"))


def test_an_ensemble_costs_its_weights_not_its_members(tmp_path):
    model = Ranker(ContextFree(depth=0), members=2, **QUICK).fit(X, RANKS)
    model.save(tmp_path / "m")
    content, tensors = files.read(tmp_path / "m", "model")
    tensors = {
        name: value
        if name.partition(".")[0] in ("mean", "scale")
        else value.repeat(50_000, *[1] * (value.ndim - 1))
        for name, value in tensors.items()
        if not name.startswith("optimizer.")
    }
    start = time.process_time()
    loaded = load(forge(tmp_path / "m", changed(content, "params.members", 100_000), tensors))
    assert time.process_time() - start < 5  # mostly far less; coverage traces each of a million values
    assert loaded.scorer_.members == 100_000


# --- whatever else one may think of -----------------------------------------------------------------

VALUES = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 2, 10**6, 10**9, 2**63, -(2**70), 10**300, 0.5, 1e308, np.nan, np.inf, "", "x", "normal"]
    ),
    st.sampled_from([[], {}, [[]], [1, 2], [[0, 3]], [["a"]], {"a": {"b": 1}}]),
    st.sampled_from([{"pairs": []}, {"pairs": [[0, "normal"]]}, {"pairs": [[0, "normal"], [0, "lognormal"]]}]),
)  # fmt: skip


def places_of(content, way=()):
    """Return the place of every value in nested content."""
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    found = []
    for key, value in items:
        found += [(*way, key), *places_of(value, (*way, key))]
    return found


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(
            ["set", "set", "drop", "drop", *TENSORS, "drop tensor", "rename", "flip", "negative", "zero"]
        ),
        st.integers(0, 2000),  # where, counted round and round
        VALUES,
    ),
    min_size=1,
    max_size=3,
)


def mutated(content, tensors, changes):
    """Return copies of a good file's content with some changes."""
    content, tensors = copy.deepcopy(content), dict(tensors)
    content["fitted"]["history"] = content["fitted"].get("history", [])[:1]  # its many rows are all alike
    for action, at, value in changes:
        places, names = places_of(content), sorted(tensors)
        if action in ("set", "drop") and places:
            *way, last = places[at % len(places)]
            section = content
            for key in way:
                section = section[key]
            if action == "set":
                section[last] = copy.deepcopy(value)
            else:
                del section[last]
        elif names and action not in ("set", "drop"):
            name = names[at % len(names)]
            tensor = tensors.pop(name)
            if action in TENSORS:
                tensors[name] = TENSORS[action](tensor).contiguous()
            elif action == "rename":
                tensors[["x", "net.x", "mean.7", "optimizer.x.y", "", "theta_"][at % 6]] = tensor
            elif action != "drop tensor":
                factor = {"flip": 1, "negative": -1, "zero": 0}[action]
                tensors[name] = (tensor.flip(0) if tensor.ndim else tensor).mul(factor).to(tensor.dtype)
    return content, tensors


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(MODELS)), changes=CHANGES)
def test_a_mutated_file_is_a_model_or_a_model_file_error(honest, tmp_path_factory, name, changes):
    content, tensors, model = honest[name]
    file = forge(tmp_path_factory.getbasetemp() / "mutated", *mutated(content, tensors, changes))
    Path("/proc/self/clear_refs").write_text("5")
    memory, start = peak_memory(), time.process_time()
    try:
        loaded = load(file)
    except ModelFileError:
        loaded = None
    assert time.process_time() - start < 5  # mostly far less; coverage traces each of a million values
    assert peak_memory() - memory < 200
    if loaded is None:
        return
    inputs = np.ones((2, 3, model.n_features_in_))
    try:
        scores = loaded.predict_scores(inputs)
    except UserError:
        return
    assert scores.shape == (2, 3)
    if isinstance(loaded, Ranker) and loaded.n_features_in_ == 2 and len(changes) == 1:
        try:
            loaded.partial_fit(X, RANKS)
        except UserError:
            pass


# --- checkpoints --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model = Ranker(FATE(width=2), checkpoint=folder, evaluate_every=2, **QUICK)
    model.fit(X, RANKS)
    return folder / "checkpoint.entourage", model, *files.read(folder / "checkpoint.entourage", "checkpoint")


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step", -1),
        ("step", "4"),
        ("step", 2**70),
        ("history", {}),
        ("history", [{"step": 1}]),
        ("best_score", "high"),
        ("best_score", None),
        ("since_best", 0.5),
        ("seed", None),
        ("seed", -1),
        ("identity", [1]),
    ],
)
def test_a_checkpoint_that_no_run_wrote_is_refused(run, key, value, random_state):
    file, model, content, tensors = run
    if key == "seed" and random_state == 0:
        return  # which the checkpoint is not asked for
    forge(file, content | {"kind": "checkpoint", key: value}, tensors)
    with pytest.raises(CheckpointError, match="can't be used|belongs to a run"):
        model.set_params(random_state=random_state).fit(X, RANKS)


@pytest.mark.parametrize("change", [*TENSORS, "drop", "nan", "more"])
def test_a_checkpoint_of_other_numbers_is_refused(run, change):
    file, model, content, tensors = run
    for key in some(tensors, 4):
        other = dict(tensors)
        if change == "drop":
            del other[key]
        elif change == "more":
            other[f"{key}.more"] = torch.zeros(1)
        else:
            other[key] = (
                tensors[key] * np.nan if change == "nan" else TENSORS[change](tensors[key])
            ).contiguous()
        forge(file, content | {"kind": "checkpoint"}, other)
        with pytest.raises((CheckpointError, ModelFileError)):
            model.set_params(random_state=0).fit(X, RANKS)
    forge(file, content | {"kind": "checkpoint"}, tensors)
    model.fit(X, RANKS)
