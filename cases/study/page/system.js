// The processor drawn: engines, networks, slices, channels and pointer memory with how busy each is.
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

function loadsOf(row) {
  const k = simulatedPlace(row), first = column("bottleneck")[row];
  return state.work.loads.map((name) => ({ name, model: column(`load: ${name}`)[row], simulated: k < 0 ? null : state.work.simulation[`load: ${name}`]?.[k] ?? null, first: name === first }));
}
function drawSystem() {
  const host = $("system"), row = state.row;
  if (row === null) { host.replaceChildren(); return; }
  const width = widthOf(host), narrow = width < 560, height = narrow ? 640 : 430, loads = loadsOf(row);
  const built = { ...state.work.system };
  for (const field of state.work.fields) if (field.name in built) built[field.name] = column(field.name)[row];
  const known = PARTS.flatMap((part) => part.loads), spare = loads.filter((load) => !known.includes(load.name)).map((load) => load.name);
  const svg = d3.create("svg").attr("width", width).attr("height", height).attr("role", "img");
  const box = Object.fromEntries(PARTS.map((part) => {
    const [x, y, w, t] = part[narrow ? "narrow" : "wide"];
    return [part.id, { ...part, x: x * (width - 4) + 2, y: y * (height - 4) + 2, w: w * (width - 4), h: t * (height - 4) }];
  }));
  const middle = (b) => [b.x + b.w / 2, b.y + b.h / 2];
  for (const [a, b] of JOINED) svg.append("path").attr("d", d3.line()([middle(box[a]), middle(box[b])])).attr("stroke", "var(--grey)").attr("stroke-width", 3);
  for (const part of Object.values(box)) drawBox(svg, part, built, loads, part.id === "channels" ? [...part.loads, ...spare] : part.loads);
  drawNetwork(svg, box.network, built);
  const said = loads.map((load) => `${load.name} ${percent(load.model)}`).join(", ");
  svg.attr("aria-label", `The system of design ${column("design")[row]}: ${PARTS.map((part) => part.title(built)).join(", ")}. Busy fractions by the model: ${said}`);
  host.replaceChildren(svg.node());
  $("system-table").replaceChildren(folded("Busy fraction of the busiest member of each group",
    ["", "model", "simulated", ""], loads.map((load) => [load.name, percent(load.model), percent(load.simulated), load.first ? "fills up first" : ""])));
}
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
redraws.all.push(drawSystem);
redraws.row.push(drawSystem);
