"""What the page of a study does in the browser: three callbacks in JavaScript."""

from __future__ import annotations

FILTER = """
let chosen = source.selected.indices;
if (cb_obj.geometry.type == 'point') {  // a tap shows one design: it does not narrow the table
  if (chosen.every(row => view.filter.indices.includes(row))) return;
  chosen = [];
}
view.filter.indices = chosen.length ? chosen.slice().sort((a, b) => a - b) : all;
count.text = chosen.length ? `<b>${chosen.length} of ${all.length} designs</b> selected in the plot`
                           : `<b>all ${all.length} designs</b>`;
"""
"""After a selection in a plot: the table lists the designs that were selected."""

RESET = """
source.selected.indices = [];
view.filter.indices = all;
count.text = `<b>all ${all.length} designs</b>`;
"""
"""After a reset of a plot: the table lists all designs."""

DETAIL = """
const row = source.selected.indices[0];
if (row === undefined) return;
const data = source.data, bars = {};
for (const name of parts) {
  const values = [data['simulated ' + name][row], data[name][row]];
  bars[name] = values.map(value => Number.isFinite(value) ? value : 0);
}
detail.data = {answer: ['simulated', 'analytic'], ...bars};
const point = fields.map(name => `${name.replaceAll('_', ' ')} ${data[name][row]}`).join(', ');
const load = (100 * data.bottleneck_load[row]).toFixed(0);
const state = data.stable[row] ? '' : `, saturated: ${data.bottleneck[row]} at ${load} %`;
const simulated = !data.simulated[row] ? ' (not simulated)'
  : data.simulated_stable[row] ? '' : ', saturated in the simulation';
plot.title.text = `design ${data.design[row]}: ${point}${state}${simulated}`;
"""
"""After any change of the selection: where the time of the first selected design goes."""
