"""Table 6.2 of the 16-core SRP chip: seeded region growing, four versions on three images.

Source: a master's thesis on task and data placement for the Samsung 16-SRP prototype, written at Seoul
National University, section 6.2. ``python -m cases.published.srp.growing`` simulates the twelve cells and
writes ``data/srp-growing-cells.csv``; the costs in ``data/srp-growing.toml`` were calibrated before by
``python -m cases.published.srp.growing_calibrate``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.published.srp.growing_specs import (
    ASSUMPTIONS,
    DATA,
    FITTED,
    IMAGES,
    VERSIONS,
    growing_spec,
    image_body,
    published,
)
from cases.tables import csv_text, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.srp.growing_forms import Form

CELLS = "srp-growing-cells.csv"
REPLICATIONS = 400


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One execution time of Table 6.2, in million cycles.

    Parameters
    ----------
    version, image : str
        Row and column.
    published, model : float
        The source's number and the analytic answer.
    simulated, low, high : float
        Our estimate and its interval of 95 %.
    imbalance : float
        Simulated tasks of the cluster that runs most, over an equal share, less 1.
    """

    version: str
    image: str
    published: float
    model: float
    simulated: float
    low: float
    high: float
    imbalance: float

    @property
    def calibrated(self) -> bool:
        """Whether calibration used the published figure."""
        return (self.version, self.image) in FITTED


@cache
def kept_cells() -> tuple[Cell, ...]:
    """Return the cells that ``data`` holds."""
    names = [field.name for field in fields(Cell)]
    with (DATA / CELLS).open(encoding="utf-8", newline="") as file:
        found = []
        for row in csv.reader(file):
            if row[0] in VERSIONS:
                values: list[Any] = [*row[:2], *map(float, row[2:])]
                found.append(Cell(**dict(zip(names, values, strict=True))))
    return tuple(found)


def simulated_cells(*, replications: int = REPLICATIONS, store: Path | None = None) -> tuple[Cell, ...]:
    """Simulate and solve the twelve cells."""
    from qmodels import solve
    from validate import simulate

    places = [(version, image) for version in VERSIONS for image in IMAGES]
    specs = [growing_spec(version, image_body(image)) for version, image in places]
    results = simulate(specs, replications=replications, store=store)
    return tuple(
        Cell(
            version=version,
            image=image,
            published=published(version, image),
            model=float(solve(spec).execution_time) / 1e6,
            simulated=result.execution_time.best / 1e6,
            low=result.execution_time.low / 1e6,
            high=result.execution_time.high / 1e6,
            imbalance=result.imbalance.best,
        )
        for (version, image), spec, result in zip(places, specs, results, strict=True)
    )


def rows_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the cells with their errors in percent of the published numbers."""
    return [
        {
            "table": "6.2",
            "row": VERSIONS[cell.version],
            "column": cell.image,
            "published": cell.published,
            "model": cell.model,
            "simulated": cell.simulated,
            "low": cell.low,
            "high": cell.high,
            "model_error": 100 * (cell.model / cell.published - 1),
            "simulated_error": 100 * (cell.simulated / cell.published - 1),
            "calibrated": cell.calibrated,
        }
        for cell in cells
    ]


def rows() -> list[dict[str, Any]]:
    """Return Table 6.2 as kept, a row for each cell."""
    return rows_of(kept_cells())


def simulate_again(store: Path | None = None) -> list[dict[str, Any]]:
    """Return Table 6.2 computed anew."""
    return rows_of(simulated_cells(store=store))


def orderings(cells: Sequence[Cell], name: str) -> tuple[int, int]:
    """Return how many pairs within a row or a column are in the published order, and of how many.

    Parameters
    ----------
    cells : sequence of Cell
        The table.
    name : str
        ``"model"`` or ``"simulated"``.
    """
    right = total = 0
    for one, two in combinations(cells, 2):
        if one.version == two.version or one.image == two.image:
            total += 1
            right += (getattr(one, name) < getattr(two, name)) == (one.published < two.published)
    return right, total


def orderings_with_forms(forms: Sequence[Form], sized: str) -> list[int]:
    """Return the simulated pairs in the published order for each choice of forms of A and B."""
    times = {(one.image, one.form, one.version): one.simulated for one in forms if one.sized == sized}
    numbers = {image: sorted({form for i, form, _ in times if i == image}) for image in ("A", "B")}

    def table(chosen: dict[str, int]) -> list[Cell]:
        return [
            replace(cell, simulated=times[cell.image, chosen[cell.image], cell.version])
            if cell.image in chosen
            else cell
            for cell in kept_cells()
        ]

    return [orderings(table({"A": a, "B": b}), "simulated")[0] for a in numbers["A"] for b in numbers["B"]]


def tables() -> str:
    """Return Table 6.2 as text: published | model | simulated with errors, and what other images give.

    Examples
    --------
    >>> print(tables().splitlines()[0])
    Table 6.2: seeded region growing, execution time [million cycles]
    """
    from cases.published.srp.growing_forms import SIZED, forms_text, kept_forms
    from cases.published.srp.growing_sweep import kept_sweep

    errors = [abs(point.error) for point in kept_sweep()]
    sweep = (
        f"model against simulation at {len(errors)} points around the case: "
        f"{sum(errors) / len(errors):.1f} % on average, {max(errors):.1f} % at most"
    )
    forms = kept_forms()
    lines = [tables_of(kept_cells()), sweep, "", forms_text(forms)]
    for sized, said in SIZED.items():
        pairs = orderings_with_forms(forms, sized)
        lines.append(
            f"sized by {said}, pairs in the published order with each choice of forms: {min(pairs)} to "
            f"{max(pairs)}, {sum(pairs) / len(pairs):.1f} on average"
        )
    return "\n".join(lines)


def tables_of(cells: Sequence[Cell]) -> str:
    """Return a table of cells as text."""
    headings = ["version", "image", "published", "model", "error %", "simulated", "error %", "used"]
    lines = [
        [
            row["row"],
            row["column"],
            f"{row['published']:.2f}",
            f"{row['model']:.2f}",
            f"{row['model_error']:+.1f}",
            f"{row['simulated']:.2f}",
            f"{row['simulated_error']:+.1f}",
            "calibrated" if row["calibrated"] else "predicted",
        ]
        for row in rows_of(cells)
    ]
    text = [
        "Table 6.2: seeded region growing, execution time [million cycles]",
        text_table(headings, lines),
    ]
    for used in (False, True):
        some = [row for row in rows_of(cells) if row["calibrated"] is used]
        words = []
        for name in ("model", "simulated"):
            errors = [abs(row[f"{name}_error"]) for row in some]
            words.append(f"{name} {sum(errors) / len(errors):.1f} % on average, {max(errors):.1f} % at most")
        text.append(f"{len(some)} {'calibrated' if used else 'predicted'} figures: {'; '.join(words)}")
    pairs = [orderings(cells, name) for name in ("model", "simulated")]
    text.append(
        f"pairs of a row or a column in the published order: model {pairs[0][0]} of {pairs[0][1]}, "
        f"simulated {pairs[1][0]} of {pairs[1][1]}"
    )
    return "\n".join(text)


def claims() -> list[dict[str, Any]]:
    """Return what the source says of Table 6.2 beside our numbers.

    Each has the keys text, published, model, simulated and holds.
    """
    return claims_of(kept_cells())


def claims_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the claims with the numbers of some cells; one holds if the simulation says so."""
    known = {(cell.version, cell.image): cell for cell in cells}

    def speedup(version: str, image: str, name: str) -> float:
        base, cell = known["one waterfall", image], known[version, image]
        return float(getattr(base, name) / getattr(cell, name))

    found: list[dict[str, Any]] = []

    def add(text: str, version: str, image: str, low: float, high: float) -> None:
        values = {name: speedup(version, image, name) for name in ("published", "model", "simulated")}
        found.append({"text": text, **values, "holds": low <= values["simulated"] <= high})

    # The source rounds: its own table has 1.15 to 1.33 where it says 1.2 to 1.3.
    for image in IMAGES:
        add(
            f"four memories speed up the waterfall 1.2 to 1.3 times, {image}",
            "four waterfall",
            image,
            1.1,
            1.4,
        )
    for image in ("A", "C"):
        add(f"clustered queues are close to 1.2 times as fast, {image}", "four clustered", image, 1.1, 1.35)
    add("clustered queues are slower on image B", "four clustered", "B", 0.0, 1.0)
    for image in IMAGES:
        add(f"stealing is 1.4 to 1.5 times as fast, {image}", "four stealing", image, 1.35, 1.55)
    for image in IMAGES:
        pair = [known[version, image] for version in ("four waterfall", "four stealing")]
        ratio = {n: getattr(pair[0], n) / getattr(pair[1], n) for n in ("published", "model", "simulated")}
        text = f"stealing beats the waterfall with four memories, {image}: times as fast"
        found.append({"text": text, **ratio, "holds": ratio["simulated"] > 1})
    return found


def assumptions() -> tuple[str, ...]:
    """Return what the source does not say and we had to assume."""
    return ASSUMPTIONS


def save_plots(out: Path) -> list[Path]:
    """Draw the table into a directory, which is made; return the paths."""
    from cases.plots import save

    out.mkdir(parents=True, exist_ok=True)
    path = out / "srp-growing.png"
    save(times_figure(kept_cells()), path)
    return [path]


def times_figure(cells: Sequence[Cell]) -> Figure:
    """Return execution times of the four versions on each image: published, model and simulated."""
    from cases.plots import BLUE, GREEN, ORANGE, new_figure

    figure, axes = new_figure(10, 4, columns=len(IMAGES))
    width = 0.27
    for axis, image in zip(axes[0], IMAGES, strict=True):
        mine = [cell for cell in cells if cell.image == image]
        for k, (name, colour) in enumerate((("published", ORANGE), ("model", GREEN), ("simulated", BLUE))):
            places = [n + (k - 1) * width for n in range(len(mine))]
            values = [getattr(cell, name) for cell in mine]
            axis.bar(places, values, width, color=colour, label=name)
        axis.set_title(f"image {image}", fontsize=10, loc="left", fontweight="bold")
        axis.set_xticks(range(len(mine)), [VERSIONS[cell.version].replace(", ", ",\n") for cell in mine])
        axis.tick_params(axis="x", labelsize=7)
        axis.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("execution time [million cycles]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def write_cells(cells: Sequence[Cell]) -> None:
    """Keep the cells in ``data``."""
    table = [asdict(cell) for cell in cells]
    text = csv_text({name: [row[name] for row in table] for name in table[0]})
    (DATA / CELLS).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    again = simulated_cells()
    write_cells(again)
    print(tables_of(again))
