"""What ``help()`` says of the public functions of the rooms that share their words, and the mechanism."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import time
from importlib import import_module

import pytest

import qmodels as qm
from qmodels import GROUPS
from qmodels.checks import FloatArray
from qmodels.described import Described, _entries, _sections, bibliography

ROOMS = ("queues", "networks", "markov")
NEEDS_UNIT = re.compile(r"(rates?|times?|moment|mean|gap|rate_multiplier)$")
NO_UNIT = re.compile(r"\b(callable|mapping of|sequence of Law|str|bool)\b")
TOOLS = {"largest_rate", "smallest_whole", "routing_matrix"}  # which have no formula and hence no source


def public_functions():
    for room in ROOMS:
        module = importlib.import_module(f"qmodels.{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) and not thing.__module__.startswith("qmodels.laws"):
                yield pytest.param(thing, id=f"{room}.{name}")


FUNCTIONS = list(public_functions())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_help_says_everything(function):
    sections = _sections(inspect.getdoc(function))
    entries = _entries(sections.get("Parameters", ""))
    named = [name for entry in entries for name in entry.names]
    assert sorted(named) == sorted(inspect.signature(function).parameters)
    for entry in entries:
        head, _, text = entry.text.partition("\n")
        assert text.strip(), entry.names
        if any(NEEDS_UNIT.search(name) for name in entry.names) and not NO_UNIT.search(head):
            assert re.search(r"\[[^\[\]]+\]", text), f"{entry.names} without a unit"
    assert sections["Returns"].strip()
    assert sections["Raises"].strip()
    assert ("References" in sections) == (function.__name__ not in TOOLS)
    assert ">>>" in sections["Examples"]
    order = [name for name in sections if name]
    assert order == [
        s for s in ("Parameters", "Returns", "Raises", "Notes", "References", "Examples") if s in sections
    ]


WORDS = """Words.

Parameters
----------
rate : float
    Arrivals. [jobs / time]
rate (lost) : float
    Arrivals, lost ones included. [jobs / time]
rate, mean : float
    Exactly one.

Returns
-------
float
    The load.

Raises
------
ValueError
    If an argument is out of range.
"""


def test_what_a_docstring_says_itself_goes_before_the_words_of_the_room():
    described = Described(WORDS)

    @described("kingman1961", "gross2008, section 2.5", rate="lost")
    def model(*, servers: int, rate: float) -> float:
        """Load.

        Parameters
        ----------
        servers : int
            Own words.

        Raises
        ------
        RuntimeError
            If nothing helps.

        Examples
        --------
        >>> 1
        1
        """

    sections = _sections(model.__doc__)
    assert sections["Parameters"].split("\n")[:3] == ["servers : int", "    Own words.", "rate : float"]
    assert "lost ones" in sections["Parameters"] and "Exactly one" not in sections["Parameters"]
    assert sections["Returns"] == "float\n    The load."
    assert [entry.names for entry in _entries(sections["Raises"])] == [("ValueError",), ("RuntimeError",)]
    assert sections["References"].startswith(".. [1] J. F. C. Kingman")
    assert "section 2.5." in sections["References"]


def test_types_that_the_annotation_or_the_house_rule_says_are_added():
    @Described(WORDS)()
    def model(*, rate: float) -> FloatArray:
        """Load.

        Returns
        -------
        One per class,
        the highest first.

        Raises
        ------
        If the rate is negative.
        """

    sections = _sections(model.__doc__)
    assert sections["Returns"] == "array\n    One per class,\n    the highest first."
    assert sections["Raises"].strip() == "ValueError\n    If the rate is negative."


def test_parameters_that_are_described_together_go_together():
    @Described(WORDS)()
    def model(*, mean: float, rate: float) -> float:
        """Load."""

    assert _sections(model.__doc__)["Parameters"].startswith("rate, mean : float")


def test_a_parameter_without_words_is_an_error_where_it_is_written():
    with pytest.raises(LookupError, match="price of .*model must be described in its docstring"):

        @Described(WORDS)()
        def model(*, price: float) -> float:
            """Load."""


def test_arguments_that_are_handed_on_show_in_the_signature():
    @Described(WORDS)(like=lambda *, rate=1.0, mean=2.0, other=3.0: None, without="other")
    def model(*, rate: float = 5.0, **rest: float) -> float:
        """Load."""

    assert str(inspect.signature(model)).startswith("(*, mean=2.0, rate: 'float' = 5.0)")


def test_python_without_docstrings_still_imports():
    code = "import qmodels.queues as q; print(q.mm1(arrival_rate=0.5, service_rate=1).mean_waiting_time)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1.0"


def test_every_source_of_a_docstring_is_in_the_bibliography_and_words_cost_next_to_nothing():
    assert len(bibliography()) > 60
    with pytest.raises(KeyError, match="nobody1900"):

        @Described(WORDS)("nobody1900")
        def unfounded(*, rate: float) -> float:
            """Load."""

    described = Described(WORDS)
    begin = time.perf_counter()
    for _ in range(100):

        @described("kingman1961")
        def model(*, rate: float, mean: float) -> float:
            """Load."""

    assert time.perf_counter() - begin < 0.2  # measured: 0.1 ms each


def test_every_public_name_is_there() -> None:
    for name in dir(qm):
        assert getattr(qm, name) is not None
    assert {"solve", "PacketProcessor", "queues", "read_trace"} <= set(dir(qm))


@pytest.mark.parametrize("group", GROUPS)
def test_every_name_of_a_group_is_there(group: str) -> None:
    home = getattr(qm, group)
    assert home.__doc__ and set(home.__all__) <= set(dir(home))
    assert all(getattr(home, name) is not None for name in home.__all__)


def test_no_public_name_stands_for_two_things() -> None:
    found: dict[str, object] = {name: getattr(qm, name) for name in qm.__all__}
    for group in GROUPS:
        for name in getattr(qm, group).__all__:
            thing = getattr(getattr(qm, group), name)
            assert found.setdefault(name, thing) is thing, name


def test_verbs_are_not_hidden_by_modules() -> None:
    import_module("qmodels.dispatch")
    assert callable(qm.solve)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'qmodels' has no attribute 'mmx'"):
        qm.mmx  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'mmc'; it is qmodels.queues.mmc$"):
        qm.mmc  # noqa: B018
