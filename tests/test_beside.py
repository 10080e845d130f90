"""Our packages are found whatever else has their names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOREIGN = "compare = None\n"
CONFIGOBJ = "from configobj.validate import *\nfrom configobj.validate import __all__\n"
"""What configobj 5.0.9 writes into ``validate/__init__.py``."""
COMMAND = "from qmodels.beside import command; command()"


def python(folder, code, *words, path=()):
    """Run Python code in a folder, whose files come first, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)])}
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment, cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_files_of_the_same_names_hide_nothing(tmp_path):
    for name in ("optimize", "validate", "cases"):
        (tmp_path / f"{name}.py").write_text(FOREIGN)
    code = "from qmodels.optimize import explore; from qmodels.validate import compare; import qmodels.cases"
    assert python(tmp_path, f"{code}; print(explore.__module__, compare.__module__)").split() == [
        "optimize.search.explore",
        "validate.comparison.model",
    ]
    assert python(tmp_path, COMMAND, "solve", "--csv").startswith("metric")


def test_a_module_imported_before_stays_with_its_user(tmp_path):
    (tmp_path / "optimize.py").write_text("mine = 3")
    code = "import optimize; from qmodels.optimize import Space; print(optimize.mine, Space.__name__)"
    assert python(tmp_path, code) == "3 Space\n"


@pytest.mark.parametrize("change", [lambda file: file.write_text(CONFIGOBJ), Path.unlink])
def test_an_overwritten_or_removed_file_is_not_needed(tmp_path, change):
    for name in ("cases", "qmodels", "optimize", "validate"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    change(tmp_path / "validate" / "__init__.py")
    found = python(
        tmp_path, "from qmodels.validate import compare; print(compare.__module__)", path=[tmp_path]
    )
    assert found == "validate.comparison.model\n"


def test_it_is_the_same_module_by_both_names():
    import optimize
    import qmodels

    assert qmodels.optimize is optimize
    code = "import qmodels.optimize.search.pareto as p, optimize.search.pareto as q"
    assert python(ROOT, f"{code}; print(p is q, q.__spec__.name)") == "True optimize.search.pareto\n"


LATE = """
import atexit, os, signal, sys
from qmodels import beside
beside.package("cases")
import cases.cli.main
def interrupted():
    print("kept")
    atexit.register(os.kill, os.getpid(), signal.SIGKILL)
    sys.exit(130)
cases.cli.main.main = interrupted
beside.command()
"""


def test_an_interrupted_command_ends_at_once(tmp_path):
    """What Python does at its end could take another signal, and end with its code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout) == (130, "kept\n")
