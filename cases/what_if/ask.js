// How the page of the server asks: at its own address.
whatIf(document.getElementById("what-if"), async (name, values) => {
  const headers = { "Content-Type": "application/json" }, body = JSON.stringify({ name, arguments: values });
  return (await fetch("call", { method: "POST", headers, body })).json();
});
