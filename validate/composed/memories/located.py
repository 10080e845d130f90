"""The memories of a system by name: where their blocks are."""

from __future__ import annotations

from typing import Any, NamedTuple

from qmodels.systems.composed.program_form import block_bytes
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram import Dram
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import DramSystem


class Located(NamedTuple):
    """What lists, address books and scoreboards read of a memory, behind controllers or not."""

    geometry: DramGeometry
    address_map: Any
    page_policy: str
    clock_ghz: float
    in_order: bool


def memories(spec: System) -> dict[str, Located]:
    """Return the memories of a system, those behind controllers first."""
    found = {
        name: Located(part.geometry, part.address_map, part.page_policy, float(part.clock_ghz), False)
        for name, part in spec.parts.items()
        if isinstance(part, DramSystem)
    }
    for name, part in spec.parts.items():
        if isinstance(part, Dram):
            found[name] = _located(part, block_bytes(spec, name))
    return found


def _located(part: Dram, block: int) -> Located:
    geometry = DramGeometry(
        channels=int(part.channels),
        groups=1,
        banks=int(part.banks),
        row_blocks=max(1, int(part.row_bytes) // block),
        block_bytes=block,
    )
    address_map = Interleaved(step=int(part.interleaving_step), bank_step=int(part.bank_step))
    return Located(geometry, address_map, part.page_policy, float(part.clock_ghz), True)
