"""Packets as a capture has them, each on an interface; one interface is chosen, or all are merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

Flows = list[int] | None
"""Number of each packet's flow, in the order of their first packets; None where it is not known."""

ALL = "all"
"""The word that stands for every interface."""


def number_flows(keys: Iterable[Hashable]) -> list[int]:
    """Return the number of each packet's flow.

    >>> number_flows(["b", "a", "b"])
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


@dataclass
class Captured:
    """Packets in the order of the file: time [ns], bytes on the wire, what names the flow, the interface.

    An interface is its number and its name, which may be empty. Sections of a file that give one number and
    one name mean one interface.
    """

    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    ports: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.times)

    def add(self, time: int, size: int, key: bytes | None, port: tuple[int, str] = (0, "")) -> None:
        """Append a packet."""
        self.times.append(time)
        self.sizes.append(size)
        self.keys.append(key)
        self.ports.append(port)

    def chosen(self, interface: str = "") -> tuple[list[int], list[int], Flows]:
        """Return times, sizes and flows of the packets of an interface, by its number or name, or of `ALL`.

        Raises
        ------
        ValueError
            If there are several interfaces and none is chosen, or if it has no packets.
        """
        counts = {port: self.ports.count(port) for port in dict.fromkeys(self.ports)}
        wanted = {port for port in counts if interface and interface in (ALL, str(port[0]), port[1])}
        if not interface and len(counts) <= 1:
            wanted = set(counts)
        if (not wanted and (counts or interface)) or (interface != ALL and len(wanted) > 1):
            known = ", ".join(f"{_said(port)} with {count} packets" for port, count in counts.items())
            rule = (
                f"interface must be the number or name of one of {known or 'none'}; or {ALL}, merged by time"
            )
            raise ValueError(f"{len(self)} packets read: {rule}; got {interface or 'none'!r}")
        rows = [row for row, port in enumerate(self.ports) if port in wanted]
        if interface == ALL and all(map(self._in_order, wanted)):
            rows.sort(key=self.times.__getitem__)
        keys = [self.keys[row] for row in rows]
        flows = None if None in keys else number_flows(keys)
        return [self.times[row] for row in rows], [self.sizes[row] for row in rows], flows

    def _in_order(self, port: tuple[int, str]) -> bool:
        times = [time for time, one in zip(self.times, self.ports, strict=True) if one == port]
        return all(a <= b for a, b in zip(times, times[1:], strict=False))


def _said(port: tuple[int, str]) -> str:
    return f"{port[0]} ({port[1]})" if port[1] else str(port[0])
