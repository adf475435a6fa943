/* What would tell more about an outcome, and on which probabilities its answer depends.
 *
 * Both come from the posteriors of the junction tree: once for what is set, and once for each state of
 * the outcome beside it. */

"use strict";

const MOST_STEPS = 2_000_000; // cells of cliques that one answer may go through: about a second
const BEST = 8; // of a list

/**
 * Return how many bits each variable would tell about an outcome, given what is set: the mutual
 * information of the two (Cover and Thomas 2006, 2.28), for each variable with states that is not set.
 * @returns {{entropy: number, told: Array}} the bits that are unknown, and {index, bits}, the largest first
 */
function informationOf(model, posteriors, states, values, outcome) {
  const { marginals } = posteriors(states, values);
  const told = model.nodes.filter((node) => node.index !== outcome && !node.number && !states.has(node.index))
    .map((node) => ({ index: node.index, bits: 0 }));
  marginals[outcome].forEach((share, state) => {
    if (!share) return;
    const given = posteriors(new Map([...states, [outcome, state]]), values).marginals;
    for (const each of told) each.bits += share * divergence(given[each.index], marginals[each.index]);
  });
  for (const each of told) each.bits = Math.max(0, each.bits); // rounding
  const entropy = marginals[outcome].reduce((sum, share) => (share ? sum - share * Math.log2(share) : sum), 0);
  return { entropy, told: told.sort((a, b) => b.bits - a.bits) };
}

/** Return the Kullback-Leibler divergence of two distributions in bits. */
function divergence(of, from) {
  return of.reduce((sum, share, i) => (share ? sum + share * Math.log2(share / from[i]) : sum), 0);
}

/**
 * Return how fast the probability of a state of an outcome changes with each CPT, given what is set:
 * for each variable {index, row, state, slope} of the probability with the steepest slope. If one
 * probability of a row grows, the others of the row shrink in proportion (Chan and Darwiche 2002).
 * Probabilities of 0 and 1 have no slope: the data say that they are impossible or certain.
 */
function slopesOf(model, posteriors, states, values, outcome, outcomeState) {
  const before = posteriors(states, values);
  const share = before.marginals[outcome][outcomeState];
  if (!share) return [];
  const after = posteriors(new Map([...states, [outcome, outcomeState]]), values);
  const steepest = model.nodes.filter((node) => node.cpt).map((node) => {
    const [all, those] = [before, after].map(({ family }) => family(node.index));
    let best = { index: node.index, row: 0, state: 0, slope: 0 };
    node.cpt.forEach((row, r) => {
      const more = row.map((_, s) => those[r * row.length + s] - all[r * row.length + s]);
      const sum = more.reduce((total, each) => total + each, 0);
      row.forEach((p, state) => {
        if (p <= 0 || p >= 1) return;
        const slope = share * (more[state] / p - (sum - more[state]) / (1 - p));
        if (Math.abs(slope) > Math.abs(best.slope)) best = { index: node.index, row: r, state, slope };
      });
    });
    return best;
  });
  return steepest.filter((each) => Math.abs(each.slope) > 1e-9).sort((a, b) => Math.abs(b.slope) - Math.abs(a.slope));
}

/**
 * Return the advice of What if: {element, update}, which computes only while it is open.
 * @param {function(number)} ask called with the node that the reader wants to set
 * @param {function(number)} look called with the node whose table the reader wants to see
 */
function adviceOf(model, posteriors, ask, look) {
  const discrete = model.nodes.filter((node) => !node.number);
  const outcome = makeSelect({ "aria-label": "Outcome" }, discrete.map((node) => shown(node.name)));
  const state = make("select", { "aria-label": "State of the outcome" });
  const lists = make("div");
  outcome.value = Math.max(0, discrete.findIndex((node) => node.index === model.target));
  const element = make("details", { class: "advice" }, make("summary", {}, "What to ask next, and what to check"),
    make("p", { class: "what-if-tools" }, "about ", outcome, " = ", state), lists);
  let evidence = [new Map(), new Map()];

  function choose() {
    const { states } = discrete[outcome.value];
    state.replaceChildren(...states.map((name, i) => make("option", { value: i }, shown(name))));
    show();
  }

  function show() {
    if (!element.open) return;
    lists.replaceChildren(...answerOf(model, posteriors, evidence, discrete[outcome.value].index, Number(state.value),
      ask, look));
  }

  element.addEventListener("toggle", show);
  outcome.addEventListener("change", choose);
  state.addEventListener("change", show);
  choose();
  return { element, update: (states, values) => { evidence = [states, values]; show(); } };
}

/** Return the two lists, or the sentence that says why there are none. */
function answerOf(model, posteriors, [states, values], outcome, state, ask, look) {
  const node = model.nodes[outcome];
  const name = shown(node.name);
  const cells = model.tree.cliques.reduce((sum, clique) =>
    sum + clique.reduce((product, i) => product * model.nodes[i].states.length, 1), 0);
  const { marginals } = posteriors(states, values);
  const no = states.has(outcome) ? `${name} is set: choose another outcome, or unset it.`
    : !marginals ? "What is set has probability zero."
      : cells * node.states.length > MOST_STEPS ? "This network is too large for the page to compute it." : "";
  if (no) return [make("p", {}, no)];
  const { entropy, told } = informationOf(model, posteriors, states, values, outcome);
  const slopes = slopesOf(model, posteriors, states, values, outcome, state);
  const numbers = model.nodes.some((each) => each.number) ? " Variables that stayed numbers are not in the list." : "";
  const question = `P(${name} = ${shown(node.states[state])}) = ${percent(marginals[outcome][state])}`;
  return [
    make("p", {}, `Ask next: how many of the ${figure(Number(entropy.toFixed(3)))} bits that are unknown of ${name} each `
      + `variable would tell on average (mutual information).${numbers}`),
    listOf(model, told.filter(({ bits }) => bits >= 0.0005), ask, "Set", ({ bits }) => `${bits.toFixed(3)} bits`),
    make("p", {}, `Check first: the probabilities on which ${question} depends most, one of each table. If the `
      + "probability grows by one point, and the others of its row shrink in proportion, the answer changes by:"),
    listOf(model, slopes, look, "Table of", ({ index, row, state: s, slope }) => {
      const { parents, states: own } = model.nodes[index];
      const given = statesOf(model, model.nodes[index], row)
        .map((value, i) => `${shown(model.nodes[parents[i]].name)} = ${shown(model.nodes[parents[i]].states[value])}`);
      return `${shown(own[s])}${given.length ? ` given ${given.join(", ")}` : ""}: ${slope < 0 ? "−" : "+"}`
        + `${Math.abs(slope) < 0.005 ? "less than 0.01" : Math.abs(slope).toFixed(2)} points`;
    }),
  ];
}

/** Return the first of a ranked list, each with a button. */
function listOf(model, ranked, click, what, says) {
  if (!ranked.length) return make("p", {}, "None.");
  const items = ranked.slice(0, BEST).map((each) => {
    const name = shown(model.nodes[each.index].name);
    return make("li", {}, make("button", {
      type: "button", class: "look", "aria-label": `${what} ${name}`, click: () => click(each.index),
    }, name), ` ${says(each)}`);
  });
  const rest = ranked.length - items.length;
  return make("ol", {}, ...items, ...(rest > 0 ? [make("li", { class: "rest" }, `and ${figure(rest)} more`)] : []));
}
