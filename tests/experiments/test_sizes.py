"""Sets of other sizes than those trained on."""

import json

import pytest

from entourage.experiments import sizes
from entourage.experiments.models import batches_of, model_jobs, training_data
from entourage.experiments.paper import read_claims
from entourage.experiments.rows import Options


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
