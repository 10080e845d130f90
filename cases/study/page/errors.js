// How far the model is off at each simulated design.
const errorNames = () => state.work.metrics.map((m) => m.name).filter((name) => `error: ${name}` in state.work.simulation);

function makeErrors() {
  const names = errorNames();
  $("errors").closest("section").hidden = !names.length;
  state.error = names.includes(state.error) ? state.error : names[0] ?? null;
  options($("errors-metric"), names, state.error);
}
function drawErrors() {
  const name = state.error;
  if (name === null) return;
  const { simulation, rows, metricOf } = state.work, unit = metricOf[name].error_unit;
  const points = rows.simulated.map((row, k) => ({ row, load: 100 * column("bottleneck_load")[row], error: simulation[`error: ${name}`][k],
    ends: ["low", "high"].map((end) => simulation[`error: ${name}_${end}`][k]) }));
  const fine = points.filter((p) => Number.isFinite(p.error)), lost = points.filter((p) => !Number.isFinite(p.error));
  const worst = d3.greatest(fine, (p) => Math.abs(p.error));
  const words = worst ? `Largest finite error of ${labelOf(name)}: ${show(worst.error)} ${unit} at design ${column("design")[worst.row]}; ${fine.length} of ${points.length} simulated designs` : "No finite error";
  plotInto($("errors"), words, { height: 260, marginLeft: 56, marginBottom: 40, grid: true,
    x: { label: "load of the busiest resource by the model [%]", labelAnchor: "center" }, y: { label: `model minus simulated [${unit}]` },
    marks: [Plot.ruleY([0], { stroke: "var(--ink)" }),
      Plot.ruleX(fine.filter((p) => p.ends.every(Number.isFinite)), { x: "load", y1: (p) => p.ends[0], y2: (p) => p.ends[1], stroke: "var(--orange)", strokeWidth: 2 }),
      Plot.dot(fine, { x: "load", y: "error", fill: "var(--orange)", symbol: "square", r: 4 }),
      Plot.text(fine, { x: "load", y: "error", text: (p) => show(column("design")[p.row]), dx: 8, textAnchor: "start", fill: "var(--ink)" })] });
  $("errors-words").textContent = lost.length ? `Infinite, saturated by one of the two only, or without a value: ${lost.map((p) => `design ${column("design")[p.row]}`).join(", ")}.` : "";
}
redraws.all.push(makeErrors, drawErrors);
