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
