"""The benchmark of the pretrained net: what its readers find, draws, the ridge logit, rows and the table."""

import json

import numpy as np
import pytest
import torch
from data_files import REAL, real
from scipy.optimize import minimize

from benchmarks.pretrained.draws import draw, inner_folds, room
from benchmarks.pretrained.models import MODELS, best_scale, linear_view
from benchmarks.pretrained.ridge import Stages, fit_ridge, spread_within_sets
from benchmarks.pretrained.run import Job, list_jobs, read_rows, run_jobs
from benchmarks.pretrained.scores import main_values, scores_of
from benchmarks.pretrained.show import paired, print_table
from benchmarks.pretrained.tables import TABLES, Table, load_table
from entourage.data.sets import Sets
from entourage.losses import plackett_luce_loss
from entourage.selection.candidates import LinearLogit

COUNTS = [  # table, folder, sets, people, columns, columns of the situation
    ("noguchi", "noguchi_stewart_2014", 2_790, 93, 2, 0),
    ("swissmetro", "swissmetro", 6_768, 752, 7, 17),
    ("sf_work", "sf_mode_choice", 5_029, 4_151, 11, 13),
    ("sf_shop", "sf_mode_choice", 3_157, 2_150, 12, 8),
    ("car_choice", "car_choice", 4_654, 4_654, 19, 3),
    ("formula1", "f1_races", 514, 27, 11, 0),
]


def simulated(kind: str, n: int = 120, seed: int = 0) -> Table:
    """Return sets with a linear utility, three a person."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4, 3)) * [1.0, 10.0, 0.1]
    noisy = X @ [1.0, -0.1, 0.0] + rng.gumbel(size=(n, 4))
    ranks = (-noisy).argsort(1).argsort(1).astype(float)
    sets = Sets.from_array(X, ranks if kind == "rank" else (ranks > 0).astype(float))
    return Table("simulated", kind, sets, np.arange(n) // 3)


@pytest.mark.parametrize(("name", "folder", "n_sets", "people", "columns", "about"), COUNTS)
def test_readers_find_the_documented_sets(name, folder, n_sets, people, columns, about):
    real(folder)
    table = load_table(name, REAL)
    sets = table.sets
    assert (len(sets), len(np.unique(table.groups()))) == (n_sets, people)
    assert (sets.n_features, sets.n_situation_features) == (columns, about)
    assert np.isfinite(sets.objects).all()
    if table.kind == "choice":
        assert (np.add.reduceat(sets.targets == 0, sets.offsets[:-1]) == 1).all()


def test_attributes_of_noguchi_and_stewart_trade_off_in_every_product():
    real("noguchi_stewart_2014")
    x = load_table("noguchi", REAL).sets.objects.astype(float)
    assert np.corrcoef(x.T)[0, 1] < -0.8
    assert np.allclose((x.mean(0), x.std(0)), ([0, 0], [1, 1]), atol=1e-6)


def test_no_person_is_labelled_and_tested_and_fewer_sets_are_the_first_of_more():
    table = simulated("choice")
    few, test = draw(table, 10, seed=3)
    more, same = draw(table, 60, seed=3)
    assert np.array_equal(test, same)
    assert np.array_equal(few, more[:10])
    assert not np.intersect1d(table.groups()[more], table.groups()[test]).size
    assert 40 <= len(test) <= 42
    assert room(table) <= 120 - len(test)
    assert not np.array_equal(draw(table, 10, seed=4)[0], few)
    for inside, outside in inner_folds(table, more, 5, 0):
        assert not np.intersect1d(table.groups()[inside], table.groups()[outside]).size
        assert len(inside) + len(outside) == 60


@pytest.mark.parametrize("kind", ["choice", "rank"])
@pytest.mark.parametrize("l2", [0.5, 30.0])
def test_the_ridge_logit_is_the_optimum_that_scipy_finds(kind, l2):
    table = simulated(kind)
    stages = Stages.of(table.sets, kind)
    (w,) = fit_ridge(stages, (l2,))
    spread = spread_within_sets(stages)
    X = torch.tensor(table.sets.to_array(), dtype=torch.float64)
    ranks = torch.tensor(table.sets.targets.reshape(120, 4), dtype=torch.float64)
    mask = torch.ones(120, 4, dtype=torch.bool)

    def objective(b):
        scores = X @ torch.tensor(b / spread)
        if kind == "rank":
            loss = plackett_luce_loss(scores, ranks, mask).sum()
        else:
            loss = -scores.log_softmax(1)[ranks == 0].sum()
        return float(loss) + 0.5 * l2 * b @ b

    best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
    assert np.allclose(w * spread, best.x, atol=1e-4)
    assert objective(w * spread) <= best.fun + 1e-9


def test_the_ridge_logit_equals_the_penalised_logit_of_the_library_along_the_path():
    sets = simulated("choice").sets
    penalties = (0.1, 3.0, 1000.0)
    for l2, w in zip(penalties, fit_ridge(Stages.of(sets, "choice"), penalties), strict=True):
        assert np.allclose(w, LinearLogit(l2=l2).fit(sets).coef_, rtol=1e-4, atol=1e-6)


def test_a_column_that_varies_in_no_labelled_set_has_weight_0():
    X = np.random.default_rng(0).normal(size=(20, 3, 2))
    X[..., 1] = 7.0
    (w,) = fit_ridge(Stages.of(Sets.from_array(X, np.tile([0.0, 1.0, 1.0], (20, 1))), "choice"), (1.0,))
    assert w[1] == 0


def test_scores_equal_the_arithmetic_by_hand_in_ragged_sets():
    choices = Sets.from_list([np.zeros((2, 1)), np.zeros((3, 1))], [[1.0, 0.0], [0.0, 1.0, 1.0]])
    u = np.log([1.0, 3.0, 2.0, 1.0, 1.0])
    assert np.allclose(main_values("choice", choices, u), np.log([3 / 4, 2 / 4]))
    ranked = Sets.from_list([np.zeros((2, 1)), np.zeros((3, 1))], [[1.0, 0.0], [0.0, 2.0, 1.0]])
    expected = [np.log(3 / 4) / 2, (np.log(2 / 4) + np.log(1 / 2)) / 3]
    assert np.allclose(main_values("rank", ranked, u), expected)
    assert scores_of("rank", ranked, u).keys() == {"log_likelihood", "kendall_tau", "ndcg"}


@pytest.mark.parametrize("kind", ["choice", "rank"])
@pytest.mark.parametrize("name", ["ridge", "ridge contextual"])
def test_linear_models_beat_uniform_on_linear_worlds(kind, name):
    table = simulated(kind)
    train, test = draw(table, 60, 0)
    held_out = table.sets[test]
    found = MODELS[name](table, train, test, 0)
    uniform = MODELS["uniform"](table, train, test, 0)
    gain = main_values(kind, held_out, found.utilities) - main_values(kind, held_out, uniform.utilities)
    assert gain.mean() > 0.05
    assert 0.1 <= found.settings["l2"] <= 1000


def test_the_interacted_view_multiplies_indicators_with_the_situation():
    X = np.zeros((4, 2, 2))
    X[:, 0, 0], X[:, 1, 1] = 1.0, 5.0
    sets = Sets.from_array(X, np.tile([0.0, 1.0], (4, 1)), np.array([[0.0], [2.0], [0.0], [2.0]]))
    table = Table("two", "choice", sets, None, indicators=(0,))
    found = linear_view(table, "ridge interacted", np.arange(4)).objects
    assert found[:, 2].tolist() == [-1, 0, 1, 0, -1, 0, 1, 0]


def test_utilities_of_an_overfitted_model_are_shrunk_and_never_blown_up():
    rng = np.random.default_rng(0)
    sets = simulated("choice").sets
    assert best_scale("choice", sets, 10 * rng.normal(size=480))[0] < 0.05
    assert best_scale("choice", sets, -1e-3 * sets.targets)[0] == pytest.approx(1.0, abs=1e-3)


def test_rows_are_resumed_in_order_of_draws_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TABLES, "simulated", lambda data: simulated("choice"))
    jobs = list_jobs(["simulated"], [16, 1000], [0, 1], ["uniform", "ridge"], tmp_path)
    assert [job.seed for job in jobs] == [0, 0, 1, 1]
    assert "1000 labelled sets are left out" in capsys.readouterr().out
    rows = tmp_path / "rows.jsonl"
    assert run_jobs(jobs[:3], tmp_path, rows) == 3
    assert set(read_rows(rows)) == set(jobs[:3])
    assert run_jobs(jobs, tmp_path, rows, seconds=0) == 0
    run_jobs([job for job in jobs if job not in read_rows(rows)], tmp_path, rows)
    assert len(rows.read_text().splitlines()) == 4
    row = json.loads(rows.read_text().splitlines()[-1])
    assert Job(row["table"], row["sets"], row["seed"], row["model"]) == jobs[-1]
    ours = [{**row, "model": "pretrained"} for row in read_rows(rows).values() if row["model"] == "uniform"]
    print_table([*read_rows(rows).values(), *ours])
    shown = capsys.readouterr().out
    assert "best or level for N ≤ 300 (1 cells, best in 0)" in shown
    assert "by fine-tuning (0 cells): no rows yet" in shown
    assert "MISSED in 1: simulated N=16" in shown


def test_paired_differences_use_the_draws_that_both_have():
    mean, low, high, n = paired({0: 1.0, 1: 3.0, 5: 9.0}, {0: 0.0, 1: 0.0, 2: 7.0})
    assert (mean, n) == (2.0, 2)
    assert high - 2.0 == pytest.approx(12.706, abs=1e-2)  # t of one degree of freedom, standard error 1
    assert low == pytest.approx(4.0 - high)
