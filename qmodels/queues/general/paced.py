"""Work in front of a server whose customers come in paced trains."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.queues.general.mg1 import mg1_waiting_time


def train_area(*, count: Any, count_square: Any, service: Any, spacing: Any, first_extra: Any = 0.0) -> Any:
    r"""Area under the unfinished work of one train that finds an idle server.

    A train is ``count`` jobs of length ``service`` that arrive ``spacing`` apart; the first is
    longer by ``first_extra``. The area is what the train adds to the time integral of the work.

    ``count``, ``count_square``: mean and second moment of the jobs in a train; ``service``, ``spacing``:
    length of a job and time between two arrivals [time]; ``first_extra``: additional length of the first job
    [time]. Returns mean area [time^2].

    Each job adds the triangle of its own length, and a rectangle of its length times the work
    it finds. With jobs of length :math:`s` every :math:`\tau`, job :math:`j = 1, 2, \dots` finds
    :math:`(x + j (s - \tau))^+` where :math:`x` is the first job's extra. Exact for
    :math:`s \ge \tau`, and for :math:`x = 0`; otherwise the sum up to the last job that finds
    work is evaluated at the mean count.
    """
    triangles = count * service**2 / 2 + first_extra * (service + first_extra / 2)
    gain = service - spacing
    pairs = (count_square - count) / 2
    growing = service * ((count - 1) * first_extra + gain * pairs)
    last = np.minimum(np.maximum(count - 1, 0.0), np.floor(first_extra / np.where(gain < 0, -gain, 1.0)))
    shrinking = service * (last * first_extra + gain * last * (last + 1) / 2)
    return triangles + np.where(gain >= 0, growing, np.maximum(shrinking, 0.0))


def mean_work(*, train_rate: Any, area: Any, intensity: Any, burst: Any = 0.0) -> Any:
    r"""Mean unfinished work of a server fed by trains, which a Poisson arrival finds.

    ``train_rate``: trains per time; ``area``: mean area of one train alone, see `train_area` [time^2];
    ``intensity``: work that arrives per time, from 1 on the work grows without bound; ``burst``: addition for
    trains that come in bursts [time]. Returns mean work, ``inf`` where the intensity is 1 or more [time].

    Pollaczek and Khinchine's formula with twice the area in place of the second moment:
    :math:`E[V] = \lambda A / (1 - \rho)`. Exact for Poisson trains whose jobs arrive together
    (spacing 0: M^[X]/G/1); for paced jobs an approximation.
    """
    full = np.asarray(intensity) >= 1.0
    idle = np.where(full, 1.0, 1.0 - np.minimum(intensity, 1.0))
    work = mg1_waiting_time(train_rate, None, 2.0 * area, idle) + burst / idle
    return np.where(full, np.inf, np.maximum(work, 0.0))
