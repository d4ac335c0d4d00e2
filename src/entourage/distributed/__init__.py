"""More than one machine: tuning and comparison on Ray.

Nothing here is imported by local runs. :func:`ray_engine` needs the extra ``[ray]``.
"""

from entourage.distributed.ray_engine import RayEngine, ray_engine

__all__ = ["RayEngine", "ray_engine"]
