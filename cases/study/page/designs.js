// The table of designs, the design shown, where its time goes, and its neighbours.
const PAGE = 15;

function tableColumns() {
  const metrics = [...state.work.goals, ...state.work.metrics.map((m) => m.name).filter((n) => n === "packet_latency_p99" && !state.work.goals.includes(n))];
  return [
    ...["design", ...state.work.fields.map((f) => f.name)].map((name) => ({ name, label: name === "design" ? "design" : labelOf(name), text: (row) => show(column(name)[row]), by: (row) => column(name)[row] })),
    { name: "standing", label: "standing", text: standing, by: (row) => standing(row) },
    ...metrics.map((name) => ({ name, label: titled(name), text: (row) => shown(name, row), by: (row) => column(name)[row], kind: (row) => kindOf(row, name) })),
    { name: "bottleneck", label: "fills up first (model)", text: (row) => `${column("bottleneck")[row]} ${percent(column("bottleneck_load")[row])}`, by: (row) => column("bottleneck_load")[row] },
  ];
}
const standing = (row) => [row === state.work.rows.chosen && "recommended", row === state.work.rows.knee && "model's knee", column("front")[row] && "front",
  column("simulated")[row] && "simulated", column("open")[row] && "could enter the front", !column("stable")[row] && "saturated"].filter(Boolean).join(", ");

function drawTable() {
  const columns = tableColumns(), rows = listed(), by = columns.find((c) => c.name === state.sort);
  if (by) rows.sort((a, b) => (state.down ? -1 : 1) * d3.ascending(by.by(a), by.by(b)));
  else rows.sort((a, b) => rank(a) - rank(b) || a - b);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const part = rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
  $("table-words").textContent = `${rows.length} designs, page ${state.page + 1} of ${pages}`;
  $("before").disabled = state.page === 0;
  $("after").disabled = state.page === pages - 1;
  const head = columns.map((c) => {
    const sorted = c.name === state.sort ? (state.down ? "descending" : "ascending") : null;
    const press = () => {
      state.down = c.name === state.sort && !state.down;
      state.sort = c.name;
      state.page = 0;
      drawTable();
      document.querySelector(`#table [data-sort="${c.name}"]`).focus();
    };
    const mark = sorted ? (state.down ? " ▼" : " ▲") : "";
    return h("th", { scope: "col", "aria-sort": sorted }, h("button", { type: "button", "data-sort": c.name, onclick: press }, c.label + mark));
  });
  const body = part.map((row) => h("tr", { class: row === state.row && "on", "data-row": row }, columns.map((c, k) => (k
    ? h("td", { class: c.kind ? c.kind(row) : null }, c.text(row))
    : h("th", { scope: "row" }, h("button", { type: "button", "aria-label": `Show design ${c.text(row)}`, onclick: () => choose(row) }, c.text(row)))))));
  $("table").replaceChildren(h("table", {}, h("caption", {}, `Blue: corrected, with its ${state.work.interval}; orange: simulated, with the interval of the simulation; without interval: by the model alone`),
    h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}
// The recommended design first, then what was simulated, then the front.
const rank = (row) => (row === state.work.rows.chosen ? 0 : column("simulated")[row] ? 1 : column("front")[row] ? 2 : 3);

function drawChosen() {
  const row = state.row, star = row === state.work.rows.chosen;
  $("chosen-words").textContent = row === null ? "No design is shown"
    : `${star ? "Recommended: " : "Shown: "}${described(row)}. ${standing(row)}. Fills up first: ${column("bottleneck")[row]} at ${percent(column("bottleneck_load")[row])} by the model`;
  $("chosen-number").value = row === null ? "" : column("design")[row];
  document.querySelectorAll("#table tr[data-row]").forEach((tr) => tr.classList.toggle("on", Number(tr.dataset.row) === row));
}

const simulatedPlace = (row) => state.work.rows.simulated.indexOf(row);
function drawLatency() {
  const row = state.row, k = row === null ? -1 : simulatedPlace(row), target = $("latency");
  if (row === null) { target.replaceChildren(); return; }
  const values = { model: (part) => column(`part: ${part}`)[row], simulated: (part) => state.work.simulation[`part: ${part}`]?.[k] };
  const kinds = k < 0 || !state.work.simulation[`part: ${state.work.parts[0]}`] ? ["model"] : ["model", "simulated"];
  const bars = kinds.flatMap((kind) => state.work.parts.map((part) => ({ kind, part, value: values[kind](part) }))).filter((bar) => Number.isFinite(bar.value));
  const main = state.work.goals.find((name) => name.endsWith("latency")) ?? "packet_latency", ends = interval(main, row);
  const said = kinds.map((kind) => `${kind} ${show(d3.sum(bars.filter((bar) => bar.kind === kind), (bar) => bar.value) || Infinity)}`).join(" ns, ");
  const words = `Mean packet latency of design ${column("design")[row]}: ${said} ns${k < 0 ? ", not simulated" : ""}` +
    (ends ? `; ${kindOf(row, main)} value ${shown(main, row)} ns` : "");
  sharesInto(target, words, { bars, kinds, parts: state.work.parts, label: "mean packet latency [ns]",
    marks: ends ? [Plot.ruleX([column(main)[row]], { stroke: "var(--ink)", strokeDasharray: "3,3" })] : [] });
  const cells = state.work.parts.map((part) => [part, ...kinds.map((kind) => values[kind](part)),
    ...(kinds.length > 1 ? [values.model(part) - values.simulated(part)] : [])]);
  $("latency-table").replaceChildren(folded("Shares of the mean packet latency [ns]", ["", ...kinds, ...(kinds.length > 1 ? ["model minus simulated"] : [])], cells));
}

function neighbours(row) {
  const sizes = state.work.fields.map((f) => f.choices.length), found = [];
  state.work.fields.forEach((field, k) => {
    const stride = sizes.slice(k + 1).reduce((a, b) => a * b, 1), place = at(field.name, row);
    for (const way of [-1, 1]) {
      const other = state.work.rowOf.get(column("design")[row] + way * stride);
      if (place + way < 0 || place + way >= sizes[k] || other === undefined) continue;
      found.push({ field, from: field.choices[place], to: field.choices[place + way], row: other, way });
    }
  });
  return found;
}
function drawSensitivity() {
  const row = state.row, name = state.sensitivity, target = $("sensitivity");
  if (row === null) { target.replaceChildren(); return; }
  const found = neighbours(row), here = column(name)[row];
  const bars = found.map((n) => ({ ...n, label: `${n.field.label}: ${n.from} to ${n.to}`, value: column(name)[n.row], ends: interval(name, n.row) }));
  const fine = bars.filter((bar) => Number.isFinite(bar.value)), better = state.work.metricOf[name].better;
  const good = (bar) => (better && bar.value !== here ? ((bar.value < here) === (better === "down") ? "better" : "worse") : "no better or worse");
  const worst = d3.greatest(fine, (bar) => Math.abs(bar.value - here));
  const words = worst ? `Largest change of ${labelOf(name)}: ${worst.label} gives ${shown(name, worst.row)} instead of ${shown(name, row)}` : "No neighbour keeps up";
  plotInto(target, words, { height: 70 + 24 * bars.length, marginBottom: 42, marginLeft: Math.min(230, widthOf(target) * 0.48), marginRight: 70, marginTop: 10,
    x: { label: titled(name), grid: true, labelAnchor: "center" }, y: { label: null, domain: bars.map((bar) => bar.label) },
    color: { domain: ["better", "worse", "no better or worse"], range: ["var(--green)", "var(--hot)", "var(--grey)"], legend: true },
    marks: [Plot.ruleX([here], { stroke: "var(--ink)" }),
      Plot.link(fine, { x1: () => here, x2: "value", y: "label", stroke: good, strokeWidth: 7, strokeLinecap: "butt" }),
      Plot.link(fine.filter((bar) => bar.ends), { x1: (bar) => bar.ends[0], x2: (bar) => bar.ends[1], y: "label", stroke: "var(--ink)", strokeOpacity: 0.6 }),
      Plot.dot(fine, { x: "value", y: "label", fill: "var(--ink)", r: 3, symbol: (bar) => (column("simulated")[bar.row] ? "square" : "circle") }),
      Plot.text(bars.filter((bar) => !Number.isFinite(bar.value)), { x: () => here, y: "label", text: () => "saturated", textAnchor: "start", dx: 6, fill: "var(--hot)" })] });
  const cells = found.map((n) => [`${n.field.label}: ${n.from} to ${n.to}`,
    h("button", { type: "button", "aria-label": `Show design ${column("design")[n.row]}`, onclick: () => choose(n.row) }, show(column("design")[n.row])),
    ...state.work.goals.map((goal) => `${shown(goal, n.row)}${relative(goal, row, n.row)}`)]);
  $("sensitivity-table").replaceChildren(tableOf(`Each decision of design ${column("design")[row]} one choice on or back`, ["change", "design", ...state.work.goals.map(titled)], cells));
}
function relative(name, from, to) {
  const change = 100 * (column(name)[to] / column(name)[from] - 1);
  return Number.isFinite(change) ? `, ${change > 0 ? "+" : ""}${change.toFixed(1)} %` : "";
}
function makeSensitivity() {
  state.sensitivity = state.work.goals[0];
  options($("sensitivity-metric"), state.work.metrics.map((m) => m.name), state.sensitivity);
}
redraws.all.push(drawTable, drawChosen, drawLatency, makeSensitivity, drawSensitivity);
redraws.filters.push(drawTable);
redraws.row.push(drawChosen, drawLatency, drawSensitivity);
