/* What if: set what is known, and see how likely everything else becomes. */

"use strict";

const STATES = 10; // of a card, before the reader asks for all
const CHANGES = 6; // variables that the summary names
const LEAST_CHANGE = 0.005; // of a probability that the summary names

/**
 * Fill the place of What if.
 * @param {Object} model as readModel returns it
 * @param {Element} place the element to fill
 * @param {function(number)} look called with the node that the reader wants to see in the network
 * @param {function(number)} open called with the node whose table the reader wants to see
 * @param {function(Map, Array)} mark called with what is set, in words, and the changes of all others
 */
function whatIfView(model, place, look, open, mark) {
  const posteriors = engineOf(model);
  if (!posteriors) {
    place.replaceChildren(heading("What if"), make("p", {}, refusalOf(model)));
    return { ask: () => place.querySelector("h3").focus(), near: () => {} };
  }
  const states = new Map(); // what is set: the number of a node's state
  const values = new Map(); // and the value of a numeric feature
  const prior = posteriors(states, values).marginals;
  const cards = model.nodes.map((node) =>
    cardOf(model, node, prior, look, (choice) => set(node, choice)));
  const summary = make("p", { class: "evidence", role: "status" });
  const chips = make("ul", { class: "chips", "aria-label": "What is set", hidden: true });
  const changes = make("div", {});
  const reset = make("button", { type: "button", click: () => clear() }, "Reset");
  const order = make("button", { type: "button", "aria-pressed": "false", click: () => {
    order.setAttribute("aria-pressed", String(order.getAttribute("aria-pressed") !== "true"));
    update();
  } }, "Sort: set and changed first");
  const grid = make("div", { class: "cards" });

  function set(node, choice) {
    const kept = node.number ? values : states;
    if (choice === null) kept.delete(node.index);
    else kept.set(node.index, choice);
    update();
  }

  function clear() {
    states.clear();
    values.clear();
    update();
  }

  function update() {
    const { logarithm, marginals } = posteriors(states, values);
    for (const card of cards) card.update(marginals, states, values);
    reset.disabled = !states.size && !values.size;
    place.classList.toggle("is-impossible", marginals === null);
    const said = inWords(model, states, values);
    summary.replaceChildren(...evidenceOf(model, states, said, logarithm, marginals, values.size));
    const known = [...said.keys()];
    chips.replaceChildren(...chipsOf(model, known, (index) => {
      set(model.nodes[index], null);
      cards[index].focus();
    }));
    chips.hidden = !known.length;
    const changed = changesOf(model, prior, marginals, states, values);
    changes.replaceChildren(...namedChanges(model, changed));
    mark(said, changed);
    advice.update(states, values);
    const isOrdered = order.getAttribute("aria-pressed") === "true";
    arrange(grid, inOrder(model, isOrdered ? known : [],
      isOrdered ? changed.map((change) => change.index) : []).map((i) => cards[i].element));
  }

  const ask = (index) => { filter.show(); cards[index].focus(); };
  const advice = adviceOf(model, posteriors, ask, open);
  const filter = filterOfCards(model, cards);
  place.replaceChildren(heading("What if"), introduction(model), make("div", { class: "what-if-tools" },
    filter, order, reset), make("div", { class: "what-if-sum" }, summary, chips, changes), advice.element, grid);
  update();
  return {
    ask,
    near: (index) => {
      cards.forEach((card, i) => card.element.classList.toggle("is-near", i === index));
      const { top } = cards[index].element.getBoundingClientRect();
      place.scrollBy({ top: top - place.getBoundingClientRect().top - place.clientHeight / 3, behavior: "instant" });
    },
  };
}

/** Return the nodes as the cards stand: what is set, the target, what changed, and the others. */
function inOrder(model, set, changed) {
  const target = model.target === null ? [] : [model.target];
  return [...new Set([...set, ...target, ...changed, ...model.nodes.map((node) => node.index)])];
}

/** Put the cards in an order, if they do not have it; the focus stays where it is. */
function arrange(grid, elements) {
  if (elements.every((element, i) => grid.children[i] === element)) return;
  const focused = document.activeElement;
  grid.replaceChildren(...elements);
  if (grid.contains(focused)) focused.focus();
}

/** Return a button for each variable that is set, which unsets it. */
function chipsOf(model, set, unset) {
  return set.map((index) => {
    const name = shown(model.nodes[index].name);
    return make("li", {}, make("button", {
      type: "button", "aria-label": `Unset ${name}`, click: () => unset(index),
    }, `${name} ×`));
  });
}

/**
 * Return how the probabilities changed, the largest change first: for each variable that is not
 * set {index, state, before, after} of the state that changed most.
 */
function changesOf(model, prior, marginals, states, values) {
  if (!marginals) return [];
  const free = model.nodes.filter((node) => prior[node.index] && !states.has(node.index)
    && !values.has(node.index) && node.states.length);
  const changes = free.map(({ index }) => {
    const by = marginals[index].map((share, i) => Math.abs(share - prior[index][i]));
    const state = by.indexOf(Math.max(...by));
    return { index, state, by: by[state], before: prior[index][state], after: marginals[index][state] };
  });
  return changes.filter((change) => change.by >= LEAST_CHANGE).sort((a, b) => b.by - a.by);
}

/** Return a change in words. */
function saidOf(model, { index, state, before, after }) {
  return `${shown(model.nodes[index].states[state])}: ${percent(before)} → ${percent(after)}`;
}

/** Return the list of the largest changes in words. */
function namedChanges(model, changes) {
  if (!changes.length) return [];
  const items = changes.slice(0, CHANGES).map((change) => make("li", {},
    make("strong", {}, shown(model.nodes[change.index].name)), ` ${saidOf(model, change)}`));
  const more = changes.length > CHANGES ? ` (${figure(changes.length - CHANGES)} more)` : "";
  return [make("p", { class: "changed" }, `Changed most${more}:`), make("ul", { class: "changes" }, ...items)];
}

/** Return the sentence that says why the page does not compute posteriors. */
function refusalOf(model) {
  return `The page computes posteriors for networks whose tables have at most ${figure(model.most_cells)} `
    + "cells, with those that inference adds. This network is larger. Use the command vertibayes predict, "
    + "which computes the distribution of a target for the records of a file.";
}

function introduction(model) {
  const target = model.target === null ? "" : " The first card is the target.";
  const ticks = make("span", { class: "tick-sample", "aria-hidden": "true" });
  return make("p", {}, "Set what is known of a person, and the bars show how likely each state of every "
    + "other variable is then, under this network. A line ", ticks, " on a bar shows the probability before "
    + `anything was set.${target} Nothing that you set leaves this page.`);
}

/** Return what is set in words, by node. */
function inWords(model, states, values) {
  return new Map([...[...states].map(([i, state]) => [i, shown(model.nodes[i].states[state])]),
    ...[...values].map(([i, value]) => [i, String(value)])]);
}

/** Return the sentences about the evidence: what is set, and how probable it is. */
function evidenceOf(model, states, said, logarithm, marginals, hasValues) {
  if (!said.size) return ["Nothing is set: the bars show the network's own probabilities."];
  const list = [...said].map(([i, text]) => `${shown(model.nodes[i].name)} = ${text}`).join(", ");
  const what = make("strong", {}, list);
  if (!marginals) {
    return ["Set: ", what, ". This evidence has probability zero: under the network no record can have "
      + "all of these values, so there are no posteriors. Unset one of them."];
  }
  const targets = model.target === null || states.has(model.target) ? "" : bestOf(model, marginals);
  if (hasValues) return ["Set: ", what, `. ${targets}`];
  return ["Set: ", what, `. The probability of this evidence is ${chance(logarithm)}. ${targets}`];
}

/** Return the sentence about the target. */
function bestOf(model, marginals) {
  const target = model.nodes[model.target];
  const shares = marginals[model.target];
  const best = shares.indexOf(Math.max(...shares));
  return `${shown(target.name)} is most likely ${shown(target.states[best])}: ${percent(shares[best])}.`;
}

/** Return a field that hides the cards whose name does not have its text. */
function filterOfCards(model, cards) {
  const input = make("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const apply = () => {
    const sought = input.value.trim().toLowerCase();
    model.nodes.forEach((node, i) => {
      cards[i].element.hidden = !shown(node.name).toLowerCase().includes(sought);
    });
  };
  input.addEventListener("input", apply);
  const label = make("label", {}, "Show variables named ", input);
  label.show = () => { input.value = ""; apply(); };
  return label;
}

/** Return the card of a node: {element, update, focus}. */
function cardOf(model, node, prior, look, choose) {
  return node.number ? numberCard(model, node, prior, look, choose)
    : stateCard(model, node, prior[node.index], look, choose);
}

function titleOf(node, look) {
  return make("button", {
    type: "button", class: "look", title: "Show in the network", click: () => look(node.index),
  }, shown(node.name));
}

/** Return the card of a node with states: a select element, and one bar per state. */
function stateCard(model, node, prior, look, choose) {
  const select = makeSelect({ "aria-label": `Set ${shown(node.name)}` }, ["not set", ...node.states.map(shown)]);
  select.addEventListener("change", () => choose(select.value === "0" ? null : select.value - 1));
  const bars = node.states.map((state, i) => barOf(state, prior[i], () => {
    choose(select.value - 1 === i ? null : i);
  }));
  const list = make("ul", { class: "bars" }, ...bars.map((bar) => bar.element));
  const element = make("div", { class: `card${node.index === model.target ? " is-target" : ""}` },
    make("div", { class: "card-head" }, titleOf(node, look), select), list, moreOf(bars));
  return {
    element,
    focus: () => select.focus(),
    update: (marginals, states) => {
      const state = states.get(node.index);
      select.value = state === undefined ? 0 : state + 1;
      element.classList.toggle("is-set", state !== undefined);
      bars.forEach((bar, i) => bar.update(marginals && marginals[node.index][i], i === state));
    },
  };
}

/** Return the button that shows all states of a card with many, or nothing. */
function moreOf(bars) {
  const rest = bars.slice(STATES);
  if (!rest.length) return "";
  for (const bar of rest) bar.element.hidden = true;
  const button = make("button", { type: "button", class: "more" }, `Show all ${bars.length} states`);
  button.addEventListener("click", () => {
    for (const bar of rest) bar.element.hidden = false;
    button.remove();
  });
  return button;
}

/** Return the bar of a state: a click on it sets the state, or unsets it. */
function barOf(state, prior, click) {
  const fill = make("span", { class: "fill" });
  const number = make("span", { class: "number" });
  const tick = make("span", { class: "tick" });
  tick.style.left = `${100 * prior}%`;
  const element = make("li", { click, title: `before: ${percent(prior)}` },
    make("span", { class: "state" }, shown(state)),
    make("span", { class: "bar", "aria-hidden": "true" }, fill, tick), number);
  return {
    element,
    update: (share, isSet) => {
      fill.style.width = `${100 * (share ?? 0)}%`;
      number.textContent = share === null ? "–" : isSet ? "set" : percent(share);
      element.classList.toggle("is-set", isSet);
    },
  };
}

/** Return the card of a numeric feature: a field for its value, and its mean and deviation. */
function numberCard(model, node, prior, look, choose) {
  const [low, high] = node.number.bounds.map(figure);
  const input = make("input", {
    type: "number", step: "any", "aria-label": `Set ${shown(node.name)}`, placeholder: "not set",
  });
  const moments = make("p", { class: "moments" });
  input.addEventListener("input", () => {
    choose(input.value === "" || !Number.isFinite(input.valueAsNumber) ? null : input.valueAsNumber);
  });
  const element = make("div", { class: "card" },
    make("div", { class: "card-head" }, titleOf(node, look), input), moments,
    make("p", { class: "hint" }, `between ${low} and ${high}`));
  return {
    element,
    focus: () => input.focus(),
    update: (marginals, states, values) => {
      const value = values.get(node.index);
      if (value === undefined && document.activeElement !== input) input.value = "";
      element.classList.toggle("is-set", value !== undefined);
      const { mean, deviation } = mixture(node.number, marginals ? marginals[model.target] : prior[model.target]);
      moments.textContent = value === undefined && marginals
        ? `mean ${figure(mean)}, standard deviation ${figure(deviation)}` : value === undefined ? "–" : "set";
    },
  };
}
