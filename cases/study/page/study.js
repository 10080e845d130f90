// The study, what is shown of it, and small helpers for all parts of the page.
const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = { u1: Uint8Array, u2: Uint16Array, f3: Float32Array };

function decode({ type, data, words }, count) {
  let bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  if (type === "f3") {  // the upper three bytes of each 32-bit float
    const wide = new Uint8Array((bytes.length / 3) * 4);
    bytes.forEach((byte, k) => { wide[4 * Math.floor(k / 3) + 1 + (k % 3)] = byte; });
    bytes = wide;
  }
  let values = new TYPES[type](bytes.buffer);
  if (values.length === 1) values = new TYPES[type](count).fill(values[0]);
  return words ? Array.from(values, (k) => words[k]) : values;
}

for (const work of DATA.workloads) {
  const all = (columns, count) => Object.fromEntries(Object.entries(columns).map(([n, c]) => [n, decode(c, count)]));
  work.columns = all(work.columns, work.count);
  work.simulation = all(work.simulation, work.rows.simulated.length);
  work.metricOf = Object.fromEntries(work.metrics.map((m) => [m.name, m]));
  work.goals = work.metrics.filter((m) => m.goal).map((m) => m.name);
  work.rowOf = new Map(work.columns.design.map((design, row) => [design, row]));
  work.placeOf = Object.fromEntries(work.fields.map((f) => [f.name, new Map(f.choices.map((c, k) => [c, k]))]));
}

const state = { work: DATA.workloads[0], row: null, filters: new Map(), axes: [], saturated: false, front: false,
  modelToo: false, sort: null, down: false, page: 0, sensitivity: null, error: null };
const redraws = { all: [], filters: [], row: [] };  // what is drawn again when something changes
const redraw = (what) => redraws[what].forEach((draw) => draw());

const $ = (id) => document.getElementById(id);
const column = (name) => state.work.columns[name];
const isField = (name) => name in state.work.placeOf;
// A field counts by the place of its choice: choices are evenly spaced, words too.
const at = (name, row) => (isField(name) ? state.work.placeOf[name].get(column(name)[row]) : column(name)[row]);
const labelOf = (name) => (isField(name) ? state.work.fields.find((f) => f.name === name) : state.work.metricOf[name]).label;
const goalOf = (name) => (isField(name) ? "" : state.work.metricOf[name].goal);
const titled = (name) => labelOf(name) + (goalOf(name) ? ` (${goalOf(name)} is best)` : "");

function interval(name, row) {
  const low = column(`${name}_low`), high = column(`${name}_high`);
  if (!low || !Number.isFinite(high[row]) || !(high[row] > low[row])) return null;
  return [low[row], high[row]];
}
function shown(name, row) {
  const ends = interval(name, row);
  return show(column(name)[row]) + (ends ? ` (${show(ends[0])} to ${show(ends[1])})` : "");
}
// What values are: of a simulation, corrected, or the model's own.
const kindOf = (row, ...names) => !names.some((n) => state.work.metricOf[n]?.corrected) ? "model"
  : column("simulated")[row] ? "simulated" : names.some((n) => !isField(n) && interval(n, row)) ? "corrected" : "model";
const described = (row) => `design ${column("design")[row]} (` +
  state.work.fields.map((f) => `${f.label} ${column(f.name)[row]}`).join(", ") + ")";

const passes = (row) => {
  for (const [name, [low, high]] of state.filters) {
    const value = at(name, row);
    if (!(value >= low && value <= high)) return false;
  }
  return true;
};
const candidates = () => d3.range(state.work.count).filter((row) =>
  (state.saturated || column("stable")[row]) && (!state.front || column("front")[row]));
const listed = () => candidates().filter(passes);
function setFilters(changes) {
  for (const [name, range] of Object.entries(changes)) {
    if (range === null) state.filters.delete(name); else state.filters.set(name, range);
  }
  state.page = 0;
  redraw("filters");
}
function choose(row) {
  if (row === null || row === undefined) return;
  state.row = row;
  redraw("row");
}

function sectionOf({ title, lines, headings, rows }, level) {
  return [h(level, {}, title), ...lines.map((line) => h("p", {}, line)),
    ...(rows.length ? [scrolled(title, tableOf(title, headings, rows))] : [])];
}
const options = (select, names, chosen) => select.replaceChildren(...names.map((name) =>
  h("option", { value: name, selected: name === chosen }, titled(name))));
