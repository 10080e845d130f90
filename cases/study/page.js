"use strict";
// The picture of each workload: designs along two axes, the front a line, simulated designs with intervals, the star.
const ALL = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const show = (v) => (typeof v !== "number" ? String(v) : Number.isFinite(v) ? String(Number(v.toPrecision(3))) : "saturated");
function decode(text) {
  let bytes = Uint8Array.from(atob(text.slice(1)), (c) => c.charCodeAt(0));
  if (text[0] === "1") return bytes;
  if (text[0] === "4") return new Int32Array(bytes.buffer);
  const wide = new Uint8Array((bytes.length / 3) * 4);  // the upper three bytes of each 32-bit float
  bytes.forEach((byte, k) => { wide[4 * Math.floor(k / 3) + 1 + (k % 3)] = byte; });
  return new Float32Array(wide.buffer);
}
function svg(tag, attributes, parent, text) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  parent?.append(one);
  return one;
}
function ticks(low, high, most) {
  const raw = (high - low) / most, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return found;
}
const words = (w, row) => `design ${w.design[row]}: ${Object.entries(w.fields).map(([name, values]) => `${name.split(".").at(-1).replaceAll("_", " ")} ${values[w.places[name][row]]}`).join(", ")}`;

function draw(w, k) {
  const host = $(`picture-${k}`), width = Math.max(300, host.clientWidth), height = Math.min(460, Math.max(320, width * 0.55)), left = 58, bottom = 46, top = 12, right = 12;
  const x = w.columns[w.x], y = w.columns[w.y], finite = (r) => Number.isFinite(x[r]) && Number.isFinite(y[r]);
  const rows = [...Array(w.count).keys()].filter((r) => w.feasible[r] && finite(r)), far = w.y === w.own ? w.top : null;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${w.axes[w.y]} over ${w.axes[w.x]} of ${rows.length} designs; the best is design ${w.design[w.chosen] ?? "none"}` });
  if (!rows.length) { host.replaceChildren("No design is feasible."); return; }
  const seen = w.simulated.filter(finite), some = [...rows, ...seen].filter((r) => far === null || y[r] <= far), min = (c) => some.reduce((m, r) => Math.min(m, c[r]), Infinity), max = (c) => some.reduce((m, r) => Math.max(m, c[r]), -Infinity);
  const [x0, x1] = [min(x), max(x)], y0 = far ? 0 : min(y), y1 = far ?? max(y), pad = (x1 - x0) * 0.03 || 1, rise = far ? 0 : (y1 - y0) * 0.05 || 1;
  const across = (v) => left + ((v - x0 + pad) / (x1 - x0 + 2 * pad)) * (width - left - right), up = (v) => height - bottom - ((v - y0 + rise) / (y1 - y0 + 2 * rise)) * (height - bottom - top);
  for (const t of ticks(y0, y1, 6)) { svg("line", { x1: left, x2: width - right, y1: up(t), y2: up(t), stroke: "var(--line)" }, picture); svg("text", { x: left - 6, y: up(t) + 4, "text-anchor": "end", "font-size": 13 }, picture, show(t)); }
  for (const t of ticks(x0, x1, width < 500 ? 4 : 8)) svg("text", { x: across(t), y: height - bottom + 18, "text-anchor": "middle", "font-size": 13 }, picture, show(t));
  svg("text", { x: left + (width - left) / 2, y: height - 6, "text-anchor": "middle", "font-size": 14 }, picture, w.axes[w.x]);
  svg("text", { transform: `translate(14 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", "font-size": 14 }, picture, w.axes[w.y]);
  const inside = rows.filter((r) => y[r] <= y1), colour = (r) => (w.colour ? w.palette[w.places[w.colour][r] % w.palette.length] : w.palette[0]);
  for (const r of inside) svg("circle", { cx: across(x[r]), cy: up(y[r]), r: 2.4, fill: colour(r), "fill-opacity": 0.4, "data-row": r }, picture);
  w.line = lineOf(w).filter((r) => y[r] <= y1);
  svg("path", { d: w.line.map((r, j) => `${j ? "L" : "M"}${across(x[r])},${up(y[r])}`).join(""), fill: "none", stroke: "var(--ink)", "stroke-width": 2, class: "front" }, picture);
  seen.forEach((r) => {
    const at = w.simulated.indexOf(r), [yl, , yh] = w.intervals[w.y]?.[at] ?? [], [xl, , xh] = w.intervals[w.x]?.[at] ?? [];
    if (y[r] > y1) return;
    if (yl != null && yh != null) svg("line", { x1: across(x[r]), x2: across(x[r]), y1: up(Math.min(yh, y1)), y2: up(yl), stroke: "var(--ink)", "stroke-width": 2 }, picture);
    if (xl != null && xh != null) svg("line", { x1: across(xl), x2: across(xh), y1: up(y[r]), y2: up(y[r]), stroke: "var(--ink)", "stroke-width": 2 }, picture);
    svg("circle", { cx: across(x[r]), cy: up(y[r]), r: 5, fill: colour(r), stroke: "var(--ink)", "stroke-width": 1.5, class: "simulated", "data-row": r }, picture);
  });
  if (w.chosen !== null && finite(w.chosen)) {
    const [cx, cy] = [across(x[w.chosen]), up(Math.min(y[w.chosen], y1))], tip = (n) => { const a = (n * Math.PI) / 5, s = n % 2 ? 5 : 12; return `${cx + s * Math.sin(a)},${cy - s * Math.cos(a)}`; };
    svg("polygon", { points: [...Array(10).keys()].map(tip).join(" "), fill: "var(--green)", stroke: "var(--paper)", class: "star", "data-row": w.chosen }, picture);
  }
  w.ring = svg("circle", { r: 9, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" }, picture);
  w.at = (r) => [across(x[r]), up(Math.min(y[r], y1))];
  w.inside = inside;
  const dot = (fill, text) => { const li = document.createElement("li"), i = document.createElement("i"); i.style.background = fill; li.append(i, text); return li; }, legend = document.createElement("ul");
  legend.className = "legend";
  if (w.colour) legend.append(...w.fields[w.colour].map((v, j) => dot(w.palette[j % w.palette.length], `${j ? "" : `${w.colour.split(".").at(-1).replaceAll("_", " ")} `}${v}`)));
  legend.append(dot("var(--green)", "best (star)"), dot("var(--ink)", "front (line); dots: model, corrected by simulations; ringed: simulated, with 90 % interval"));
  host.replaceChildren(picture, legend);
  mark(w, k, w.row);
}
function lineOf(w) {
  const x = w.columns[w.x], y = w.columns[w.y], sx = w.better[w.x] === "up" ? -1 : 1, sy = w.better[w.y] === "up" ? -1 : 1;
  const rows = w.front.filter((r) => Number.isFinite(x[r]) && Number.isFinite(y[r]));
  if (!(w.x in w.better)) return rows.sort((a, b) => x[a] - x[b]);
  rows.sort((a, b) => sx * (x[a] - x[b]) || sy * (y[a] - y[b]));
  let best = Infinity;
  return rows.filter((r) => sy * y[r] < best && ((best = sy * y[r]), true));
}
function mark(w, k, row) {
  w.row = row;
  if (row === null || row === undefined) return;
  const [cx, cy] = w.at(row);
  for (const [name, value] of Object.entries({ cx, cy, visibility: "visible" })) w.ring.setAttribute(name, value);
  $(`shown-${k}`).textContent = `${words(w, row)}; ${[w.x, w.y].map((n) => `${w.axes[n]} ${show(w.columns[n][row])}`).join(", ")}${w.simulated.includes(row) ? ", simulated" : ""}`;
}
ALL.forEach((w, k) => {
  for (const group of [w.columns, w.places]) for (const name of Object.keys(group)) group[name] = decode(group[name]);
  Object.assign(w, { design: decode(w.design), feasible: decode(w.feasible), own: w.y, row: null });
  for (const axis of ["x", "y"]) {
    const select = $(`${axis}-${k}`);
    select.append(...Object.entries(w.axes).map(([name, label]) => new Option(label, name, name === w[axis], name === w[axis])));
    select.addEventListener("change", () => { w[axis] = select.value; draw(w, k); });
  }
  const host = $(`picture-${k}`);
  host.addEventListener("click", (event) => {
    const box = host.querySelector("svg")?.getBoundingClientRect();
    if (!box) return;
    const far = (r) => Math.hypot(...w.at(r).map((v, j) => v - [event.clientX - box.left, event.clientY - box.top][j]));
    const best = [...w.inside, ...w.simulated].reduce((a, b) => (far(b) < far(a) ? b : a), w.inside[0]);
    if (far(best) < 25) mark(w, k, best);
  });
  host.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!way || !w.line?.length) return;
    event.preventDefault();
    const here = w.line.indexOf(w.row);
    mark(w, k, w.line[Math.min(Math.max(here + way, 0), w.line.length - 1)]);
  });
  draw(w, k);
});
let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  ALL.forEach(draw);
});
document.documentElement.dataset.ready = "yes";
