"""The explorer: see context act, live, in one page."""

from entourage.serving.explorer.page import Explorer, Preset, explore

__all__ = ["Explorer", "Preset", "explore"]
