"""How the pretrained net was made: the simulated worlds it learnt from and its training."""

from entourage.pretraining.prior import Shape, Worlds, draw_worlds

__all__ = ["Shape", "Worlds", "draw_worlds"]
