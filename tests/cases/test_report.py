"""The page of a study in a real browser: it fetches nothing, links plot and table, and marks its values."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study.analysis import DIGITS
from cases.study.packet_processor import PART
from cases.study.report import ANALYTIC, SIMULATED, page
from cases.tables import heading

MODEL = "Bokeh.documents[0].get_model_by_name('{}')"


@pytest.fixture
def opened(small_study, browser):
    """The page of the small study, opened from disk."""
    _, out = small_study
    browser.open(out / "report.html")
    browser.wait("window.Bokeh && Bokeh.documents.length === 1 && Bokeh.documents[0].is_idle")
    return browser


def view(name):
    """Return the JavaScript for the view of a model."""
    return f"Bokeh.index.find_one_by_id({MODEL.format(name)}.id)"


def frame(browser, name):
    """Return left, top, right and bottom of a plot's inner area on the page."""
    return browser.value(
        f"(() => {{ const view = {view(name)}, box = view.frame.bbox;"
        " const page = view.canvas_view.el.getBoundingClientRect();"
        " return [page.left + box.left, page.top + box.top, page.left + box.right, page.top + box.bottom];"
        " })()"
    )


def place(browser, name, x, y):
    """Return where a point of a plot's data is on the page."""
    return browser.value(
        f"(() => {{ const view = {view(name)}, page = view.canvas_view.el.getBoundingClientRect();"
        f" return [page.left + view.frame.x_scale.compute({x}),"
        f" page.top + view.frame.y_scale.compute({y})]; }})()"
    )


def listed(browser):
    """Return the numbers of the designs that the table is to list, and of those on its first screen."""
    table = "table large-packets"
    model = browser.value(f"Array.from({MODEL.format(table)}.view.filter.indices)")
    cells = browser.value(
        f"Array.from({view(table)}.shadow_el.querySelectorAll('.slick-row .slick-cell.l0'))"
        ".map(cell => cell.textContent.trim())"
    )
    return model, [int(cell) for cell in cells if cell]


def texts(browser):
    """Return all text of the page, that of its widgets included."""
    return browser.value(
        """(() => {
          const parts = [];
          const search = root => {
            parts.push(root.textContent);
            root.querySelectorAll('*').forEach(element => element.shadowRoot && search(element.shadowRoot));
          };
          search(document);
          return parts.join(' ');
        })()"""
    )


def test_page_is_small_and_complete(small_study):
    study, out = small_study
    text = (out / "report.html").read_text(encoding="utf-8")
    assert len(text) < 6_000_000
    assert text.rstrip().endswith("</html>")


def test_opens_from_disk_without_a_request_or_a_complaint(opened):
    assert [url for url in opened.requests if not url.startswith("data:")] == [opened.value("location.href")]
    assert opened.value("location.protocol") == "file:"
    assert opened.messages == []


def test_values_carry_units_and_marks(opened):
    shown = texts(opened)
    titles = opened.value(f"{MODEL.format('table large-packets')}.columns.map(column => column.title)")
    for name in ANALYTIC:
        assert f"analytic: {heading(name).replace('_', ' ')}" in titles
    for name in SIMULATED:
        assert f"simulated: {heading(name).replace('_', ' ')}" in titles
    for words in (
        "Simulated check",
        "Pareto front (analytic)",
        "Greedy search (analytic)",
        "Error of the model",
    ):
        assert words in shown
    legends = opened.value(
        f"{MODEL.format('packet_latency over cost large-packets')}.below.find(part => part.items)"
        ".items.map(item => item.label.value)"
    )
    assert any(label.startswith("simulated") for label in legends)
    assert all(label.startswith(("analytic", "simulated")) for label in legends)
    assert len(set(legends)) == len(legends)
    for name in ("packet_latency over cost", "saturation_data_rate over energy_per_packet"):
        plot = MODEL.format(f"{name} large-packets")
        assert "[" in opened.value(f"{plot}.below[0].axis_label")
        assert "[" in opened.value(f"{plot}.left[0].axis_label")


def test_every_design_is_in_the_table(opened, small_study):
    study, _ = small_study
    table = study.parts[0].analysis.exploration.table
    model, cells = listed(opened)
    assert model == list(range(len(table["design"])))
    assert cells[:5] == table["design"][:5].tolist()
    data = f"{MODEL.format('designs large-packets')}.data"
    shown = np.array(opened.value(f"Array.from({data}.cost)"))
    assert np.array_equal(shown, table["cost"])


def test_a_brush_on_the_plot_narrows_the_table(opened, small_study):
    study, _ = small_study
    table = study.parts[0].analysis.exploration.table
    left, top, right, bottom = frame(opened, "packet_latency over cost large-packets")
    middle = (left + right) / 2
    opened.drag([left + 2, top + 2], [middle, bottom - 2])
    opened.wait(f"{MODEL.format('count large-packets')}.text.includes('selected')")

    edge = opened.value(
        f"{MODEL.format('packet_latency over cost large-packets')}.x_range.start"
        f" + ({middle} - {left}) / ({right} - {left})"
        f" * ({MODEL.format('packet_latency over cost large-packets')}.x_range.end"
        f" - {MODEL.format('packet_latency over cost large-packets')}.x_range.start)"
    )
    top_latency = opened.value(f"{MODEL.format('packet_latency over cost large-packets')}.y_range.end")
    inside = np.flatnonzero((table["cost"] < edge) & (table["packet_latency"] < 0.95 * top_latency))
    model, cells = listed(opened)
    assert 0 < len(model) < len(table["design"])
    assert set(inside) <= set(model)
    assert (table["cost"][model] <= edge + 0.1).all()
    # A saturated design has no latency but a place at the edge of the plot.
    saturated = np.flatnonzero(~table["stable"] & (table["cost"] < edge - 0.1))
    assert saturated.size and set(saturated) <= set(model)
    assert set(cells) <= set(table["design"][model].tolist())
    assert cells
    assert f"{len(model)} of {len(table['design'])} designs" in texts(opened)
    assert opened.messages == []


def test_a_tap_shows_where_the_time_of_a_design_goes(opened, small_study):
    study, _ = small_study
    part = study.parts[0]
    table, simulated = part.analysis.exploration.table, part.check.simulated.table
    knee = part.analysis.exploration.knee
    spot = place(
        opened, "packet_latency over cost large-packets", table["cost"][knee], table["packet_latency"][knee]
    )
    opened.click(spot)
    opened.wait(f"{MODEL.format('parts large-packets')}.title.text.startsWith('design ')")

    title = opened.value(f"{MODEL.format('parts large-packets')}.title.text")
    hit = opened.value(f"{MODEL.format('designs large-packets')}.selected.indices")
    row = hit[0]
    assert knee in hit
    assert title.startswith(
        f"design {table['design'][row]}: interleaving step {table['interleaving_step'][row]}, "
    )
    bars = {
        name: opened.value(f"{MODEL.format('detail large-packets')}.data['{name}']")
        for name in table
        if name.startswith(PART)
    }
    assert sum(values[1] for values in bars.values()) == pytest.approx(
        table["packet_latency"][row], rel=10.0 ** (1 - DIGITS)
    )
    if row in part.check.rows:
        k = list(part.check.rows).index(row)
        assert sum(values[0] for values in bars.values()) == pytest.approx(simulated["packet_latency"][k])
    else:
        assert "(not simulated)" in title
    assert len(listed(opened)[0]) == len(table["design"])
    assert opened.messages == []


def test_a_tap_outside_the_brush_lists_all_designs_again(opened, small_study):
    study, _ = small_study
    table = study.parts[0].analysis.exploration.table
    name = "packet_latency over cost large-packets"
    left, top, right, bottom = frame(opened, name)
    shown = table["stable"] & (table["packet_latency"] < opened.value(f"{MODEL.format(name)}.y_range.end"))
    far = int(np.where(shown, table["cost"], 0).argmax())
    opened.drag([left + 2, top + 2], [(left + right) / 2, bottom - 2])
    opened.wait(f"{MODEL.format('count large-packets')}.text.includes('selected')")
    assert far not in listed(opened)[0]
    opened.click(place(opened, name, table["cost"][far], table["packet_latency"][far]))
    opened.wait(f"{MODEL.format('count large-packets')}.text.startsWith('<b>all')")
    chosen = opened.value(f"{MODEL.format('designs large-packets')}.selected.indices")
    assert far in chosen
    assert len(listed(opened)[0]) == len(table["design"])


def test_reset_lists_all_designs_again(opened, small_study):
    study, _ = small_study
    left, top, right, bottom = frame(opened, "saturation_data_rate over energy_per_packet large-packets")
    opened.drag([left + 2, top + 2], [(left + right) / 2, bottom - 2])
    opened.wait(f"{MODEL.format('count large-packets')}.text.includes('selected')")
    plot = MODEL.format("saturation_data_rate over energy_per_packet large-packets")
    opened.value(f"Bokeh.index.find_one_by_id({plot}.id).reset()")
    opened.wait(f"{MODEL.format('count large-packets')}.text.startsWith('<b>all')")
    assert len(listed(opened)[0]) == len(study.parts[0].analysis.exploration.table["design"])


def test_second_workload_has_its_own_tab(opened):
    tabs = MODEL.format("workloads")
    assert opened.value(f"{tabs}.tabs.map(tab => tab.title)") == ["large-packets", "small-packets"]
    opened.value(f"{tabs}.active = 1")
    opened.wait(f"{view('table small-packets')}.shadow_el.querySelector('.slick-row') !== null")
    assert opened.messages == []


def test_page_without_a_front_is_made(small_specs):
    from cases.study.run import explore_case
    from qmodels.systems.spec.fields import replace_fields

    overloaded = replace_fields(small_specs["large-packets"], {"load_factor": 100})
    text = page(explore_case({"large-packets": overloaded}, budget_seconds=0))
    assert "No design is feasible" in text
