// One design, changed by hand: fields to the left, its answer to the right. `call(name, arguments)` asks Python.
const named = (name) => name.replaceAll("_", " ");
const SLOW = 600;  // milliseconds of a solve from which neighbours are looked at only when asked for
const later = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

function whatIf(root, call) {
  let state = null, line = Promise.resolve(), queued = null, dragging = null, timer = null, last = "", metric = null, sweepOf = null, next = 0;
  const fields = new Map(), at = {}, around = { found: [], total: 0 };
  const put = (name, tag, attributes = {}, ...children) => (at[name] = h(tag, attributes, ...children));
  const button = (name, words, press) => put(name, "button", { type: "button", onclick: press }, words);
  const section = (title, ...children) => h("section", { "aria-label": title }, h("h2", {}, title), ...children);

  // Asking: one call after the other; of the changes that wait only the last values of each field go.
  async function ask(name, values = {}) {
    try {
      const answer = await call(name, values);
      at.lost.hidden = true;
      return answer;
    } catch (problem) {
      at.lost.hidden = false;
      return { error: String(problem), lost: true };
    }
  }
  const act = (name, values, where) => (line = line.then(async () => take(await ask(name, values), where)));
  function change(values, together = false) {
    [last] = Object.keys(values);
    if (queued) { Object.assign(queued.values, values); queued.together &&= together; return; }
    const mine = queued = { values: { ...values }, together };
    line = line.then(async () => { queued = null; take(await ask("change", mine)); });
  }

  function take(answer, where = at.status) {
    if (!answer.answer) { if (!answer.lost) where.textContent = answer.error; return; }
    if (where !== at.status) where.textContent = "";
    state = answer;
    drawFields();
    if (answer.error) return;  // the last good answer stays
    drawAnswer();
    clearTimeout(timer);
    timer = setTimeout(lookAround, 200);
    root.dataset.version = state.version;
  }

  // Fields.
  function drawFields() {
    const layout = state.controls.map((one) => `${one.path} ${one.type}`).join();
    if (layout !== at.fields.layout) {
      const focused = root.getRootNode().activeElement?.closest?.("[data-path]")?.dataset.path, open = new Set([...at.fields.querySelectorAll("details[open]")].map((one) => one.dataset.part));
      fields.clear();
      const groups = d3.sort(d3.groups(state.controls, (one) => (one.path.includes(".") ? one.path.split(".")[0] : "")), ([part]) => Boolean(part));
      at.fields.replaceChildren(...groups.map(([part, mine], k) => h("details", { "data-part": part, open: open.size ? open.has(part) : k < (groups[0][0] || root.clientWidth < 700 ? 1 : 2) || groups.length < 3 },
        h("summary", {}, part ? named(part) : "the system"), ...d3.groups(mine, (one) => one.path.split(".").slice(1, -1).join(".")).map(([group, few]) =>
          h("fieldset", {}, group ? h("legend", {}, group.split(".").map(named).join(" › ")) : "", ...few.map(fieldOf))))));
      at.fields.layout = layout;
      if (focused) fields.get(focused)?.main.focus();
      narrow();
    }
    for (const one of state.controls) fields.get(one.path).set(one);
  }
  function fieldOf(control) {
    const { path, type } = control, id = `what-if-${next += 1}`, last = path.split(".").at(-1), set = (text, together) => change({ [path]: String(text) }, together);
    const words = named(last);
    const error = h("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
    const hint = h("p", { class: "hint", id: `${id}-hint` }, [control.meaning, control.rule].filter(Boolean).join("; "));
    const shared = { id, "aria-describedby": `${id}-error ${id}-hint` };
    let main, slider = null, choices = control.choices;
    if (type === "flag") main = h("input", { ...shared, type: "checkbox", onchange: () => set(main.checked) });
    else if (type === "choice") main = h("select", { ...shared, onchange: () => set(main.value) });
    else if (type === "text" && (control.value.length > 34 || control.value.includes("\n"))) main = h("textarea", { ...shared, rows: Math.min(8, 1 + control.value.split("\n").length), onchange: () => set(main.value) });
    else main = h("input", { ...shared, type: "text", inputmode: type === "number" ? "decimal" : null, onchange: () => set(main.value) });
    if (type === "number") {
      slider = h("input", { type: "range", min: 0, step: 1, "aria-label": `${words}, slider`, "aria-describedby": `${id}-error`,
        oninput: () => { main.value = choices[slider.value]; slider.setAttribute("aria-valuetext", main.value); set(main.value, dragging === path); dragging = path; },
        onchange: () => { dragging = null; }, onpointerup: () => { dragging = null; }, onblur: () => { dragging = null; } });
    }
    fields.set(path, { main, row: h("div", { class: `field ${type}${type === "text" && control.value.length > 9 ? " wide" : ""}`, "data-path": path }, h("label", { for: id }, words, control.unit ? h("span", { class: "unit" }, ` [${control.unit}]`) : ""), slider, main, error, hint),
      set: (one) => {
        const wrong = state.refused[path], value = wrong?.text ?? one.value, active = root.getRootNode().activeElement === main;
        if (type === "flag") main.checked = value === "true";
        else if (type === "choice") {
          main.replaceChildren(...one.choices.map((word) => h("option", { value: word, selected: word === value }, word)));
          main.value = value;
        } else if (dragging !== path && !(active && main.value !== main.shown)) main.value = main.shown = value;  // else somebody writes there
        if (slider && dragging !== path) {
          const place = choices.indexOf(one.value);
          if (place < 1 || place > choices.length - 2) choices = one.choices;  // else it stays where it was left
          slider.max = choices.length - 1;
          slider.value = Math.max(0, choices.indexOf(one.value));
          slider.setAttribute("aria-valuetext", one.value);
        }
        main.setAttribute("aria-invalid", Boolean(wrong));
        error.hidden = !wrong;
        error.textContent = wrong?.error ?? "";
      } });
    return fields.get(path).row;
  }
  function narrow() {
    const words = at.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [path, one] of fields) one.row.hidden = !words.every((word) => named(path).includes(word));
    for (const set of at.fields.querySelectorAll("fieldset")) set.hidden = !set.querySelector(".field:not([hidden])");
    for (const part of at.fields.querySelectorAll("details")) {
      part.hidden = !part.querySelector("fieldset:not([hidden])");
      if (words.length) part.open = true;
    }
  }

  // The answer.
  const unitOf = (one) => (["1", "time"].includes(one.unit) ? "" : ` ${one.unit}`);
  const valueOf = (one) => (one?.endless ? "∞" : one?.value === null || !one ? "–" : show(one.value));
  function drawAnswer() {
    const { answer, pinned, comparison, simulated } = state, { main } = answer, first = answer.metrics[main];
    at.model.textContent = `${state.kind}: ${answer.title}; solved in ${show(Number(answer.milliseconds.toPrecision(2)))} ms`;
    at.status.textContent = `${named(main)} ${valueOf(first)}${unitOf(first)}${first.error ? ` (error ${first.error})` : ""}. ${answer.remarks[0]}`;
    at.bar.classList.toggle("overloaded", !answer.stable);
    at.undo.disabled = !state.undo;
    at.redo.disabled = !state.redo;
    at.pin.disabled = at.unchange.disabled = comparison.same;
    at.remarks.replaceChildren(...answer.remarks.slice(1).map((line) => h("li", {}, line)));
    const changes = new Map(comparison.metrics.map((one) => [one.name, one]));
    at.changed.replaceChildren(...(comparison.same ? [h("p", {}, "This is the pinned design.")] : [
      h("ul", {}, comparison.fields.map((line) => h("li", {}, line))),
      h("p", {}, comparison.metrics.length ? `${comparison.metrics.slice(0, 3).map((one) => one.words).join("; ")}.` : "No metric changes.")]));
    const cells = Object.entries(answer.metrics).map(([name, one]) => [`${named(name)}${one.unit === "1" ? "" : ` [${one.unit}]`}`, valueOf(one), one.error ?? "",
      ...(simulated ? [simulated.metrics[name] ? `${valueOf(simulated.metrics[name])} (${show(simulated.metrics[name].low ?? NaN)} to ${show(simulated.metrics[name].high ?? NaN)})` : "–"] : []),
      valueOf(pinned.metrics[name]), changes.get(name)?.words.replace(named(name), "").trim() ?? ""]);
    at.metrics.replaceChildren(scrolled("Metrics", tableOf("All metrics", ["", "now", "stated error", ...(simulated ? ["simulated"] : []), "pinned", "against pinned"], cells)));
    drawFigures();
    fill(at.metric, Object.keys(answer.metrics), metric in answer.metrics ? metric : main);
    const metrics = Object.keys(answer.metrics), against = metrics.find((name) => name === "cost") ?? metrics.find((name) => name.startsWith("saturation_")) ?? metrics.find((name) => name !== main && !name.includes("[") && answer.metrics[name].better === "up" && answer.metrics[name].value !== null) ?? metrics.at(-1);
    fill(at.x, metrics, metrics.includes(at.x.value) ? at.x.value : against);
    fill(at.y, metrics, metrics.includes(at.y.value) ? at.y.value : main);
    const varied = state.controls.filter((one) => one.type !== "text" && one.choices.length + 2 * (one.type === "flag") > 1 && !one.swaps).map((one) => one.path);
    fill(at.first, varied, at.first.value || varied[0]);
    fill(at.second, varied, at.second.value || varied[1]);
    if (at.export.open) drawExport();
    at.simulate.disabled = Boolean(simulated);
    if (simulated) at.simulated.textContent = `This design was simulated in ${simulated.seconds.toFixed(1)} s.`;
    else if (at.progress.hidden) at.simulated.textContent = "";
  }
  const fill = (select, names, chosen) => select.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === chosen }, name.includes(".") ? name.split(".").map(named).join(" › ") : named(name))));
  function drawFigures() {
    const { answer, pinned, simulated, comparison, picture } = state;
    const rows = [["now", answer], ...(comparison.same ? [] : [["pinned", pinned]]), ...(simulated ? [["simulated", simulated]] : [])];
    const bars = rows.flatMap(([kind, one]) => Object.entries(one.parts).map(([part, value]) => ({ kind, part, value }))).filter((bar) => Number.isFinite(bar.value));
    at.shares.hidden = !bars.length;
    if (bars.length) {
      const parts = [...new Set(bars.map((bar) => bar.part))], said = rows.map(([kind]) => `${kind} ${show(d3.sum(bars.filter((bar) => bar.kind === kind), (bar) => bar.value) || Infinity)}`).join(", ");
      sharesInto(at.latency, `${answer.share}: ${said}`, { bars, kinds: rows.map(([kind]) => kind), parts, label: answer.share });
      at.latencyTable.replaceChildren(folded(answer.share, ["", ...rows.map(([kind]) => kind)], parts.map((part) => [part, ...rows.map(([, one]) => valueOf({ value: one.parts[part] ?? null }))])));
    }
    const loads = Object.entries(answer.loads).map(([name, model]) => ({ name, model, simulated: simulated?.loads[name] ?? null, first: name === answer.bottleneck }));
    at.drawing.hidden = !loads.length && !picture.network;
    if (at.drawing.hidden) return;
    const draw = picture.processor ? processorPicture : systemPicture;
    at.system.replaceChildren(draw(widthOf(at.system), picture.processor ?? picture, loads, "The system"));
    at.loads.replaceChildren(folded("How busy each part is", ["", "model", "simulated", ""], d3.sort(loads, (one) => -one.model).map((one) => [one.name, percent(one.model), percent(one.simulated), one.first ? "bottleneck" : ""])));
  }

  // What is around it.
  async function lookAround(asked = false) {
    const { version, answer } = state, first = last;
    Object.assign(around, { found: [], total: 0 });
    at.look.hidden = asked || answer.milliseconds < SLOW;
    if (!at.look.hidden) {
      at.aroundWords.textContent = `Each step takes about ${show(answer.milliseconds / 1000)} s, in which no change is answered.`;
      at.around.replaceChildren();
      return;
    }
    for (let start = 0; start !== null;) {
      const part = await ask("neighbours", { start, version, first });
      if (part.error || part.version !== state.version || version !== state.version) return;
      around.found.push(...part.found);
      around.total = part.total;
      start = part.next;
      if (start === null || around.found.length % 5 === 0) drawAround();
    }
  }
  function drawAround() {
    const here = state.answer.metrics[at.metric.value], { better } = here, known = around.found.filter((one) => one.metrics);
    const rows = known.map((one) => {
      const [[path, to]] = Object.entries(one.values), value = one.metrics[at.metric.value];
      const share = value === null ? Infinity : 100 * (value / here.value - 1);
      return { path, to, from: one.from, stable: one.stable, value, share: value === here.value ? 0 : share, verdict: better && value !== null ? ((value > here.value) === (better === "up") ? "better" : "worse") : value === null ? "worse" : "" };
    });
    const some = d3.sort(rows.filter((row) => Math.abs(row.share) > 1e-3), (row) => -Math.abs(row.share)), most = d3.max(some, (row) => (Number.isFinite(row.share) ? Math.abs(row.share) : 0)) || 1;
    const refused = around.found.filter((one) => one.error);
    at.aroundWords.textContent = `${around.found.length} of ${around.total} steps looked at; ${some.length} change ${named(at.metric.value)}${refused.length ? `, ${refused.length} are not possible` : ""}.`;
    const cells = some.map((row) => [`${named(row.path)}: ${row.from} → ${row.to}`, row.value !== null ? show(row.value) : row.stable ? "–" : "overloaded",
      h("span", { class: `change ${row.verdict}` }, h("i", { style: `width:${Math.max(2, Math.min(70, (70 * Math.abs(row.share)) / most))}px` }), `${Number.isFinite(row.share) ? `${row.share > 0 ? "+" : ""}${show(Number(row.share.toPrecision(3)))} %` : ""} ${row.verdict}`),
      h("button", { type: "button", "aria-label": `Take ${named(row.path)} ${row.to}`, onclick: () => change({ [row.path]: row.to }) }, "Take")]);
    if (around.found.length === around.total && !at.first.chosen) [at.first.value, at.second.value] = [...new Set(some.filter((row) => Number.isFinite(row.share)).map((row) => row.path)), at.first.value, at.second.value];
    at.around.replaceChildren(some.length ? tableOf(`One step of each field, by its effect on ${named(at.metric.value)}${unitOf(here)}`, ["step", "value", "change", ""], cells) : "",
      ...(refused.length ? [folded("Steps that are not possible", ["step", "why"], refused.map((one) => [Object.entries(one.values).map(([path, to]) => `${named(path)}: ${to}`).join(), one.error]))] : []));
  }
  async function sweep() {
    const mine = sweepOf = { version: state.version, fields: [...new Set([at.first.value, at.second.value])], metrics: [at.x.value, at.y.value] };
    const found = [];
    for (let start = 0; start !== null;) {
      const part = await ask("sweep", { ...mine, start });
      if (part.error || mine !== sweepOf || part.version !== mine.version) { if (mine === sweepOf) at.frontWords.textContent = part.error ?? "The design has changed: sweep again."; return; }
      found.push(...part.found);
      start = part.next;
      at.frontWords.textContent = `${found.length} of ${part.total} designs`;
      if (start === null) drawFront(mine, found, new Set(part.front));
    }
  }
  function drawFront({ metrics: [x, y] }, found, front) {
    const said = (one) => Object.entries(one.values).map(([path, to]) => `${named(path.split(".").at(-1))} ${to}`).join(", ");
    const points = found.map((one, k) => ({ k, words: one.error ? "" : said(one), x: one.metrics?.[x], y: one.metrics?.[y], front: front.has(k), values: one.values })).filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
    const about = state.answer.metrics, label = (name) => `${named(name)}${unitOf(about[name])}`, best = d3.sort(points.filter((one) => one.front), (one) => one.x);
    at.frontWords.textContent = `${points.length} designs with values, ${best.length} on the front of ${named(x)} and ${named(y)}.`;
    plotInto(at.front, `Blue: on the front; cross: this design`, { height: 320, marginLeft: 60, marginBottom: 42, x: { label: label(x), labelAnchor: "center", grid: true }, y: { label: label(y), grid: true },
      marks: [Plot.line(best, { x: "x", y: "y", stroke: "var(--blue)", strokeOpacity: 0.5 }), Plot.dot(points, { x: "x", y: "y", r: 4.5, fill: (one) => (one.front ? "var(--blue)" : "var(--grey)"), title: "words", tip: true }),
        Plot.dot([about], { x: (one) => one[x].value, y: (one) => one[y].value, symbol: "times", r: 7, stroke: "var(--ink)", strokeWidth: 2 })] });
    at.frontTable.replaceChildren(scrolled("The front", tableOf("The front", ["design", label(x), label(y), ""], best.map((one) => [one.words, one.x, one.y,
      h("button", { type: "button", "aria-label": `Take ${one.words}`, onclick: () => change(one.values) }, "Take")]))));
  }

  // Simulation and export.
  async function follow(begun) {
    for (let now = begun; ; now = await ask("simulation")) {
      const running = ["running", "stopping"].includes(now.state);
      at.progress.hidden = at.cancel.hidden = !running;
      at.progress.max = now.total ?? 1;
      at.progress.value = now.done ?? 0;
      at.simulated.textContent = now.error ?? { idle: "", running: `${now.done} of ${now.total} replications; the first simulation of a kind on a machine compiles first, up to a minute`,
        stopping: "stops after the replications under way", cancelled: "cancelled" }[now.state] ?? "";
      if (running) { await later(400); continue; }
      if (now.state === "done") act("state");
      return;
    }
  }
  async function drawExport() {
    const found = await ask("export");
    for (const [name, file] of [["toml", "design.toml"], ["python", "design.py"]]) {
      at[name].value = found[name] ?? found.error;
      at[`${name}Link`].setAttribute("href", `data:text/plain;charset=utf-8,${encodeURIComponent(at[name].value)}`);
      at[`${name}Link`].setAttribute("download", file);
    }
  }

  root.append(
    h("header", {}, h("h1", {}, "What if"), put("model", "p", { class: "caption" })),
    put("lost", "p", { class: "error", role: "alert", hidden: true }, "No answer from Python: is it still running? The last good answer stays below."),
    put("bar", "aside", { "aria-label": "The answer in short" }, put("status", "p", { role: "status" }),
      h("span", { class: "controls" }, button("undo", "Undo", () => act("undo")), button("redo", "Redo", () => act("redo")), button("pin", "Pin this design", () => act("pin")), button("unchange", "Back to the pinned", () => act("unchange")))),
    h("main", {}, section("Fields", h("p", {}, h("label", {}, "Find ", put("find", "input", { type: "search", oninput: narrow }))), put("fields", "div")),
      h("div", { class: "results" },
        h("div", {},
          put("shares", "div", {}, section("Where the time goes", put("latency", "div", { class: "figure" }), put("latencyTable", "div"))),
          put("drawing", "div", {}, section("The system and how busy it is", put("system", "div", { class: "figure" }), put("loads", "div"))),
          section("Simulate this design", h("p", { class: "controls" }, button("simulate", "Simulate", async () => follow(await ask("simulate"))), button("cancel", "Cancel", async () => ask("cancel")), put("progress", "progress", { "aria-label": "Replications finished" })), put("simulated", "p", { role: "status" })),
          section("Take it with you", put("export", "details", { ontoggle: () => at.export.open && drawExport() }, h("summary", {}, "As TOML and as Python"),
          h("label", { class: "block" }, "TOML, which may be edited", put("toml", "textarea", { rows: 12, spellcheck: "false" })),
          h("p", { class: "controls" }, button("load", "Take this TOML", () => act("load", { text: at.toml.value }, at.tomlError)), put("tomlLink", "a", {}, "Save the TOML")), put("tomlError", "p", { class: "error", role: "alert" }),
          h("label", { class: "block" }, "Python", put("python", "textarea", { rows: 8, readonly: true, spellcheck: "false" })), h("p", {}, put("pythonLink", "a", {}, "Save the Python"))))),
        h("div", {},
          section("Against the pinned design", put("changed", "div"), put("remarks", "ul", { class: "remarks" }), put("metrics", "div")),
          section("What one step of each field would change", h("p", { class: "controls" }, h("label", {}, "Metric ", put("metric", "select", { onchange: () => { metric = at.metric.value; drawAround(); } })), button("look", "Look at them", () => lookAround(true))),
            put("aroundWords", "p", { role: "status" }), h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Neighbours" }, put("around", "div"))),
          section("The front of a small sweep", h("p", { class: "controls" }, h("label", {}, "Field ", put("first", "select", { onchange: () => { at.first.chosen = true; } })), h("label", {}, "and ", put("second", "select", { onchange: () => { at.first.chosen = true; } })), h("label", {}, "Across ", put("x", "select")), h("label", {}, "Up ", put("y", "select")), button("sweep", "Sweep", sweep)),
            put("frontWords", "p", { role: "status" }), put("front", "div", { class: "figure" }), put("frontTable", "div"))))));
  at.cancel.hidden = at.progress.hidden = true;
  act("state").then(() => { root.dataset.ready = "yes"; });
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (state && root.clientWidth !== width) { width = root.clientWidth; drawFigures(); }
  }).observe(root);
}
