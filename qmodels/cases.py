"""The joint case, its studies and the published systems.

The package `cases` under a name that nothing else can hide (`qmodels.beside`).
"""

import sys
from typing import TYPE_CHECKING

from qmodels.beside import package

if TYPE_CHECKING:
    from cases import *  # noqa: F403

sys.modules[__name__] = package("cases")
