"""The page of a design in a real browser, from the server and as a notebook has it."""

import json
import threading

import pytest

import qmodels as qm
from cases.what_if.server import Server, module, text_of
from cases.what_if.session import Session
from qmodels.systems.spec.kind import kind_named


def part(title, selector):
    """Return the expression of an element of a section."""
    return f"document.querySelector('[aria-label=\"{title}\"] {selector}')"


AROUND = part("What one step of each field would change", "[role=status]") + ".textContent"
SLIDER = "document.querySelector('[data-path=link_width] input[type=range]')"
READY = "document.getElementById('what-if')?.dataset.ready === 'yes'"


@pytest.fixture
def opened(browser):
    """Open a design in the browser; what is done there must leave nothing in the console."""
    servers = []

    def show(spec, width=1280, scheme="light"):
        server = Server(Session(spec))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.emulate(width, scheme)
        browser.requests.clear()
        browser.messages.clear()
        browser.call("Page.navigate", url=server.url)
        browser.wait(READY)
        return server

    yield show
    assert browser.messages == []
    browser.call("Page.navigate", url="about:blank")
    for server in servers:
        server.shutdown()
        server.server_close()


def write(browser, path, text):
    browser.value(
        f"(() => {{ const row = document.querySelector('[data-path=\"{path}\"]');"
        " const field = row.querySelector('input[type=text], select');"
        f" field.value = {json.dumps(text)}; field.dispatchEvent(new Event('change')); }})()"
    )  # fmt: skip


def version(browser):
    return browser.value("Number(document.getElementById('what-if').dataset.version)")


def press(browser, words):
    browser.value(
        f"[...document.querySelectorAll('button')].find(one => one.textContent === '{words}').click()"
    )


def text(browser, selector):
    return browser.value(f"document.querySelector('{selector}').innerText")


def test_a_change_an_error_and_the_way_back(opened, browser):
    server = opened(kind_named("noc").starter())
    session = server.session
    first = text(browser, "aside p")
    assert first.startswith("packet latency 24.19 ns") and "bottleneck" in first
    write(browser, "link_width", "32")
    browser.wait("document.getElementById('what-if').dataset.version === '1'")
    faster = qm.solve(session.spec).packet_latency
    assert session.spec.link_width == 32
    assert text(browser, "aside p").startswith(f"packet latency {faster:.2f} ns")
    assert "packet latency falls by" in text(browser, '[aria-label="Against the pinned design"]')
    # What is refused is said beside its field, and the answer stays.
    good = text(browser, "aside p")
    write(browser, "link_width", "wide")
    browser.wait("document.querySelector('[data-path=link_width] input[type=text]').ariaInvalid === 'true'")
    assert text(browser, "[data-path=link_width] .error") == "link_width must be a whole number, got 'wide'"
    assert text(browser, "aside p") == good and version(browser) == 1
    write(browser, "link_width", "64")
    browser.wait("document.querySelector('[data-path=link_width] .error').hidden")
    press(browser, "Undo")
    browser.wait("document.getElementById('what-if').dataset.version === '3'")
    press(browser, "Undo")
    browser.wait("document.getElementById('what-if').dataset.version === '4'")
    assert text(browser, "aside p") == first
    assert browser.value("document.querySelector('[data-path=link_width] input[type=text]').value") == "16"


def test_a_slider_by_keyboard_is_one_step_each(opened, browser):
    session = opened(kind_named("noc").starter()).session
    browser.value(f"{SLIDER}.focus()")
    browser.press("ArrowRight")
    browser.wait("document.getElementById('what-if').dataset.version === '1'")
    browser.press("ArrowRight")
    browser.wait("document.getElementById('what-if').dataset.version === '2'")
    assert session.spec.link_width == 64
    assert browser.value("document.activeElement.getAttribute('aria-valuetext')") == "64"
    assert session.undo()["answer"] and session.spec.link_width == 32


def test_a_dragged_slider_is_one_step_of_the_history(opened, browser):
    session = opened(kind_named("noc").starter()).session
    left, right, middle, place = browser.value(
        f"(() => {{ const one = {SLIDER}; one.scrollIntoView({{block: 'center'}});"
        " const box = one.getBoundingClientRect();"
        " return [box.left + 8, box.right - 8, (box.top + box.bottom) / 2, one.value / one.max]; })()"
    )
    start = left + place * (right - left)
    for kind, x in (
        ("Pressed", start),
        ("Moved", start + 20),
        ("Moved", start + 60),
        ("Released", start + 60),
    ):
        event = {"type": f"mouse{kind}", "x": x, "y": middle, "button": "left", "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", **event, buttons=0 if kind == "Released" else 1)
    browser.wait("document.getElementById('what-if').dataset.version > 0")
    browser.value("new Promise(done => setTimeout(done, 500))")
    assert session.spec.link_width > 32
    session.undo()
    assert session.spec.link_width == 16


def test_neighbours_and_a_sweep_can_be_taken(opened, browser):
    session = opened(kind_named("noc").starter()).session
    browser.wait(f"/^(\\d+) of \\1 steps/.test({AROUND})")
    row = "[...document.querySelectorAll('button')].find(one => one.ariaLabel === 'Take link width 32')"
    assert "% better" in browser.value(f"{row}.closest('tr').innerText")
    browser.value(f"{row}.click()")
    browser.wait("document.getElementById('what-if').dataset.version === '1'")
    assert session.spec.link_width == 32
    press(browser, "Sweep")
    front = "document.querySelector('[aria-label=\"The front of a small sweep\"]')"
    browser.wait(f"{front}.querySelectorAll('svg circle').length > 3")
    browser.value(f"{front}.querySelector('tbody button').click()")
    browser.wait("document.getElementById('what-if').dataset.version >= '1'")


def test_a_simulation_with_progress(opened, browser):
    session = opened(kind_named("queueing-network").starter()).session
    press(browser, "Simulate")
    browser.wait("!document.querySelector('progress').hidden")
    said = part("Simulate this design", "[role=status]")
    browser.wait(f"{said}.innerText.startsWith('This design was simulated')", 120)
    found = session.state()["simulated"]["metrics"]["system_response_time"]["value"]
    assert f"{found:.4g}"[:4] in text(browser, '[aria-label="Metrics"]')


def test_what_is_being_written_is_not_overwritten(opened, browser):
    server = opened(kind_named("noc").starter())
    browser.value("document.querySelector('[data-path=packet_bytes] input[type=text]').focus()")
    browser.press("End")
    browser.press("7")
    write(browser, "link_width", "32")
    browser.wait("document.getElementById('what-if').dataset.version === '1'")
    written = browser.value("document.querySelector('[data-path=packet_bytes] input[type=text]').value")
    assert "7" in written and server.session.spec.packet_bytes == 128


def test_export_and_a_design_from_toml(opened, browser):
    session = opened(kind_named("noc").starter()).session
    browser.value(f"{part('Take it with you', 'details')}.open = true")
    box, error = part("Take it with you", "textarea"), part("Take it with you", ".error")
    browser.wait(f"{box}.value.includes('link_width = 16')")
    browser.value(f"{box}.value = {box}.value.replace('link_width = 16', 'link_width = 0')")
    press(browser, "Take this TOML")
    browser.wait(f"{error}.innerText.includes('link_width must be')")
    browser.value(f"{box}.value = {box}.value.replace('link_width = 0', 'link_width = 32')")
    press(browser, "Take this TOML")
    browser.wait("document.getElementById('what-if').dataset.version === '1'")
    assert session.spec.link_width == 32


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_fits_and_has_names_for_everything(opened, browser, width, scheme):
    server = opened(kind_named("packet-processor").starter(), width, scheme)
    assert {url.removeprefix(server.url) for url in browser.requests if not url.startswith("data:")} <= {
        "",
        "call",
    }
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    ink, paper = browser.value(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.documentElement)[name])"
        ".map(colour => d3.mean(Object.values(d3.rgb(colour)).slice(0, 3)))"
    )
    assert (paper < 40 and ink > 200) if scheme == "dark" else (paper > 240 and ink < 60)
    for name in ("Where the time goes", "The system and how busy it is"):
        every = part(name, "svg").replace("querySelector", "querySelectorAll")
        tall = f"d3.max({every}, one => one.getBoundingClientRect().height)"
        assert browser.value(tall) > 80, name
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    for role in ("button", "checkbox", "combobox", "textbox", "slider", "region", "table", "image", "img"):
        names = [n.get("name", {}).get("value", "") for n in nodes
                 if not n.get("ignored") and n.get("role", {}).get("value") == role]  # fmt: skip
        assert all(names), role
        assert names or role in ("image", "img"), role
    fields = browser.value("document.querySelectorAll('[data-path]').length")
    assert fields == len(server.session.state()["controls"])


def test_python_that_is_gone_is_said_and_the_answer_stays(opened, browser):
    opened(kind_named("noc").starter())
    browser.wait(f"/^(\\d+) of \\1 steps/.test({AROUND})")
    browser.value("window.fetch = async () => { throw new TypeError('gone'); }")
    write(browser, "link_width", "32")
    browser.wait("!document.querySelector('[role=alert]').hidden")
    assert text(browser, "aside p").startswith("packet latency 24.19 ns")


def test_the_module_of_a_notebook_runs_in_a_shadow(browser, tmp_path):
    """With a model that answers as the widget does; no global name is left behind."""
    session = Session(kind_named("dram").starter())
    answers = {
        "state": session.state(),
        "neighbours": {"version": 0, "found": [], "total": 0, "next": None},
    }
    (tmp_path / "page.html").write_text(
        "<!doctype html><meta charset=utf-8><div id=cell></div><script type=module>\n"
        + module().replace("export default", "const found =")
        + f"\nconst answers = {json.dumps(answers)}, style = {json.dumps(text_of('what_if.css'))};"
        "let hear; const model = { get: () => style, on: (_, f) => { hear = f; }, off: () => {},"
        " send: ({ id, name }) => setTimeout(() => hear({ id, answer: answers[name] })) };"
        "found.render({ model, el: document.getElementById('cell') });</script>",
        encoding="utf-8",
    )
    browser.emulate(1280)
    browser.open(tmp_path / "page.html")
    inside = "document.getElementById('cell').shadowRoot"
    browser.wait(f"{inside}?.querySelector('.what-if')?.dataset.ready === 'yes'")
    assert browser.value(f"{inside}.querySelectorAll('[data-path]').length") == len(
        session.state()["controls"]
    )
    assert browser.value(f"{inside}.querySelectorAll('svg').length") >= 2
    assert browser.value("[typeof d3, typeof Plot, typeof whatIf]") == ["undefined"] * 3
    assert (
        browser.value(f"getComputedStyle({inside}.querySelector('.what-if')).backgroundColor")
        != "rgba(0, 0, 0, 0)"
    )
    assert browser.messages == []
