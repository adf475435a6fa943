"""What parties say to a query at the first look, and which of two broken rules they name."""

from __future__ import annotations

import re
from itertools import combinations

from tests.protocols.golden.breaks import broken
from tests.protocols.golden.worlds import plain


def look(opened, asked, *breaks, **content):
    """Return each party's words under some breaks; empty if it agrees.

    A query that no analyst can make gets the words of its constructor, which parties call too.
    """
    with broken(opened, asked, breaks, **content) as (query, parties):
        if isinstance(query, ValueError):
            return dict.fromkeys(parties, f"no query: {query}")
        answers = opened.look(query, parties)
    return {party: plain(answer) for party, answer in answers.items()}


def refusals(opened, asked, breaks, **content):
    """Return what parties say to each break, and in which order they name what is broken.

    breaks: {name: Break}. Of two broken rules a party names the one that is earlier in its order;
    `but` has what it says where this does not hold.
    """
    alone = {name: look(opened, asked, each, **content) for name, each in breaks.items()}
    named = [name for name, answers in alone.items() if any(answers.values())]
    pairs = [
        (one, other)
        for one, other in combinations(named, 2)
        if not set(breaks[one].policy) & set(breaks[other].policy)
        and not (one.startswith("without") and other.startswith("without"))  # both are of parties
    ]
    both = {
        pair: look(opened, asked, *(breaks[name] for name in pair), **content) for pair in pairs
    }
    parties = dict.fromkeys(party for answers in alone.values() for party in answers)
    found = {party: _ordered(party, alone, both) for party in parties}
    odd = {party: but for party, (_, but) in found.items()}
    return {
        "words": {name: by_words(alone[name]) for name in named},
        "order": merged({party: " > ".join(order) for party, (order, _) in found.items()}),
        **({"but": merged(odd)} if any(odd.values()) else {}),
    }


def _ordered(party, alone, both):
    """Return the names of what a party refuses, in its order, and what does not fit the order."""
    words = {n: _numberless(answers[party]) for n, answers in alone.items() if answers.get(party)}
    said = {pair: both[pair][party] for pair in both if set(pair) <= set(words)}
    later = {name: set() for name in words}  # what is named before each
    for pair, text in said.items():
        for first, second in (pair, pair[::-1]):
            if _numberless(text) == words[first] != words[second]:
                later[second].add(first)
    order = []
    while rest := [name for name in words if name not in order]:
        free = [name for name in rest if not later[name] & set(rest)]
        order.append((free or rest)[0])
    odd = {
        f"{one} + {other}": text
        for (one, other), text in said.items()
        if _numberless(text) != words[min(one, other, key=order.index)]
    }
    return order, odd


def _numberless(text):
    """Return a text without its numbers, which the other broken rule can change."""
    return re.sub(r"\d+", "N", text)


def by_words(answers):
    """Return the words of all who refuse, if they are the same; else {parties: words}."""
    found = merged(answers)
    if not found:
        return "all agree"
    return next(iter(found.values())) if len(found) == 1 else found


def merged(found):
    """Return {party: entry} with parties of equal entries under one key, and no empty entries."""
    groups = []
    for party, entry in found.items():
        for names, known in groups:
            if known == entry:
                names.append(party)
                break
        else:
            groups.append(([party], entry))
    return {", ".join(names): entry for names, entry in groups if entry}
