"use strict";
// Asks for the view every second, and changes only the texts that differ: nothing flickers, and a
// screen reader hears the headline when it changes.
(() => {
  const SECOND = 1000;
  const byId = (id) => document.getElementById(id);

  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function make(tag, className) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    return element;
  }

  /** Give `list` a child for each item: `build` makes one, `fill` writes the item into it. */
  function fillList(list, items, build, fill) {
    while (list.children.length > items.length) list.lastElementChild.remove();
    while (list.children.length < items.length) list.append(build());
    items.forEach((item, place) => fill(list.children[place], item));
  }

  function row(tag, ...classes) {
    return () => {
      const element = make(tag);
      classes.forEach((name) => element.append(make("span", name), " "));
      return element;
    };
  }

  function texts(element, values) {
    Object.entries(values).forEach(([name, text]) => say(element.querySelector("." + name), text));
  }

  function event() {
    const element = make("li");
    element.append(make("time"), " ", make("span", "text"));
    return element;
  }

  function fact() {
    const element = make("div");
    element.append(make("dt"), make("dd"));
    return element;
  }

  function show(view) {
    const headline = byId("headline");
    document.title = `${view.state}: ${view.title}`;
    say(byId("title"), view.title);
    say(headline, view.headline);
    headline.className = view.well ? "well" : "trouble";
    say(byId("progress"), view.progress);
    showShare(view.share);
    fillList(byId("phases"), view.phases, row("li", "name", "state", "took"), (element, phase) => {
      element.dataset.state = phase.state;
      texts(element, phase);
    });
    fillList(byId("parties"), view.parties, row("li", "name", "role", "says"), (element, party) => {
      element.dataset.state = party.state;
      texts(element, { name: party.name, role: party.role, says: party.says });
    });
    fillList(byId("facts"), view.facts, fact, (element, [name, value]) => {
      say(element.querySelector("dt"), name);
      say(element.querySelector("dd"), value);
    });
    fillList(byId("events"), view.events, event, (element, [at, text]) => {
      say(element.querySelector("time"), at);
      texts(element, { text });
    });
  }

  function showShare(share) {
    const percent = Math.round(100 * share);
    byId("bar").hidden = share < 0;
    byId("bar").setAttribute("aria-valuenow", String(Math.max(0, percent)));
    byId("filled").style.width = `${Math.max(0, percent)}%`;
  }

  /** Return the view of an answer; nothing if another process listens at the port by now. */
  async function viewOf(answer) {
    const view = answer.ok ? await answer.json() : null;
    return view !== null && view.proof === document.documentElement.dataset.proof ? view : null;
  }

  async function poll() {
    let view = null;
    try {
      view = await viewOf(await fetch("view.json", { cache: "no-store", credentials: "omit" }));
    } catch {
      view = null;
    }
    byId("connection").hidden = view !== null;
    if (view !== null) show(view);
    if (view === null || !view.over) setTimeout(poll, SECOND);
  }

  poll();
})();
