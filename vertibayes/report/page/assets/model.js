/* The model that the page carries, and the words and numbers that the panels share.
 *
 * Nodes refer to each other by number. Names and states are data: they are looked up in Maps, never
 * as properties of objects, so that a node may be called "constructor" or have no name at all. */

"use strict";

/**
 * Return the model of the embedded JSON, with parents and children as numbers.
 * @param {string} text the JSON that embedded.py wrote
 */
function readModel(text) {
  const model = JSON.parse(text);
  const numberOf = new Map(model.nodes.map((node, i) => [node.name, i]));
  model.nodes.forEach((node, i) => {
    node.index = i;
    node.parents = node.parents.map((name) => numberOf.get(name));
    node.children = [];
  });
  for (const node of model.nodes) {
    for (const parent of node.parents) model.nodes[parent].children.push(node.index);
  }
  model.numberOf = numberOf;
  model.target = numberOf.get(model.target) ?? null;
  return model;
}

/** Return the other parents of a node's children. */
function coparents(model, index) {
  const near = new Set([index, ...model.nodes[index].parents, ...model.nodes[index].children]);
  const others = new Set();
  for (const child of model.nodes[index].children) {
    for (const parent of model.nodes[child].parents) if (!near.has(parent)) others.add(parent);
  }
  return [...others];
}

/** Return how a name is shown; an empty text would be invisible. */
function shown(name) {
  return name.trim() === "" ? "(empty)" : name;
}

/** Return the names of nodes in one text. */
function namesOf(model, indices) {
  return indices.length ? indices.map((i) => shown(model.nodes[i].name)).join(", ") : "none";
}

/** Return a share in percent; neither a small share nor a large one is rounded to certainty. */
function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1%";
  if (share < 1 && share > 0.9995) return "> 99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

/** Return a number with four significant digits, or as an integer with its thousands apart. */
function figure(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}

/** Return a count with its noun. */
function counted(count, noun) {
  return `${figure(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Return a probability in percent; if it is small, also as one in how many records. */
function chance(logarithm) {
  const probability = Math.exp(logarithm);
  if (probability >= 0.01) return percent(probability);
  if (probability < 1e-9) return `10^${(logarithm / Math.LN10).toFixed(1)}`;
  const one = Number((1 / probability).toPrecision(2)).toLocaleString("en");
  return `${percent(probability)} (about 1 in ${one} records)`;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. Texts become text nodes: nothing of the model is ever read as HTML.
 * @param {string} tag the name of an element; of SVG if it begins with "svg:"
 * @param {Object} attributes "class", "aria-label" and so on; functions are event listeners
 * @param {...(Node|string)} children what it holds
 */
function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS(SVG, tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Make a select element: one option per text, with its place as value. */
function makeSelect(attributes, texts) {
  const options = texts.map((text, i) => make("option", { value: i }, text));
  return make("select", attributes, ...options);
}
