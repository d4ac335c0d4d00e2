"""The axes of every array, one letter each: n sets, m objects in a set, d features, k embedding.

To a type checker these are plain tensors. Where jaxtyping is installed (the tests install it) they
carry their axes, and the tests check them on every call; without it nothing is checked and nothing
is missing. Torch is not imported here: this room knows nothing of it.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Hidden", "Mask", "Objects", "PerSet", "Ranks", "Scores"]

if TYPE_CHECKING:
    from torch import Tensor

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
        Objects = Hidden = Scores = Ranks = Mask = PerSet = Any
    else:
        Objects = Float[Any, "n m d"]  # the objects of n sets, padded to m
        Hidden = Float[Any, "n m h"]  # a hidden state of each object
        Scores = Float[Any, "n m"]  # one utility for each object
        Ranks = Real[Any, "n m"]  # 0 = best, equal = tied, NaN or negative = not ranked
        Mask = Bool[Any, "n m"]  # True where there is an object, False in the padding
        PerSet = Float[Any, " n"]  # one value for each set
