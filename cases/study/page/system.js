// The design shown, drawn, with how busy its parts are.
function loadsOf(row) {
  const k = simulatedPlace(row), first = column("bottleneck")[row];
  return state.work.loads.map((name) => ({ name, model: column(`load: ${name}`)[row], simulated: k < 0 ? null : state.work.simulation[`load: ${name}`]?.[k] ?? null, first: name === first }));
}
function drawSystem() {
  const host = $("system"), row = state.row;
  if (row === null) { host.replaceChildren(); return; }
  const loads = loadsOf(row), built = { ...state.work.system };
  for (const field of state.work.fields) if (field.name in built) built[field.name] = column(field.name)[row];
  host.replaceChildren(processorPicture(widthOf(host), built, loads, `The system of design ${column("design")[row]}`));
  $("system-table").replaceChildren(folded("Busy fraction of the busiest member of each group",
    ["", "model", "simulated", ""], loads.map((load) => [load.name, percent(load.model), percent(load.simulated), load.first ? "fills up first" : ""])));
}
redraws.all.push(drawSystem);
redraws.row.push(drawSystem);
