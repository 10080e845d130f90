"""The explorer: design spaces, Pareto fronts, integer programs.

The package `optimize` under a name that nothing else can hide (`qmodels.beside`).
"""

import sys
from typing import TYPE_CHECKING

from qmodels.beside import package

if TYPE_CHECKING:
    from optimize import *  # noqa: F403

sys.modules[__name__] = package("optimize")
