"""The page of a study in a real browser: it fetches nothing, fits, links its views, and works by keyboard."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study.packet_processor import CHOICES, PART
from cases.tables import number

READY = "document.documentElement.dataset.ready === 'yes'"
WIDTHS = (390, 1280, 1920)


RESET = (
    "document.querySelectorAll('input[type=checkbox]').forEach(one => { one.checked = false; });"
    "document.querySelector('#workloads input').checked = true;"
    "Object.assign(state, {saturated: false, front: false, modelToo: false}); scrollTo(0, 0);"
    "start(DATA.workloads[0])"
)


@pytest.fixture(scope="module")
def loaded(small_study, browser):
    """The page of the small study, opened from disk."""
    browser.emulate(1280)
    browser.open(small_study[1] / "report.html")
    browser.wait(READY)
    return browser


@pytest.fixture
def opened(loaded):
    """The page as it opens; what is done to it must leave nothing in the console."""
    loaded.value(RESET)
    yield loaded
    assert loaded.messages == []


@pytest.fixture
def part(small_study):
    """The workload that the page opens with."""
    return small_study[0].parts[0]


def text(browser, selector):
    return browser.value(f"document.querySelector('{selector}').innerText")


def focus(browser, selector):
    browser.value(f"document.querySelector('{selector}').focus()")


def rectangle(browser, expression):
    """Return left, top, right and bottom of an element of the page, brought into view."""
    return browser.value(
        f"(() => {{ const found = {expression}; found.scrollIntoView({{block: 'center'}});"
        " const box = found.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })()"
    )


def listed(browser):
    """Return the numbers of all designs that pass the limits."""
    return browser.value("listed().map(row => column('design')[row])")


def chosen(browser):
    return browser.value("state.row")


def test_opens_with_the_verdict_and_what_is_open(opened, part):
    title, *lines = text(opened, "#verdict").split("\n")
    assert "large-packets" in title or "model" in title
    assert any("design" in line for line in lines)
    assert text(opened, "#unsettled").startswith("What was not settled")
    design = part.decision.model.table["design"][part.decision.chosen]
    assert f"Recommended: design {design} (" in text(opened, "#chosen-words")


def test_saturated_designs_are_hidden_until_asked_for(opened, part):
    table = part.decision.table
    stable = table["design"][table["stable"]].tolist()
    assert listed(opened) == stable and len(stable) < len(table["design"])
    assert "saturated" not in text(opened, "#table")
    opened.value("document.getElementById('saturated').click()")
    assert listed(opened) == table["design"].tolist()
    assert opened.value("document.querySelectorAll('.front [fill=\"var(--hot)\"] path').length") > 0


def test_the_recommended_and_the_simulated_lie_inside_the_axes(opened, part):
    """Of each plot: no point that has a value is beyond its axis, and the recommended design is labelled."""
    assert len(part.decision.simulated) > 1
    for k in (0, 1):
        ends = opened.value(
            f"(() => {{ const svg = document.querySelectorAll('.front svg')[{k}], [x, y] = state.axes[{k}];"
            " const inside = (value, [a, b]) => value >= Math.min(a, b) && value <= Math.max(a, b);"
            " return candidates().map(row => inside(column(x)[row], svg.scale('x').domain)"
            " && inside(column(y)[row], svg.scale('y').domain)); })()"
        )
        assert ends and all(ends)
        words = f"recommended: {part.decision.model.table['design'][part.decision.chosen]}"
        assert words in opened.value(f"document.querySelectorAll('.front svg')[{k}].textContent")


def test_a_box_narrows_every_view(opened, part):
    left, top, right, bottom = rectangle(opened, "document.querySelector('.front .brush .overlay')")
    middle = (left + right) / 2
    opened.drag([left + 1, top + 1], [middle, bottom - 1])
    opened.wait("state.filters.size === 2")
    table, stable = part.decision.table, part.decision.table["stable"]
    edge = opened.value("state.filters.get('cost')[1]")
    inside = table["design"][stable & (table["cost"] <= edge)].tolist()
    assert listed(opened) == inside and 0 < len(inside) < stable.sum()
    assert text(opened, "#table-words").startswith(f"{len(inside)} designs")
    assert text(opened, "#count").startswith(f"{len(inside)} of {stable.sum()} designs")
    opened.value("document.querySelector('.clear').click()")
    assert len(listed(opened)) == stable.sum()


def test_a_brush_along_an_axis_narrows_the_table(opened, part):
    place = "document.querySelector('[data-axis=\"channels\"] .overlay')"
    left, top, right, bottom = rectangle(opened, place)
    opened.drag([(left + right) / 2, top + 1], [(left + right) / 2, (top + bottom) / 2])
    opened.wait("state.filters.size === 1")
    table = part.decision.table
    kept = table["stable"] & (table["channels"] == max(part.decision.model.space.choices["channels"]))
    assert listed(opened) == table["design"][kept].tolist()
    assert text(opened, "#table-words").startswith(f"{kept.sum()} designs")


def test_other_axes_are_drawn(opened):
    before = opened.value("document.querySelector('.front svg').outerHTML")
    focus(opened, "#y-0")
    opened.press("ArrowDown")
    opened.wait("state.axes[0][1] !== 'packet_latency_p99'")
    after = opened.value("document.querySelector('.front svg').outerHTML")
    assert before != after
    assert opened.value(
        "document.querySelector('.front svg').textContent.includes(labelOf(state.axes[0][1]))"
    )
    for name in (*CHOICES, "overflow_probability", "data_rate"):
        opened.value(
            f"(() => {{ const s = document.getElementById('x-1'); s.value = '{name}';"
            " s.dispatchEvent(new Event('change')); })()"
        )
        assert opened.value("document.querySelectorAll('.front svg')[1].querySelectorAll('path').length") > 10


def test_shows_where_the_time_of_any_design_goes(opened, part):
    table, check = part.analysis.exploration.table, part.check
    for row in (
        int(check.rows[-1]),
        int(np.flatnonzero(table["stable"] & ~part.decision.table["simulated"])[0]),
    ):
        opened.value(f"choose({row})")
        said = text(opened, "#latency .caption")
        shares = sum(table[name][row] for name in table if name.startswith(PART))
        assert f"design {table['design'][row]}: model {number(float(shares))}" in said
        if row in check.rows:
            k = check.rows.tolist().index(row)
            assert f"simulated {number(float(check.simulated.table['packet_latency'][k]))}"[:-1] in said
        else:
            assert "not simulated" in said
        assert text(opened, "#chosen-words").startswith(("Shown: design", "Recommended: design"))
        loads = opened.value("document.querySelector('#system-table').textContent")
        assert f"{100 * table['load: dram buses'][row]:.1f} %" in loads


def test_neighbours_are_those_of_the_space(opened, part):
    space, table = part.decision.model.space, part.decision.table
    row = part.decision.chosen
    here = {name: table[name][row] for name in CHOICES}
    expected = []
    for name, choices in space.choices.items():
        place = list(choices).index(here[name])
        for other in (place - 1, place + 1):
            if 0 <= other < len(choices):
                want = {**here, name: choices[other]}
                (found,) = np.flatnonzero(np.all([table[n] == v for n, v in want.items()], axis=0))
                expected.append(int(table["design"][found]))
    assert opened.value("neighbours(state.row).map(n => column('design')[n.row])") == expected
    change = opened.value("relative('cost', state.row, neighbours(state.row)[0].row)")
    other = part.row_of(expected[0])
    assert float(change.strip(", +%")) == pytest.approx(
        100 * (table["cost"][other] / table["cost"][row] - 1), abs=0.06
    )


def test_values_in_the_table_have_units_and_intervals(opened, part):
    decision, row = part.decision, part.decision.chosen
    heads = opened.value("[...document.querySelectorAll('#table thead th')].map(one => one.innerText)")
    cells = opened.value(
        f"[...document.querySelectorAll('#table tr[data-row=\"{row}\"] > *')].map(one => one.innerText)"
    )
    shown = dict(zip(heads, cells, strict=True))
    name = next(one for one in heads if "99th percentile" in one)
    assert name.endswith("[ns] (least is best)")
    low, best, high = decision.interval("packet_latency_p99", row)
    assert shown[name].startswith(number(best)[:4])
    assert f"({number(low)[:4]}" in shown[name]
    assert number(high)[:4] in shown[name]
    assert "(" not in shown["cost [mm2] (least is best)"]
    assert "recommended" in shown["standing"]


def test_every_workload_has_its_own_page(opened, small_study):
    other = small_study[0].parts[1]
    focus(opened, "#workloads input")
    opened.press("ArrowRight")
    opened.wait(f"state.work.name === '{other.name}'")
    assert other.name in text(opened, "#verdict")
    # Only this one is a trace.
    assert opened.value("document.querySelectorAll('#traffic-rate svg, #traffic-dispersion svg').length") == 2
    assert listed(opened) == other.decision.table["design"][other.decision.table["stable"]].tolist()
    assert other.decision.chosen == chosen(opened)


def test_works_by_keyboard(opened, part):
    """Controls are reached by Tab alone and do what they say."""
    reached = []
    focus(opened, ".skip")
    for _ in range(30):
        opened.press("Tab")
        reached.append(opened.value("document.activeElement.id || document.activeElement.className"))
    wanted = ["chosen-number", "chosen-recommended", "saturated", "only-front", "x-0", "y-0", "x-1"]
    assert [name for name in reached if name in wanted] == wanted
    focus(opened, "#only-front")
    opened.press("Space")
    assert listed(opened) == part.decision.table["design"][part.decision.front].tolist()
    before = chosen(opened)
    focus(opened, ".front")
    opened.press("ArrowRight", 2)
    opened.press("ArrowLeft")
    assert chosen(opened) != before
    steps = opened.value("document.querySelector('.front').steps")
    assert chosen(opened) in steps
    opened.value("document.querySelectorAll('#table tbody button')[1].focus()")
    opened.press("Enter")
    assert chosen(opened) == opened.value(
        "Number(document.querySelectorAll('#table tbody tr')[1].dataset.row)"
    )
    opened.value("document.querySelector('#limits').closest('details').open = true")
    focus(opened, '#limits [aria-label="at most: cost [mm2]"]')
    limit = int(np.ceil(np.median(part.decision.table["cost"][part.decision.front])))
    for key in str(limit):
        opened.press(key)
    opened.press("Enter")
    opened.wait("state.filters.has('cost')")
    costs = opened.value("Array.from(listed(), row => column('cost')[row])")
    assert costs and max(costs) <= limit
    assert opened.value("document.activeElement.getAttribute('aria-label')") == "at most: cost [mm2]"
    focus(opened, '#table [data-sort="cost"]')
    opened.press("Enter")
    assert (
        opened.value("document.querySelector('#table [aria-sort]').getAttribute('aria-sort')") == "ascending"
    )
    assert opened.value("document.activeElement.dataset.sort") == "cost"


def test_everything_that_can_be_operated_or_seen_has_a_name(opened):
    opened.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    roles = (
        "button",
        "checkbox",
        "combobox",
        "radio",
        "spinbutton",
        "image",
        "img",
        "region",
        "table",
        "group",
    )
    found = {role: [] for role in roles}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and role in found:
            found[role].append(node.get("name", {}).get("value", ""))
    for role in ("button", "checkbox", "combobox", "radio", "spinbutton", "region", "table"):
        assert found[role] and all(found[role]), role
    pictures = found["image"] + found["img"]
    assert len(pictures) >= 8 and "" not in pictures, pictures
    heads = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "heading"]
    assert heads[0] == "Packet processor study" and len(heads) > 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_fits_and_asks_for_nothing(small_study, browser, width, scheme):
    browser.emulate(width, scheme)
    browser.open(small_study[1] / "report.html")
    browser.wait(READY)
    assert [url for url in browser.requests if not url.startswith("data:")] == [
        browser.value("location.href")
    ]
    assert browser.value("location.protocol") == "file:"
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Ink and paper differ by more than 7 to 1 in either scheme, and the paper is the scheme's.
    ink, paper = browser.value(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.documentElement)[name])"
        ".map(colour => d3.mean(Object.values(d3.rgb(colour)).slice(0, 3)))"
    )
    assert (paper < 40 and ink > 200) if scheme == "dark" else (paper > 240 and ink < 60)
    for name in (
        "system",
        "latency",
        "traffic-sizes",
        "parallel",
        "sensitivity",
        "errors",
    ):
        tallest = (
            f"d3.max(document.querySelectorAll('#{name} svg'), one => one.getBoundingClientRect().height)"
        )
        assert browser.value(tallest) > 80, name
    assert browser.value("document.querySelectorAll('.front svg').length") == 2
    assert browser.messages == []
