"""Fork-join: a job splits into parts that are served side by side and waits for the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import _check
from qmodels.queues.mg1 import mg1
from qmodels.queues.mmc import mm1

FloatArray = npt.NDArray[np.float64]
