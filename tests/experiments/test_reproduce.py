"""Experiments by name: imported when they are run, options that mean nothing refused."""

import sys
from dataclasses import replace
from importlib import import_module, reload

import pytest

from entourage import experiments
from entourage.errors import ParameterError, UserError
from entourage.experiments.reproduce import EXPERIMENTS, reproduce
from entourage.experiments.rows import Options


def test_options_that_mean_nothing_are_refused(tmp_path):
    assert set(EXPERIMENTS) == {
        *("table1", "table2", "sizes", "effects", "expressivity", "sf", "noguchi", "hvc")
    }
    with pytest.raises(ParameterError, match="did you mean 'sizes'"):
        reproduce("size", tmp_path, Options())
    for name in ("effects", "expressivity"):
        with pytest.raises(UserError, match="nothing to tune"):
            reproduce(name, tmp_path, replace(Options(), tune=True))


def test_an_experiment_is_imported_when_it_is_run(monkeypatch):
    for name, module in EXPERIMENTS.items():
        assert callable(getattr(import_module(module), f"run_{name}")), "every entry has its function"
        monkeypatch.setattr(experiments, name, sys.modules[module])  # both are restored
        monkeypatch.delitem(sys.modules, module)
    reload(sys.modules["entourage.experiments.reproduce"])
    reload(experiments)
    assert not set(EXPERIMENTS.values()) & set(sys.modules)
    with pytest.raises(UserError, match="nothing to tune"):
        reproduce("expressivity", None, Options(tune=True))
    assert set(EXPERIMENTS.values()) & set(sys.modules) == {EXPERIMENTS["expressivity"]}
