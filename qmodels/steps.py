"""The steps of a program, what a job of a `qmodels.Flow` does: one after the other, together, or by chance.

>>> from qmodels import steps
>>> steps.parse("acquire mshrs; read dram 2; release mshrs")[1]
Read(part='dram', blocks=2, addresses='random', stream='')
"""

from qmodels.systems.composed.program_text import parse, program_text
from qmodels.systems.composed.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Mark,
    Move,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
)

__all__ = [
    "Acquire",
    "Allocate",
    "Branch",
    "Each",
    "Fork",
    "Free",
    "Hold",
    "Lookup",
    "Mark",
    "Move",
    "Read",
    "Release",
    "Repeat",
    "Send",
    "Visit",
    "Write",
    "parse",
    "program_text",
]
