"""Fields of every kind of system, its metrics; laws, steps and parts as they are written in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from qmodels.systems.spec.describe import FieldRow, describe
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.metrics import MetricNames, markdown, metric

INDEX = """# Fields and metrics, by kind of system

What `qmodels describe KIND` says. A dotted name is what `--set`, `Space` and `replace_fields` take; `*`
stands for the number of a place in a list, or for its name.

```{{toctree}}
:maxdepth: 1

{kinds}
```
"""

PAGE = """---
html_theme.sidebar_secondary.remove: true
---

# {kind}

{{py:obj}}`{name} <qmodels.{name}>`

## Metrics

| metric | unit | given by | meaning |
|---|---|---|---|
{metrics}
## Fields

{fields}"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each kind, their contents, and the page of all metrics."""
    yield "metrics.md", markdown()
    yield "fields/index.md", INDEX.format(kinds="\n".join(KINDS))
    for kind in KINDS:
        spec = kind_named(kind).spec()
        metrics = "".join(_metrics(spec.metric_names))
        rows = "".join(_fields(describe(kind)))
        yield f"fields/{kind}.md", PAGE.format(kind=kind, name=spec.__name__, metrics=metrics, fields=rows)


def _metrics(names: MetricNames) -> Iterator[str]:
    for name in names:
        who = "model" if name in names.model else "simulation" if name in names.simulation else "both"
        always = " (the model not always)" if name in names.sometimes else ""
        one = metric(name)
        yield f"| `{name}` | {'' if one.unit == '1' else one.unit} | {who}{always} | {_cell(one.meaning)} |\n"


def _fields(rows: Iterable[FieldRow]) -> Iterator[str]:
    """Yield a table for each part and each spec that may stand in its place."""
    for (part, of), members in groupby(rows, lambda row: (row.name.rpartition(".")[0], row.of)):
        if part:
            yield f"### `{part}`{f': {of}' if of else ''}\n\n"
        yield "| field | holds | default | meaning, and what is allowed |\n|---|---|---|---|\n"
        for row in members:
            default = f"`{row.default}`" if row.default and row.default != "required" else row.default
            holds = f"{row.type} [{row.unit}]" if row.unit else row.type
            meaning = f"{_code(row.meaning)} ({row.allowed})" if row.allowed else _code(row.meaning)
            cells = [f"`{row.name.rpartition('.')[2]}`", holds, default, meaning]
            yield "| " + " | ".join(map(_cell, cells)) + " |\n"
        yield "\n"


def _code(text: str) -> str:
    """Return words of a docstring in Markdown: literals and references are both code."""
    return text.replace("``", "`").replace(":math:", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
