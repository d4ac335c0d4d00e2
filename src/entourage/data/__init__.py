"""Data: sets of objects, and where they come from. No torch.

Photographs are :mod:`entourage.data.photographs`; they need the extra ``[image]``.
"""

from entourage.data import datasets, synthetic
from entourage.data.datasets import *
from entourage.data.encoder import TableEncoder
from entourage.data.memory_mapped import open_sets, write_sets
from entourage.data.profile import Profile, profile_of
from entourage.data.query_groups import sets_from_groups
from entourage.data.ranks import ranks_from_scores
from entourage.data.resampling import bootstrap_interval, fold_indices, sign_flip_p_value
from entourage.data.sets import Sets
from entourage.data.synthetic import *
from entourage.data.table_files import read_table, write_table

__all__ = [
    "Profile",
    "Sets",
    "TableEncoder",
    "bootstrap_interval",
    "fold_indices",
    "open_sets",
    "profile_of",
    "ranks_from_scores",
    "read_table",
    "sets_from_groups",
    "sign_flip_p_value",
    "write_sets",
    "write_table",
]
__all__ += datasets.__all__
__all__ += synthetic.__all__
