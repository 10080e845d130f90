"""Work in front of a server whose customers come in paced trains."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.numerics.kernels import part
from qmodels.queues.general.mg1 import mg1_waiting_time

part(mg1_waiting_time)


@part
def train_area(count: Any, count_square: Any, service: Any, spacing: Any, first_extra: Any) -> Any:
    r"""Area under the unfinished work of one train that finds an idle server.

    A train is ``count`` jobs of length ``service`` that arrive ``spacing`` apart; the first is
    longer by ``first_extra`` (0 if it is not). The area is what the train adds to the time integral of the
    work.

    ``count``, ``count_square``: mean and second moment of the jobs in a train; ``service``, ``spacing``:
    length of a job and time between two arrivals [time]; ``first_extra``: additional length of the first job
    [time]. Returns mean area [time^2].

    Each job adds the triangle of its own length, and a rectangle of its length times the work
    it finds. With jobs of length :math:`s` every :math:`\tau`, job :math:`j = 1, 2, \dots` finds
    :math:`(x + j (s - \tau))^+` where :math:`x` is the first job's extra. Exact for
    :math:`s \ge \tau`, and for :math:`x = 0`; otherwise the sum up to the last job that finds
    work is evaluated at the mean count.
    """
    triangles = count * service * service / 2.0 + first_extra * (service + first_extra / 2.0)
    gain = service - spacing
    if gain >= 0.0:
        return triangles + service * ((count - 1.0) * first_extra + gain * ((count_square - count) / 2.0))
    last = min(max(count - 1.0, 0.0), np.floor(first_extra / -gain))
    return triangles + max(service * (last * first_extra + gain * last * (last + 1.0) / 2.0), 0.0)


@part
def mean_work(train_rate: Any, area: Any, intensity: Any, burst: Any) -> Any:
    r"""Mean unfinished work of a server fed by trains, which a Poisson arrival finds.

    ``train_rate``: trains per time; ``area``: mean area of one train alone, see `train_area` [time^2];
    ``intensity``: work that arrives per time, from 1 on the work grows without bound; ``burst``: addition for
    trains that come in bursts, 0 for others [time]. Returns mean work, ``inf`` where the intensity is 1 or
    more [time].

    Pollaczek and Khinchine's formula with twice the area in place of the second moment:
    :math:`E[V] = \lambda A / (1 - \rho)`. Exact for Poisson trains whose jobs arrive together
    (spacing 0: M^[X]/G/1); for paced jobs an approximation.
    """
    if intensity >= 1.0:
        return np.inf
    idle = 1.0 - intensity
    return max(mg1_waiting_time(train_rate, 0.0, 2.0 * area, idle) + burst / idle, 0.0)
