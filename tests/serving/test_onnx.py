"""Models as ONNX graphs. All kinds run as torch modules here; the graphs of many are written by the heavy tests."""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pytest
import torch
from commands import run
from onnx_cases import MODELS, QUICK, RANKS, X, on_table, table

from entourage import FATE, FETA, Ranker
from entourage.baselines import BestColumn, LinearRanker, RandomRanker
from entourage.cli import main
from entourage.errors import UserError
from entourage.estimators.baselines.trees import Trees
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.plugins import model_class, model_names
from entourage.nets import Net, Scorer
from entourage.serving import to_onnx
from entourage.serving.onnx import ExportError
from entourage.serving.onnx import export as exports
from entourage.serving.onnx import graph as graphs
from entourage.serving.onnx.baselines import TreesOfFeatures
from entourage.serving.onnx.check import compare_with_model
from entourage.serving.onnx.graph import ModelGraph, scorer_of
from entourage.serving.onnx.sharing import architecture

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN_BY_HEAVY_TESTS = [
    "feta",
    "set attention, points",
    "ensemble",
    "table, marks",
    "blend, subset",
    "lambdamart",
]
WRITTEN_BY_LONG_TESTS = [
    "context-ablated",
    "monotone",
    "outside option",
    "nested logit",
    "latent class",
    "random regret",
    "contextual logit of alternatives",
]


@pytest.fixture(autouse=True)
def _without_axes(_axes):
    """Leave shapes unchecked while torch traces: then sizes are symbols, no numbers."""
    jaxtyping.config.update("jaxtyping_disable", True)


class Traced:
    """A graph that has not been exported, run as a session is."""

    def __init__(self, graph):
        self.graph = graph.eval()

    @torch.no_grad()
    def run(self, _, feeds):
        return [output.numpy() for output in self.graph(*map(torch.from_numpy, feeds.values()))]


class Wrong(Traced):
    """The same with an error in it."""

    def __init__(self, graph, change):
        super().__init__(graph)
        self.change = change

    def run(self, _, feeds):
        found = super().run(_, feeds)
        return [self.change(found[0], feeds), *found[1:]]


def trips():
    """A table with text, missing values and times of the order of 1e9 that differ by minutes."""
    frame = table(target="rank")
    rng = np.random.default_rng(1)
    times = 1_700_000_000 + 60 * rng.integers(0, 300, frame.num_rows)
    return frame.append_column("departure", pa.array(times.astype(np.float64)))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A ranker of a table with everything in it, its graph as the command writes it, and what the command says."""
    jaxtyping.config.update("jaxtyping_disable", True)
    model = Ranker(FATE(width=8, depth=1), **QUICK | {"steps": 20})
    model.fit(trips(), set_id="trip", target="chosen", situation=["weather", "hour"])
    folder = tmp_path_factory.mktemp("onnx")
    model.save(folder / "model.entourage")
    said = io.StringIO()
    arguments = ["entourage", "export", f"{folder}/model.entourage", "-o", f"{folder}/model.onnx"]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code
    return model, folder / "model.onnx", said.getvalue()


@pytest.mark.parametrize("kind", MODELS)
def test_a_graph_scores_as_its_model_does(kind):
    model = MODELS[kind]()
    graph = ModelGraph(model)
    single = kind.startswith(tuple(NETS))
    assert compare_with_model(model, graph, Traced(graph)) < (1e-5 if single else 1e-12)


NETS = (
    "fate",
    "context",
    "feta",
    "set attention",
    "ensemble",
    "monotone",
    "outside",
    "codes",
    "blend",
    "table,",
)


def test_a_blend_that_begins_with_trees_is_compared_on_features_like_those_that_its_nets_learnt_from():
    model = MODELS["blend, subset"]()
    model.blend_.parts.sort(key=lambda part: isinstance(part.models[0], NetEstimator))  # the net comes last
    objects, _ = ModelGraph(model).scorer.draw(200, 5, np.random.default_rng(0))
    learnt = (objects - X.mean((0, 1))) / X.std((0, 1))
    np.testing.assert_allclose(learnt.mean((0, 1)), 0.0, atol=0.2)
    np.testing.assert_allclose(learnt.std((0, 1)), 1.0, atol=0.2)


@pytest.mark.parametrize("name", model_names())
def test_every_model_that_a_file_can_hold_has_a_scorer(name):
    kind = model_class(name)
    assert issubclass(kind, (NetEstimator, *(own for kinds, _ in graphs._SCORERS for own in kinds)))


def axes_of(path):
    graph = onnx.load(path).graph
    return {
        value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }


def test_the_number_of_sets_and_their_size_are_symbols_of_the_graph(exported):
    assert axes_of(exported[1]) == {
        "objects": ["sets", "objects", 6],
        "mask": ["sets", "objects"],
        "situation": ["sets", 2],
        "scores": ["sets", "objects"],
        "probabilities": ["sets", "objects"],
    }


def test_no_path_of_this_machine_is_in_the_file(exported):
    assert exported[1].read_bytes().count(b".py") == 0
    assert exported[1].stat().st_size < 100_000


def test_the_reader_of_the_docs_scores_rows_as_the_model_does(exported):
    model, path, _ = exported
    code = re.search(r"```python\n(import json.*?)```", (DOCS / "export.md").read_text(), re.S)[1]
    names = {}
    exec(code, names)
    frame = trips().slice(0, 40).to_pylist()
    for row in frame[::3]:
        row["mode"], row["town"] = "rocket", "nowhere"  # levels never seen
    for row in frame[::5]:
        row["price"] = row["departure"] = row["quiet"] = None
    sets = {}
    for row in frame:
        sets.setdefault(row["trip"], []).append(row)
    rows = [row for own in sets.values() for row in own]
    found = names["Scorer"](path)([*sets.values()])
    wanted = model.predict_scores(pa.Table.from_pylist(rows))
    assert len(set(map(len, sets.values()))) > 1
    assert np.ptp(wanted) > 0.01
    assert np.abs(np.concatenate(found["scores"]) - wanted).max() < 1e-5
    first = model.predict_proba(pa.Table.from_pylist(rows))
    assert np.abs(np.concatenate(found["probabilities"]) - first).max() < 1e-5


def test_a_minute_of_a_time_of_1e9_seconds_is_not_lost(exported):
    _, path, _ = exported
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    objects = np.array([[[20.0, 1, 0, 0, 1, 1_700_000_000], [20.0, 1, 0, 0, 1, 1_700_000_060]]])
    feeds = {"objects": objects, "mask": np.ones((1, 2), dtype=bool), "situation": np.array([[0.0, 12.0]])}
    early, late = session.run(None, feeds)[0][0]
    assert abs(early - late) > 1e-4


@pytest.mark.filterwarnings("ignore:overflow")
def test_scores_that_are_not_finite_are_nan_in_a_graph_where_the_model_refuses_them():
    model = LinearRanker().fit(X, RANKS)
    model.coef_ = np.array([1e200, 1.0, 1.0])
    graph = Traced(ModelGraph(model))
    far = np.stack([X[0], X[1]])
    far[0, 0, 0] = 1e200
    with pytest.raises(UserError, match="not finite"):
        model.predict_scores(far)
    scores = graph.run(None, {"objects": far, "mask": np.ones((2, 4), dtype=bool)})[0]
    assert np.isnan(scores[0]).all()
    np.testing.assert_allclose(scores[1], model.predict_scores(far[1:])[0], rtol=1e-12)


def test_metadata_say_what_columns_and_outputs_are(exported):
    about = json.loads(onnx.load(exported[1]).metadata_props[0].value)
    assert about["task"] == "rank"
    assert about["outputs"] == ["scores", "probabilities"]
    assert about["columns"][2] == {"name": "mode", "kind": "text", "levels": ["bus", "car", "train"]}
    assert [column["name"] for column in about["situation"]] == ["weather", "hour"]


def test_a_mark_that_is_a_number_is_missing_within_the_graph():
    model = on_table(LinearRanker(), "rank", missing=["2", "car"])
    graph = ModelGraph(model)
    cells = torch.tensor([[[20.0, 2.0, 0, 0, 1, 0, 0], [20.0, torch.nan, 0, 0, 1, 0, 0]]]).double()
    assert [column.name for column in graph.columns][1] == "stops"
    features, valid = graph.objects(cells)
    assert torch.equal(features[0, 0], features[0, 1])
    assert valid.all()


def test_cells_that_are_none_are_refused_with_nan():
    graph = ModelGraph(on_table(LinearRanker(), "rank")).eval()
    good = torch.tensor([20.0, 1, 0, 0, 1, 0, 12]).double().repeat(5, 2, 1)
    bad = good.clone()
    for i, (column, cell) in enumerate([(0, torch.inf), (2, 3.0), (2, 0.5), (4, 2.0)]):  # no level, no flag
        bad[i, 1, column] = cell
    scores = graph(bad, torch.ones(5, 2, dtype=torch.bool))[0]
    assert scores[:4].isnan().all()
    assert torch.equal(scores[4], graph(good, torch.ones(5, 2, dtype=torch.bool))[0][4])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda scores, feeds: scores * (1 + 2e-5), "scores of sets of 1 objects by 2e-05"),
        (
            lambda scores, feeds: np.where(len(scores[0]) > 900, 0.0, scores),
            "scores of sets of 1,000 objects",
        ),
        (lambda scores, feeds: np.where(feeds["mask"], scores, 1.0), "padding"),
        (lambda scores, feeds: np.nan_to_num(scores), "infinite"),
    ],
)
def test_a_graph_that_differs_from_its_model_is_refused(change, said):
    model = LinearRanker().fit(X, RANKS)
    model.coef_ = model.coef_ + 3.0  # scores of some size
    graph = ModelGraph(model)
    with pytest.raises(ExportError, match=said):
        compare_with_model(model, graph, Wrong(graph, change))


def test_nothing_is_written_where_the_graph_differs(exported, tmp_path, monkeypatch):
    model, path, _ = exported
    monkeypatch.setattr(exports, "_exported", lambda graph: onnx.load(path))
    with pytest.raises(ExportError, match="differs from the model"):
        to_onnx(model, tmp_path / "model.onnx", tolerance=1e-9)  # less than single precision
    with pytest.raises(UserError, match="tolerance needs a number above 0"):
        model.to_onnx(tmp_path / "model.onnx", tolerance=0)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error_in_one_sentence(exported, tmp_path, monkeypatch):
    model, path, _ = exported
    monkeypatch.setattr(exports, "_exported", lambda graph: onnx.load(path))
    with pytest.raises(UserError, match="can't be written: No such file"):
        to_onnx(model, tmp_path / "nowhere" / "model.onnx")


def test_a_fixed_size_is_found(exported):
    proto = onnx.load(exported[1])
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    with pytest.raises(ExportError, match=r"fixed size: objects is double \(sets, 3, 6\)"):
        exports._check_axes(proto)


def test_what_has_no_graph_is_refused_with_the_reason(small_pretrained, tmp_path):
    for model, said in [
        (Ranker(FETA(width=4, order=2), **QUICK).fit(X, RANKS), r"FETA\(.*sub-contexts.*FETA\(order=1\)"),
        (
            Ranker("pretrained", validation=0).fit(X, RANKS),
            r"pretrained net can't be exported.* Ranker\(FATE",
        ),
        (RandomRanker().fit(X, RANKS), "RandomRanker can't be exported. What can be: Ranker"),
    ]:
        with pytest.raises(ExportError, match=said):
            model.to_onnx(tmp_path / "model.onnx")
    with pytest.raises(UserError, match="not fitted"):
        Ranker().to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_the_extra(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "PACKAGES", ("onnx", "onnx_of_mars"))
    with pytest.raises(UserError, match=r"needs onnx_of_mars: run pip install 'entourage\[onnx\]'"):
        exported[0].to_onnx(tmp_path / "model.onnx")


def test_the_command_says_what_it_wrote(exported):
    lines = exported[2].splitlines()
    assert lines[:3] == [
        "Input objects: double (sets, objects, 6)",
        "Input mask: bool (sets, objects)",
        "Input situation: double (sets, 2)",
    ]
    assert lines[3:5] == [f"Output {name}: double (sets, objects)" for name in ("scores", "probabilities")]
    found = re.fullmatch(
        r"Scores differ from the model's by (\S+) at most, .* of 1 to 1,000 objects\.", lines[5]
    )
    assert float(found[1]) < 1e-5
    assert lines[6] == f"{exported[1].stat().st_size / 1e6:.2f} MB: {exported[1]}"


def test_the_command_overwrites_no_model(exported, capsys):
    model = exported[1].with_name("model.entourage")
    code, _, err = run(capsys, "export", model, "-o", model)
    assert code == 2
    assert "also an input" in err


@pytest.mark.heavy
@pytest.mark.parametrize(
    "kind",
    [
        *WRITTEN_BY_HEAVY_TESTS,
        *[pytest.param(kind, marks=pytest.mark.slow) for kind in WRITTEN_BY_LONG_TESTS],
    ],
)
def test_a_written_graph_has_symbolic_axes_and_scores_as_its_model_does(kind, tmp_path):
    written = MODELS[kind]().to_onnx(tmp_path / "model.onnx")  # compares by itself, or raises
    for name, axes in axes_of(tmp_path / "model.onnx").items():
        alone = name in ("situation", "probability_of_nothing")
        assert axes[:2] == ["sets", axes[1]] if name == "situation" else axes[0] == "sets"
        assert alone or axes[1] == "objects"
    assert written.deviation < 1e-5


@pytest.mark.heavy
def test_models_of_one_architecture_share_a_function_and_keep_their_own_weights(tmp_path):
    model = MODELS["blend, of folds"]()
    written = model.to_onnx(tmp_path / "model.onnx")
    assert written.deviation < 1e-5
    proto = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(proto)
    calls = [node.op_type for node in proto.graph.node if node.domain == "entourage"]
    assert sorted(calls) == ["architecture_0"] * 2 + ["architecture_1"] * 2
    assert [function.name for function in proto.functions] == ["architecture_0", "architecture_1"]
    assert not any(node.metadata_props or node.doc_string for own in proto.functions for node in own.node)
    assert axes_of(tmp_path / "model.onnx")["scores"] == ["sets", "objects"]


def test_an_architecture_is_the_same_where_weights_alone_differ():
    def architecture_of(kind, **kwargs):
        return architecture(scorer_of(kind(**kwargs).fit(X * rng.uniform(0.5, 2.0), RANKS)))

    rng = np.random.default_rng(0)
    fate = architecture_of(Ranker, net=FATE(width=4), **QUICK)
    assert fate == architecture_of(Ranker, net=FATE(width=4), **QUICK | {"random_state": 1})
    assert fate != architecture_of(Ranker, net=FATE(width=5), **QUICK)
    assert fate != architecture_of(Ranker, net=FATE(width=4), relative=True, **QUICK)
    assert fate != architecture_of(Ranker, net=FATE(width=4), members=2, **QUICK)
    assert fate != architecture_of(LinearRanker)
    trees = TreesOfFeatures(Trees(*map(np.array, ([0], [0.5], [-1], [-2], [1.0, 2.0], [2]))))
    more = TreesOfFeatures(
        Trees(*map(np.array, ([0, 1], [0.5, 0.1], [-1, -1], [-2, -2], [1.0, 2.0, 3.0, 4.0], [2, 2])))
    )
    assert architecture(trees) == architecture(more)


@pytest.mark.heavy
def test_numbers_beyond_single_precision_are_finite_in_a_written_graph(tmp_path):
    model = BestColumn().fit(X, RANKS)
    model.to_onnx(tmp_path / "model.onnx")
    far = np.array([[[1e300] * 3, [-1e39] * 3, [2.0] * 3]])
    feeds = {"objects": far, "mask": np.ones((1, 3), dtype=bool)}
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(session.run(["scores"], feeds)[0], model.predict_scores(far), rtol=1e-12)


class OwnScorer(Scorer):
    """A net of a user's, with what a graph can't follow."""

    def __init__(self, fault):
        super().__init__()
        self.weight, self.fault = torch.nn.Parameter(torch.ones(3)), fault

    def forward(self, objects, mask=None):
        scores = objects @ self.weight
        if self.fault == "branch":
            scores = -scores if scores.sum() > 0 else scores
        elif self.fault == "fixed size":
            scores = scores * float(objects.shape[1])
        else:
            scores = scores - scores.mean(1, keepdim=True)  # the padding included
        return scores if mask is None else torch.where(mask, scores, 0.0)


class Own(Net):
    def __init__(self, fault="branch"):
        self.fault = fault

    def build(self, n_features, generator):
        return OwnScorer(self.fault)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("fault", "said"),
    [("branch", "torch can't turn"), ("fixed size", "fixed size"), ("padding", "differs from the model")],
)
def test_a_net_of_ones_own_that_has_no_right_graph_is_refused(fault, said, tmp_path):
    model = Ranker(Own(fault), **QUICK).fit(X, RANKS)
    with pytest.raises(ExportError, match=said):
        model.to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
