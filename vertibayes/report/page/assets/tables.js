/* The table of a node: its probabilities, with the counts from which they were computed. */

"use strict";

const ROWS = 25; // of a table at a time

/**
 * Fill the place of the tables.
 * @param {Object} model as readModel returns it
 * @param {Element} place the element to fill
 * @param {function(number)} ask called with a node for which the reader wants to set a state
 * @param {function(number)} leave called with the node whose table the reader leaves
 */
function tablesView(model, place, ask, leave) {
  /** Show the table of a node; `focused` says whether the keyboard goes there too. */
  function open(index, focused = true) {
    const node = model.nodes[index];
    const title = heading(`Probabilities of ${shown(node.name)}`);
    title.dataset.node = index;
    place.replaceChildren(title, make("div", { class: "table-tools" },
      make("button", { type: "button", click: () => ask(index) }, "Set it in What if"),
      make("button", { type: "button", click: () => leave(index) }, "Back to the network")),
    ...contentOf(model, node));
    if (focused) title.focus();
  }

  place.addEventListener("keydown", (event) => {
    const title = place.querySelector("h3[data-node]");
    if (event.key === "Escape" && title) leave(Number(title.dataset.node));
  });
  return { open };
}

function heading(text) {
  return make("h3", { tabindex: -1 }, text);
}

/** Return the sentences and the table of a node. */
function contentOf(model, node) {
  if (node.number) return [momentsOf(model, node)];
  if (!node.cpt) {
    return [make("p", {}, "This table is too large for the page. The file model.json has it.")];
  }
  return [make("p", {}, sentenceOf(model, node)), ...notesOf(model, node), ...pagedTable(model, node)];
}

/** Return the sentence that says how the table is read. */
function sentenceOf(model, node) {
  const name = shown(node.name);
  const counts = node.counts ? ` ${model.counts.says}` : "";
  return node.parents.length
    ? `Each row has the probabilities of ${name} for one combination of ${namesOf(model, node.parents)}.${counts}`
    : `${name} has no parents.${counts}`;
}

/** Return what a reader must know of the numbers: states of missing values, cuts, empty rows. */
function notesOf(model, node) {
  const notes = [];
  if (node.missing_state) {
    notes.push(`The state “${node.states[node.states.length - 1]}” stands for records in which the value is missing.`);
  }
  if (isCut(model, node) && node.counts.flat().includes(0)) {
    notes.push(`Grey cells marked “< ${model.counts.fewest}” were not released: they have fewer than `
      + `${model.counts.fewest} records, or none.`);
  }
  if (node.unseen) {
    const have = node.unseen === 1 ? "combination has" : "combinations have";
    notes.push(`${figure(node.unseen)} of ${counted(node.cpt.length, "row")}: this ${have} no record to learn `
      + "from, and all states are equally likely there.");
  }
  return notes.map((text) => make("p", { class: "hint" }, text));
}

/** Whether the release rule cut small counts of a node's table. */
function isCut(model, node) {
  return node.counts !== null && model.counts.kind === "cut";
}

/** Whether a row has no record; noise and cuts hide that. */
function isUnseen(model, node, row) {
  const isKnown = node.counts && ["exact", "complete"].includes(model.counts.kind);
  return isKnown && node.counts[row].every((count) => count === 0);
}

/** Return the filters, the table and the buttons for its pages. */
function pagedTable(model, node) {
  const body = make("tbody");
  const where = make("p", { class: "hint", role: "status" });
  const chosen = node.parents.map(() => null);
  let first = 0;

  function show() {
    const rows = node.cpt.map((_, i) => i).filter((row) => fits(model, node, row, chosen));
    first = Math.max(0, Math.min(first, rows.length - 1));
    const shownRows = rows.slice(first, first + ROWS);
    body.replaceChildren(...shownRows.map((row) => rowOf(model, node, row)));
    where.textContent = `Rows ${figure(first + 1)} to ${figure(first + shownRows.length)} of ${figure(rows.length)}`;
    before.disabled = first === 0;
    after.disabled = first + ROWS >= rows.length;
  }

  const turn = (by) => () => { first += by * ROWS; show(); };
  const before = make("button", { type: "button", click: turn(-1) }, "Previous rows");
  const after = make("button", { type: "button", click: turn(1) }, "Next rows");
  const filters = node.parents.map((parent, i) => filterOf(model, parent, (state) => {
    chosen[i] = state;
    first = 0;
    show();
  }));
  show();
  const table = make("table", { class: "cpt" }, captionOf(node), headOf(model, node), body);
  const region = make("div", {
    class: "wide", role: "region", tabindex: 0, "aria-label": `Table of ${shown(node.name)}`,
  }, table);
  if (node.cpt.length <= ROWS) return [region];
  return [make("div", { class: "filters" }, ...filters), region,
    make("div", { class: "pages" }, before, after, where)];
}

function filterOf(model, parent, chosen) {
  const node = model.nodes[parent];
  const select = makeSelect({ id: `filter-${parent}` }, ["any", ...node.states.map(shown)]);
  select.addEventListener("change", () => chosen(select.value === "0" ? null : select.value - 1));
  return make("span", { class: "filter" }, make("label", { for: select.id }, shown(node.name)), " ", select);
}

/** Return the states of the parents in a row; the last parent's state changes fastest. */
function statesOf(model, node, row) {
  const states = [];
  for (const parent of [...node.parents].reverse()) {
    const size = model.nodes[parent].states.length;
    states.unshift(row % size);
    row = Math.floor(row / size);
  }
  return states;
}

function fits(model, node, row, chosen) {
  return statesOf(model, node, row).every((state, i) => chosen[i] === null || chosen[i] === state);
}

function captionOf(node) {
  const text = `Probabilities of ${shown(node.name)}${node.counts ? ", and counts" : ""}`;
  return make("caption", {}, text);
}

function headOf(model, node) {
  const parents = node.parents.map((parent) =>
    make("th", { scope: "col", rowspan: 2, class: "parent" }, shown(model.nodes[parent].name)));
  if (!parents.length) parents.push(make("td", { rowspan: 2 }));
  const own = make("th", { scope: "colgroup", colspan: node.states.length }, shown(node.name));
  const states = node.states.map((state) => make("th", { scope: "col" }, shown(state)));
  return make("thead", {}, make("tr", {}, ...parents, own), make("tr", {}, ...states));
}

function rowOf(model, node, row) {
  const heads = statesOf(model, node, row).map((state, i) =>
    make("th", { scope: "row" }, shown(model.nodes[node.parents[i]].states[state])));
  if (!heads.length) heads.push(make("th", { scope: "row" }, "all records"));
  const counts = node.counts ? node.counts[row] : null;
  const isEmpty = isUnseen(model, node, row);
  if (isEmpty) heads[heads.length - 1].append(make("span", { class: "unseen" }, "no record"));
  const cells = node.cpt[row].map((share, state) =>
    cellOf(share, counts && counts[state], isCut(model, node) && model.counts.fewest));
  return make("tr", { class: isEmpty ? "is-unseen" : "" }, ...heads, ...cells);
}

/** Return a cell: a probability, and the count beside it or the mark that the rule cut it. */
function cellOf(share, count, fewest) {
  const isCutHere = fewest && count === 0;
  const probability = make("span", { class: "share" }, percent(share));
  if (count === null) return make("td", {}, probability);
  const text = isCutHere ? `< ${fewest}` : figure(Math.round(10 * count) / 10);
  return make("td", { class: isCutHere ? "is-cut" : "" }, probability, " ",
    make("span", { class: "count" }, text));
}

/** Return the table of a numeric feature: mean and variance in each class. */
function momentsOf(model, node) {
  const { mean, variance, bounds } = node.number;
  const target = model.nodes[model.target];
  const heads = [shown(target.name), "mean", "variance", "standard deviation"];
  const rows = target.states.map((state, i) => make("tr", {}, make("th", { scope: "row" }, shown(state)),
    ...[mean[i], variance[i], Math.sqrt(variance[i])].map((value) => make("td", {}, figure(value)))));
  const caption = `${shown(node.name)} is a number between ${figure(bounds[0])} and ${figure(bounds[1])}; `
    + "in each class it is normally distributed";
  return make("div", { class: "wide", role: "region", tabindex: 0, "aria-label": `Table of ${shown(node.name)}` },
    make("table", { class: "cpt" }, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows)));
}
