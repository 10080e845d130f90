from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import optimize

ROOT = Path(optimize.__file__).parent


def test_the_package_imports_no_sibling_but_the_walker_and_the_store():
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = [name for name in names if not name.startswith("qmodels.systems.spec.")]
            assert not {name.split(".")[0] for name in names} & {"qmodels", "validate", "cases"}, file.name


def test_only_one_module_knows_the_modeller():
    users = [file.name for file in ROOT.rglob("*.py") if "import pulp" in file.read_text()]
    assert users == ["linear.py"]


def test_importing_it_is_light():
    heavy = ["pulp", "highspy", "moocore", "pandas", "scipy", "sqlite3"]
    code = f"import optimize, sys; print([name for name in {heavy} if name in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_exists_and_is_documented():
    for name in optimize.__all__:
        assert getattr(optimize, name).__doc__
