// Parallel coordinates: a line a design, a brush an axis; the same limits as numbers for the keyboard.
function parallelAxes() {
  const metrics = [...state.work.goals, ...["packet_latency_p99"].filter((name) => name in state.work.metricOf && !state.work.goals.includes(name))];
  return [...state.work.fields.map((f) => f.name), ...metrics];
}

function drawParallel() {
  const host = $("parallel"), names = parallelAxes(), rows = candidates();
  const width = Math.max(widthOf(host.parentElement), 92 * names.length), height = 330, top = 64, bottom = 14;
  const across = d3.scalePoint(names, [54, width - 54]);
  const up = Object.fromEntries(names.map((name) => [name, axisScale(name, rows, [height - bottom, top])]));
  const canvas = h("canvas", { "aria-hidden": "true", style: `position:absolute;width:${width}px;height:${height}px` });
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  host.style.width = `${width}px`;
  const svg = d3.create("svg").attr("width", width).attr("height", height).style("position", "relative").attr("role", "img")
    .attr("aria-label", `Parallel coordinates of ${rows.length} designs over ${names.map(labelOf).join(", ")}; their limits can be set in numbers below`);
  for (const name of names) {
    const field = state.work.fields.find((f) => f.name === name);
    const axis = d3.axisLeft(up[name]).ticks(5);
    if (!field) axis.tickFormat((value) => (up[name].base && !sparse(value) ? "" : show(value)));
    else axis.tickValues(d3.range(field.choices.length)).tickFormat((k) => String(field.choices[k]));
    const group = svg.append("g").attr("transform", `translate(${across(name)},0)`).call(axis);
    group.selectAll(".tick text").attr("paint-order", "stroke").attr("stroke", "var(--panel)").attr("stroke-width", 3);
    const words = group.append("text").attr("class", "axis-name").attr("text-anchor", "middle").attr("y", 12);
    wrap(labelOf(name) + (goalOf(name) ? `, ${goalOf(name)}` : "")).forEach((line, k) => words.append("tspan").attr("x", 0).attr("dy", k ? 13 : 0).text(line));
    const end = ({ selection, sourceEvent }) => {
      if (!sourceEvent) return;
      const [y0, y1] = selection ?? [0, 0];
      setFilters({ [name]: selection ? [up[name].invert(y1), up[name].invert(y0)] : null });
    };
    const one = d3.brushY().extent([[-14, top - 6], [14, height - bottom + 6]]).on("end", end);
    const held = group.append("g").attr("class", "axis-brush").attr("data-axis", name).call(one);
    const range = state.filters.get(name);
    const [least, most] = up[name].domain(), pixel = (value) => up[name](Math.min(Math.max(value, least), most));
    if (range) one.move(held, [pixel(range[1]), pixel(range[0])]);
  }
  host.replaceChildren(canvas, svg.node());
  const lines = (context) => {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    context.clearRect(0, 0, width, height);
    const draw = (row, stroke, alpha, thick) => {
      context.strokeStyle = stroke; context.globalAlpha = alpha; context.lineWidth = thick;
      context.beginPath();
      names.forEach((name, k) => context[k ? "lineTo" : "moveTo"](across(name), up[name](clamped(name, row))));
      context.stroke();
    };
    const clamped = (name, row) => Math.min(at(name, row), up[name].domain()[1]);
    const [kept, lost] = [rows.filter(passes), rows.filter((row) => !passes(row))];
    lost.forEach((row) => draw(row, colour("--grey"), 0.03, 1));
    kept.filter((row) => !column("front")[row]).forEach((row) => draw(row, colour("--grey"), 0.25, 1));
    kept.filter((row) => column("front")[row]).forEach((row) => draw(row, colour("--blue"), kept.length > 300 ? 0.2 : 0.6, 1));
    kept.filter((row) => column("simulated")[row]).forEach((row) => draw(row, colour("--orange"), 0.9, 1.5));
    if (state.work.rows.chosen !== null) draw(state.work.rows.chosen, colour("--green"), 1, 3);
    if (state.row !== null && state.row !== state.work.rows.chosen) draw(state.row, colour("--ink"), 1, 2);
  };
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  lines(context);
  host.again = () => lines(context);
}
// Of a logarithmic axis the ticks at 1, 2 and 5 have room for a number.
const sparse = (value) => [1, 2, 5].includes(Number(value.toExponential(0)[0]));
function axisScale(name, rows, range) {
  const values = rows.map((row) => at(name, row)).filter(Number.isFinite), [low, high] = d3.extent(values);
  if (isField(name)) return d3.scaleLinear([0, Math.max(1, state.work.fields.find((f) => f.name === name).choices.length - 1)], range);
  if (low > 0 && high / low > 8) return d3.scaleLog([Math.max(low, high * 1e-9), high], range).clamp(true);
  return d3.scaleLinear([low ?? 0, high > low ? high : (low ?? 0) + 1], range);
}
function wrap(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && (lines.at(-1) + word).length > 13) lines.push(word); else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

function drawLimits() {
  const rows = parallelAxes().map((name) => {
    const field = state.work.fields.find((f) => f.name === name), range = state.filters.get(name);
    const input = (side) => {
      const value = range && Number.isFinite(range[side]) ? range[side] : null;
      const label = `${side ? "at most" : "at least"}: ${labelOf(name)}`;
      const change = () => {
        const ends = range ? [...range] : [-Infinity, Infinity];
        ends[side] = box.value === "" ? (side ? Infinity : -Infinity) : Number(box.value);
        setFilters({ [name]: ends.some(Number.isFinite) ? ends : null });
        document.querySelector(`[aria-label="${label}"]`)?.focus();
      };
      const shownValue = value === null ? "" : field ? String(side ? Math.floor(value) : Math.ceil(value)) : Number(value.toPrecision(4));
      const box = field
        ? h("select", { "aria-label": label, onchange: change }, h("option", { value: "" }, "any"),
          field.choices.map((choice, k) => h("option", { value: k, selected: shownValue === String(k) }, String(choice))))
        : h("input", { type: "number", step: "any", "aria-label": label, value: shownValue, onchange: change });
      return box;
    };
    return [labelOf(name), input(0), input(1)];
  });
  $("limits").replaceChildren(tableOf("Limits on decisions and metrics", ["", "at least", "at most"], rows));
}
redraws.all.push(drawParallel, drawLimits);
redraws.filters.push(drawParallel, drawLimits);
redraws.row.push(() => $("parallel").again());
