"""Every kind of model that a file can hold is served with the predictions that Python makes."""

import jaxtyping
import numpy as np
import pyarrow as pa
import pytest
from serving_cases import ask, hotel_chooser, hotels, packed, sets_in_json

from entourage import FATE, FETA, DiscreteChooser, Ranker, SubsetChooser, load
from entourage.baselines import BestColumnLogit, BoostedSubset, LinearRanker
from entourage.choice import (
    ContextualLogit,
    CrossNestedLogit,
    LatentClassLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.serving import create_app, to_onnx

NET = {"steps": 5, "random_state": 0}
MODELS = {
    "ranker": lambda: Ranker(FATE(width=4), **NET),
    "uncalibrated": lambda: Ranker(FETA(width=4), validation=0.0, **NET),
    "ensemble": lambda: Ranker(FATE(width=4), members=2, **NET),
    "relative": lambda: DiscreteChooser(FATE(width=4), relative=True, **NET),
    "outside": lambda: DiscreteChooser(FATE(width=4), outside=True, **NET),
    "subset": lambda: SubsetChooser(FATE(width=4), **NET),
    "pretrained": lambda: DiscreteChooser("pretrained", random_state=0),
    "linear": lambda: LinearRanker(),
    "column": lambda: BestColumnLogit(),
    "trees": lambda: BoostedSubset(),
    "logit": lambda: MultinomialLogit(l2=1.0),
    "mixed": lambda: MixedLogit([0], draws=10),
    "classes": lambda: LatentClassLogit(2, restarts=1),
    "regret": lambda: RandomRegret(),
}


def asked_by_the_pages(app):
    """Send each example of the pages; return what the first model can be asked."""
    asked = []
    for path, methods in ask(app, "/openapi.json", method="GET").json()["paths"].items():
        if "requestBody" in methods.get("post", {}):
            example = methods["post"]["requestBody"]["content"]["application/json"]["example"]
            answer = ask(app, path, example)
            assert answer.status_code == 200, (path, answer.text)
            asked.append(path)
    return [path.removeprefix("/v1/") for path in asked if path.count("/") == 2]


@pytest.mark.filterwarnings(
    "ignore::entourage.errors.DataWarning", "ignore:.*onverge", "ignore:Not identified"
)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_is_served_with_the_predictions_of_python(name, tmp_path, small_pretrained):
    situation = () if name in ("logit", "mixed", "classes", "regret") else ("nights", "device")
    kind = {"subset": "subset", "trees": "subset"}.get(name, "choice")
    left_out = [] if situation else ["nights", "device"]
    table = hotels(60).drop_columns(left_out)
    model = MODELS[name]().fit(
        table, set_id="trip", target="chosen", target_kind=kind, situation=list(situation) or None
    )
    path = tmp_path / "m.entourage"
    model.save(path)
    model, new = load(path), hotels(15, seed=1).drop_columns(left_out)
    app = create_app(path)
    asked = ["predict", "influence", "whatif"]
    assert asked_by_the_pages(app) == asked[: 2 if name in ("uncalibrated", "linear") else 3]
    found = ask(app, "/v1/predict", {"sets": sets_in_json(new, situation=situation)}).json()["sets"]
    np.testing.assert_allclose(packed(found, "scores"), model.predict_scores(new), atol=1e-5)
    if name in ("uncalibrated", "linear"):
        assert set(found[0]) == {"scores", "ranks"}
        np.testing.assert_array_equal(packed(found, "ranks"), model.predict(new))
        return
    np.testing.assert_allclose(packed(found, "probabilities"), model.predict_proba(new), atol=1e-5)
    if kind == "subset":
        np.testing.assert_array_equal(packed(found, "chosen"), model.predict(new))
    if name == "outside":
        for one in found:
            assert sum(one["probabilities"]) + one["probability_of_nothing"] == pytest.approx(1)
    elif kind == "choice":
        assert all(sum(one["probabilities"]) == pytest.approx(1) for one in found)


def cells_of(rows, columns):
    """Rows as a graph takes them: numbers, the places of levels (-1 for a text that is none), NaN where missing."""

    def cell(value, column):
        if value is None:
            return np.nan
        if "levels" not in column:
            return float(value)
        return column["levels"].index(value) if value in column["levels"] else -1.0

    return np.array([[cell(row[one["name"]], one) for one in columns] for row in rows])


@pytest.mark.heavy
def test_server_onnx_and_python_agree_on_tables_with_text_and_missing_values(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    jaxtyping.config.update("jaxtyping_disable", True)  # while torch traces, sizes are symbols
    model, new = hotel_chooser(), hotels(25, seed=1)
    new = new.set_column(
        new.column_names.index("brand"),
        "brand",
        [["new" if i % 9 == 0 else b for i, b in enumerate(new["brand"].to_pylist())]],
    )
    to_onnx(model, tmp_path / "m.onnx")
    app = create_app(model)
    about = ask(app, "/v1/model", method="GET").json()
    sets = sets_in_json(new)
    served = ask(app, "/v1/predict", {"sets": sets}).json()["sets"]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    python = np.split(model.predict_scores(new), np.cumsum([len(one["objects"]) for one in sets])[:-1])
    for given, answer, expected in zip(sets, served, python, strict=True):
        feeds = {
            "objects": cells_of(given["objects"], about["columns"])[None],
            "mask": np.ones((1, len(given["objects"])), dtype=bool),
            "situation": cells_of([given["situation"]], about["situation"]),
        }
        scores, probabilities = session.run(["scores", "probabilities"], feeds)
        np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
        np.testing.assert_allclose(scores[0], expected, atol=1e-5)
        np.testing.assert_allclose(answer["probabilities"], probabilities[0], atol=1e-5)


def of_alternatives(kind, k):
    """A model of alternatives by their ids, and sets of them."""
    rng = np.random.default_rng(0)
    ids = np.stack([rng.permutation(k) + 1 for _ in range(150)])
    y = rng.integers(0, k, 150)
    if kind in ("MultinomialLogit", "ContextualLogit"):
        made = {"MultinomialLogit": MultinomialLogit, "ContextualLogit": ContextualLogit}[kind]
        return made(alternatives=k, l2=1.0).fit(ids[..., None], y), ids[:9, :, None].astype(float)
    X = np.stack([rng.normal(size=ids.shape), 10.0 * ids], axis=2)
    if kind == "NestedLogit":
        return NestedLogit([[10, 20]], alternative=1).fit(X, y), X[:9]
    return CrossNestedLogit([[10, 20], [20, 30]], alternative=1).fit(X, y), X[:9]


@pytest.mark.filterwarnings(
    "ignore::entourage.errors.DataWarning", "ignore:.*onverge", "ignore:Not identified"
)
@pytest.mark.parametrize(
    ("kind", "k"),
    [
        ("MultinomialLogit", 4),
        ("MultinomialLogit", 2),
        ("ContextualLogit", 4),
        ("ContextualLogit", 2),
        ("NestedLogit", 3),
        ("CrossNestedLogit", 3),
    ],
)
def test_a_model_of_alternatives_is_served_with_ids_that_there_are(kind, k, tmp_path):
    model, new = of_alternatives(kind, k)
    model.save(tmp_path / "m.entourage")
    app = create_app(tmp_path / "m.entourage")
    answer = ask(app, "/v1/predict", {"sets": [{"objects": one} for one in new.tolist()]})
    np.testing.assert_allclose(
        packed(answer.json()["sets"], "scores"), model.predict_scores(new).ravel(), atol=1e-5
    )
    place, ids = (0, [1.0, 2.0, 3.0, 4.0][:k]) if "Nested" not in kind else (1, [10.0, 20.0, 30.0])
    assert ask(app, "/v1/model", method="GET").json()["alternatives"] == {str(place): ids}
    assert asked_by_the_pages(app) == ["predict", "influence", "whatif"][:: 2 if k == 2 else 1]
    wrong = new[0].tolist()
    wrong[0][place] = 77
    answer = ask(app, "/v1/predict", {"sets": [{"objects": wrong}]})
    assert answer.status_code == 422


@pytest.mark.filterwarnings(
    "ignore::entourage.errors.DataWarning", "ignore:.*onverge", "ignore:Not identified"
)
def test_alternatives_in_a_column_of_numbers_are_told_by_its_name():
    rng = np.random.default_rng(0)
    price, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    table = {
        "trip": np.repeat(np.arange(100), 3),
        "note": np.where(
            rng.random(300) < 0.1, np.nan, rng.normal(size=300)
        ),  # two features: a value, and whether
        "mode": np.tile([5, 7, 9], 100),
        "price": price.ravel(),
        "chosen": (np.arange(3) == y[:, None]).ravel().astype(int),
    }
    model = NestedLogit([[5, 7]], alternative="mode").fit(pa.table(table), set_id="trip", target="chosen")
    app = create_app(model)
    columns = {one["name"]: one for one in ask(app, "/v1/model", method="GET").json()["columns"]}
    assert columns["mode"]["alternatives"] == [5.0, 7.0, 9.0]
    assert "alternatives" not in columns["price"]
