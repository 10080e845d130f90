"""A memory of channels that all hold the same, a part in each bank, whose banks slow each other down."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels import checks
from qmodels.systems.laws.fields import keep
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.ranges import Declared, count


@dataclass(frozen=True, kw_only=True)
class BankedChannels(Declared, prefix="memory."):
    """Channels of a few banks, as those of stacked DRAM with copies of a table.

    Each channel holds everything, a part of it in each of its banks; a job wants a random part. It goes to
    the channel with the fewest busy banks of those whose bank with that part is idle; if there is none it
    waits for one, first come, first served by part.

    Parameters
    ----------
    service : Law
        Service times of a bank while the others of its channel are idle. [ns]
    channels, banks : int
        Channels, and banks of each.
    speeds : tuple of float
        Speed of a bank while 1, 2, ... banks of its channel are busy, the last value for more.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> BankedChannels(service=Exponential(mean=125.0), channels=32, speeds=(1.0, 0.7)).speed_of_all
    (1.0, 0.7)
    """

    service: Law
    channels: int = count(1, maximum=4096)
    banks: int = count(2, maximum=64)
    speeds: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        require_law("memory.service", self.service)
        keep(self, speeds=tuple(checks.positive("memory.speeds", self.speeds).ravel().tolist()))
        super().__post_init__()
        if not self.speeds:
            raise ValueError("memory.speeds must have a speed, got ()")

    @property
    def speed_of_all(self) -> tuple[float, ...]:
        """Speed of a bank while 1, 2, ... all banks of its channel are busy."""
        return (self.speeds + self.speeds[-1:] * self.banks)[: self.banks]
