"""Simulation of the systems that ``qmodels`` solves, and the comparison of the two."""

# A package of qmodels-toolkit: `qmodels.beside` looks for this name.

from typing import TYPE_CHECKING

from validate import public

if TYPE_CHECKING:
    from validate.public import *  # noqa: F403
else:
    __all__, __getattr__, __dir__ = public.__all__, public.__getattr__, public.__dir__
