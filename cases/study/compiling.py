"""The simulation is compiled while designs are solved: of two processors one would have nothing to do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

from qmodels.numerics.kernels import another_python

CODE = """
import pickle, sys
from validate import simulate
simulate(pickle.load(sys.stdin.buffer), packets=1000, replications=2)
"""


def background_compile(spec: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles the simulation of a packet processor; None if it is on the disk.

    Whoever simulates waits for it first. One that fails leaves the work to who waited.
    """
    from validate.engine.jit import PACKAGE, PLACE, cache_name

    kept = PLACE / cache_name(PACKAGE / "composed" / "machine.py")
    if any(kept.rglob("*.nbc")) or getattr(sys, "frozen", False):
        return None
    try:
        process = another_python(CODE, stdin=subprocess.PIPE)
        with process.stdin as file:  # type: ignore[union-attr]
            file.write(pickle.dumps(spec))
    except OSError:
        return None
    return process
