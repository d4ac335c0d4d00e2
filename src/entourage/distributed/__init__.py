"""More than one process or machine: training by torch.distributed, tuning and comparison on Ray.

Local runs start neither, and don't import Ray. :func:`ray_engine` needs the extra ``[ray]``.
"""

from entourage.distributed.joining import launched_processes, processes
from entourage.distributed.launch import launch
from entourage.distributed.ray_engine import RayEngine, ray_engine

__all__ = ["RayEngine", "launch", "launched_processes", "processes", "ray_engine"]
