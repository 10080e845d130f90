"""Fields of every kind of system, its metrics; laws, steps and parts as they are written in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qmodels.systems.spec.describe import FieldRow, describe
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.metrics import MetricNames, metric

INDEX = """# Fields and metrics, by kind of system

What `qmodels describe KIND` says. A dotted name is what `--set`, `Space` and `replace_fields` take; `*`
stands for the members of a list, and "of" for the part that has the field where several may stand there.

```{{toctree}}
:maxdepth: 1

{kinds}
```
"""

PAGE = """# {kind}

{{py:obj}}`{name} <qmodels.{name}>`

## Metrics

| metric | unit | given by | meaning |
|---|---|---|---|
{metrics}
## Fields

| field | of | holds | unit | default | allowed | meaning |
|---|---|---|---|---|---|---|
{fields}"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each kind, and their contents."""
    yield "fields/index.md", INDEX.format(kinds="\n".join(KINDS))
    for kind in KINDS:
        spec = kind_named(kind).spec()
        metrics = "".join(_metrics(spec.metric_names))
        rows = "".join(_rows(describe(kind)))
        yield f"fields/{kind}.md", PAGE.format(kind=kind, name=spec.__name__, metrics=metrics, fields=rows)


def _metrics(names: MetricNames) -> Iterator[str]:
    for name in names:
        who = "model" if name in names.model else "simulation" if name in names.simulation else "both"
        always = " (the model not always)" if name in names.sometimes else ""
        one = metric(name)
        yield f"| `{name}` | {'' if one.unit == '1' else one.unit} | {who}{always} | {_cell(one.meaning)} |\n"


def _rows(rows: Iterable[FieldRow]) -> Iterator[str]:
    for row in rows:
        default = f"`{row.default}`" if row.default and row.default != "required" else row.default
        cells = [f"`{row.name}`", row.of, row.type, row.unit, default, row.allowed, _code(row.meaning)]
        yield "| " + " | ".join(map(_cell, cells)) + " |\n"


def _code(text: str) -> str:
    """Return words of a docstring in Markdown: literals and references are both code."""
    return text.replace("``", "`").replace(":math:", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
