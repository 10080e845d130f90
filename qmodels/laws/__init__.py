"""Laws of times, and their formulas: `formulas` gives moments, tails, quantiles and transforms of each.

>>> from qmodels import laws
>>> round(float(laws.formulas(laws.LogNormal(mean=2.0, scv=3.0)).moment(2)), 9)
16.0
"""

from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import formulas
from qmodels.systems.laws.kinds import markovian, phase_type, scaled
from qmodels.systems.laws.times import *  # noqa: F403
from qmodels.systems.laws.times import __all__ as _structure

__all__ = ["Formulas", "formulas", "markovian", "phase_type", "scaled", *_structure]
