// The words of the page, its controls, and the first drawing.
function drawWords() {
  const { verdict, unsettled, details } = state.work;
  $("verdict").replaceChildren(...sectionOf(verdict, "h2"));
  $("verdict").classList.toggle("none", state.work.rows.chosen === null);
  $("unsettled").replaceChildren(...sectionOf(unsettled, "h2"));
  $("details").replaceChildren(...details.map((one) => h("details", {}, h("summary", {}, one.title), ...sectionOf(one, "h3").slice(1))));
  $("effort").textContent = `Simulated values: ${DATA.effort}. Every other value is from formulas.`;
}
function start(work) {
  state.work = work;
  state.filters.clear();
  Object.assign(state, { row: work.rows.chosen ?? work.rows.knee, sort: null, page: 0 });
  redraw("all");
}
function controls() {
  $("workloads").append(...DATA.workloads.map((work, k) => h("label", {}, h("input", { type: "radio", name: "workload", checked: k === 0, onchange: () => start(work) }), ` ${work.name}`)));
  $("workloads").hidden = DATA.workloads.length < 2;
  for (const [id, key] of [["saturated", "saturated"], ["only-front", "front"], ["model-too", "modelToo"]]) {
    $(id).addEventListener("change", () => { state[key] = $(id).checked; redraw("filters"); });
  }
  document.querySelectorAll(".clear").forEach((button) => button.addEventListener("click", () => { state.filters.clear(); setFilters({}); }));
  $("before").addEventListener("click", () => { state.page -= 1; drawTable(); });
  $("after").addEventListener("click", () => { state.page += 1; drawTable(); });
  $("chosen-number").addEventListener("change", () => choose(state.work.rowOf.get(Number($("chosen-number").value))));
  $("chosen-recommended").addEventListener("click", () => choose(state.work.rows.chosen));
  $("sensitivity-metric").addEventListener("change", () => { state.sensitivity = $("sensitivity-metric").value; drawSensitivity(); });
  $("errors-metric").addEventListener("change", () => { state.error = $("errors-metric").value; drawErrors(); });
}
redraws.all.push(drawWords);
controls();
start(DATA.workloads[0]);
let width = document.documentElement.clientWidth, waiting = null;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => redraw("filters", redraw("row")), 150);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => $("parallel").again());
document.documentElement.dataset.ready = "yes";
