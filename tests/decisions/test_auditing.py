"""The audit: it finds what breaks a rule and nothing else, names the rows, and its commands print the same."""

import json

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from pyarrow import csv

from entourage import ContextFree, DiscreteChooser
from entourage.choice import MultinomialLogit
from entourage.decisions import Market, audit, elasticities
from entourage.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3, 2))
Y = (X @ [1.0, -2.0] + RNG.gumbel(size=(200, 3))).argmax(1)


@pytest.fixture(scope="module")
def logit():
    return MultinomialLogit().fit(X, Y)


def test_a_logit_breaks_no_rule_or_breaks_it_everywhere(logit):
    found = audit(logit, X, {0: 1, 1: -1}, [(0, 1)])
    assert found.passed
    assert found.to_frame().num_rows == 0
    wrong = audit(logit, X, {1: 1})
    check = wrong.signs[0]
    assert (check.gradient.share, check.move.share, check.monotone.share) == (1.0, 1.0, 1.0)
    assert not wrong.passed
    step = check.range[1] - check.range[0]
    assert check.move.largest == pytest.approx(-logit.coef_[1] * 0.1 * step, rel=0.5)
    assert wrong.to_frame().num_rows == 3 * 600


class Hump(MultinomialLogit):
    """A utility that falls with the price up to 1 and rises beyond."""

    def _packed_scores(self, sets):
        x = sets.objects.astype(np.float64)
        return x[:, 0] - np.minimum(x[:, 1], 2 - x[:, 1])


def test_the_rows_that_break_a_rule_are_those_beyond_the_bend():
    model = Hump().fit(X, Y)
    found = audit(model, X, {1: -1}, most_offenders=5).signs[0]
    assert not Market(model).has_gradient  # the closed form of its parent would not see the bend
    beyond = np.flatnonzero(X[..., 1].ravel() > 1.0)
    near = np.flatnonzero(np.abs(X[..., 1].ravel() - 1.0) < 0.05)
    assert set(found.gradient.rows) - set(near) == set(beyond) - set(near)
    assert found.monotone.share == 1.0  # the range holds the bend, whatever the object's own price
    assert len(found.gradient.worst) == 5
    assert all(one.value > 0.9 for one in found.gradient.worst)
    assert all(X[one.set, one.row % 3, 1] == one.value for one in found.gradient.worst)


def test_trade_offs_beyond_their_bounds_are_named(logit):
    ratio = -logit.coef_[0] / logit.coef_[1]
    within = audit(logit, X, {}, {(0, 1): (ratio - 0.01, ratio + 0.01)})
    assert within.passed
    found = audit(logit, X, {}, {(0, 1): (ratio + 0.1, ratio + 1)}).trade_offs[0]
    assert found.implausible.share == 1.0
    assert found.given
    assert found.implausible.worst[0].amount == pytest.approx(ratio)
    assert found.implausible.largest == pytest.approx(0.1)


def test_a_sample_of_sets_keeps_the_rows_of_the_whole(logit):
    found = audit(logit, X, {1: 1}, most_sets=20)
    assert found.objects == 60
    assert found.sets == 20
    assert found.to_frame()["row"].to_numpy().max() > 60


def test_sets_of_one_object_are_not_judged(logit):
    found = audit(logit, [X[0], X[1][:1]], {1: -1}).signs[0]
    assert found.gradient.checked == 3


def test_an_indicator_goes_from_0_to_1():
    flags = X.copy()
    flags[..., 1] = X[..., 1] > 1.8  # rare: the quantiles of its range are both 0
    model = MultinomialLogit().fit(flags, (flags @ [1.0, -2.0] + RNG.gumbel(size=(200, 3))).argmax(1))
    found = audit(model, flags, {1: 1}).signs[0]
    assert (found.range, found.step) == ((0.0, 1.0), 1.0)
    assert found.gradient.largest == pytest.approx(-model.coef_[1])


def test_rules_that_make_no_sense_are_refused(logit):
    with pytest.raises(ParameterError, match="1 or -1"):
        audit(logit, X, {1: 0})
    with pytest.raises(ParameterError, match="Nothing to audit"):
        audit(logit, X, {})
    with pytest.raises(ParameterError, match="low, high"):
        audit(logit, X, {}, {(0, 1): (2.0, 1.0)})


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trips")
    order = np.random.default_rng(1).permutation(600)
    columns = {
        "trip": np.repeat(np.arange(200), 3),
        "mode": np.tile(["train", "car", "bus"], 200),
        "time": X[..., 0].ravel(),
        "price": 10 + X[..., 1].ravel(),
        "picked": (np.arange(3) == Y[:, None]).astype(int).ravel(),
    }
    table = pa.table({name: values[order] for name, values in columns.items()})
    csv.write_csv(table, folder / "trips.csv")
    model = MultinomialLogit(l2=0.1).fit(table, set_id="trip", target="picked", target_kind="choice")
    model.save(folder / "logit")
    return folder, table, model


def test_the_command_elasticities_prints_what_python_returns(trips, capsys):
    folder, table, model = trips
    page = folder / "page.html"
    files = [folder / "logit", folder / "trips.csv", "--by", "mode", "--draws", 20]
    more = ["--wtp", "time", "--diversion", "removal", "--demand", 5, "--where", 'mode=="car"']
    code, out, err = run(capsys, "elasticities", *files, *more, "-o", page)
    assert code == 0, err
    assert "Own elasticity of price" in out
    assert "Willingness to pay" in out
    assert "<img" in page.read_text()
    code, out, _ = run(capsys, "elasticities", *files, "--json")
    expected = elasticities(model, table, "price", by="mode", draws=20)
    assert json.loads(out)["elasticities"]["own"]["value"] == pytest.approx(expected.estimate.value)
    code, _, err = run(capsys, "elasticities", *files[:2], "--feature", "prise")
    assert code == 2
    assert "did you mean 'price'" in err


def test_the_command_audit_reports_and_fails_on_request(trips, capsys):
    folder, _, _ = trips
    files = [folder / "logit", folder / "trips.csv", "-o", folder / "audit.html"]
    code, out, err = run(capsys, "audit", *files, "--sign", "price=-1", "--trade-off", "time/price")
    assert code == 0, err
    assert "no violation" in out
    assert "price" in (folder / "audit.html").read_text()
    code, out, _ = run(capsys, "audit", *files, "--sign", "price=+1", "--strict")
    assert code == 1
    assert "lowers demand for 100.0 %" in out
    code, out, _ = run(capsys, "audit", *files, "--trade-off", "time/price=5:6", "--json")
    assert json.loads(out)["trade_offs"][0]["implausible"]["share"] == 1.0
    code, _, err = run(capsys, "audit", *files, "--sign", "price")
    assert code == 2
    assert "--sign price=-1" in err


def test_an_untrained_net_is_caught():
    net = DiscreteChooser(ContextFree(width=8), steps=2, validation=0, random_state=1, device="cpu").fit(X, Y)
    found = audit(net, X, {0: 1, 1: -1})
    assert not found.passed
    assert "violations found" in str(found)
