"""What an import pulls in: heavy libraries wait until a function needs them."""

import subprocess
import sys

HEAVY = (
    "dpkt",
    "highspy",
    "matplotlib",
    "moocore",
    "networkx",
    "numba",
    "pandas",
    "pcapng",
    "pulp",
    "scipy",
    "sqlite3",
    "sympy",
)


def modules_after(statements):
    """Return the top-level modules that a fresh interpreter has after some statements."""
    code = f"import sys\n{statements}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_packages_import_numpy_at_most():
    packages = "qmodels, optimize, validate, cases, cases.study.goals"
    assert modules_after(f"import {packages}").isdisjoint({*HEAVY, "typer", "rich"})


def test_help_needs_no_numpy():
    show_help = "from cases.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    loaded = modules_after(show_help)
    assert loaded.isdisjoint({*HEAVY, "numpy"})
    assert "typer" in loaded


def test_modules_of_ours_are_imported_without_the_packages_of_models():
    code = (
        "import sys, qmodels.systems.spec.kind\nfrom qmodels import checks\n"
        "print([name for name in sys.modules if name.startswith('qmodels.queues')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_optimize_knows_no_device():
    code = "import sys, optimize\nprint(*sorted(n for n in sys.modules if n.startswith('qmodels.systems.')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = ("fields", "named", "store", "cost", "whole")
    names = {"spec", *(f"spec.{room}" for room in rooms)}
    assert set(run.stdout.split()) <= {f"qmodels.systems.{name}" for name in names}


def test_small_chains_do_not_wake_the_compiler():
    small = "from qmodels.markov import CTMC; CTMC(generator=[[-1, 1], [3, -3]]).stationary()"
    assert "numba" not in modules_after(small)
