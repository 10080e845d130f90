"""Programs as text, as files have them: a step a line, and what belongs to it in braces.

A step is its word and the arguments of its class: ``read dram 4 sequential``, ``send dram bytes=64``. After
them come the programs that it holds, in braces::

    acquire mshrs
    lookup llc reply_bytes=64 hit { hold 12 } miss {
        read dram
    }
    release mshrs
    fork { visit crypto } { visit checksum }
    branch 0.9 { visit fast } 0.1 { hold exponential(mean=50) }
    each segments { write dram }
    allocate pointers segments { write dram addresses=allocated }

A law is its word with its parameters, a number where a law belongs is a fixed time. ``;`` ends a step as the
end of the line does, ``#`` begins a remark, and names that are no plain words stand in double quotes.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from typing import Any

from qmodels import checks
from qmodels.checks import shown
from qmodels.guarded import guarded
from qmodels.systems.composed.steps import (
    DEEPEST,
    STEPS,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Lookup,
    Repeat,
    require_size,
)
from qmodels.systems.laws.kinds import LAWS
from qmodels.systems.laws.times import Deterministic
from qmodels.systems.spec.fields import field_names
from qmodels.systems.spec.nested import alternatives, held, spec_word
from qmodels.systems.spec.text.reading import Place, needed
from qmodels.systems.spec.text.toml import document, literal

WIDTH = 88
"""Characters up to which a step with its programs stays on one line."""

PROGRAMS: dict[type[Any], tuple[str, ...]] = {
    Lookup: ("further", "private", "hit", "miss"),
    Each: ("steps",),
    Repeat: ("steps",),
    Allocate: ("steps",),
    Free: ("steps",),
    Fork: ("branches",),
    Branch: ("probabilities", "choices"),
}
"""The fields of steps that stand in braces."""

WORDS = {spec_word(kind): kind for kind in STEPS}
LAW_WORDS = {spec_word(kind): kind for kind in LAWS}

_TOKENS = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*) | (?P<end>[\n;]) | (?P<open>\{) | (?P<close>\})
    | (?P<text>"(?:[^"\\\n]|\\.)*") | (?P<law>[A-Za-z][\w-]*\([^()]*\)) | (?P<name>[A-Za-z_]\w*=)
    | (?P<word>[^\s{}();\#"=]+)""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.\d*)([eE][+-]?\d+)?")
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


@guarded
def parse(text: str, name: str = "program") -> tuple[Any, ...]:
    """Return the steps that a text says.

    Parameters
    ----------
    text : str
        The program.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        In a line that names the line of the program: no such step, a wrong argument, an open brace.

    Examples
    --------
    >>> parse("send parser; hold exponential(mean=2.0)")
    (Send(to='parser', bytes=0), Hold(time=Exponential(mean=2.0), counted=True))
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a text, got {shown(text)}")
    return _Reader(name, text).program("stop")


class _Reader:
    """The tokens of a text, and how far they are read."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tokens: list[tuple[str, str, int]] = []
        place, line = 0, 1
        while place < len(text):
            found = _TOKENS.match(text, place)
            if found is None:
                rest = text[place:].partition("\n")[0]
                raise ValueError(f"{name} line {line} must be words, laws and braces, got {rest!r}")
            kind = str(found.lastgroup)
            if kind != "space":
                self.tokens.append((kind, found[0], line))
            line += found[0].count("\n")
            place = found.end()
        self.tokens.append(("stop", "the end", line))
        before = ("end", *(kind for kind, _, _ in self.tokens))
        steps = sum(kind == "word" and last in ("end", "open") for last, kind in pairwise(before))
        require_size(name, steps)
        self.at = self.depth = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def program(self, close: str) -> tuple[Any, ...]:
        """Return the steps up to a token, which is taken."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refusal(f"be at most {DEEPEST} braces deep")
        steps: list[Any] = []
        while self.kind != close:
            if self.kind == "end":
                self.take()
                continue
            if self.kind == "word":
                steps.append(self.step())
            if self.kind not in ("end", close):
                after = "have a new line or ';' between steps" if steps else "begin with a step"
                raise self.refusal("close its braces" if self.kind == "stop" else after)
        self.take()
        self.depth -= 1
        return tuple(steps)

    def step(self) -> Any:
        where = f"{self.name} line {self.tokens[self.at][2]}"
        word = checks.choice(f"{where}: step", self.take(), WORDS)
        cls = WORDS[word]
        inside = PROGRAMS.get(cls, ())
        plain = [name for name in cls.__match_args__ if name not in inside]
        values: dict[str, Any] = {}
        while self.kind not in ("end", "close", "stop"):
            label = self.take() if self.kind in ("word", "name") else ""
            if self.kind == "open" and (not label or cls in (Branch, Lookup)):
                self.take()
                self.put(where, cls, values, label, self.program("close"))
                continue
            if label.endswith("="):
                key, value = label[:-1], self.value(where)
            elif not plain:
                got = label or self.tokens[self.at][1]
                raise ValueError(f"{where}: {word} must have no further argument without a name, got {got!r}")
            else:
                key, value = plain[0], self.value(where, label)
            if key in values:
                raise ValueError(f"{where}: {word}.{key} must be given once, got it twice")
            plain = [name for name in plain if name != key]
            values[key] = value
        Place(key=f"{where}: {word}").check(values, field_names(cls), needed(cls))
        try:
            return cls(**{name: _fixed(cls, name, value) for name, value in values.items()})
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def put(
        self, where: str, cls: type[Any], values: dict[str, Any], label: str, steps: tuple[Any, ...]
    ) -> None:
        """Put a program in braces where it belongs."""
        word, known = spec_word(cls), PROGRAMS.get(cls, ())
        if cls is Branch and _NUMBER.fullmatch(label):
            values["probabilities"] = (*values.get("probabilities", ()), float(label))
            values["choices"] = (*values.get("choices", ()), steps)
        elif cls is Fork and not label:
            values["branches"] = (*values.get("branches", ()), steps)
        elif (label in known and cls is Lookup) or (known == ("steps",) and not label):
            key = label or "steps"
            if key in values:
                raise ValueError(f"{where}: {word}.{key} must be given once, got it twice")
            values[key] = steps
        else:
            before = {Branch: "a probability", Lookup: " or ".join(PROGRAMS[Lookup])}
            rule = f"have {before[cls]} before its braces" if cls in before else "have no braces"
            raise ValueError(f"{where}: {word} must {rule}, got {label or '{'!r}")

    def value(self, where: str, word: str = "") -> Any:
        """Return the value of a word, or of the next token."""
        kind, text = ("word", word) if word else (self.kind, self.take())
        if kind == "text":
            return json.loads(text)
        if kind == "law":
            return _law(where, text)
        if kind != "word":
            raise ValueError(f"{where} must have a value, got {text!r}")
        if text in ("true", "false"):
            return text == "true"
        if _NUMBER.fullmatch(text):
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
        return text

    def refusal(self, rule: str) -> ValueError:
        _, text, line = self.tokens[self.at]
        return ValueError(f"{self.name} line {line} must {rule}, got {text!r}")


def _fixed(cls: type[Any], name: str, value: Any) -> Any:
    """Return a number where a law belongs as a fixed time."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Deterministic(mean=value) if number and Deterministic in alternatives(held(cls)[name]) else value


def _law(where: str, text: str) -> Any:
    word, _, rest = text.partition("(")
    kind = LAW_WORDS[checks.choice(f"{where}: law", word, LAW_WORDS)]
    try:
        table = tomllib.loads(f"law = {{ {' '.join(rest[:-1].split())} }}")["law"]
    except tomllib.TOMLDecodeError:
        raise ValueError(f"{where}: {word} must have parameters such as (mean=2.0), got ({rest}") from None
    try:
        return Place(key=f"{where}: {word}").spec(table, kind)
    except ValueError as error:
        said = str(error)
        raise ValueError(said if where in said else f"{where}: {word} {said}") from None


@guarded
def program_text(steps: tuple[Any, ...]) -> str:
    r"""Return steps as a text that `parse` reads back to equal steps.

    Examples
    --------
    >>> from qmodels.systems.composed.steps import Acquire, Read, Release
    >>> program_text((Acquire("mshrs"), Read("dram", 4), Release("mshrs")))
    'acquire mshrs\nread dram 4\nrelease mshrs'
    """
    if not (isinstance(steps, tuple) and all(map(is_dataclass, steps))):
        raise ValueError(f"steps must be a tuple of steps, got {shown(steps)}")
    return "\n".join(line for step in steps for line in _lines(step))


def _lines(step: Any) -> list[str]:
    """Return a step on one line if it is short, or else with its programs on lines of their own."""
    head = " ".join([spec_word(type(step)), *_arguments(step)])
    blocks = [(label, [line for one in steps for line in _lines(one)]) for label, steps in _blocks(step)]
    if not blocks:
        return [head]
    if all(len(lines) <= 1 for _, lines in blocks):
        short = " ".join(
            [head, *(f"{label}{{ {lines[0]} }}" if lines else f"{label}{{}}" for label, lines in blocks)]
        )
        if len(short) <= WIDTH:
            return [short]
    found = [head]
    for label, lines in blocks:
        found[-1] += f" {label}{{"
        found += [*(f"    {line}" for line in lines), "}"]
    return found


def _arguments(step: Any) -> list[str]:
    """Return the arguments that are not the defaults, by name from where one is left out."""
    texts, named = [], False
    for item in fields(step):
        value = getattr(step, item.name)
        if item.name in PROGRAMS.get(type(step), ()):
            continue
        if item.default is not MISSING and value == item.default:
            named = True
        else:
            named = named or item.name not in step.__match_args__
            texts.append(f"{item.name}={_value(value)}" if named else _value(value))
    return texts


def _value(value: Any) -> str:
    if isinstance(value, Deterministic):
        return literal(value.mean)
    if isinstance(value, LAWS):
        parameters = (f"{name}={literal(one)}" for name, one in document(value).items())
        return f"{spec_word(type(value))}({', '.join(parameters)})"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in ("true", "false"):
        return value
    return literal(value)


def _blocks(step: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the programs in a step, each with what stands before its brace."""
    match step:
        case Branch():
            pairs = zip(step.probabilities, step.choices, strict=True)
            return [(f"{probability!r} ", choice) for probability, choice in pairs]
        case Lookup():
            return [(f"{name} ", getattr(step, name)) for name in PROGRAMS[Lookup] if getattr(step, name)]
        case Fork():
            return [("", branch) for branch in step.branches]
        case Each() | Repeat() | Allocate() | Free() if step.steps:
            return [("", step.steps)]
    return []
