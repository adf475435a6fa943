/* The network as SVG: the drawing of the page, to which what the mouse and the keyboard need is added. */

"use strict";

/** Return {svg, nodes, edges} of the drawing in a place, the groups in the order of the model. */
function drawingOf(model, place) {
  const svg = place.querySelector("svg");
  const [nodes, edges] = ["node", "edge"].map((kind) => [...svg.querySelectorAll(`:scope > .${kind}`)]);
  svg.querySelector(".legend").remove(); // the page has one beside the drawing
  const label = `Network of ${counted(nodes.length, "variable")} and ${counted(edges.length, "arrow")}`;
  const about = { viewBox: `0 0 ${model.size.join(" ")}`, role: "application", "aria-label": label, "aria-describedby": "network-help" };
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
  group.querySelector("title").remove(); // the label has the name
  group.append(make("svg:text", { class: "tag", x: node.x + 2, y: node.y + node.height + 11 }));
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

/** Return the legend: sites, lines and, for the selected node, how its neighbours are shown. */
function legendOf(model, svg) {
  const items = model.sites.map((site) => legendItem(siteSample(model, site), site));
  const has = (selector) => svg.querySelector(selector) !== null;
  if (model.strengths) {
    items.push(legendItem(lineSample("", 2.6), "strength 100%: all samples have the arrow"));
    items.push(legendItem(lineSample("", 1.1), "strength 50%: half of the samples have it"));
  }
  if (has(".line[stroke-dasharray]")) {
    items.push(legendItem(lineSample("is-doubtful", 1.8), "doubtful: small strength, or little gain"));
  }
  if (has(".edge:not(:has(.head))")) {
    items.push(legendItem(lineSample("", 1.6, true), "the data do not show the direction"));
  }
  if (has(".edge")) {
    items.push(legendItem(lineSample("is-into", 1.6), "from a parent of the selected variable"));
    items.push(legendItem(lineSample("is-out", 1.6), "to a child of the selected variable"));
  }
  return make("ul", { class: "network-legend", "aria-label": "Legend" }, ...items);
}

function legendItem(sample, text) {
  return make("li", {}, sample, text);
}

function siteSample(model, site) {
  return make("svg:svg", { width: 42, height: 20, "aria-hidden": "true" },
    make("svg:g", { class: `node ${colourOf(model, site)}` },
      make("svg:g", { class: "mark" }, make("svg:circle", { cx: 9, cy: 10, r: 8 }),
        make("svg:text", { x: 9, y: 13.4, "text-anchor": "middle" }, markOf(model, site))),
      make("svg:rect", { x: 20, y: 3.5, width: 20, height: 13, rx: 3 })));
}

function lineSample(kind, width, isReversible = false) {
  const d = `M1,10 L${isReversible ? 36 : 28},10`;
  const head = `M26,${7.5 - width} L26,${12.5 + width} L36,10 z`;
  return make("svg:svg", { width: 38, height: 20, "aria-hidden": "true" },
    make("svg:g", { class: `edge ${kind}` },
      make("svg:path", { class: "line", d, "stroke-width": width, style: `--width:${width}px` }),
      make("svg:path", { class: "core", d }),
      isReversible ? "" : make("svg:path", { class: "head", d: head })));
}
