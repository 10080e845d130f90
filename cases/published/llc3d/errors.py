"""The model of the LLC-slice processor against its simulation: ``python -m cases.published.llc3d.errors``.

Writes ``data/errors.csv``: the published design with one parameter changed at a time, for each
architecture, and random designs; and the error map of the model, ``qmodels/llc/processor_error_map.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from qmodels.llc.processor_errors import ERRORS, VARIED, region_of
from qmodels.llc.processor_hits import hit_ratios, llc_load
from qmodels.systems.cache.llc_processor import ARCHITECTURES, LlcProcessor
from qmodels.systems.spec.fields import get_field, replace_fields
from qmodels.systems.traffic.popularity import Zipf

ONE_AT_A_TIME: dict[str, tuple[float, ...]] = {
    "cores": (4, 8, 12, 16, 20, 24, 28, 40),
    "slices": (1, 2, 4, 8, 16),
    "capacity": (20, 50, 200, 400),
    "channels": (8, 16, 24, 48),
    "line_bytes": (2, 4, 8, 16, 32, 128),
    "load": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0, 1.2),
    "entries": (1000, 5000, 10_000, 40_000, 60_000),
    "exponent": (0.5, 0.64, 0.95, 1.1),
}
RANDOM = 60


def designs() -> list[LlcProcessor]:
    """Return the designs that are compared."""
    found = [
        replace_fields(LlcProcessor(architecture=architecture), {name: value})
        for architecture in ARCHITECTURES
        for name, values in ONE_AT_A_TIME.items()
        if name != "slices" or architecture == "slices"
        for value in values
    ]
    rng = np.random.default_rng(4)
    for _ in range(RANDOM):
        cores, channels = int(rng.integers(4, 41)), int(rng.integers(8, 49))
        found.append(
            LlcProcessor(
                architecture=str(rng.choice(ARCHITECTURES)),
                cores=cores,
                slices=int(rng.integers(1, 29)),
                capacity=int(rng.integers(20, 201)),
                channels=channels,
                line_bytes=int(2 ** rng.integers(1, 8)),
                load=float(min(cores / channels * rng.uniform(0.2, 1.4), 1.2)),
                popularity=Zipf(
                    entries=int(10 ** rng.uniform(3, 4.7)), exponent=round(float(rng.uniform(0.5, 1.1)), 2)
                ),
                assignment=str(rng.choice(["random", "consecutive"])),
            )
        )
    return found


def points() -> Iterator[tuple[Row, LlcProcessor]]:
    """Yield the designs with what varies."""
    for spec in designs():
        row: Row = {"architecture": spec.architecture, "assignment": spec.assignment}
        row |= {name: get_field(spec, name) for name in VARIED}
        yield {**row, "llc_load": round(llc_load(spec, hit_ratios(spec)), 6)}, spec


MEASUREMENT = Measurement(
    errors=ERRORS,
    about="Designs by architecture; with an LLC nearly full (offered 0.75 to 1.1 of what it can do) apart.",
    command="cases.published.llc3d.errors",
    points=points,
    metrics={
        "blocking_": ("blocking_probability", "points"),
        "waiting_": ("waiting_latency", "%"),
        "on_chip_": ("on_chip_hit_ratio", "points"),
    },
    where=lambda row: {"region": region_of(row["architecture"], row["llc_load"])},
    file=data_folder("llc3d") / "errors.csv",
    options={"requests": 200_000, "replications": 8},
    # Waits in the spec's time units.
    convert=lambda spec, metric, value: value * (spec.clock_ghz if metric == "waiting_latency" else 1.0),
)

if __name__ == "__main__":
    MEASUREMENT.main()
