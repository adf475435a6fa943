/* The network as SVG: the drawing of the page, to which what the mouse and the keyboard need is added. */

"use strict";

/** Return {svg, nodes, edges} of the drawing in a place, the groups in the order of the model. */
function drawingOf(model, place) {
  const svg = place.querySelector("svg");
  const [nodes, edges] = ["node", "edge"].map((kind) => [...svg.querySelectorAll(`:scope > .${kind}`)]);
  const label = `Network of ${counted(nodes.length, "variable")} and ${counted(edges.length, "arrow")}`;
  const about = { role: "application", "aria-label": label, "aria-describedby": "network-help" };
  Object.entries(about).forEach(([name, value]) => svg.setAttribute(name, value));
  nodes.forEach((group, i) => addToNode(model, group, model.nodes[i]));
  edges.forEach(addToEdge);
  return { svg, nodes, edges };
}

/** Add to a box what a screen reader says, and the place of a word below it. */
function addToNode(model, group, node) {
  const box = group.querySelector("rect");
  [node.x, node.y, node.width, node.height] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
  const about = { role: "button", tabindex: -1, "aria-label": descriptionOf(model, node) };
  Object.entries(about).forEach(([name, value]) => group.setAttribute(name, value));
  group.classList.toggle("is-target", node.index === model.target);
  group.append(make("svg:text", { class: "tag", x: node.x + 2, y: node.y + node.height + 11 }),
    make("svg:text", { class: "moved", x: node.x + node.width, y: node.y - 3, "text-anchor": "end" }));
}

/** Return what a screen reader says about a node. */
function descriptionOf(model, node) {
  const site = node.site ? `, at ${node.site}` : "";
  const target = node.index === model.target ? ", the target" : "";
  return `${shown(node.name)}${site}${target}; parents ${namesOf(model, node.parents)}; `
    + `children ${namesOf(model, node.children)}`;
}

/** Add to an edge a wide line that the mouse can hit, and a thin one for a selected node's parents. */
function addToEdge(group) {
  const line = group.querySelector(".line");
  const [reach, core] = ["reach", "core"].map((kind) => make("svg:path", { class: kind, d: line.getAttribute("d") }));
  group.setAttribute("aria-hidden", "true");
  line.style.setProperty("--width", `${line.getAttribute("stroke-width") ?? 1}px`);
  line.before(reach);
  line.after(core);
}
