"""A study as one self-contained HTML page: linked plots and tables that work offline, made with Bokeh."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, SHADES, label
from cases.study.advice import marks, recommendation
from cases.study.check import Check, half_widths
from cases.study.findings import part_sections
from cases.study.packet_processor import CHOICES, ERROR, PART
from cases.study.parts import Part, Study
from cases.study.plots import VIEWS, latency_limit
from cases.study.report_scripts import DETAIL, FILTER, RESET
from cases.study.several import several_section
from cases.study.stated_error import LEGEND
from cases.tables import heading
from optimize.search.pareto import FloatArray
from qmodels.systems.spec.metrics import is_relative

ANALYTIC = (
    "packet_latency",
    "packet_latency_p99",
    "saturation_data_rate",
    "energy_per_packet",
    "cost",
    "write_conflict_probability",
    "read_conflict_probability",
    "row_hit_ratio",
    "llc_hit_ratio",
    "pointer_accesses_per_allocation",
    "overflow_probability",
    "max_utilization",
)
"""Metrics of the table of designs."""

SIMULATED = ("packet_latency", "packet_latency_p99", "saturation_data_rate", "energy_per_packet")
"""Metrics that have a simulated column, with its interval, in the table of designs."""

_STYLE = """<style>
table { border-collapse: collapse; font-size: 12px; }
td, th { padding: 2px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
p { margin: 2px 0; }
h2 { margin: 4px 0; } h3 { margin: 14px 0 4px; }
</style>"""


def page(study: Study) -> str:
    """Return the page of a study: no script, style or picture is loaded from elsewhere."""
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.models import Div, TabPanel, Tabs
    from bokeh.resources import INLINE

    tabs = Tabs(tabs=[TabPanel(child=_part(part), title=part.name) for part in study.parts], name="workloads")
    head = Div(text=_study_html(study), width=1280)
    html: str = file_html(column(head, tabs), INLINE, title="Packet processor study")
    return html


def _study_html(study: Study) -> str:
    """Return the head of the page."""
    moved = several_section(study)
    runs = study.runs
    effort = f"{runs.replications} replications of up to {runs.packets} packets, seed {runs.seed}"
    first = "".join(recommendation(part).html() for part in study.parts)
    return (
        f"{_STYLE}<h2>Packet processor study</h2>{first}"
        "<p>Every design is <b>analytic</b>: solved by formulas, circles in the plots. Values marked "
        "<b>simulated</b>, orange marks and numbers, are estimates with 90 % intervals: "
        f"{effort}.</p>"
    ) + (moved.html() if moved else "")


def _part_html(part: Part) -> str:
    """Return the findings for one workload's tab; what comes first of them stands at the head of the page."""
    return _STYLE + "".join(section.html() for section in part_sections(part)[1:])


def _part(part: Part) -> Any:
    from bokeh.layouts import column, row
    from bokeh.models import CDSView, ColumnDataSource, CustomJS, DataTable, Div, IndexFilter

    data = _columns(part)
    everything = list(range(len(data["design"])))
    source = ColumnDataSource(data, name=f"designs {part.name}")
    view = CDSView(filter=IndexFilter(everything))
    count = Div(text=f"<b>all {len(everything)} designs</b>", name=f"count {part.name}")
    arguments = {"source": source, "view": view, "count": count, "all": everything}
    scatters = [_scatter(part, source, x, y) for x, y in VIEWS]
    for figure in scatters:
        figure.js_on_event("selectiongeometry", CustomJS(args=arguments, code=FILTER))
        figure.js_on_event("reset", CustomJS(args=arguments, code=RESET))
    table = DataTable(
        source=source,
        view=view,
        columns=_table_columns(),
        width=1280,
        height=420,
        index_position=None,
        autosize_mode="none",
        reorderable=False,
        frozen_columns=1,
        name=f"table {part.name}",
    )
    detail, plot = _detail(part)
    parts = [name for name in data if name.startswith(PART)]
    shown = {"source": source, "detail": detail, "plot": plot, "parts": parts, "fields": list(CHOICES)}
    source.selected.js_on_change("indices", CustomJS(args=shown, code=DETAIL))
    return column(
        row(*scatters),
        Div(
            text="Drag a box or a lasso in a plot: the table lists the designs inside. Reset lists all. "
            f"Tap a point or a row to see where its time goes. In the table, {LEGEND}.",
            width=1280,
        ),
        count,
        table,
        plot,
        Div(text=_part_html(part), width=1280),
    )


def _columns(part: Part) -> dict[str, Any]:
    """Return what the plots and the table of a part show, one entry per design; what is not there is NaN."""
    exploration, check = part.analysis.exploration, part.check
    table = exploration.table
    rows = np.arange(len(table["design"]))
    front = np.isin(rows, exploration.front)
    data: dict[str, Any] = {}
    for name, values in table.items():
        data[name] = np.where(np.isfinite(values), values, np.nan) if values.dtype.kind == "f" else values
    data["bottleneck"] = table["bottleneck"].tolist()
    data["place"] = [
        ", ".join(filter(None, ["front" if front[row] else "", marks(part, int(row))])) for row in rows
    ]
    data["simulated"] = np.zeros(len(rows), dtype=bool)
    data["simulated_stable"] = np.ones(len(rows), dtype=bool)
    if check is not None:
        data["simulated_stable"][check.rows] = check.simulated.table["stable"]
    for name in ANALYTIC:
        if ERROR + name not in table:
            data[ERROR + name] = np.full(len(rows), np.nan)
    simulated = {} if check is None else check.simulated.table
    for name in (*SIMULATED, *(name for name in table if name.startswith(PART))):
        best, spread = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        if check is not None and name in simulated:
            values = simulated[name]
            usable = np.isfinite(values)
            best[check.rows[usable]] = values[usable]
            spread[check.rows] = half_widths(simulated, name)
            data["simulated"][check.rows] = True
        data[f"simulated {name}"] = best
        if not name.startswith(PART):
            data[f"spread {name}"] = spread
    return data


def _scatter(part: Part, source: Any, x: str, y: str) -> Any:
    from bokeh.models import BoxSelectTool, HoverTool, LassoSelectTool, TapTool
    from bokeh.plotting import figure

    plot = figure(
        width=640,
        height=530,
        tools="pan,wheel_zoom,reset,save",
        x_axis_label=label(x),
        y_axis_label=label(y),
        output_backend="canvas",
        name=f"{y} over {x} {part.name}",
    )
    plot.toolbar.logo = None
    exploration = part.analysis.exploration
    front = np.isin(np.arange(len(source.data["design"])), exploration.front)
    top = latency_limit(part, y) if y.endswith("latency") and len(exploration.front) else None
    if top is not None:
        plot.y_range.start, plot.y_range.end = 0, top
        # A saturated design has no latency to be drawn at: it stands at the edge.
        values = exploration.table[y]
        source.data[f"{y} drawn"] = np.where(np.isfinite(values), values, _drawn(values, top))
    height = y if top is None else f"{y} drawn"
    stable = source.data["stable"]
    looks = (
        ("analytic: saturated design", ~stable, {"color": GREY, "marker": "x", "size": 5}),
        ("analytic: other design", stable & ~front, {"color": GREY, "size": 4}),
        ("analytic: Pareto front", front, {"color": BLUE, "size": 6}),
    )
    dots = [_dots(plot, source, x, height, *look) for look in looks if look[1].any()]
    box, lasso, tap = (tool(renderers=dots) for tool in (BoxSelectTool, LassoSelectTool, TapTool))
    plot.add_tools(box, lasso, tap)
    plot.toolbar.active_drag = box
    names = ("design", *CHOICES, x, y, "bottleneck", "bottleneck_load")
    plot.add_tools(HoverTool(renderers=dots, tooltips=[(heading(name), f"@{{{name}}}") for name in names]))
    if part.check is not None and len(part.check.rows):
        _estimates(plot, part.check, x, y, top)
    _stars(plot, part, x, y, top)
    # Below the frame, where it hides no point.
    plot.legend.ncols = 2
    plot.legend.label_text_font_size = "8pt"
    plot.legend.spacing, plot.legend.padding = 0, 2
    plot.add_layout(plot.legend[0], "below")
    return plot


def _dots(plot: Any, source: Any, x: str, y: str, text: str, chosen: Any, look: dict[str, Any]) -> Any:
    """Draw some designs of the source and return what draws them."""
    from bokeh.models import CDSView, IndexFilter

    view = CDSView(filter=IndexFilter(np.flatnonzero(chosen).tolist()))
    dots = plot.scatter(x=x, y=y, source=source, view=view, nonselection_alpha=0.15, **look)
    # A legend draws the first row of the source, which the view may not have: draw one of its own.
    plot.scatter(x=[np.nan], y=[np.nan], legend_label=text, **look)
    return dots


def _drawn(values: FloatArray, top: float | None) -> FloatArray:
    """Return where values are drawn: those beyond the axis, infinite ones with them, at its edge."""
    return values if top is None else np.minimum(values, 0.985 * top)


def _estimates(plot: Any, check: Check, x: str, y: str, top: float | None) -> None:
    """Draw the simulated designs with their intervals; what is saturated or beyond the axis at its edge."""
    from bokeh.models import ColumnDataSource

    simulated = check.simulated.table
    ends: dict[str, FloatArray] = {}
    for axis, name in (("x", x), ("y", y)):
        best, spread = simulated[name], np.nan_to_num(half_widths(simulated, name))
        ends |= {axis: best, f"{axis}0": best - spread, f"{axis}1": best + spread}
    beyond = np.zeros(len(check.rows), dtype=bool) if top is None else ends["y"] > top
    square = {"marker": "square", "size": 8, "fill_color": None, "line_color": ORANGE, "line_width": 1.5}
    edge = {"marker": "triangle", "size": 10, "line_color": ORANGE}
    stable = simulated["stable"]
    for text, chosen, look in (
        ("simulated: best value, 90 % interval", stable & ~beyond, square),
        ("simulated: beyond the axis", stable & beyond, {**edge, "fill_color": "white"}),
        ("simulated: saturated", ~stable, {**edge, "fill_color": ORANGE}),
    ):
        if not chosen.any():
            continue
        drawn = {name: _drawn(ends[name], top if name[0] == "y" else None)[chosen] for name in ends}
        points = ColumnDataSource({"design": simulated["design"][chosen], **drawn}, name=f"{text} {y}")
        plot.segment(x0="x0", x1="x1", y0="y", y1="y", color=ORANGE, source=points, legend_label=text)
        plot.segment(x0="x", x1="x", y0="y0", y1="y1", color=ORANGE, source=points, legend_label=text)
        plot.scatter(x="x", y="y", source=points, legend_label=text, **look)


def _stars(plot: Any, part: Part, x: str, y: str, top: float | None) -> None:
    """Draw the recommended design, and the knee of the model where that is another."""
    table, knee, star = part.analysis.exploration.table, part.analysis.exploration.knee, part.star
    if knee is not None and star.against_knee:
        cross = {"marker": "x", "size": 14, "line_color": "black", "line_width": 3}
        text = "analytic: knee, contradicted"
        plot.scatter(x=table[x][[knee]], y=_drawn(table[y][[knee]], top), legend_label=text, **cross)
    if star.row is None:
        return
    look = {"marker": "star", "size": 18, "fill_color": GREEN, "line_color": "white"}
    if star.by_simulation and part.check is not None:
        k = part.check.rows == star.row
        place = [part.check.simulated.table[name][k] for name in (x, y)]
        plot.scatter(x=place[0], y=_drawn(place[1], top), legend_label="simulated: starred", **look)
        return
    plot.scatter(
        x=table[x][[star.row]], y=_drawn(table[y][[star.row]], top), legend_label="analytic: starred", **look
    )


def _table_columns() -> list[Any]:
    from bokeh.models import HTMLTemplateFormatter, NumberFormatter, StringFormatter, TableColumn

    columns: list[Any] = []

    def add(field: str, title: str, formatter: Any = None) -> None:
        width = 7 * len(title) + 24
        columns.append(
            TableColumn(field=field, title=title, formatter=formatter or StringFormatter(), width=width)
        )

    def shown(name: str) -> str:
        return heading(name).replace("_", " ")

    for name in ("design", *CHOICES):
        add(name, shown(name))
    add("place", "Pareto")
    for name in ANALYTIC:
        digits, size, unit = (3, 0.01, "") if not is_relative(name) else (1, 1.0, " %")
        template = (
            f'<%= isNaN(value) ? "saturated" : value.toFixed({digits})'
            f' + (isNaN(obj["{ERROR}{name}"]) ? ""'
            f' : " ± " + ({size} * obj["{ERROR}{name}"]).toFixed({digits}) + "{unit}") %>'
        )
        add(name, f"analytic: {shown(name)}", HTMLTemplateFormatter(template=template))
    add("validated", "analytic: validated")
    add("bottleneck", "analytic: fills up first")
    add("bottleneck_load", "analytic: its load", NumberFormatter(format="0 %"))
    for name in SIMULATED:
        template = (
            f'<span style="color:{ORANGE}"><%= isNaN(value) ? (obj["simulated_stable"] ? "" : "saturated")'
            f' : value.toFixed(1) + " ± " + obj["spread {name}"].toFixed(1) %></span>'
        )
        add(f"simulated {name}", f"simulated: {shown(name)}", HTMLTemplateFormatter(template=template))
    return columns


def _detail(part: Part) -> tuple[Any, Any]:
    """Return the source and the figure of the bars that show where the time of one design goes."""
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

    names = [name for name in part.analysis.exploration.table if name.startswith(PART)]
    data: dict[str, Any] = {"answer": ["simulated", "analytic"], **{name: [0.0, 0.0] for name in names}}
    source = ColumnDataSource(data, name=f"detail {part.name}")
    plot = figure(
        y_range=["simulated", "analytic"],
        width=1280,
        height=230,
        tools="hover",
        tooltips="$name: @$name{0.0} ns",
        title="Tap a design to see where its time goes",
        x_axis_label="mean packet latency [ns]",
        name=f"parts {part.name}",
    )
    plot.toolbar.logo = None
    plot.x_range.start = 0
    plot.hbar_stack(
        names,
        y="answer",
        height=0.6,
        color=list(SHADES[: len(names)]),
        source=source,
        legend_label=[name.removeprefix(PART) for name in names],
    )
    plot.add_layout(plot.legend[0], "right")
    plot.legend.label_text_font_size = "8pt"
    return source, plot
