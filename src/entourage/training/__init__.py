"""Training: the one loop for every net and every task, and what it needs of devices, batches and processes."""

from entourage.training.loop import Outcome, train
from entourage.training.plan import Plan

__all__ = ["Outcome", "Plan", "train"]
