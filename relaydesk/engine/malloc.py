"""One rule for the C library's allocator, where it is glibc's.

Each TLS connection allocates buffers of 256 KiB while it is set up and frees them again. glibc answers the
first such release by raising the size from which it maps memory, so that later buffers land in the heap,
where what stays behind them keeps their pages: an idle connection then costs half as much again. A fixed
threshold (M_MMAP_THRESHOLD, mallopt(3)) keeps them mapped, and gone once freed.
"""

from __future__ import annotations

import ctypes
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_THRESHOLD: Final = 128 * 1024


def keep_large_buffers_mapped() -> bool:
    """Fix the threshold; false where the C library has no such call."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _THRESHOLD))
