// Two plots of the designs along any two axes: intervals on every point, a box narrows every view.
const LOOKS = {
  other: ["circle", "var(--grey)", 2, "model's value, no interval"],
  corrected: ["circle", "var(--blue)", 3, "corrected"],
  simulated: ["square", "var(--orange)", 5, "simulated, interval of the simulation; a line leads to the model's value"],
  own: ["times", "var(--soft)", 3, "the model's own value"],
  edge: ["triangle", "var(--hot)", 4, "saturated, or beyond the axis: stands at the edge"],
};

function legend() {
  const items = Object.entries(LOOKS).filter(([name]) => name !== "edge" || state.saturated).map(([name, [symbol, colour, , words]]) => {
    const said = name === "corrected" ? `corrected: ${state.work.interval}; pale: not on the front` : words;
    return item(symbol, colour, name === "own", said, ["corrected", "simulated"].includes(name));
  });
  $("legend").replaceChildren(...items, item("star", "var(--green)", false, "recommended"), item("circle", "var(--ink)", true, "shown above"));
}
function item(symbol, colour, hollow, words, bar = false) {
  const svg = d3.create("svg").attr("viewBox", "-15 -8 30 16").attr("aria-hidden", "true");
  if (bar) svg.append("path").attr("d", "M-12,0H12").attr("stroke", colour);
  const shape = { square: d3.symbolSquare, star: d3.symbolStar, triangle: d3.symbolTriangle, times: d3.symbolTimes }[symbol] ?? d3.symbolCircle;
  svg.append("path").attr("d", d3.symbol(shape, 60)()).attr("fill", hollow ? "none" : colour).attr("stroke", colour);
  return h("li", {}, svg.node(), words);
}

function scaleOf(name, values) {
  if (isField(name)) return { type: "linear", ticks: state.work.fields.find((f) => f.name === name).choices.length,
    tickFormat: (k) => String(state.work.fields.find((f) => f.name === name).choices[k] ?? "") };
  const [low, high] = d3.extent(values);
  // A logarithmic axis where a linear one would press all but the worst into a corner.
  if (low > 0 && high / low > 8) return { type: "log", domain: [Math.max(low, high * 1e-9) / 1.1, high * 1.1], clamp: true, tickFormat: "~g" };
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return { type: "linear", domain: [low >= 0 ? Math.max(0, low - room) : low - room, high + room] };
}

function pointsOf(x, y) {
  const finite = (name, row) => Number.isFinite(at(name, row));
  return candidates().map((row) => {
    const p = { row, x: at(x, row), y: at(y, row), inside: passes(row), front: !!column("front")[row], kind: kindOf(row, x, y),
      at: finite(x, row) && finite(y, row) };
    for (const [axis, name] of [["x", x], ["y", y]]) {
      const ends = isField(name) ? null : interval(name, row);
      if (ends) [p[`${axis}1`], p[`${axis}2`]] = ends;
      const own = isField(name) ? at(name, row) : (column(`model: ${name}`) ?? column(name))[row];
      p[`${axis}m`] = own;
    }
    return p;
  });
}

function drawFront(figure, k) {
  const [x, y] = state.axes[k], points = pointsOf(x, y), fine = points.filter((p) => p.at);
  const scales = {};
  for (const [axis, name] of [["x", x], ["y", y]]) {
    const values = fine.map((p) => p[axis]);
    for (const p of fine) if (p.kind === "simulated") values.push(p[`${axis}m`], p[`${axis}1`] ?? p[axis], p[`${axis}2`] ?? p[axis]);
    scales[axis] = { ...scaleOf(name, values.filter(Number.isFinite)), label: titled(name), labelAnchor: "center", nice: false };
    // What is beyond stands at the edge.
    const domain = scales[axis].domain ?? d3.extent(values);
    for (const p of points) if (!Number.isFinite(p[axis])) p[axis] = domain[1];
    for (const p of fine) for (const end of [1, 2]) {
      const key = `${axis}${end}`;
      if (key in p) p[key] = Math.min(Math.max(p[key], domain[0]), domain[1]);
    }
  }
  const dim = (p) => (!p.inside ? 0.06 : p.front || p.kind === "simulated" ? 0.95 : 0.35);
  const colour = (p) => LOOKS[p.kind === "model" ? "other" : p.kind][1];
  const bars = (axis) => Plot[axis === "x" ? "ruleY" : "ruleX"](fine.filter((p) => `${axis}1` in p && p.inside), {
    x: "x", y: "y", [`${axis}1`]: `${axis}1`, [`${axis}2`]: `${axis}2`, stroke: colour, strokeWidth: (p) => (p.kind === "simulated" ? 2 : 1),
    strokeOpacity: (p) => (p.kind === "simulated" ? 0.9 : p.front ? 0.16 : 0.08) });
  const moved = fine.filter((p) => p.inside && (p.kind === "simulated" || (state.modelToo && p.front)) && Number.isFinite(p.xm) && Number.isFinite(p.ym));
  const star = points.filter((p) => p.row === state.work.rows.chosen);
  const order = fine.slice().sort((a, b) => (a.kind === "simulated") - (b.kind === "simulated") || a.front - b.front);
  const words = `${labelOf(y)} over ${labelOf(x)}: ${points.length} designs, ${points.filter((p) => p.inside).length} inside all limits` +
    (star.length ? `; recommended: ${shown(y, star[0].row)} at ${shown(x, star[0].row)}` : "");
  const svg = plotInto(figure, words, {
    height: Math.min(470, Math.max(320, widthOf(figure) * 0.62)), marginLeft: 62, marginBottom: 44, marginRight: 14, grid: true, x: scales.x, y: scales.y,
    marks: [
      bars("x"), bars("y"),
      Plot.link(moved, { x1: "xm", y1: "ym", x2: "x", y2: "y", stroke: "var(--soft)", strokeDasharray: "2,2", strokeOpacity: 0.7 }),
      Plot.dot(moved, { x: "xm", y: "ym", symbol: "times", stroke: "var(--soft)", r: 3 }),
      Plot.dot(order, { x: "x", y: "y", symbol: (p) => (p.kind === "simulated" ? "square" : "circle"), fill: colour,
        r: (p) => (p.kind === "simulated" ? 4.5 : p.front ? 2.5 : 1.8), fillOpacity: dim,
        stroke: (p) => (p.kind === "simulated" ? "var(--paper)" : "none"), ariaLabel: (p) => `design ${column("design")[p.row]}` }),
      Plot.dot(points.filter((p) => !p.at), { x: "x", y: "y", symbol: "triangle", fill: "var(--hot)", r: 3, fillOpacity: (p) => (p.inside ? 0.8 : 0.06) }),
      Plot.dot(star, { x: "x", y: "y", symbol: "star", r: 9, fill: "var(--green)", stroke: "var(--paper)", strokeWidth: 1.2 }),
      Plot.text(star, { x: "x", y: "y", text: (p) => `recommended: ${column("design")[p.row]}`, dy: -16, fill: "var(--ink)",
        stroke: "var(--paper)", strokeWidth: 5, fontWeight: 600 }),
      Plot.tip(points, Plot.pointer({ x: "x", y: "y", maxRadius: 25, fill: "var(--paper)", stroke: "var(--line)",
        title: (p) => `design ${column("design")[p.row]}, ${p.kind}\n${state.work.fields.map((f) => `${f.label}: ${column(f.name)[p.row]}`).join("\n")}\n` +
          [x, y].filter((n) => !isField(n)).map((n) => `${labelOf(n)}: ${shown(n, p.row)}`).join("\n") + "\nclick to show it" })),
    ],
  });
  brush(svg, figure, k, points);
}

function brush(svg, figure, k, points) {
  const [x, y] = state.axes[k], across = svg.scale("x"), up = svg.scale("y");
  const box = [[across.range[0], up.range[1]], [across.range[1], up.range[0]]];
  const ended = ({ selection, sourceEvent }) => {
    if (!sourceEvent) return;
    if (!selection) { choose(nearest(svg, points, d3.pointer(sourceEvent, svg))); return; }
    const [[left, top], [right, bottom]] = selection, invert = (scale, pixel) => scale.invert(pixel);
    setFilters({ [x]: [invert(across, left), invert(across, right)], [y]: [invert(up, bottom), invert(up, top)] });
  };
  d3.select(svg).append("g").attr("class", "brush").call(d3.brush().extent(box).on("end", ended));
  const ring = d3.select(svg).append("g").attr("pointer-events", "none");
  figure.mark = () => {
    const p = points.find((one) => one.row === state.row);
    ring.selectAll("circle").data(p ? [p] : []).join("circle").attr("r", 9).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2)
      .attr("cx", (one) => across.apply(one.x)).attr("cy", (one) => up.apply(one.y));
  };
  figure.steps = points.filter((p) => p.inside).sort((a, b) => a.x - b.x || a.y - b.y).map((p) => p.row);
  figure.mark();
}
function nearest(svg, points, [px, py]) {
  const across = svg.scale("x"), up = svg.scale("y");
  const far = (p) => Math.hypot(across.apply(p.x) - px, up.apply(p.y) - py);
  const best = d3.least(points.filter((p) => p.inside), far);
  return best && far(best) < 25 ? best.row : null;
}

function makeFronts() {
  const names = [...state.work.metrics.map((m) => m.name), ...state.work.fields.map((f) => f.name)];
  const { goals } = state.work, others = goals.filter((name) => name !== "cost"), [first, second, third] = others;
  const priced = goals.includes("cost") && others.length > 0, field = state.work.fields[0].name;
  state.axes = priced ? [["cost", first], [goals.includes("energy_per_packet") ? "energy_per_packet" : "cost", others.at(-1)]]
    : [[second ?? field, first ?? "cost"], [third ?? field, others.at(-1) ?? "cost"]];
  $("fronts").replaceChildren(...state.axes.map((pair, k) => {
    const figure = h("div", { class: "figure front", tabindex: "0", role: "group", "aria-label": `Plot ${k + 1} of the designs; arrow keys step through them`,
      onkeydown: (event) => step(event, figure) });
    const selects = ["x", "y"].map((axis, j) => {
      const select = h("select", { id: `${axis}-${k}`, onchange: () => { state.axes[k][j] = select.value; drawFront(figure, k); } });
      options(select, names, pair[j]);
      return h("label", {}, `${j ? "Up" : "Across"} `, select);
    });
    return h("div", {}, h("p", { class: "controls" }, selects), figure);
  }));
}
function step(event, figure) {
  const way = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!way || event.target !== figure || !figure.steps.length) return;
  event.preventDefault();
  const here = figure.steps.indexOf(state.row);
  choose(figure.steps[Math.min(Math.max(here < 0 ? 0 : here + way, 0), figure.steps.length - 1)]);
}
function drawFronts() {
  legend();
  document.querySelectorAll(".front").forEach((figure, k) => drawFront(figure, k));
  const kept = listed().length, all = candidates().length;
  $("count").textContent = state.filters.size ? `${kept} of ${all} designs are inside the limits` : `${all} designs, no limits set`;
}
redraws.all.push(makeFronts, drawFronts);
redraws.filters.push(drawFronts);
redraws.row.push(() => document.querySelectorAll(".front").forEach((figure) => figure.mark?.()));
