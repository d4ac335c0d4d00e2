"""The paper's tables and figures and other experiments, run again beside what was published."""

from entourage.experiments.reproduce import EXPERIMENTS, reproduce
from entourage.experiments.rows import Options

__all__ = ["EXPERIMENTS", "Options", "reproduce"]
