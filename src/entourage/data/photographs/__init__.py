"""Photographs as sets of regions: cut, described and ranked by depth. Needs the extra ``[image]``.

Importing this asks for nothing; what needs scikit-image says so when it is called.
"""

from entourage.data.photographs.cues import CUE_NAMES, describe
from entourage.data.photographs.depth import DepthSets, cut, depth_ranks, make_depth_sets
from entourage.data.photographs.photographs import (
    Photograph,
    find_photographs,
    load_depth_pairs,
    load_make3d,
    load_middlebury,
    load_motorcycle,
)
from entourage.data.photographs.regions import Regions, grid_regions, region_distances, superpixels

__all__ = [
    "CUE_NAMES",
    "DepthSets",
    "Photograph",
    "Regions",
    "cut",
    "depth_ranks",
    "describe",
    "find_photographs",
    "grid_regions",
    "load_depth_pairs",
    "load_make3d",
    "load_middlebury",
    "load_motorcycle",
    "make_depth_sets",
    "region_distances",
    "superpixels",
]
