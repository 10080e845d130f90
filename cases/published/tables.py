"""Expressions and templates of a paper's data, and its tables as text, in its own layout or as lists.

An expression is arithmetic, comparisons and calls of given names alone.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean
from types import CodeType
from typing import Any

from cases.published.numbers import Cell, Claim, mean_and_largest
from cases.tables import text_table
from qmodels.systems.spec.fields import replace_fields

NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name,
    ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.ListComp,
    ast.GeneratorExp, ast.comprehension, ast.keyword, ast.Starred, ast.operator, ast.unaryop, ast.boolop,
    ast.cmpop, ast.expr_context,
)  # fmt: skip


def saved(after: float, before: float) -> float:
    """Return the share that is saved, in percent; nothing of nothing.

    >>> saved(2.0, 8.0)
    75.0
    """
    return 100 * (1 - after / before) if before else 0.0


def gained(after: float, before: float) -> float:
    """Return the share that is gained, in percent.

    >>> gained(9.0, 8.0)
    12.5
    """
    return 100 * (after / before - 1)


PYTHON = "abs all any bool dict enumerate float int len list max min range round sum tuple zip".split()
FUNCTIONS: dict[str, Any] = {name: getattr(builtins, name) for name in PYTHON}
FUNCTIONS |= {"saved": saved, "gained": gained, "mean": fmean, "change": replace_fields}


@cache
def compiled(text: str) -> CodeType:
    """Return an expression as code, if nothing else is in it."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"expression must be one of Python, got {text!r}: {error.msg}") from None
    for node in ast.walk(tree):
        hidden = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        if not isinstance(node, NODES) or hidden or isinstance(getattr(node, "func", None), ast.Attribute):
            raise ValueError(f"expression must be arithmetic and calls of known functions, got {text!r}")
    return compile(tree, text, "eval")


def evaluate(value: Any, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression, or what is no text as it is.

    >>> evaluate("saved(a, 2 * a) + 1", {"a": 1.0}), evaluate(3, {})
    (51.0, 3)
    """
    if not isinstance(value, str):
        return value
    try:
        return eval(compiled(value), {"__builtins__": {}, **FUNCTIONS, **names})
    except (NameError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"expression {value!r}: {error}") from None


def fill(text: str, names: Mapping[str, Any]) -> str:
    """Return a text with its expressions in braces filled in, a dash for what there is not.

    >>> fill("{2 * a:.1f} of {b}", {"a": 1, "b": None})
    '2.0 of -'
    """

    def shown(match: re.Match[str]) -> str:
        value = evaluate(match[1], names)
        return "-" if value is None else format(value, match[2] or "")

    return re.sub(r"\{([^{}]+?)(?::([^{}:'\]]*))?\}", shown, text)


def entry(value: Any, names: Mapping[str, Any]) -> Any:
    """Return an entry of the data: a text that begins with ``=`` is an expression.

    >>> entry("=2 * a", {"a": 1}), entry("a", {"a": 1})
    (2, 'a')
    """
    return evaluate(value[1:], names) if isinstance(value, str) and value.startswith("=") else value


def loops(over: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the names with every choice of the lists that are gone through, the last one fastest.

    A list may depend on the choices before it.
    """
    if not over:
        yield dict(names)
        return
    (name, values), *others = over.items()
    for value in evaluate(values, names):
        yield from loops(dict(others), {**names, name: value})


WHICH = ("published", "model", "simulated")


def three(cell: Cell, form: str, published: str | None = None, factor: float = 1.0) -> str:
    """Return published, where the paper has a number, | model | simulated.

    >>> three(Cell(published=0.5, model=0.51, simulated=0.499), "{:.1f}", factor=100)
    '50.0 | 51.0 | 49.9'
    """
    forms = dict(zip(WHICH, (published or form, form, form), strict=True))
    values = {name: getattr(cell, name) for name in WHICH}
    return " | ".join(forms[name].format(factor * v) for name, v in values.items() if v is not None)


def grid_text(cells: Sequence[Cell], spec: Mapping[str, Any]) -> str:
    """Return cells as a table as it is printed in a paper.

    ``spec``: ``rows``, entries of a cell's place that tell its row, and ``column``, its column; ``form`` of a
    number, and of a ``published`` one; columns in ``percent``; ``names`` of entries and of columns.
    """
    rows, column, names = spec["rows"], spec["column"], spec.get("names", {})
    if spec.get("sort"):
        cells = sorted(cells, key=lambda cell: tuple(cell[name] for name in (*rows, column)))
    table: dict[tuple[Any, ...], dict[Any, str]] = {}
    for cell in cells:
        percent = cell[column] in spec.get("percent", ())
        shown = (
            three(cell, "{:.2f}", factor=100) if percent else three(cell, spec["form"], spec.get("published"))
        )
        table.setdefault(tuple(cell[name] for name in rows), {})[cell[column]] = shown
    columns = list(dict.fromkeys(name for line in table.values() for name in line))
    lines = [[*key, *(line.get(name, "-") for name in columns)] for key, line in table.items()]
    headings = [names.get(str(name), str(name).replace("_", " ")) for name in columns]
    return text_table([*(names.get(row, row) for row in rows), *headings], lines)


def list_text(cells: Sequence[Cell], spec: Mapping[str, Any]) -> str:
    """Return cells as a list: what they are, published, model and simulated with errors, and what was fitted.

    ``spec``: ``labels``, headings of the entries of a cell's place that are shown; ``digits`` of a number;
    ``names``, how entries are shown.
    """
    labels, names, digits = spec["labels"], spec.get("names", {}), spec.get("digits", 2)
    error = "error, points" if cells[0].points else "error %"

    def ours(cell: Cell) -> Iterable[str]:
        for value in (cell.model, cell.simulated):
            yield "-" if value is None else f"{value:.{digits}f}"
            yield "-" if value is None or cell.published is None else f"{cell.error(value):+.1f}"

    rows = [
        [*(names.get(cell[name], cell[name]) for name in labels), range_text(cell), *ours(cell),
         "fitted" if cell.fitted else ""]
        for cell in cells
    ]  # fmt: skip
    return text_table([*labels.values(), "published", "model", error, "simulated", error, ""], rows)


def range_text(number: Any) -> str:
    """Return a published number, or the ends of its range."""
    ends = (number.published, number.published_high)
    return "-".join(f"{value:g}" for value in ends if value is not None)


def rows_text(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], names: Mapping[str, Any]) -> str:
    """Return a table whose columns are templates of a row's entries."""
    lines = []
    for row in rows:
        line = []
        for template in columns.values():
            whole = template[1:-1]
            alone = whole.isidentifier() and template.startswith("{") and row[whole] is not None
            line.append(row[whole] if alone else fill(template, {**names, **row}))
        lines.append(line)
    return text_table([heading.rstrip() for heading in columns], lines)


def errors_text(cells: Iterable[Cell], *, digits: int = 1) -> str:
    """Return the mean and the largest errors of what was fitted and of what was not, a line each."""
    lines, every = [], list(cells)
    for fitted in (False, True):
        mine = [cell for cell in every if cell.fitted is fitted]
        words = []
        for which in WHICH[1:] if mine else ():
            mean, largest = mean_and_largest(mine, which)
            words.append(f"{which} {mean:.{digits}f} % on average, {largest:.{digits}f} % at most")
        if words:
            lines.append(f"{len(mine)} figures {'' if fitted else 'not '}fitted: {'; '.join(words)}")
    return "\n".join(lines)


def claims_text(claims: Iterable[Claim]) -> str:
    """Return the claims as tables, one for each heading."""
    headed: dict[str, list[Claim]] = {}
    for claim in claims:
        headed.setdefault(claim.heading, []).append(claim)
    tables = []
    for heading, mine in headed.items():
        columns = [*WHICH, *["holds"] * any(claim.holds is not None for claim in mine)]
        rows = [[claim.text, *map(claim.shown, columns)] for claim in mine]
        tables.append(f"{heading}\n{text_table(['claim', *columns], rows)}")
    return "\n\n".join(tables)
