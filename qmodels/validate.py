"""The simulators, and the comparison of model and simulation.

The package `validate` under a name that nothing else can hide (`qmodels.beside`).
"""

import sys
from typing import TYPE_CHECKING

from qmodels.beside import package

if TYPE_CHECKING:
    from validate import *  # noqa: F403

sys.modules[__name__] = package("validate")
