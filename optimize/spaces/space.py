"""The designs to choose from: a grid over the fields of a spec."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import BoolArray
from optimize.spaces.numbering import Designs, Grid
from optimize.spaces.structure import Conditions, Constraint, Point, answer, draw, tabulate
from qmodels.systems.spec.fields import get_field

CHUNK, FIRST = 1 << 20, 1 << 10
"""Spaces up to this size are enumerated to draw from them; the first step of the search for one."""

DRAWS = 64  # rounds of drawing from a larger space, each of twice the designs still missing


class Space(Grid):
    """All combinations of the choices for some fields of a base spec.

    Designs are numbered by their place in the grid of all choices, in row-major order: the last
    field varies fastest. The numbers depend on the choices alone, neither on the conditions nor
    on the constraints. Nothing is enumerated until it is asked for.

    Parameters
    ----------
    base : dataclass instance
        The spec whose fields vary; all other fields keep their values.
    choices : mapping, optional
        ``{name: values}`` for names that are no Python identifiers, such as
        ``"dram.channels"``.
    constraints : sequence of callables
        Each takes a point (``{name: value}``) and returns whether it is a design at all. It must
        depend on the point only: it is called once per combination of the fields it reads.
    conditions : mapping, optional
        ``{name: {other: values}}``: the field ``name`` matters only where ``other`` matters and
        has one of these values (if there are several others: all of them). Elsewhere it has its
        first choice: points that differ only in fields that do not matter are one design, with
        the smallest of their numbers.
    **fields : sequence
        ``name=values``; a name is a dotted path or a unique end of one. Values are anything
        the field accepts; a NumPy array gives its elements as Python numbers.

    Attributes
    ----------
    base : dataclass instance
        As given.
    choices : dict of str to tuple
        The values of every field, by the name it was given.
    paths : dict of str to str
        The dotted path of every name.
    shape : tuple of int
        Number of choices of every field.

    Raises
    ------
    ValueError
        If there is no field, a field is unknown, ambiguous or given twice, a list of choices is
        empty or holds a value twice, or a condition names no field or no choice or is circular.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     banks: int = 8
    >>> space = Space(Memory(), channels=[1, 2, 4], banks=[4, 8])
    >>> space.size, space.point(3), space.spec(3)
    (6, {'channels': 2, 'banks': 8}, Memory(channels=2, banks=8))
    >>> space.batch([0, 2, 4])
    Memory(channels=array([1, 2, 4]), banks=array([4, 4, 4]))
    >>> space.grid()
    Memory(channels=array([[1],
           [2],
           [4]]), banks=array([[4, 8]]))

    The number of banks matters with two channels or more:

    >>> space = Space(Memory(), channels=[1, 2, 4], banks=[4, 8], conditions={"banks": {"channels": [2, 4]}})
    >>> space.size, space.designs()
    (5, array([0, 2, 3, 4, 5]))
    """

    def __init__(
        self,
        base: Any,
        choices: Mapping[str, Iterable[object]] | None = None,
        /,
        *,
        constraints: Sequence[Constraint] = (),
        conditions: Conditions | None = None,
        **fields: Iterable[object],
    ) -> None:
        super().__init__(base, [*(choices or {}).items(), *fields.items()], conditions or {})
        self.constraints = tuple(constraints)
        for constraint in self.constraints:
            if not callable(constraint):
                raise ValueError(f"constraints must be callables on a point, got {constraint!r}")

    @cached_property
    def tables(self) -> dict[str, tuple[Any, tuple[tuple[int, ...], BoolArray] | None]]:
        """The constraints by name, with the axes they read and their answers where these are known."""
        tables: dict[str, tuple[Any, tuple[tuple[int, ...], BoolArray] | None]] = {}
        for k, constraint in enumerate(self.constraints):
            name = getattr(constraint, "__name__", type(constraint).__name__)
            name = f"{name} #{k + 1}" if name == "<lambda>" or name in tables else name
            tables[name] = constraint, tabulate(constraint, self.choices)
        return tables

    def portable(self, *, constrained: bool) -> Space:
        """Return the same space for a worker, without constraints or with their tables."""
        other = copy(self)
        other.constraints = ()
        other.__dict__["tables"] = {
            name: (constraint if known is None else None, known)
            for name, (constraint, known) in (self.tables.items() if constrained else ())
        }
        return other

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the fields that constraints and conditions look at or switch: the others are free."""
        tables = [table for _, table in self.tables.values()]
        if None in tables:
            return tuple(self.choices)
        read = {axis for table in tables if table is not None for axis in table[0]}
        tied = super().coupled
        return tuple(name for axis, name in enumerate(self.choices) if axis in read or name in tied)

    def count(self) -> int:
        """Return the number of designs that satisfy the constraints.

        Only combinations of the fields that a constraint reads are enumerated.
        """
        tables = [table for _, table in self.tables.values()]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            return self.designs().size
        return self.structure.count(known)

    def points(self) -> Iterator[Point]:
        """Yield the points of all designs that satisfy the constraints, in order."""
        return (self.point(design) for design in self.designs())

    def violations(self, designs: npt.ArrayLike | None = None) -> dict[str, BoolArray]:
        """Return for every constraint, by its name, which of the designs (default: all) it excludes."""
        if not self.tables:
            return {}
        result: dict[str, BoolArray] = {}
        numbers = self.numbers(designs)
        for name, (constraint, known) in self.tables.items():
            if known is None:
                columns, count = self.columns(numbers), numbers.size
                result[name] = ~answer(constraint, columns, lambda k: self.point(numbers[k]), count)
            else:
                axes, table = known
                here = table[tuple(self.all_digits(numbers, axes))] if axes else table
                result[name] = ~np.broadcast_to(here, numbers.shape)
        return result

    def sifted(self, numbers: Designs) -> tuple[Designs, tuple[int, ...]]:
        """Return which checked numbers of designs the constraints admit, and how many each excludes."""
        bad = list(self.violations(numbers).values())
        allowed = numbers[~np.logical_or.reduce(bad)] if bad else numbers
        return allowed, tuple(int(each.sum()) for each in bad)

    def designs(self) -> Designs:
        """Return the numbers of all designs that satisfy the constraints, ascending."""
        return self.admitted(self.numbers(None))

    def first(self) -> int | None:
        """Return the smallest number of a design that satisfies the constraints; None without any."""
        total, start, step = math.prod(self.shape), 0, FIRST
        while start < total:
            found = self.admitted(np.arange(start, min(start + step, total)))
            if found.size:
                return int(found[0])
            start, step = start + step, min(2 * step, CHUNK)
        return None

    def start(self) -> tuple[int, ...] | None:
        """Return the choices of the base spec, first ones elsewhere, if admitted; else the first design's."""
        values = [(get_field(self.base, path), self.choices[name]) for name, path in self.paths.items()]
        based = tuple(choices.index(value) if value in choices else 0 for value, choices in values)
        if self.admitted(self.numbers([int(self.number_of(based))])).size:
            return based
        first = self.first()
        return None if first is None else self.digits(first)

    def sample(self, count: int, *, seed: int) -> Designs:
        """Return distinct designs drawn uniformly, ascending; the same for the same seed.

        A space of more than a million designs is not enumerated for it: it is an error there if hardly one of
        many thousand draws is admitted, and elsewhere if the constraints leave fewer designs.
        """
        checks.whole("count", count, least=0)
        rng = np.random.default_rng(seed)
        if self.size <= CHUNK:
            found = rng.permutation(self.designs())[:count]
        else:
            found = np.zeros(0, dtype=np.int64)
            for _ in range(DRAWS):
                if found.size >= count:
                    break
                drawn = draw(self.structure.cells(), self.strides, 2 * (count - found.size) + 64, rng)
                found = np.concatenate([found, self.admitted(drawn)])
                found = found[np.sort(np.unique(found, return_index=True)[1])]
            found = found[:count]
        if found.size < count:
            raise ValueError(
                f"count must be at most the number of designs found ({found.size}), got {count!r}"
            )
        return np.sort(found)

    def admitted(self, numbers: Designs) -> Designs:
        """Return those of some checked design numbers that satisfy the constraints."""
        return numbers[self.allowed(numbers)]

    def allowed(self, numbers: Designs) -> BoolArray:
        """Tell which checked numbers are of designs that satisfy the constraints."""
        canonical = self.numbers(numbers)
        allowed = canonical == numbers
        for bad in self.violations(canonical).values():
            allowed &= ~bad
        return allowed

    def _repr_html_(self) -> str:
        from qmodels.systems.spec.result import table_html

        rows = [[name, str(len(some)), ", ".join(map(str, some))] for name, some in self.choices.items()]
        limits = [f"{len(self.constraints)} constraints"] if self.constraints else []
        return table_html(f"{type(self.base).__name__}: {self.size} designs", rows, limits)

    def __repr__(self) -> str:
        grid = " x ".join(f"{name}[{len(values)}]" for name, values in self.choices.items())
        return f"Space({type(self.base).__name__}: {grid} = {self.size} designs)"
