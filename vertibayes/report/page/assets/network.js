/* The network as a view: select a node, see its neighbourhood, go along edges, zoom. */

"use strict";

const SCALES = [0.1, 3]; // smallest and largest
const NOTHING = "Click a variable: its table opens below the drawing.";
const READABLE = 0.75; // the scale from which the names are easy to read

/**
 * Fill the network's place on the page.
 * @param {Object} model as readModel returns it
 * @param {Element} place the element to fill
 * @param {function(number)} open called with a node whose table is to be shown
 */
function networkView(model, place, open) {
  const { svg, nodes, edges } = drawingOf(model, place);
  const frame = make("div", { class: "network-frame" }, svg);
  const status = make("p", { class: "network-status", role: "status" }, NOTHING);
  const zoom = zoomOf(model, frame, svg);
  const state = { node: null, ring: model.nodes.map((node) => node.index) };

  /** Select a node, or nothing; `ring` are the nodes that Left and Right then go through. */
  function select(index, ring = null, from = "") {
    state.node = index;
    state.ring = ring ?? ringOf(model, index);
    highlight(model, index, nodes, edges);
    status.textContent = index === null ? NOTHING : from + statusOf(model, index);
    nodes.forEach((node, i) => node.setAttribute("tabindex", i === (index ?? firstOf(model)) ? 0 : -1));
  }

  /** Select a node, bring it into sight and focus it. */
  function go(index, ring, from) {
    select(index, ring, from);
    zoom.reveal(model.nodes[index]);
    nodes[index].focus({ preventScroll: true });
  }

  /** Mark what is set, {index: text}, and the changes of other nodes, as What if lists them. */
  function mark(known, changes) {
    svg.classList.toggle("has-evidence", known.size > 0);
    const changed = new Map(changes.map((change) => [change.index, change]));
    nodes.forEach((group, i) => {
      const says = known.has(i) ? `set to ${known.get(i)}` : changed.has(i) ? saidOf(model, changed.get(i)) : "";
      const by = changed.get(i)?.by ?? 0;
      group.classList.toggle("is-known", known.has(i));
      group.style.setProperty("--by", by.toFixed(3));
      group.querySelector(".moved").textContent = known.has(i) ? "set" : by ? `±${Math.round(100 * by)}` : "";
      group.setAttribute("aria-label", descriptionOf(model, model.nodes[i]) + (says && `; ${says}`));
      group.querySelector("title").textContent = `${shown(model.nodes[i].name)}${says && `: ${says}`}`;
    });
  }

  const moves = movesOf(model, state, go);
  const keys = {
    ...moves,
    Enter: () => state.node !== null && open(state.node),
    " ": () => state.node !== null && open(state.node),
    Escape: () => select(null),
    "+": () => zoom.by(1.25), "=": () => zoom.by(1.25), "-": () => zoom.by(0.8), 0: zoom.fit,
  };
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  svg.addEventListener("focusin", (event) => {
    const index = indexOf(event.target);
    if (index !== null && index !== state.node) select(index);
  });
  svg.addEventListener("click", (event) => {
    const index = indexOf(event.target);
    if (frame.classList.contains("was-dragged")) return;
    select(index);
    if (index !== null) open(index, false);
  });
  place.classList.remove("drawing"); // the frame of the static drawing
  place.replaceChildren(
    toolsOf(model, zoom, (index) => { zoom.readable(); go(index); }, () => select(null)),
    frame, status, helpOf());
  select(null);
  zoom.fit();
  return { select, go, mark };
}

/** Return the node that the keyboard reaches first: the target, if there is one. */
function firstOf(model) {
  return model.target ?? 0;
}

/** Return the number of the node whose group holds an element, or null. */
function indexOf(element) {
  const group = element.closest("[data-node]");
  return group ? Number(group.getAttribute("data-node")) : null;
}

/** Return the nodes that share a parent with a node, from left to right; roots share none. */
function ringOf(model, index) {
  if (index === null) return model.nodes.map((node) => node.index);
  const parents = new Set(model.nodes[index].parents);
  const kin = model.nodes.filter((node) => node.index === index
    || (parents.size ? node.parents.some((parent) => parents.has(parent)) : !node.parents.length));
  return fromLeft(model, kin.map((node) => node.index));
}

function fromLeft(model, indices) {
  return [...indices].sort((a, b) => model.nodes[a].x - model.nodes[b].x || a - b);
}

/** Return what the arrow keys do: up to a parent, down to a child, sideways through the ring. */
function movesOf(model, state, go) {
  const along = (kind) => () => {
    const start = model.nodes[state.node ?? firstOf(model)];
    const ring = fromLeft(model, kind === "parent" ? start.parents : start.children);
    if (ring.length) step(ring, 0, `${kind} 1 of ${ring.length} of ${shown(start.name)}: `);
  };
  const aside = (by) => () => {
    const { ring } = state;
    const at = ring.indexOf(state.node ?? firstOf(model));
    step(ring, (at + by + ring.length) % ring.length, "");
  };
  const step = (ring, at, from) => go(ring[at], ring, from && from[0].toUpperCase() + from.slice(1));
  const all = model.nodes.map((node) => node.index);
  return {
    ArrowUp: along("parent"), ArrowDown: along("child"), ArrowLeft: aside(-1), ArrowRight: aside(1),
    Home: () => step(all, 0, ""), End: () => step(all, all.length - 1, ""),
  };
}

/** Mark a node's neighbourhood with classes and words, and fade everything else. */
function highlight(model, index, nodes, edges) {
  const others = new Set(index === null ? [] : coparents(model, index));
  nodes.forEach((group, i) => {
    const word = index === null ? "" : wordOf(model, index, i, others);
    group.querySelector(".tag").textContent = word;
    group.classList.toggle("is-selected", i === index);
    group.classList.toggle("is-faded", index !== null && i !== index && !word);
    group.setAttribute("aria-pressed", i === index);
  });
  edges.forEach((group, i) => {
    const [parent, child] = model.edges[i];
    const near = parent === index || child === index;
    const beside = others.has(parent) && model.nodes[index].children.includes(child);
    group.classList.toggle("is-into", child === index && index !== null);
    group.classList.toggle("is-out", parent === index && index !== null);
    group.classList.toggle("is-faded", index !== null && !near && !beside);
  });
}

function wordOf(model, index, other, coparentsOfIt) {
  if (model.nodes[index].parents.includes(other)) return "parent";
  if (model.nodes[index].children.includes(other)) return "child";
  return coparentsOfIt.has(other) ? "child's parent" : "";
}

/** Return the sentence about the selected node. */
function statusOf(model, index) {
  const others = coparents(model, index);
  const also = others.length ? `; its children's other parents: ${namesOf(model, others)}` : "";
  return `${descriptionOf(model, model.nodes[index])}${also}.`;
}

/** Return the row of tools: search, zoom and the end of a selection. */
function toolsOf(model, zoom, found, clear) {
  const button = (text, label, click) =>
    make("button", { type: "button", "aria-label": label, title: label, click }, text);
  return make("div", { class: "network-tools" },
    searchOf(model, found),
    make("span", { class: "network-buttons", role: "group", "aria-label": "Zoom" },
      button("+", "Zoom in", () => zoom.by(1.25)), button("−", "Zoom out", () => zoom.by(0.8)),
      button("Fit", "Show the whole network", zoom.fit)),
    make("button", { type: "button", click: clear }, "Clear selection"));
}

function helpOf() {
  return make("details", { class: "hint" }, make("summary", {}, "How to use the drawing"), make("p", { id: "network-help" },
    "A parent is where an arrow starts, and a child where it ends. With the keyboard: Tab goes to a "
    + "variable, arrow up to a parent, arrow down to a child, left and right to the other parents, "
    + "children or siblings; Enter opens the table, Escape ends the selection, + and − zoom, and 0 "
    + "shows everything."));
}
