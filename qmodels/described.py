"""Docstrings whose shared words stand once, and arguments that models of one family share.

A docstring in the source says what is special to its function. `Described` adds, as the module is
imported, what the functions of a room have in common (parameters, results, errors) and the sources in full,
so that ``help()``, ``inspect.getdoc`` and notebooks show everything in numpydoc's order. A section Returns
that only says what comes back gets its type from the annotation, a section Raises is of a ValueError.

>>> described = Described('''Words of a room.
...
... Parameters
... ----------
... arrival_rate : array_like
...     Poisson arrivals. [jobs / time]
... arrival_rate (lost) : array_like
...     Poisson arrivals, lost jobs included. [jobs / time]
...
... Raises
... ------
... ValueError
...     If an argument is out of range.
... ''')
>>> @described("cobham1954", arrival_rate="lost")
... def model(*, arrival_rate: float) -> float:
...     '''Return the load.'''
>>> "Poisson arrivals, lost jobs included" in model.__doc__, "A. Cobham" in model.__doc__
(True, True)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from qmodels.guarded import guarded

F = TypeVar("F", bound=Callable[..., Any])

_ORDER = ("Parameters", "Returns", "Raises", "Notes", "References", "Examples")
_HEADING = re.compile(r"(?:\n\n|^)(\w+)\n-{4,}\n")
_ENTRY = re.compile(r"^(\S.*(?:\n+[ ]+\S.*)*)", re.MULTILINE)
_INDENTED, _LINE = re.compile(r"^ ", re.MULTILINE), re.compile(r"^(?=.)", re.MULTILINE)
_SHOWN = {"FloatArray": "array", "npt.NDArray[np.int64]": "array of int"}
_NAMES = re.compile(r"([^:(]*?)(?: \(([\w ]+)\))?( : .*|$)")
_SOURCE = re.compile(r"^(\w+): ((?:.+\n?)(?:    .+\n?)*)", re.MULTILINE)


class _Entry(NamedTuple):
    """One parameter, or several that are described together."""

    names: tuple[str, ...]
    variant: str
    text: str


def _sections(text: str) -> dict[str, str]:
    """Return the text under each heading; that before the first under none."""
    parts = _HEADING.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(section: str) -> list[_Entry]:
    found = []
    for text in _ENTRY.findall(section):
        head, _, body = text.partition("\n")
        match = _NAMES.fullmatch(head)
        names, variant, kind = match.groups("") if match else (head, "", "")
        text = f"{names}{kind}\n{body}".rstrip()
        found.append(_Entry(tuple(name.lstrip("*") for name in names.split(", ")), variant, text))
    return found


@cache
def bibliography() -> dict[str, str]:
    """Return the sources by their keys: those of ``sources.txt``."""
    text = Path(__file__).with_name("sources.txt").read_text(encoding="utf-8")
    return {key: source.rstrip().replace("\n    ", "\n   ") for key, source in _SOURCE.findall(text)}


class Described:
    """A decorator that completes docstrings from the words of a room.

    Parameters
    ----------
    words : str or None
        A docstring with the sections Parameters, Returns and Raises (None where Python runs without
        docstrings). An entry ``name (variant)`` is used where a function asks for that variant.
    """

    def __init__(self, words: str | None) -> None:
        sections = _sections(inspect.cleandoc(words or ""))
        self._words = {name: _entries(sections.get(name, "")) for name in ("Parameters", "Returns", "Raises")}

    def __call__(
        self, *sources: str, like: Callable[..., Any] | None = None, without: str = "", **variants: str
    ) -> Callable[[F], F]:
        """Return a decorator for one function.

        ``*sources``: keys of `bibliography`, each with the place in it: ``"gross2008, section 2.5"``;
        ``like``: whose keyword arguments the function takes as its ``**`` and hands on; they show in its
        signature; ``without``: the one of them that it does not take; ``**variants``: parameter, ``returns``
        or ``raises`` to the variant of its words; ``raises="nothing"`` for a function that checks nothing.
        """

        def complete(function: F) -> F:
            if like is not None:
                function.__signature__ = _joined(function, like, without)  # type: ignore[attr-defined]
            if function.__doc__ is not None:
                function.__doc__ = self._completed(function, sources, variants)
            return guarded(function)

        return complete

    def _completed(
        self, function: Callable[..., Any], sources: tuple[str, ...], variants: dict[str, str]
    ) -> str:
        sections = _sections(inspect.cleandoc(function.__doc__ or ""))
        result = str(function.__annotations__.get("return"))
        for section, kind in (("Returns", _SHOWN.get(result, result)), ("Raises", "ValueError")):
            if section in sections and not _INDENTED.search(sections[section]):
                sections[section] = f"{kind}\n{_LINE.sub('    ', sections[section])}"
        own = {name: _entries(sections.get(name, "")) for name in self._words}
        sections["Parameters"] = "\n".join(self._parameters(function, own["Parameters"], variants))
        if "Returns" not in sections:
            sections["Returns"] = "\n".join(self._chosen("Returns", (result,), variants.get("returns", "")))
        sections["Raises"] = "\n".join(self._errors(own["Raises"], variants.get("raises", "")))
        if sources:
            sections["References"] = "\n".join(f".. [{k}] {_cited(s)}" for k, s in enumerate(sources, 1))
        text = [sections[""]]
        told = (name for name in _ORDER if sections.get(name))
        text += [f"{name}\n{'-' * len(name)}\n{sections[name].rstrip()}" for name in told]
        return "\n\n".join(text) + "\n"

    def _parameters(
        self, function: Callable[..., Any], own: list[_Entry], variants: dict[str, str]
    ) -> list[str]:
        arguments = _arguments(function)
        mine = {name: entry for entry in own for name in entry.names}
        texts: dict[str, None] = {}
        told: set[str] = set()
        for name in arguments:
            if name in mine:
                texts[mine[name].text] = None
            elif name not in told:
                shared = [
                    entry
                    for entry in self._words["Parameters"]
                    if name in entry.names
                    and entry.variant == variants.get(name, "")
                    and set(entry.names).isdisjoint(mine)
                    and set(entry.names) <= set(arguments)
                ]
                if not shared:
                    where = f"{name} of {function.__qualname__}"
                    raise LookupError(
                        f"{where} must be described in its docstring or in the words of the room"
                    )
                best = max(shared, key=lambda entry: len(entry.names))
                texts[best.text] = None
                told.update(best.names)
        return list(texts)

    def _errors(self, own: list[_Entry], variant: str) -> list[str]:
        said = [entry for entry in self._words["Raises"] if variant and entry.variant == variant] + own
        if variant != "nothing" and not any("ValueError" in entry.names for entry in said):
            said = [entry for entry in self._words["Raises"] if not entry.variant] + said
        return [entry.text for entry in said]

    def _chosen(self, section: str, names: tuple[str, ...], variant: str) -> list[str]:
        return [e.text for e in self._words[section] if e.names == names and e.variant == variant]


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = getattr(function, "__signature__", None)
    if parameters is not None:
        return tuple(parameters.parameters)
    code = function.__code__
    several = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + several]
    return tuple(name for name in names if name not in ("self", "cls"))


def _joined(function: Callable[..., Any], like: Callable[..., Any], without: str) -> inspect.Signature:
    """Return the signature with the ``**`` arguments replaced by those of another function."""
    own = inspect.signature(function)
    named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    others = [
        p for p in inspect.signature(like).parameters.values() if p.name not in {*own.parameters, without}
    ]
    return own.replace(parameters=[*others, *named])


def _cited(source: str) -> str:
    key = source[: len(source) - len(source.lstrip("abcdefghijklmnopqrstuvwxyz0123456789"))]
    return f"{bibliography()[key]}{source.removeprefix(key)}."


P = ParamSpec("P")
Given = TypeVar("Given")
R = TypeVar("R")


def takes(arguments: Callable[P, Given]) -> Callable[[Callable[[Given], R]], Callable[P, R]]:
    """Return a decorator of a function of checked arguments; callers give it those of the check.

    Parameters
    ----------
    arguments : callable
        Checks its keyword arguments and returns what a model of the family starts from.

    Examples
    --------
    >>> def load(*, arrival_rate: float, service_rate: float = 1.0) -> float:
    ...     return arrival_rate / service_rate
    >>> @takes(load)
    ... def mm1_wait(load: float) -> float:
    ...     return load / (1 - load)
    >>> mm1_wait(arrival_rate=0.5), str(inspect.signature(mm1_wait)).replace("'", "")
    (1.0, '(*, arrival_rate: float, service_rate: float = 1.0) -> float')
    """
    checks = cast(FunctionType, arguments)

    def family(model: Callable[[Given], R]) -> Callable[P, R]:
        # A check of the model's own name, which stands in the errors of a wrong call.
        own: Any = FunctionType(checks.__code__, checks.__globals__, model.__name__)
        own.__kwdefaults__, own.__qualname__ = checks.__kwdefaults__, model.__qualname__

        @wraps(model)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            return model(own(*args, **named))

        signature = inspect.signature(arguments)
        given_back = inspect.signature(model).return_annotation
        checked.__annotations__ = {**checks.__annotations__, "return": given_back}
        checked.__signature__ = signature.replace(return_annotation=given_back)  # type: ignore[attr-defined]
        return checked

    return family
