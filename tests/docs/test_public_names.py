"""Every public name stands in the reference, under a subject, and in an example that runs."""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[2] / ".github" / "docs"
sys.path.append(str(DOCS))

from machinery import api  # noqa: E402

NAMES = {home: value for module in api.ORDER for home, value in api.documented(module).items()}
PAGE_CODE = re.compile(r"^```\{code-cell\}.*?^```|^ *(?:>>>|\.\.\.) .*?$", re.M | re.S)


def shown(value: object) -> str:
    """Return the lines of code in a docstring."""
    return "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) .*$", inspect.getdoc(value) or "", re.M))


def executed() -> str:
    """Return all code that runs: of pages by pytest or the build, of scripts of the gallery by the build."""
    pages = [path for path in DOCS.glob("[!.]*/**/*.md") if "generated" not in path.parts]
    texts = [path.read_text(encoding="utf-8") for path in [*pages, DOCS.parents[1] / "README.md"]]
    scripts = [path.read_text(encoding="utf-8") for path in DOCS.glob("gallery/*/*.py")]
    return "\n".join([code for text in texts for code in PAGE_CODE.findall(text)] + scripts)


def test_every_package_with_public_names_has_a_page():
    """``cases`` has none: it is the command's, and what its pages show is a system's file or its name."""
    packages = {name: import_module(name) for name in ("qmodels", "optimize", "validate", "cases")}
    named = [name for name, package in packages.items() if getattr(package, "__all__", ())]
    assert named == ["qmodels", "optimize", "validate"]
    assert {"qmodels", "qmodels.optimize", "qmodels.validate"} <= set(api.ORDER)


def test_every_public_name_is_under_one_subject():
    for module, subjects in api.SUBJECTS.items():
        listed = " ".join(subjects.values()).split()
        assert sorted(listed) == sorted(api.names(module)), module


def test_every_public_name_is_documented_in_the_reference_once():
    pages = dict(api.pages())
    assert len(NAMES) > 250
    for home, value in NAMES.items():
        page = pages[f"api/{home.rpartition('.')[0]}.rst"]
        directive = rf"^\.\. (?:autofunction|autoclass|py:data):: {re.escape(home)}$"
        assert len(re.findall(directive, page, re.M)) == 1, home
        assert inspect.getdoc(value), f"{home} has no docstring"


def test_every_public_name_is_in_an_example():
    """Its own, a page's or the gallery's; a class may also be what a function with an example returns."""
    code = executed()
    notes = (getattr(value, "__annotations__", {}) for value in NAMES.values() if shown(value))
    returned = {word for note in notes for word in re.findall(r"\w+", str(note.get("return", "")))}
    missing = []
    for home, value in NAMES.items():
        name = home.rpartition(".")[2]
        use = rf"\b{name}\b" if inspect.isclass(value) or not callable(value) else rf"\b{name}\("
        if not re.search(use, shown(value) + "\n" + code) and not (
            inspect.isclass(value) and name in returned
        ):
            missing.append(home)
    assert not missing
