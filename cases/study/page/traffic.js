// The traffic: its rate over time beside what the design shown sustains, its dispersion, its packet sizes.
function drawTraffic() {
  const traffic = state.work.traffic, host = $("traffic");
  $("traffic-words").textContent = `${traffic.words}; packets of ${show(traffic.mean_bytes)} bytes on average`;
  const places = ["rate", "dispersion", "sizes"].filter((name) => name === "sizes" || traffic.window_gbps).map((name) => h("div", { class: "figure", id: `traffic-${name}` }));
  host.replaceChildren(...places);
  if (traffic.window_gbps) { drawRate(traffic); drawDispersion(traffic); trafficTable(traffic); } else $("traffic-table").replaceChildren();
  const sizes = traffic.size_bytes.map((bytes, k) => ({ bytes, share: 100 * traffic.size_share[k] }));
  plotInto($("traffic-sizes"), `Packet sizes from ${show(sizes[0].bytes)} to ${show(sizes.at(-1).bytes)} bytes`, { height: 230, marginLeft: 46, marginBottom: 40,
    x: { label: "packet size [bytes]", labelAnchor: "center" }, y: { label: "packets up to it [%]", domain: [0, 100], grid: true },
    marks: [Plot.line([{ bytes: 0, share: 0 }, ...sizes], { x: "bytes", y: "share", curve: "step-after", stroke: "var(--blue)", strokeWidth: 2 }), Plot.ruleY([0])] });
}
function trafficTable(traffic) {
  const rows = traffic.scale_gaps.map((gaps, k) => [show(Math.round(gaps)), traffic.packet_dispersion[k], traffic.byte_dispersion[k]]);
  $("traffic-table").replaceChildren(folded("Rate in each window [Gb/s]", ["window", "rate"], traffic.window_gbps.map((rate, k) => [k + 1, rate])),
    folded("Index of dispersion", ["scale [mean gaps]", "packets", "bytes"], rows));
}
function drawRate(traffic) {
  const windows = traffic.window_gbps.map((rate, k) => ({ from: k * traffic.window_us, to: (k + 1) * traffic.window_us, rate }));
  const name = "saturation_data_rate", row = state.row, sustains = row !== null && name in state.work.metricOf ? column(name)[row] : null;
  const above = windows.filter((w) => sustains !== null && w.rate > sustains).length;
  const words = `Offered in each window, the mean dashed` + (sustains === null ? "" : `; the design shown sustains ${shown(name, row)} Gb/s, ${above ? `less than ${above} of ${windows.length} windows offer` : "more than any window offers"}`);
  plotInto($("traffic-rate"), words, { height: 230, marginLeft: 46, marginBottom: 40, x: { label: "time [us]", labelAnchor: "center" }, y: { label: "rate [Gb/s]", grid: true, zero: true },
    marks: [Plot.rectY(windows, { x1: "from", x2: "to", y: "rate", fill: (w) => (sustains !== null && w.rate > sustains ? "var(--hot)" : "var(--blue)"), inset: 0.5, title: (w) => `${show(w.rate)} Gb/s` }),
      Plot.ruleY([traffic.offered_gbps], { stroke: "var(--ink)", strokeDasharray: "5,4" }),
      ...(sustains === null ? [] : [Plot.ruleY([sustains], { stroke: "var(--green)", strokeWidth: 2 }),
        Plot.text([sustains], { x: () => 0, y: (v) => v, text: () => "sustained", textAnchor: "start", dx: 4, dy: 10, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 4 })])] });
}
function drawDispersion(traffic) {
  const points = ["packet", "byte"].flatMap((what) => traffic.scale_gaps.map((gaps, k) => ({ gaps, what: `${what}s`, value: traffic[`${what}_dispersion`][k] }))).filter((p) => p.value > 0);
  const last = d3.greatest(points, (p) => p.value);
  if (!last) { $("traffic-dispersion").replaceChildren(h("p", {}, "Too few packets for an index of dispersion.")); return; }
  plotInto($("traffic-dispersion"), `Index of dispersion by time scale: up to ${show(last.value)} for ${last.what}; 1 for packets that come independently`, { height: 230, marginLeft: 46, marginBottom: 40, marginRight: 50,
    x: { type: "log", label: "time scale [mean gaps]", labelAnchor: "center", tickFormat: "~s" }, y: { type: "log", label: "index of dispersion", grid: true, tickFormat: "~g" },
    marks: [Plot.ruleY([1], { stroke: "var(--grey)", strokeDasharray: "5,4" }),
      Plot.line(points, { x: "gaps", y: "value", stroke: (p) => (p.what === "packets" ? "var(--blue)" : "var(--orange)"), z: "what", marker: true }),
      Plot.text(points, Plot.selectLast({ x: "gaps", y: "value", z: "what", text: "what", textAnchor: "start", dx: 8, fill: "var(--ink)" }))] });
}
redraws.all.push(drawTraffic);
redraws.row.push(() => { if (state.work.traffic.window_gbps) drawRate(state.work.traffic); });
