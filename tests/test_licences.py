"""What is installed with the package: every dependency is in the table of licences, none is under the GPL."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| ([\w-]+) \| (\w+) \| \d+ \| ([a-z ]+) \|",
    (ROOT / ".github/docs/project/dependencies.md").read_text(),
    re.M,
)
TABLE = {package: words for package, words, _ in ROWS}
MAIN = """
import qmodels as qm
from optimize import Space, explore
from validate import simulate
dram = qm.dram("DDR4-3200")
qm.solve(dram), qm.solve(qm.PacketProcessor()), simulate(dram, accesses=2000, replications=2)
space = Space(dram, {"geometry.channels": [1, 2]})
explore(space, qm.solve, minimize="read_latency", maximize="saturation_rate")
import sys
print(*{name.partition(".")[0] for name in sys.modules})
"""


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def licence(package: str) -> str:
    """Return what a package says of its licence: an expression, classifiers, or the text's first line."""
    about = metadata(package)
    classifiers = [line for line in about.get_all("Classifier", []) if line.startswith("License")]
    said = about.get("License-Expression") or " ".join(classifiers)
    return said or (about.get("License") or "").partition("\n")[0]


def everything(packages: list[str]) -> set[str]:
    """Return the packages and all that are installed with them."""
    found: set[str] = set()
    while packages:
        package = packages.pop()
        if package in found:
            continue
        try:
            needed = requires(package) or []
        except PackageNotFoundError:  # of other systems or versions of Python
            continue
        found.add(package)
        packages += [name_of(line) for line in needed if "extra ==" not in line]
    return found


def test_the_table_has_what_is_required_and_no_more() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [name_of(line) for line in project["dependencies"]] == list(TABLE)


def test_the_main_verbs_load_what_the_table_says() -> None:
    run = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, check=True)
    modules = {"python-pcapng": "pcapng"}
    loaded = {name for name in TABLE if modules.get(name, name) in run.stdout.split()}
    assert loaded == {package for package, _, when in ROWS if when == "always"}


def test_the_known_holes_of_what_is_installed_are_looked_for() -> None:
    assert "pip-audit" in (ROOT / ".github/workflows/tests.yml").read_text()


@pytest.mark.parametrize("package", TABLE)
def test_the_licence_is_the_one_in_the_table(package: str) -> None:
    names = {"PSF": "Python Software Foundation"}
    assert names.get(TABLE[package], TABLE[package]) in licence(package)


def test_nothing_that_comes_along_is_under_the_gpl() -> None:
    packages = everything(list(TABLE))
    assert len(packages) > len(TABLE)
    strict = [
        name for name in packages if re.search(r"(?<![AL])GPL|AGPL|(?<!Lesser )General Public", licence(name))
    ]
    assert strict == []
