"""More than one process or machine: training by torch.distributed, tuning and comparison on Ray.

Nothing here is imported by local runs. :func:`ray_engine` needs the extra ``[ray]``.
"""

from entourage.distributed.joining import launched_processes, processes
from entourage.distributed.launch import launch
from entourage.distributed.ray_engine import RayEngine, ray_engine

__all__ = ["RayEngine", "launch", "launched_processes", "processes", "ray_engine"]
