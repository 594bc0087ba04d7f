"""How the C library hands freed memory back to the system.

By default glibc returns freed memory to the system early, so that every array of 128 KiB and more is made of pages
that are new and are filled with zeros first; a fifth of the time of a gradient of ten layers of 512 goes there. This
keeps up to 32 MiB at hand, and lets only arrays over 4 MiB come from the system directly.
"""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep_freed_pages() -> bool:
    """Tell glibc to keep some freed memory for the next arrays.

    The user's own settings come first: nothing is done if one of glibc's environment variables for it is set, or
    ``PULLBACK_MALLOC=system``, or if the C library is another one.

    Returns:
      Whether anything was set.
    """
    if not sys.platform.startswith("linux") or os.environ.get("PULLBACK_MALLOC") == "system":
        return False
    if any(name in os.environ for name in _SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, 32 << 20) and mallopt(_M_MMAP_THRESHOLD, 4 << 20))
