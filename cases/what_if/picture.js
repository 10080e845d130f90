"use strict";
// Small helpers that every page of ours shares: numbers in words, elements, tables, plots.
const show = (value) => typeof value !== "number" ? String(value) : Number.isNaN(value) ? "–" : !Number.isFinite(value) ? "saturated"
  : Math.abs(value) >= 1e4 && Math.abs(value) < 1e15 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);

// Elements: h("p", {class: "x"}, "text", child).
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}
function tableOf(caption, headings, rows) {
  const body = rows.map((row) => h("tr", {}, row.map((cell, k) =>
    h(k ? "td" : "th", k ? {} : { scope: "row" }, cell instanceof Node ? cell : show(cell)))));
  return h("table", { "aria-label": caption }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, headings.map((word) => h("th", { scope: "col" }, word)))), h("tbody", {}, body));
}
const scrolled = (words, content) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words }, content);
const folded = (caption, headings, rows) => h("details", {}, h("summary", {}, `As a table: ${caption}`), scrolled(caption, tableOf(caption, headings, rows)));
const widthOf = (element) => Math.max(280, Math.floor(element.clientWidth || element.parentElement.clientWidth));
function plotInto(target, words, plot) {
  const svg = Plot.plot({ width: widthOf(target), style: { background: "transparent", fontSize: "12px", overflow: "visible" },
    ariaLabel: words, ...plot });
  const drawn = svg.tagName === "svg" ? svg : svg.querySelector("svg[viewBox]");
  drawn.setAttribute("role", "img");
  if (svg !== drawn) svg.querySelectorAll("svg").forEach((one) => one !== drawn && one.setAttribute("aria-hidden", "true"));
  target.replaceChildren(svg, h("p", { class: "caption" }, words));
  return svg;
}
// Shares of one or more times as stacked bars; bars are {kind, part, value}, marks are drawn over them.
function sharesInto(target, words, { bars, kinds, parts, label, marks = [] }) {
  const totals = d3.rollups(bars, (group) => d3.sum(group, (bar) => bar.value), (bar) => bar.kind);
  return plotInto(target, words, { height: 90 + 58 * kinds.length, marginLeft: 76, marginRight: 60, marginBottom: 42, x: { label, labelAnchor: "center", grid: true },
    y: { label: null, domain: kinds }, color: { legend: true, domain: parts, scheme: "observable10" },
    marks: [Plot.barX(bars, { x: "value", y: "kind", fill: "part", title: (bar) => `${bar.kind}, ${bar.part}: ${show(bar.value)}`, insetTop: 3, insetBottom: 3 }),
      Plot.text(totals, { x: (t) => t[1], y: (t) => t[0], text: (t) => ` ${show(t[1])}`, textAnchor: "start", dx: 4, fill: "var(--ink)", stroke: "var(--panel)", strokeWidth: 5 }), ...marks] });
}
// Systems drawn, with how busy each part is: a packet processor as it is built, others as boxes and their network.
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
const PARTS = [
  { id: "pointer", title: () => "Pointer memory", loads: ["pointer memory"], wide: [0, 0.02, 0.29, 0.36], narrow: [0, 0.13, 0.48, 0.16] },
  { id: "engines", title: (s) => counted(s.initiators, "packet engine"), count: (s) => s.initiators, loads: [], wide: [0, 0.56, 0.29, 0.24], narrow: [0, 0, 1, 0.09] },
  { id: "slices", title: (s) => (s.slices ? counted(s.slices, "cache slice") : "No cache slices"), count: (s) => s.slices, loads: ["llc slices"], wide: [0.34, 0, 0.31, 0.27], narrow: [0.52, 0.13, 0.48, 0.16] },
  { id: "network", title: (s) => s.network, loads: ["request links", "response links"], wide: [0.34, 0.33, 0.31, 0.67], narrow: [0, 0.33, 1, 0.4] },
  { id: "channels", title: (s) => counted(s.channels, "memory channel"), count: (s) => s.channels, loads: ["dram buses", "dram banks"], wide: [0.7, 0.33, 0.3, 0.5], narrow: [0, 0.77, 1, 0.23] },
];
const JOINED = [["engines", "network"], ["engines", "pointer"], ["network", "slices"], ["network", "channels"]];
const MEMBERS = { engines: "var(--green)", channels: "var(--orange)", slices: "var(--blue)" };
const heat = (load) => (load > 0.85 ? "var(--hot)" : load > 0.6 ? "var(--warm)" : "var(--blue)");


// loads are {name, model, simulated, first}; what no part of the drawing has stands with the channels.
function processorPicture(width, built, loads, words) {
  const narrow = width < 560, height = narrow ? 640 : 430;
  const known = PARTS.flatMap((part) => part.loads), spare = loads.filter((load) => !known.includes(load.name)).map((load) => load.name);
  const svg = pictureOf(width, height, `${words}: ${PARTS.map((part) => part.title(built)).join(", ")}. ${busyWords(loads)}`);
  const box = Object.fromEntries(PARTS.map((part) => {
    const [x, y, w, t] = part[narrow ? "narrow" : "wide"];
    return [part.id, { ...part, x: x * (width - 4) + 2, y: y * (height - 4) + 2, w: w * (width - 4), h: t * (height - 4) }];
  }));
  const middle = (b) => [b.x + b.w / 2, b.y + b.h / 2];
  for (const [a, b] of JOINED) svg.append("path").attr("d", d3.line()([middle(box[a]), middle(box[b])])).attr("stroke", "var(--grey)").attr("stroke-width", 3);
  for (const part of Object.values(box)) drawBox(svg, part, built, loads, part.id === "channels" ? [...part.loads, ...spare] : part.loads);
  drawNetwork(svg, box.network, built);
  return svg.node();
}
const busyWords = (loads) => `Busy fractions by the model: ${loads.map((load) => `${load.name} ${percent(load.model)}`).join(", ")}`;
const pictureOf = (width, height, words) => d3.create("svg").attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", words);
function drawBox(svg, part, built, loads, names) {
  const mine = loads.filter((load) => names.includes(load.name)), first = mine.some((load) => load.first);
  const g = svg.append("g").attr("transform", `translate(${part.x},${part.y})`);
  g.append("rect").attr("width", part.w).attr("height", part.h).attr("rx", 6).attr("fill", "var(--paper)").attr("stroke", first ? "var(--ink)" : "var(--grey)").attr("stroke-width", first ? 3 : 1);
  fitted(g, part.title(built), 8, 19, part.w - 16).attr("font-weight", 600);
  mine.forEach((load, k) => {
    const y = 28 + 47 * k, wide = part.w - 16;
    g.append("rect").attr("x", 8).attr("y", y).attr("width", wide).attr("height", 9).attr("fill", "var(--line)");
    g.append("rect").attr("x", 8).attr("y", y).attr("width", wide * Math.min(load.model, 1)).attr("height", 9).attr("fill", heat(load.model));
    if (load.simulated !== null) g.append("rect").attr("x", 8 + wide * Math.min(load.simulated, 1) - 1.5).attr("y", y - 3).attr("width", 3).attr("height", 15).attr("fill", "var(--orange)");
    fitted(g, `${load.name} ${percent(load.model)}${load.first ? ", first" : ""}`, 8, y + 21, wide).attr("font-weight", load.first ? 700 : 400);
    if (load.simulated !== null) fitted(g, `simulated ${percent(load.simulated)}`, 8, y + 34, wide).attr("font-size", 11).attr("fill", "var(--orange)");
  });
  const members = part.count?.(built) ?? 0, side = Math.min(14, (part.w - 16) / members - 4);
  for (let k = 0; k < members; k += 1) g.append("rect").attr("x", 8 + k * (side + 4)).attr("y", part.h - 20).attr("width", side).attr("height", 12).attr("rx", 2).attr("fill", "none").attr("stroke", MEMBERS[part.id]).attr("stroke-width", 1.6);
}
function fitted(g, words, x, y, room) {
  const text = g.append("text").attr("x", x).attr("y", y).attr("font-size", 12.5).attr("fill", "currentColor").text(words);
  // About 6.3 px a letter: squeeze what would leave its box.
  if (words.length * 6.5 > room) text.attr("textLength", room).attr("lengthAdjust", "spacingAndGlyphs");
  return text;
}
function drawNetwork(svg, box, built) {
  const top = box.y + 122, size = Math.min(box.w - 40, box.y + box.h - top - 36);
  if (size < 50) return;
  const xs = d3.extent(built.places, (p) => p[0]), ys = d3.extent(built.places, (p) => p[1]), span = Math.max(xs[1] - xs[0], ys[1] - ys[0]) || 1;
  const spot = ([x, y]) => [box.x + box.w / 2 + ((x - (xs[0] + xs[1]) / 2) / span) * size, top + 6 + size / 2 - ((y - (ys[0] + ys[1]) / 2) / span) * size];
  const g = svg.append("g").attr("stroke", "var(--grey)");
  for (const [a, b] of built.links) g.append("path").attr("d", d3.line()([spot(built.places[a]), spot(built.places[b])]));
  const role = new Map();
  built.routers.forEach((router, node) => {
    const what = node < built.initiators ? "e" : node < built.initiators + built.channels ? "m" : "";
    if (what || !role.has(router)) role.set(router, what);
  });
  built.places.forEach((place, router) => {
    const [x, y] = spot(place), what = role.get(router) ?? "", colour = { e: "var(--green)", m: "var(--orange)" }[what] ?? "var(--grey)";
    g.append("circle").attr("cx", x).attr("cy", y).attr("r", size > 90 ? 8 : 5).attr("fill", "var(--paper)").attr("stroke", colour).attr("stroke-width", 2);
    if (what && size > 90) g.append("text").attr("x", x).attr("y", y + 3.5).attr("text-anchor", "middle").attr("font-size", 10).attr("stroke", "none").attr("fill", "currentColor").text(what);
  });
  fitted(svg, `${built.link_width} B links; e engine, m memory`, box.x + 8, box.y + box.h - 7, box.w - 16).attr("font-size", 11).attr("fill", "var(--soft)");
}
// Any other system: its fullest resources as boxes, joined as jobs go; its network, each link as hot as it is busy.
const MOST_BOXES = 12;
function systemPicture(width, { network, joined = [] }, loads, words) {
  const full = joined.length ? loads : d3.sort(loads, (load) => -(load.model ?? 0)).slice(0, MOST_BOXES), gap = joined.length ? 34 : 12;
  const across = Math.max(1, Math.min(full.length, Math.floor(width / 190))), wide = (width - 4 - gap * (across - 1)) / across;
  const tall = full.some((load) => load.simulated !== null) ? 72 : 58, below = Math.ceil(full.length / across) * (tall + gap), side = network ? Math.min(width, 380, 120 + 50 * Math.sqrt(network.places.length)) : 0;
  const svg = pictureOf(width, Math.max(20, side + below), `${words}. ${busyWords(full)}`), hosts = new Map();
  if (network) linksOf(svg, network, new Map(loads.map((load) => [load.name, load.model])), width / 2, side);
  full.forEach((load, k) => hosts.set(load.name, { x: 2 + (k % across) * (wide + gap), y: side + 2 + Math.floor(k / across) * (tall + gap), w: wide, h: tall }));
  for (const [from, to] of joined.filter((pair) => pair[0] !== pair[1] && pair.every((name) => hosts.has(name)))) {
    const [a, b] = [hosts.get(from), hosts.get(to)], [x, y] = [(a.x + b.x + wide) / 2, (a.y + b.y + tall) / 2], turn = Math.atan2(b.y - a.y, b.x - a.x) * 180 / Math.PI;
    svg.append("path").attr("d", d3.line()([[a.x + wide / 2, a.y + tall / 2], [b.x + wide / 2, b.y + tall / 2]])).attr("stroke", "var(--grey)").attr("stroke-width", 3);
    svg.append("path").attr("d", "M-7,-7L7,0L-7,7Z").attr("transform", `translate(${x},${y})rotate(${turn})`).attr("fill", "var(--grey)");
  }
  for (const load of full) drawBox(svg, { ...hosts.get(load.name), title: () => load.name }, {}, [{ ...load, name: "load" }], ["load"]);
  return svg.node();
}
function linksOf(svg, { title, prefix, places, links }, busy, middle, side) {
  const xs = d3.extent(places, (p) => p[0]), ys = d3.extent(places, (p) => p[1]), span = Math.max(xs[1] - xs[0], ys[1] - ys[0]) || 1, size = side - 66;
  const spot = ([x, y]) => [middle + ((x - (xs[0] + xs[1]) / 2) / span) * size, 40 + size / 2 - ((y - (ys[0] + ys[1]) / 2) / span) * size];
  fitted(svg, title, Math.max(4, middle - side / 2), 16, side).attr("font-weight", 600);
  for (const [from, to] of links) {
    const [a, b] = [spot(places[from]), spot(places[to])], load = busy.get(`${prefix}${from}->${to}`), far = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const [dx, dy] = [(-3 * (b[1] - a[1])) / far, (3 * (b[0] - a[0])) / far];  // the two ways of a link side by side
    svg.append("path").attr("d", d3.line()([[a[0] + dx, a[1] + dy], [b[0] + dx, b[1] + dy]])).attr("stroke", load === undefined ? "var(--grey)" : heat(load)).attr("stroke-width", 1.5 + 5 * Math.min(load ?? 0, 1))
      .append("title").text(`${from} to ${to}${load === undefined ? "" : `: ${percent(load)}`}`);
  }
  places.forEach((place, k) => {
    const [x, y] = spot(place), radius = places.length > 40 ? 5 : 10;
    svg.append("circle").attr("cx", x).attr("cy", y).attr("r", radius).attr("fill", "var(--paper)").attr("stroke", "var(--grey)").attr("stroke-width", 2);
    if (radius > 5) svg.append("text").attr("x", x).attr("y", y + 3.5).attr("text-anchor", "middle").attr("font-size", 10).attr("fill", "currentColor").text(k);
  });
}
