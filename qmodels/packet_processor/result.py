"""The answer of the packet processor's model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qmodels.answer import Answer


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PacketAnswer(Answer):
    """An answer with every single resource beside the groups of them.

    Of each group ``utilization`` and ``traffic_intensity`` are those of its most loaded member; the
    bottleneck is the group that fills up first. Networks fill up before their links are busy all the
    time, and DRAM is not there while it is refreshed: the intensity is the load over what can be carried.

    Parameters
    ----------
    resources : mapping of str to float
        Traffic intensity of every single resource; only for a spec without array fields.
    """

    saved: ClassVar[tuple[str, ...]] = (*Answer.saved, "resources")

    resources: Mapping[str, float]
