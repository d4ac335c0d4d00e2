"""What the C library does with memory that a step of training has freed: it keeps it for the next one.

By default glibc gives large pieces back at once, and the next step asks the system for them again, page by page. Where
the pairs of a batch take tens of megabytes, that took as long as the step itself.
"""

import ctypes
import functools
import os
import platform

__all__ = ["keep_freed_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)
KEPT = 2**30  # bytes that may stay with the process when they are free


@functools.cache
def keep_freed_memory() -> bool:
    """Let this process keep up to a gigabyte that is free; return whether that can be said here.

    Settings of the user (``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_``) stay as they are.
    """
    given = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & set(os.environ)
    if given or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_THRESHOLD, KEPT) and mallopt(M_TRIM_THRESHOLD, KEPT))
