/* The network as SVG, from the places that the layout engine computed. */

"use strict";

/**
 * Draw the network: one group per edge, then one per node, so that boxes cover the ends of edges.
 * Returns {svg, nodes, edges}, the groups in the order of the model.
 */
function drawNetwork(model) {
  const [width, height] = model.size;
  const edges = model.edges.map((edge) => drawEdge(model, edge));
  const nodes = model.nodes.map((node) => drawNode(model, node));
  const label = `Network of ${counted(model.nodes.length, "variable")} and ${counted(edges.length, "arrow")}`;
  const svg = make("svg:svg", {
    viewBox: `-12 -12 ${width + 24} ${height + 24}`, role: "application", "aria-label": label,
    "aria-describedby": "network-help",
  }, ...edges, ...nodes);
  return { svg, nodes, edges };
}

/** Draw a box with the node's name and, in its corner, the mark of its site. */
function drawNode(model, node) {
  const [x, y, width, height] = node.box;
  const first = y + height / 2 + 4.3 - 7 * (node.lines.length - 1);
  const lines = node.lines.map((line, i) =>
    make("svg:text", { x: x + width / 2, y: first + 14 * i, "text-anchor": "middle" }, line));
  const mark = markOf(model, node.site);
  const badge = mark && make("svg:g", { class: "mark" },
    make("svg:circle", { cx: x, cy: y, r: 8 }),
    make("svg:text", { x, y: y + 3.4, "text-anchor": "middle" }, mark));
  const tag = make("svg:text", { class: "tag", x: x + 2, y: y + height + 11 });
  return make("svg:g", {
    class: `node ${colourOf(model, node.site)}${node.index === model.target ? " is-target" : ""}`,
    role: "button", tabindex: -1, "aria-label": descriptionOf(model, node), "data-node": node.index,
  }, make("svg:rect", { x, y, width, height, rx: 6 }), ...lines, badge, tag);
}

/** Return what a screen reader says about a node. */
function descriptionOf(model, node) {
  const site = node.site ? `, at ${node.site}` : "";
  const target = node.index === model.target ? ", the target" : "";
  return `${shown(node.name)}${site}${target}; parents ${namesOf(model, node.parents)}; `
    + `children ${namesOf(model, node.children)}`;
}

/** Draw an edge: a wide line if it is strong, dashed if doubtful, without arrowhead if reversible. */
function drawEdge(model, edge) {
  const d = curve(edge);
  const [x, y] = edge.points[edge.points.length - 1];
  const [half, length] = [2.5 + edge.width, 6 + 2 * edge.width];
  const head = `M${x - half},${y - length} L${x + half},${y - length} L${x},${y} z`;
  return make("svg:g", { class: `edge${edge.doubtful ? " is-doubtful" : ""}`, "aria-hidden": "true" },
    make("svg:title", {}, edge.title),
    make("svg:path", { class: "reach", d }),
    make("svg:path", { class: "line", d, style: `--width:${edge.width}px` }),
    make("svg:path", { class: "core", d }),
    edge.reversible ? "" : make("svg:path", { class: "head", d: head }));
}

/** Return the path of an edge: straight lines through layers, joined by curves between them. */
function curve(edge) {
  const points = edge.points.map(([x, y]) => [x, y]);
  if (!edge.reversible) points[points.length - 1][1] -= 4; // a wide line would cover the arrow's tip
  let path = `M${points[0][0]},${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const middle = (y0 + y1) / 2;
    path += i % 2 === 0 && Math.abs(x1 - x0) > 0.5
      ? ` C${x0},${middle} ${x1},${middle} ${x1},${y1}` : ` L${x1},${y1}`;
  }
  return path;
}

/** Return the legend: sites, lines and, for the selected node, how its neighbours are shown. */
function drawLegend(model) {
  const items = model.sites.map((site) => legendItem(siteSample(model, site), site));
  const edges = model.edges;
  if (edges.some((edge) => edge.strength !== null)) {
    items.push(legendItem(lineSample("", 2.6), "strength 100%: all samples have the arrow"));
    items.push(legendItem(lineSample("", 1.1), "strength 50%: half of the samples have it"));
  }
  if (edges.some((edge) => edge.doubtful)) {
    items.push(legendItem(lineSample("is-doubtful", 1.8), "doubtful: small strength, or little gain"));
  }
  if (edges.some((edge) => edge.reversible)) {
    items.push(legendItem(lineSample("", 1.6, true), "the data do not show the direction"));
  }
  if (edges.length) {
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
      make("svg:path", { class: "line", d, style: `--width:${width}px` }),
      make("svg:path", { class: "core", d }),
      isReversible ? "" : make("svg:path", { class: "head", d: head })));
}
