/* A field that finds nodes by name: a combobox with a list, as the ARIA Authoring Practices have it. */

"use strict";

const MOST_FOUND = 12; // suggestions at a time

/** Return a search field; `found` is called with the number of the chosen node. */
function searchOf(model, found) {
  const list = make("ul", { id: "network-found", role: "listbox", "aria-label": "Variables", hidden: true });
  const input = make("input", {
    type: "text", id: "network-search", role: "combobox", "aria-expanded": "false", "aria-controls": list.id,
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: "Name of a variable",
  });
  const state = { matches: [], at: -1 };

  function show(matches, at) {
    Object.assign(state, { matches, at });
    list.replaceChildren(...matches.map((node, i) => make("li", {
      id: `network-found-${i}`, role: "option", "aria-selected": i === at ? "true" : "false",
      pointerdown: (event) => { event.preventDefault(); choose(node); },
    }, shown(node.name))));
    list.hidden = !matches.length;
    input.setAttribute("aria-expanded", String(Boolean(matches.length)));
    if (at >= 0) input.setAttribute("aria-activedescendant", `network-found-${at}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function choose(node) {
    show([], -1);
    input.value = node.name;
    found(node.index);
  }

  const move = (by) => {
    const matches = state.matches.length ? state.matches : matching(model, input.value);
    if (matches.length) show(matches, (Math.max(state.at, by < 0 ? 0 : -1) + by + matches.length) % matches.length);
  };
  const keys = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), Escape: () => show([], -1),
    Enter: () => {
      const node = state.matches[Math.max(state.at, 0)] ?? matching(model, input.value)[0];
      if (node) choose(node);
    },
  };
  input.addEventListener("input", () => show(matching(model, input.value), -1));
  input.addEventListener("blur", () => show([], -1));
  input.addEventListener("keydown", (event) => {
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  return make("div", { class: "network-search" },
    make("label", { for: input.id }, "Find a variable"), input, list);
}

/** Return the nodes whose name has a text: first an equal name, then names that begin with it. */
function matching(model, text) {
  const sought = text.trim().toLowerCase();
  if (!sought) return [];
  const rank = (name) => (name === sought ? 0 : name.startsWith(sought) ? 1 : 2);
  return model.nodes
    .filter((node) => shown(node.name).toLowerCase().includes(sought))
    .sort((a, b) => rank(a.name.toLowerCase()) - rank(b.name.toLowerCase()) || a.index - b.index)
    .slice(0, MOST_FOUND);
}
