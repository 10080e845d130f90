"""The models behind `solve`: what each kind's function assumes, its equations and its sources."""

from __future__ import annotations

from collections.abc import Iterator

from qmodels.dispatch import model_of
from qmodels.systems.spec.kind import KINDS, kind_named

HEAD = """How each kind is solved
=======================

What ``solve(spec)`` calls for a spec of each kind: assumptions, equations, sources, and where it is good. The
measured errors of all are in :doc:`../accuracy`; formulas of single queues, networks and chains stand with
their names in :doc:`api/index`.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of all kinds' models."""
    parts = [HEAD]
    for kind in KINDS:
        model = model_of(kind_named(kind).starter())
        parts += [
            f"{kind}\n{'-' * len(kind)}\n",
            f".. autofunction:: {model.__module__}.{model.__qualname__}\n",
        ]
    yield "models.rst", "\n".join(parts)
