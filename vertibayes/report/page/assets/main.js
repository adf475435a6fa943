/* Join the parts: the network, the table of a node, and What if. */

"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const place = (id) => document.getElementById(id);
  const model = readModel(place("model").textContent);
  if (!model.nodes.length || !place("network-view")) return;
  const network = networkView(model, place("network-view"), (node, focused) => {
    tables.open(node, focused);
    whatIf.near(node);
  });
  const tables = tablesView(model, place("cpt-panel"), (node) => whatIf.ask(node), (node) => network.go(node));
  const whatIf = whatIfView(model, place("what-if"), (node) => network.go(node),
    (node) => tables.open(node), network.mark);
  document.documentElement.classList.add("has-scripts");
});
