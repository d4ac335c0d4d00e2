"""Experiments by name: imported when they are run, options that mean nothing refused."""

import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest

from entourage.errors import ParameterError, UserError
from entourage.experiments.reproduce import EXPERIMENTS, reproduce
from entourage.experiments.rows import Options


def test_options_that_mean_nothing_are_refused(tmp_path):
    assert set(EXPERIMENTS) == {"table1", "table2", "sizes", "effects", "expressivity", "sf", "noguchi"}
    with pytest.raises(ParameterError, match="did you mean 'sizes'"):
        reproduce("size", tmp_path, Options())
    for name in ("effects", "expressivity"):
        with pytest.raises(UserError, match="nothing to tune"):
            reproduce(name, tmp_path, replace(Options(), tune=True))


def test_an_experiment_is_imported_when_it_is_run():
    """Every entry of the table has its function; none is imported before."""
    for name, module in EXPERIMENTS.items():
        assert callable(getattr(import_module(module), f"run_{name}"))
    code = "import sys; from entourage.experiments import reproduce; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not set(EXPERIMENTS.values()) & set(loaded)
