/* Exact inference in the page: messages in a junction tree (Lauritzen and Spiegelhalter 1988).
 *
 * The tree comes with the model. All arithmetic is on logarithms, because the probability of much
 * evidence is smaller than the smallest floating-point number; minus infinity is probability zero. */

"use strict";

/**
 * Return a function from evidence to posteriors, or null if the page has no junction tree.
 *
 * The function takes Maps from the number of a node to the number of its state, and to the value of
 * a numeric feature. It returns {logarithm, marginals}: the natural logarithm of the probability of
 * the evidence (of its density, if it has values), and one distribution per node with states;
 * null as marginals if the evidence has probability zero. `family` returns the joint distribution of a
 * node and its parents, in the order of the CPT.
 */
function engineOf(model) {
  if (!model.tree) return null;
  const cliques = cliquesOf(model);
  const places = model.nodes.map((node) => placeOf(model, cliques, node.index));
  return (states, values) => {
    const potentials = cliques.map((clique) => clique.logarithms.slice());
    for (const [node, state] of states) {
      const allowed = new Float64Array(model.nodes[node].states.length).fill(-Infinity);
      allowed[state] = 0;
      multiply(potentials, places[node], allowed);
    }
    for (const [node, value] of values) {
      multiply(potentials, places[model.target], densities(model.nodes[node].number, value));
    }
    const logarithm = propagate(cliques, potentials);
    if (logarithm === -Infinity) return { logarithm, marginals: null };
    const marginals = places.map((place) => place && marginal(potentials, place));
    return { logarithm, marginals, family: (node) => marginal(potentials, familyOf(model, cliques, node)) };
  };
}

/** Return the cliques with the products of their CPTs, and their ways to the parents' cliques. */
function cliquesOf(model) {
  const sizes = model.nodes.map((node) => node.states.length);
  const cliques = model.tree.cliques.map((members, i) => {
    const cells = members.reduce((product, node) => product * sizes[node], 1);
    return { members, cells, parent: model.tree.parents[i], logarithms: new Float64Array(cells) };
  });
  model.nodes.filter((node) => node.cpt).forEach((node) => {
    const home = cliques[model.tree.homes[node.index]];
    const cells = cellsOf(home, sizes, [...node.parents, node.index]);
    const cpt = node.cpt.flat();
    for (let c = 0; c < home.cells; c++) home.logarithms[c] += Math.log(cpt[cells[c]]);
  });
  for (const clique of cliques.filter((each) => each.parent >= 0)) {
    const above = cliques[clique.parent];
    const shared = clique.members.filter((node) => above.members.includes(node));
    clique.separators = shared.reduce((product, node) => product * sizes[node], 1);
    clique.down = cellsOf(clique, sizes, shared);
    clique.up = cellsOf(above, sizes, shared);
  }
  return cliques;
}

/**
 * Return, for each cell of a clique, the cell of a smaller table that agrees with it.
 * The last of a table's nodes changes fastest.
 */
function cellsOf(clique, sizes, nodes) {
  const weights = new Map();
  let weight = 1;
  for (const node of [...nodes].reverse()) {
    weights.set(node, weight);
    weight *= sizes[node];
  }
  const cells = new Int32Array(clique.cells);
  let step = 1;
  for (const node of [...clique.members].reverse()) {
    const size = sizes[node];
    const times = weights.get(node) ?? 0;
    if (times) for (let c = 0; c < clique.cells; c++) cells[c] += times * (Math.floor(c / step) % size);
    step *= size;
  }
  return cells;
}

/** Return where the distribution of a node is read: in the smallest clique that has it. */
function placeOf(model, cliques, node) {
  const sizes = model.nodes.map((each) => each.states.length);
  let clique = -1;
  cliques.forEach((each, i) => {
    const smaller = clique < 0 || each.cells < cliques[clique].cells;
    if (each.members.includes(node) && smaller) clique = i;
  });
  return clique < 0 ? null : { clique, size: sizes[node], cells: cellsOf(cliques[clique], sizes, [node]) };
}

/** Return where the joint distribution of a node and its parents is read. */
function familyOf(model, cliques, node) {
  const sizes = model.nodes.map((each) => each.states.length);
  const [clique, members] = [model.tree.homes[node], [...model.nodes[node].parents, node]];
  const size = members.reduce((product, member) => product * sizes[member], 1);
  return { clique, size, cells: cellsOf(cliques[clique], sizes, members) };
}

/** Multiply a potential by a function of one node, both as logarithms. */
function multiply(potentials, place, logarithms) {
  const potential = potentials[place.clique];
  for (let c = 0; c < potential.length; c++) potential[c] += logarithms[place.cells[c]];
}

/**
 * Send all messages: potentials become the joint distributions of the cliques with the evidence.
 * Parents come before children in the tree. Returns the logarithm of the evidence's probability.
 */
function propagate(cliques, potentials) {
  const messages = cliques.map(() => null);
  let logarithm = 0;
  for (let i = cliques.length - 1; i >= 0; i--) {
    const { parent, separators, down, up } = cliques[i];
    if (parent < 0) {
      logarithm += sums(potentials[i], null, 1)[0];
      continue;
    }
    messages[i] = sums(potentials[i], down, separators);
    const above = potentials[parent];
    for (let c = 0; c < above.length; c++) above[c] += messages[i][up[c]];
  }
  for (let i = 0; i < cliques.length; i++) {
    const { parent, separators, down, up } = cliques[i];
    if (parent < 0) continue;
    const ratios = sums(potentials[parent], up, separators);
    ratios.forEach((value, s) => { ratios[s] = value === -Infinity ? value : value - messages[i][s]; });
    for (let c = 0; c < down.length; c++) potentials[i][c] += ratios[down[c]];
  }
  return logarithm;
}

/** Return the logarithms of sums of probabilities: those of all cells with the same number in `to`. */
function sums(potential, to, length) {
  const largest = new Float64Array(length).fill(-Infinity);
  for (let c = 0; c < potential.length; c++) {
    const s = to ? to[c] : 0;
    if (potential[c] > largest[s]) largest[s] = potential[c];
  }
  const totals = new Float64Array(length);
  for (let c = 0; c < potential.length; c++) {
    const s = to ? to[c] : 0;
    if (potential[c] > -Infinity) totals[s] += Math.exp(potential[c] - largest[s]);
  }
  return totals.map((total, s) => (total ? Math.log(total) + largest[s] : -Infinity));
}

/** Return the distribution of one node. */
function marginal(potentials, place) {
  const logarithms = sums(potentials[place.clique], place.cells, place.size);
  const largest = Math.max(...logarithms);
  const shares = Array.from(logarithms, (value) => Math.exp(value - largest));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

/** Return the logarithm of the normal density of a value in each class. */
function densities(number, value) {
  return Float64Array.from(number.mean, (mean, i) => {
    const variance = number.variance[i];
    return -0.5 * (Math.log(2 * Math.PI * variance) + (value - mean) ** 2 / variance);
  });
}

/** Return mean and standard deviation of a numeric feature, given the distribution of the class. */
function mixture(number, classes) {
  const mean = classes.reduce((sum, share, i) => sum + share * number.mean[i], 0);
  const variance = classes.reduce(
    (sum, share, i) => sum + share * (number.variance[i] + (number.mean[i] - mean) ** 2), 0);
  return { mean, deviation: Math.sqrt(variance) };
}
