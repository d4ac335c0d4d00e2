"""San Francisco's modes of travel: rows, tables, and the entropy of the choices."""

import json
import math

import numpy as np
import pytest

from entourage.data.sets import Sets
from entourage.experiments import sf
from entourage.experiments.reproduce import reproduce
from entourage.experiments.rows import Options


@pytest.fixture
def trips(tmp_path):
    """Four modes, of which walking is good only where there is no bus."""
    rng = np.random.default_rng(0)
    lines = ["Choice,Drive,Bus,Bike,Walk"]
    for _ in range(300):
        there = np.array([1, rng.integers(2), 1, 1])
        utilities = np.where(there, [1.0, 0.5, 0.0, -2.0 * there[1]], -np.inf)
        chances = np.exp(utilities) / np.exp(utilities).sum()
        lines.append(f"{rng.choice(4, p=chances) + 1}," + ",".join(map(str, there)))
    folder = tmp_path / "trips"
    folder.mkdir()
    (folder / "pcmc_SFwork.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_sf_writes_rows_tables_picture_and_report_and_goes_on(tmp_path, trips, monkeypatch):
    monkeypatch.setitem(sf.BY_NUMBER, "steps", 5)
    models = ["multinomial logit", "contextual logit", "FATE"]
    options = Options(device="cpu", data=trips, tasks=["SFwork"], models=models)
    text = reproduce("sf", tmp_path / "out", options)
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 15
    assert sum(row["trips"] for row in rows if row["model"] == "FATE") == 300
    assert {row["parameters"] for row in rows if row["model"] == "multinomial logit"} == {3}
    assert "| *published: DeepHalo* | | 0.807 | |" in text
    assert "Miller and Madow" in text
    assert "SFshop" not in text
    assert (tmp_path / "out" / "sf.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "out" / "report.html").read_text()
    monkeypatch.setattr(sf, "run_jobs", None)  # nothing is left to do
    assert reproduce("sf", tmp_path / "out", options) == text


def test_context_in_trips_is_found_by_the_contextual_logit(tmp_path, trips):
    models = ["multinomial logit", "contextual logit"]
    sf.run_sf(tmp_path / "out", Options(device="cpu", data=trips, tasks=["SFwork"], models=models))
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    plain, contextual = ([r["nll"] for r in rows if r["model"] == name] for name in models)
    assert np.mean(contextual) < np.mean(plain)


def test_the_floor_is_the_entropy_given_the_set():
    """Of {1, 2} each is taken once, of {1, 2, 3} always 3: half the trips cost log 2; one frequency was fitted."""
    objects = np.array([[1], [2], [1], [2], [1], [2], [3], [1], [2], [3]], dtype=np.float32)
    ranks = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 0], dtype=np.float64)
    objects[2:4], ranks[2:4] = objects[[3, 2]], ranks[[3, 2]]  # the order of modes means nothing
    plain, corrected, error = sf.floor(Sets(objects, np.array([0, 2, 4, 7, 10]), ranks))
    assert plain == pytest.approx(math.log(2) / 2)
    assert corrected == pytest.approx(math.log(2) / 2 + 1 / 8)
    assert error == pytest.approx(math.log(2) / 2 / 2)
