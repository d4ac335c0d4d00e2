"""Every kind of model that a file can hold is served with the predictions that Python makes."""

import numpy as np
import pytest
from serving_cases import ask, hotels, packed, sets_in_json

from entourage import FATE, FETA, DiscreteChooser, Ranker, SubsetChooser, load
from entourage.baselines import BestColumnLogit, BoostedSubset, LinearRanker
from entourage.choice import LatentClassLogit, MixedLogit, MultinomialLogit, RandomRegret
from entourage.serving import create_app

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
    found = ask(create_app(path), "/v1/predict", {"sets": sets_in_json(new, situation=situation)}).json()[
        "sets"
    ]
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
