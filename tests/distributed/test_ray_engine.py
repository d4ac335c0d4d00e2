"""Ray as an engine of the one pool."""

import subprocess
import sys


def test_what_runs_here_never_imports_ray():
    code = """
import sys
import entourage.cli.program, entourage.distributed, entourage.selection
from entourage.training.parallel import open_pool
with open_pool(abs) as pool:
    assert dict(pool.run([-1])) == {-1: 1}
sys.exit("ray" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
