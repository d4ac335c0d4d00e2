"""The appendix: sizes, effects and expressivity."""

import json
from dataclasses import replace

import numpy as np
import pytest

from entourage.data.synthetic.context_effects import (
    EFFECTS,
    effect_utilities,
    make_context_effect,
    third_objects,
)
from entourage.errors import ParameterError, UserError
from entourage.experiments import effects, expressivity, sizes
from entourage.experiments.expressivity import construct, count_all, count_reachable, queries, rank_all
from entourage.experiments.models import batches_of, model_jobs, training_data
from entourage.experiments.paper import read_claims
from entourage.experiments.reproduce import EXPERIMENTS, reproduce
from entourage.experiments.rows import Options

# --- sizes ------------------------------------------------------------------------------------------


@pytest.fixture
def small_sizes(monkeypatch):
    claims = read_claims("sizes") | {"sizes": [3, 5, 8]}
    claims["modes"]["quick"] |= {"n_train": 200, "n_test": 100, "most_steps": 20}
    monkeypatch.setattr(sizes, "read_claims", lambda name: claims)
    return claims


def test_sizes_writes_numbers_pictures_and_a_report(tmp_path, small_sizes):
    options = Options(models=["ERR", "FATE-Net", "FATE-Net, sizes 3-8"], device="cpu")
    text = sizes.run_sizes(tmp_path, options)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert set(rows[0]["ranking_accuracy"]) == {"3", "5", "8"}
    assert "| objects | 3 | 5 | 8 |" in text
    assert "| FATE-Net, sizes 3-8 | " in text
    assert (tmp_path / "sizes.png").stat().st_size > 10_000
    assert (tmp_path / "sizes.svg").exists()
    assert "RankSVM are no better than guessing" in text
    assert "data:image/png" in (tmp_path / "report.html").read_text()


def test_variants_train_on_as_many_sets_of_mixed_sizes(small_sizes):
    jobs = list(model_jobs(small_sizes, Options(), name="sizes", folder=""))
    mixed = next(job for job in jobs if job.model == "FETA-Net, sizes 3-8")
    data = training_data(mixed)
    assert len(data) == 200
    assert set(data.sizes) == {3, 4, 5, 6, 7, 8}
    assert mixed.kind == "FETA-Net"


def test_context_free_models_alone_get_no_verdict():
    claims = {"context_free": ["ERR"], "sizes": [3]}
    assert "Nothing to compare" in sizes._verdict(claims, {"medoid": {"ERR": [(0.5, 0.0)]}})
    assert "Nothing to compare" in sizes._verdict(claims, {"medoid": {"FATE-Net": [(0.5, 0.0)]}})
    both = {"medoid": {"ERR": [(0.5, 0.0)], "FATE-Net": [(0.9, 0.0)]}}
    assert "above every context-free model" in sizes._verdict(claims, both)


def test_a_net_below_a_context_free_model_is_named():
    claims = {"context_free": ["ERR"], "sizes": [3, 24]}
    curves = {"medoid": {"ERR": [(0.5, 0.0), (0.8, 0.0)], "FATE-Net": [(0.9, 0.0), (0.7, 0.0)]}}
    assert sizes.below_context_free(claims, curves) == ["medoid: FATE-Net with 0.700 at size 24 (best 0.800)"]


def test_repetitions_are_trained_together_only_on_a_gpu(monkeypatch, small_sizes):
    jobs = list(model_jobs(small_sizes, Options(repetitions=3), name="sizes", folder=""))
    assert {len(batch) for batch in batches_of(jobs, Options(device="cpu"))} == {1}

    class Device:
        type = "cuda"

    monkeypatch.setattr("entourage.experiments.models.find_device", lambda device: Device)
    batches = batches_of(jobs, Options())
    assert {len(batch) for batch in batches} == {3}
    assert {len({(j.task, j.model) for j in batch}) for batch in batches} == {1}
    assert sum(map(len, batches)) == len(jobs)
    assert {len(batch) for batch in batches_of(jobs, Options(workers=2))} == {1}


# --- effects ----------------------------------------------------------------------------------------


def test_two_objects_are_under_no_effect_but_for_twins():
    X = np.array([[[0.3, 0.72], [0.68, 0.3]]])
    for effect in ("compromise", "attraction"):
        utilities = effect_utilities(X, effect)
        assert (utilities[0, 0] - utilities[0, 1]) == pytest.approx(0.51 - 0.49)


def test_the_effects_by_hand():
    a, b = [0.2, 0.8], [0.6, 0.4]
    extreme, decoy, twin = [1.0, 0.0], [0.5, 0.3], [0.6, 0.4]
    # the middle of what is on offer is (0.6, 0.4): B stands in it, A 0.4 + 0.4 away
    assert effect_utilities(np.array([[a, b, extreme]]), "compromise")[0] == pytest.approx(
        [0.5 - 0.4 * 0.8, 0.5, 0.5 - 0.4 * 0.8]
    )
    # B dominates the decoy from a distance of 0.1 + 0.1
    assert effect_utilities(np.array([[a, b, decoy]]), "attraction")[0] == pytest.approx(
        [0.5, 0.5 + 0.4 * np.exp(-0.2 / 0.24), 0.4]
    )
    far = np.exp(-0.32 / (2 * 0.12**2))
    assert effect_utilities(np.array([[a, b, twin]]), "similarity")[0] == pytest.approx(
        [0.5 - 0.4 * 2 * far, 0.5 - 0.4 * (1 + far), 0.5 - 0.4 * (1 + far)]
    )


@pytest.mark.parametrize(("effect", "favours_b"), [("compromise", 1), ("attraction", 1), ("similarity", 0)])
def test_a_textbook_c_pushes_b_the_way_the_appendix_says(effect, favours_b):
    X = third_objects(effect, 500, random_state=0)
    before, after = effect_utilities(X[:, :2], effect), effect_utilities(X, effect)
    assert 0.3 < (before[:, 1] > before[:, 0]).mean() < 0.7
    assert ((after[:, 1] > after[:, 0]) == favours_b).mean() > 0.99


def test_no_place_of_an_object_says_which_it_is():
    sets = make_context_effect("attraction", 2000, random_state=0)
    first = np.array([s[0, 0] for s in sets.to_list()])
    assert 0.4 < (first > 0.5).mean() < 0.6
    assert sorted(set(sets.sizes)) == [2, 3]


def test_reversals_are_counted_as_the_legend_says():
    class Oracle:
        def predict_scores(self, X):
            return effect_utilities(X, "similarity")

    class Blind:
        def predict_scores(self, X):
            return X.mean(2)

    X = third_objects("similarity", 400, random_state=1)
    right = effects.reversals(Oracle(), X, "similarity")
    assert (right["followed"], right["turned_wrongly"]) == (1.0, 0.0)
    assert 0.3 < right["turned"] < 0.7
    assert effects.reversals(Blind(), X, "similarity")["followed"] == 0.0


def test_effects_writes_table_panels_and_report(tmp_path, monkeypatch):
    claims = read_claims("effects")
    claims["modes"]["quick"] |= {"n_train": 300, "n_test": 200, "steps": 10}
    monkeypatch.setattr(effects, "read_claims", lambda name: claims)
    text = effects.run_effects(tmp_path, Options(device="cpu"))
    assert text.count("RankNet") == 3
    assert set(EFFECTS) == {line.split("|")[1].strip() for line in text.splitlines() if "RankNet" in line}
    assert (tmp_path / "effects.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "report.html").read_text()
    only = effects.run_effects(tmp_path / "only", Options(device="cpu", models=["RankNet"]))
    assert "FATE" not in only


# --- expressivity -----------------------------------------------------------------------------------


def test_every_ranking_function_on_three_objects_is_constructed():
    assert expressivity._try_constructions(3, 100, np.random.default_rng(0)) == (48, 48)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_random_ranking_functions_are_constructed(n):
    rng = np.random.default_rng(n)
    rho = expressivity.random_ranking_function(n, rng)
    assert len(rho) == 2**n - n - 1
    assert rank_all(construct(rho, n), n) == rho


def test_a_preference_that_turns_round_needs_context():
    """A before B by themselves, B before A beside C: no order of fixed utilities does that."""
    rho = {frozenset(q): tuple(q) for q in [(0, 1), (0, 2), (1, 2)]} | {frozenset({0, 1, 2}): (1, 0, 2)}
    weights = expressivity._scores(3, 0)
    assert not expressivity._feasible(weights, rho)
    assert expressivity._feasible(expressivity._scores(3, 1), rho)


def test_counts_on_few_objects_agree_with_asking_about_each():
    rng = np.random.default_rng(0)
    assert count_reachable(2, 0, rng)[0] == count_reachable(2, 1, rng)[0] == 2
    assert count_reachable(3, 0, rng)[0] == 6, "the orders of three objects"
    every = [
        rho
        for rho in expressivity._decode(3, np.arange(8), 3)
        if expressivity._feasible(expressivity._scores(3, 1), rho)
    ]
    assert count_reachable(3, 1, rng)[0] == len(every) * 6 == count_all(3)


def test_samples_are_numbered_as_they_are_decoded():
    rng = np.random.default_rng(5)
    weights = expressivity._scores(4, 2)
    drawn = rng.normal(size=(20, len(expressivity._variables(4, 2))))
    for values, code in zip(drawn, expressivity._codes(4, weights, drawn), strict=True):
        score = {key: float(row @ values) for key, row in weights.items()}
        whole = sorted(range(4), key=lambda i: -score[frozenset(range(4)), i])
        name = {old: new for new, old in enumerate(whole)}
        renamed = {
            frozenset(name[i] for i in q): tuple(name[i] for i in sorted(q, key=lambda i: -score[q, i]))
            for q in queries(4)
        }
        assert renamed == next(expressivity._decode(4, np.array([code]), 10))


def test_expressivity_writes_both_tables(tmp_path):
    text = reproduce("expressivity", tmp_path, Options(tasks=["N = 2", "N = 3"]))
    assert "| N = 3 | 48 | 6 (12.500%) | 48 (100.000%) | 48 (100.000%) |" in text
    assert "| N = 3 | 4 | 48 | 48 |" in text
    assert (tmp_path / "report.html").exists()


def test_options_that_mean_nothing_are_refused(tmp_path):
    assert set(EXPERIMENTS) == {"table1", "table2", "sizes", "effects", "expressivity", "sf", "noguchi"}
    with pytest.raises(ParameterError, match="did you mean 'sizes'"):
        reproduce("size", tmp_path, Options())
    for name in ("effects", "expressivity"):
        with pytest.raises(UserError, match="nothing to tune"):
            reproduce(name, tmp_path, replace(Options(), tune=True))
