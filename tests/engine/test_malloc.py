from __future__ import annotations

import subprocess
import sys

import pytest

# A block of 192 KiB is mapped by itself under the rule. Without it the first release of a larger block raises
# the threshold above that, and the block comes out of the heap: the kernel's "brk" end then lies above it.
CODE = """
import ctypes, sys
if sys.argv[1] == "rule":
    from relaydesk.engine.malloc import keep_large_buffers_mapped
    assert keep_large_buffers_mapped()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.sbrk.restype = ctypes.c_void_p
libc.free(libc.malloc(256 * 1024))
print("heap" if libc.malloc(192 * 1024) < libc.sbrk(0) else "mapped")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a rule for glibc")
@pytest.mark.parametrize(("rule", "where"), [("rule", "mapped"), ("none", "heap")])
def test_large_buffers_stay_mapped(rule: str, where: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, rule], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == where
