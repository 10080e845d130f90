"""The packages that stand beside this one, found whatever else has their names.

`optimize`, `validate` and `cases` are common words: a file of that name where Python is started, or another
distribution (configobj installs a ``validate``, over ours if it comes second) hides them. As
`qmodels.optimize`, `qmodels.validate` and `qmodels.cases`, and in the command, they are always ours.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent

NAMES = ("optimize", "validate", "cases")


class _Same(Loader):
    """Gives a module of ours by its longer name: the same one, not a second copy."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._module = import_module(spec.name.removeprefix("qmodels."))
        self._spec = self._module.__spec__
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Beside(MetaPathFinder):
    """Finds our packages beside this one; names of one may stand in a file of its own, `public.py`."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        first, _, rest = fullname.removeprefix("qmodels.").partition(".")
        if first in NAMES and rest and fullname.startswith("qmodels."):
            return ModuleSpec(fullname, _Same())
        if fullname not in NAMES:
            return None
        folder = ROOT / fullname
        file = next((file for file in (folder / "public.py", folder / "__init__.py") if file.exists()), None)
        if file is None:
            raise ImportError(f"{folder} of qmodels is missing: install qmodels-toolkit again")
        return spec_from_file_location(fullname, file, submodule_search_locations=[str(folder)])


_FINDER = _Beside()


def package(name: str) -> ModuleType:
    """Return one of our packages. A foreign one that was imported before stays with those that hold it."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    for ours in NAMES:
        held = sys.modules.get(ours)
        if held is not None and not _is_ours(held, ours):
            for loaded in [one for one in sys.modules if one == ours or one.startswith(f"{ours}.")]:
                del sys.modules[loaded]
    return import_module(name)


def _is_ours(module: ModuleType, name: str) -> bool:
    """Return whether a module was loaded from a file of ours that nobody has overwritten."""
    file = Path(module.__file__ or "")
    if file.parent.resolve() != ROOT / name:
        return False
    return file.name != "__init__.py" or "qmodels-toolkit" in file.read_text(
        encoding="utf-8", errors="replace"
    )


def _stop(*_: object) -> None:
    """End the command on Ctrl-C: while it imports, and wherever nothing is to be kept."""
    os.write(2, b"qmodels: error: interrupted\n")
    os._exit(130)


def command() -> NoReturn:
    """Run the command ``qmodels``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    package("cases")
    try:
        import_module("cases.cli.main").main()
    except SystemExit as ended:
        if ended.code == 130:  # what ends with the interpreter may still take Ctrl-C, and another exit code
            sys.stdout.flush()
            os._exit(130)
        raise
    raise AssertionError("the command line ends the process itself")
