"""The sources of the documentation: generated pages, pictures, links within, what is never loaded."""

import ast
import dataclasses
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / ".github" / "docs"
sys.path.append(str(DOCS))

from machinery import architecture, commands, fields, models  # noqa: E402

from qmodels import Answer  # noqa: E402
from qmodels.queues import erlang_b, gg1_kingman  # noqa: E402
from qmodels.result import QueueResult  # noqa: E402
from qmodels.systems.spec.kind import KINDS  # noqa: E402
from qmodels.systems.spec.metrics import METRICS  # noqa: E402

SCRIPTS = sorted(DOCS.glob("gallery/*/*.py"))
PAGES = [path for path in sorted(DOCS.glob("[!.]*/**/*.md")) if "generated" not in path.parts]


def build():
    """Return the module of the build command."""
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_has_a_page_of_fields_with_units_and_ranges():
    pages = dict(fields.pages())
    noc = pages["fields/noc.md"]
    assert all(f"\n| `{name}` | " in pages["metrics.md"] for name in METRICS)
    del pages["metrics.md"]  # the check of columns below is of fields
    (row,) = (line for line in noc.splitlines() if line.startswith("| `buffer_flits` |"))
    assert "| whole number [flits] | `8` |" in row and row.endswith("(a whole number from 1 to 32767) |")
    assert "### `traffic`: interleaved\n" in noc
    assert "| `packet_latency` | ns | both |" in noc
    for name, text in pages.items():
        for line in text.splitlines():
            if line.startswith("| `"):
                assert len(re.findall(r"(?<!\\)\|", line)) == 5, (name, line)


def test_the_model_of_every_kind_is_shown():
    ((_, text),) = models.pages()
    assert text.count(".. autofunction:: qmodels.") == len(KINDS)
    assert ".. autofunction:: qmodels.noc.solve_noc.solve_noc\n" in text


def test_the_house_is_drawn_from_the_imports():
    pages = dict(architecture.pages())
    assert set(architecture.between()) == set(architecture.ARROWS)
    assert architecture.between()["optimize", "qmodels.systems"] > 5
    assert pages["architecture.svg"].count("<svg") == 1
    lines, files = architecture.house()
    assert all(f"| `{room}` |" in pages["architecture.md"] for room in lines)
    assert "optimize.search.explore" in files["optimize.search", "optimize.spaces"]
    assert not any(there.startswith("optimize") for here, there in files if here.startswith("validate"))


def test_every_command_is_shown_with_its_options():
    ((_, text),) = commands.pages()
    for command in ("solve", "explore", "size", "reproduce", "trace"):
        assert f"## `qmodels {command}`" in text
    assert "`--subject-to`" in text and "qmodels solve [OPTIONS]" in text


def test_the_glossary_names_fields_and_metrics_that_exist_each_term_once():
    text = (DOCS / "concepts" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\w.*)$", text.partition(":::{glossary}")[2], re.M)
    assert terms == sorted(set(terms), key=str.casefold) and len(terms) > 70
    known = {*METRICS, *inspect.signature(erlang_b).parameters, *inspect.signature(gg1_kingman).parameters}
    for _, body in fields.pages():
        known |= set(re.findall(r"^\| `(\w+)`", body, re.M))
    for one in (Answer, QueueResult):
        known |= {*dir(one), *(field.name for field in dataclasses.fields(one))}
    named = re.findall(r"`(?:answer\.)?([a-z]\w*)(?:\(\w+\))?`", text)
    assert set(named) - known == {"code"} and len(named) > 30


def test_the_gallery_has_at_least_25_pictures_of_one_idea_each():
    assert len(SCRIPTS) >= 25
    titles = []
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        title, line, _, words = (ast.get_docstring(ast.parse(text)) or "").split("\n", 3)
        titles.append(title)
        assert set(line) == {"="} and len(line) >= len(title) and words.endswith("."), path
        assert len(text.splitlines()) <= 60, f"{path} is too long for one idea"
        assert "plt.show()" in text or re.search(r"^figure = ", text, re.M), f"{path} shows nothing"
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_links_within_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target) and "generated/" not in target and "pictures/" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("page", [DOCS / "project" / "contributing.md", ROOT / ".github" / "CONTRIBUTING.md"])
def test_the_files_that_contributors_are_sent_to_are_there(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:qmodels|optimize|validate|cases|tests)/[\w/.]+)`", text)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_what_a_page_would_load_from_elsewhere_is_found(tmp_path):
    (tmp_path / "page.html").write_text(
        '<a href="https://a.org">fine</a><script src="https://cdn.org/x.js"></script>'
    )
    (tmp_path / "style.css").write_text("@font-face { src: url(https://fonts.org/x.woff2); }")
    assert len(build().loaded(tmp_path)) == 2
