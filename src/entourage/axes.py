"""The axes of every array, one letter each: n sets, m objects in a set, d features, k embedding.

To a type checker these are plain tensors. Where jaxtyping is installed (the tests install it) they
carry their axes, and the tests check them on every call; without it nothing is checked and nothing
is missing.
"""

from typing import TYPE_CHECKING, TypeAlias

from torch import Tensor

__all__ = ["Hidden", "Mask", "Objects", "PerSet", "Ranks", "Scores"]

if TYPE_CHECKING:
    Objects: TypeAlias = Tensor
    Hidden: TypeAlias = Tensor
    Scores: TypeAlias = Tensor
    Ranks: TypeAlias = Tensor
    Mask: TypeAlias = Tensor
    PerSet: TypeAlias = Tensor
else:
    try:
        from jaxtyping import Bool, Float, Real
    except ImportError:
        Objects = Hidden = Scores = Ranks = Mask = PerSet = Tensor
    else:
        Objects = Float[Tensor, "n m d"]  # the objects of n sets, padded to m
        Hidden = Float[Tensor, "n m h"]  # a hidden state of each object
        Scores = Float[Tensor, "n m"]  # one utility for each object
        Ranks = Real[Tensor, "n m"]  # 0 = best, equal = tied, NaN or negative = not ranked
        Mask = Bool[Tensor, "n m"]  # True where there is an object, False in the padding
        PerSet = Float[Tensor, " n"]  # one value for each set
