"""Laws of times, and their formulas: `formulas` gives moments, tails, quantiles and transforms of each.

>>> from qmodels import laws
>>> round(float(laws.formulas(laws.LogNormal(mean=2.0, scv=3.0)).moment(2)), 9)
16.0
"""

from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import formulas
from qmodels.systems.laws import *  # noqa: F403
from qmodels.systems.laws import __all__ as _structure
from qmodels.systems.laws.kinds import markovian, phase_type, scaled

__all__ = ["Formulas", "formulas", "markovian", "phase_type", "scaled", *_structure]
