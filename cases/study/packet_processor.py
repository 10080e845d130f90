"""The joint case: a packet processor under two bundled workloads, its designs and its objectives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optimize.spaces.evaluation import LOAD, RESOURCE
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import array_fields, find_field, get_field, replace_fields, takes_array
from qmodels.systems.spec.text.toml import from_toml

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer

DATA = Path(__file__).parents[1] / "data"

WORKLOADS = ("small-packets", "large-packets")
"""The bundled workloads; the first is the default, fed by the bundled trace."""

CHOICES: dict[str, tuple[int, ...]] = {
    "interleaving_step": (1, 2, 4, 8, 16, 32),
    "channels": (1, 2, 3, 4, 6, 8),
    "alloc_trial_count": (1, 2, 3, 4, 5),
    "link_width": (8, 16, 32),
    "slices": (0, 1, 2, 4, 8),
}
"""The default space: 2,700 designs."""

MINIMIZE = ("cost", "packet_latency_p99")
MAXIMIZE = ("saturation_data_rate",)
SUBJECT_TO = {"overflow_probability": (None, 1e-3)}

ERROR = "error: "  # prefix of the columns that hold the error which an answer states of its metrics
BIAS = "bias: "  # prefix of the columns that hold its signed mean, below 0 where the model is too low


def default_processor(workload: str = WORKLOADS[0]) -> PacketProcessor:
    """Return the packet processor of the joint case under a bundled workload."""
    if workload not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, got {workload!r}")
    return from_toml(DATA / f"{workload}.toml", PacketProcessor)


def default_choices(base: PacketProcessor) -> dict[str, tuple[int, ...]]:
    """Return the fields of the default space that a processor has, with their choices.

    Devices behind controllers have the step of their address map, and no interleaving step.
    """
    found = {}
    for name, values in CHOICES.items():
        try:
            find_field(base, name)
        except ValueError:
            continue
        found[name] = values
    return found


def default_space(base: PacketProcessor, given: Iterable[str] = ()) -> Space:
    """Return the designs around a base spec, which has all that is not varied.

    Channel counts that leave no node for an initiator are left out; ``given``: varied fields for which the
    value in `base` is the only choice. Where a varied field holds an array in `base`, its elements are the
    choices anyway.
    """
    free = base.noc.topology.nodes - base.noc.initiators
    wanted: dict[str, Iterable[Any]] = dict(default_choices(base))
    if "channels" in wanted:
        wanted["channels"] = [channels for channels in wanted["channels"] if channels <= free]
    values = {name: get_field(base, name) for name in wanted}
    own = {name for name, value in values.items() if isinstance(value, np.ndarray)} | set(given)
    wanted |= {name: np.atleast_1d(values[name]).tolist() for name in own}
    base = replace_fields(base, {name: next(iter(wanted[name])) for name in own})
    for path, value in array_fields(base).items():
        raise ValueError(f"{path} must be one number in an exploration, got an array of {value.size}")
    return Space(base, wanted)


def vectorized_fields(space: Space) -> list[str]:
    """Return the fields of a space that a spec may hold arrays of; devices behind controllers take none."""
    return [name for name in space.numeric if takes_array(space.base, name)]


def along_axes(spec: PacketProcessor) -> PacketProcessor:
    """Return a spec whose swept fields lie along axes of their own, so that all combinations are solved.

    >>> swept = replace_fields(PacketProcessor(), {"channels": np.array([2, 4]), "banks": np.array([4, 8])})
    >>> [values.shape for values in array_fields(along_axes(swept)).values()]
    [(2, 1), (1, 2)]
    """
    swept = array_fields(spec)
    shapes = np.full((len(swept), len(swept)), 1)
    np.fill_diagonal(shapes, -1)
    pairs = zip(swept.items(), shapes, strict=True)
    return replace_fields(spec, {path: values.reshape(shape) for (path, values), shape in pairs})


def solved_columns(spec: Any) -> dict[str, Any]:
    """Solve a spec of any kind (a sweep of them) and return the columns of a study for each design."""
    from qmodels import solve

    answer: Any = solve(spec)
    return {
        **answer.metrics,
        "stable": answer.stable,
        RESOURCE: answer.bottleneck,
        LOAD: answer.bottleneck_load,
        **error_columns(answer),
    }


def error_columns(answer: Answer) -> dict[str, Any]:
    """Return the stated error of every metric that has one, and whether the answer is validated.

    Explorations refuse NaN: infinite where nothing was measured.
    """
    stated = {ERROR + name: error.mean for name, error in answer.error.items()}
    stated |= {BIAS + name: error.bias for name, error in answer.error.items()}
    found = {name: np.nan_to_num(value, nan=np.inf) for name, value in stated.items()}
    return {"validated": answer.validated, **found}
