"""Expressions and templates of a paper's data: arithmetic, comparisons and calls of given names alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from statistics import fmean
from types import CodeType
from typing import Any

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


PYTHON = (
    abs,
    all,
    any,
    bool,
    dict,
    enumerate,
    float,
    int,
    len,
    list,
    max,
    min,
    range,
    round,
    sum,
    tuple,
    zip,
)
FUNCTIONS: dict[str, Any] = {one.__name__: one for one in PYTHON}
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
