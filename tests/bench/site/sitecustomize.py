"""Imported by the hub under measurement at its start, where the bench puts this folder on its path.

``BENCH_ENGINE`` names a program that stands in for the interpreter the hub starts engines with, so that a
scripted engine is supervised and asked by the very code that runs real ones. ``BENCH_PROFILE`` names a file
for a profile of the loop's thread.
"""

from __future__ import annotations

import os
import sys

if engine := os.environ.get("BENCH_ENGINE"):
    sys.executable = engine

if profile := os.environ.get("BENCH_PROFILE"):
    import atexit
    import cProfile

    _profiler = cProfile.Profile()
    atexit.register(_profiler.dump_stats, profile)
    _profiler.enable()
