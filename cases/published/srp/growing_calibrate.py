"""Calibration of the region-growing case: three costs from image C, the sizes of A and B from a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cases.published.srp.growing_specs import FILE, growing_spec, image_body, published_time, task_costs
from qmodels.checks import FloatArray
from qmodels.systems.programs.work_queues import TaskCosts, WorkQueues

COSTS = ("block_cycles", "transfer_cycles", "queue_cycles")
CELLS = ("one waterfall", "four waterfall", "four stealing")
REPLICATIONS = 200


def mean_makespans(specs: Sequence[WorkQueues], replications: int) -> FloatArray:
    """Return simulated mean makespans in million cycles."""
    from validate import simulate

    found = simulate(specs, replications=replications, progress=lambda done, total: None)
    return np.array([result.metrics["execution_time"].best for result in found]) / 1e6


def calibrate(*, replications: int = REPLICATIONS) -> dict[str, float]:
    """Return the costs that fit three figures of image C, and the radii that fit one of A and one of B."""
    from scipy.optimize import least_squares

    cube = image_body("C")
    wanted = np.array([published_time(version, "C") for version in CELLS])

    def misfit(logs: FloatArray) -> FloatArray:
        costs = task_costs(dict(zip(COSTS, np.exp(logs), strict=True)))
        specs = [growing_spec(version, cube, costs) for version in CELLS]
        return np.asarray(mean_makespans(specs, replications) / wanted - 1)

    start = np.log([1170.0, 5660.0, 2050.0])
    found = least_squares(misfit, start, diff_step=[0.03], max_nfev=8)
    values = {name: float(v) for name, v in zip(COSTS, np.exp(found.x), strict=True)}
    costs = task_costs(values)
    for image in ("A", "B"):
        values[f"radius_{image.lower()}"] = fitted_radius(image, costs, replications=replications)
    return values


def fitted_radius(
    image: str, costs: TaskCosts, *, form: int | None = None, replications: int = REPLICATIONS, steps: int = 6
) -> float:
    """Return the radius with which the first row's execution time is met."""
    radius = 8.4
    wanted = published_time("one waterfall", image)
    for _ in range(steps):
        spec = growing_spec("one waterfall", image_body(image, radius=radius, form=form), costs)
        radius *= float(wanted / mean_makespans([spec], replications)[0]) ** (1 / 3)
    return radius


def write_calibrated(values: dict[str, float]) -> None:
    """Replace the calibrated numbers in the case's file."""
    head = FILE.read_text(encoding="utf-8").partition("[calibrated]")[0]
    lines = "".join(f"{name} = {value:.6g}\n" for name, value in values.items())
    FILE.write_text(f"{head}[calibrated]\n{lines}", encoding="utf-8")


if __name__ == "__main__":
    numbers = calibrate()
    print(numbers)
    write_calibrated(numbers)
