"""The joint case, its studies and reports, and the command line: the floor that joins the other packages."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def _require_siblings(names: tuple[str, ...] = ("qmodels", "optimize", "validate")) -> None:
    """Refuse to work with a foreign module that happens to have the name of one of our packages."""
    here = Path(__file__).resolve().parent.parent
    for name in names:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin != here / name / "__init__.py":
            raise ImportError(
                f"the module {name!r} that Python finds, {origin}, is not the package of qmodels in {here}: "
                "rename it, or start from another directory"
            )


_require_siblings()
