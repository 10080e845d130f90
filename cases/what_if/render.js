// How a notebook asks: by messages to its kernel.
function render({ model, el }) {
  const shadow = el.attachShadow({ mode: "open" }), host = document.createElement("div"), waiting = new Map();
  const style = document.createElement("style");
  style.textContent = model.get("style");
  host.className = "what-if";
  shadow.append(style, host);
  let next = 0;
  const hear = (message) => { waiting.get(message.id)?.(message.answer); waiting.delete(message.id); };
  model.on("msg:custom", hear);
  whatIf(host, (name, values) => new Promise((done) => {
    waiting.set(next, done);
    model.send({ id: next, name, arguments: values });
    next += 1;
  }));
  return () => model.off("msg:custom", hear);
}
export default { render };
