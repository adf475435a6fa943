"""K2: greedy search for parents, given an ordering (Cooper and Herskovits 1992, fig. "K2")."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

from vertibayes.dag import Structure
from vertibayes.structure.search import Fits, Pairs, Search
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Choices, Score
from vertibayes_protocols.variables import Family


@dataclass
class _Node:
    """The search for the parents of one node: its parents so far, and the candidates."""

    child: str
    parents: list[str]
    candidates: list[str]
    done: bool = False

    def families(self, fits: Fits) -> list[Family]:
        """Return the families of the parents and each candidate whose table is small enough."""
        families = [Family(self.child, (*self.parents, name)) for name in self.candidates]
        families = [family for family in families if fits(family)]
        self.candidates = [family.parents[-1] for family in families]
        return families

    def candidates_of(self, families: Sequence[Family]) -> tuple[Candidate, ...]:
        """Return the gain of each family's last parent; before them no gain, for no parent."""
        before = Family(self.child, tuple(self.parents))
        gains = (
            (Score(family), Score(before, within=family.parents[-1:], sign=-1))
            for family in families
        )
        return ((), *gains)

    def add(self, winner: int) -> None:
        """Add the candidate that has won; 0 stands for no further parent."""
        if winner:
            self.parents.append(self.candidates.pop(winner - 1))
        else:
            self.done = True


def k2_steps(search: Search) -> Steps[Structure]:
    """Search for the parents of all nodes at once, by asking for choices.

    For each node, K2 adds the predecessor with the highest gain in K2 score, as long as the gain is
    positive and the node has fewer than `max_parents` parents. The gain of a candidate is the score
    of the table of child, parents and candidate minus the score of the same table summed over the
    candidate: on complete data the difference of K2 scores, and with missing values a comparison
    over the same records. Given an ordering the nodes are independent: each step asks for the
    choices of all nodes in one call. A predecessor whose table would be too large (`Search.fits`)
    is not a candidate.
    """
    nodes = _nodes(search)
    for _ in range(search.max_parents):
        open_ = [s for s in nodes if not s.done and len(s.parents) < search.max_parents]
        sets = [(s, s.families(search.fits)) for s in open_]
        sets = [(node, families) for node, families in sets if families]
        if not sets:
            break
        candidates = tuple(node.candidates_of(families) for node, families in sets)
        winners = yield Choices(candidates, search.missing, search.rows)
        for (node, _families), winner in zip(sets, winners, strict=True):
            node.add(winner)
    return Structure({node.child: tuple(node.parents) for node in nodes})


def k2_widest(search: Search) -> list[Family]:
    """Return the widest families that K2 may ask for, for each step, node and candidate.

    The cost of their tables is an upper bound for the cost of the search.
    """
    lengths, families = search.lengths, []
    order = check_ordering(search.variables, search.ordering)
    for place, child in enumerate(order):
        widest = sorted(order[:place], key=lambda name: -lengths[name])
        for parents in range(min(search.max_parents, place)):
            node = _Node(child, widest[:parents], widest[parents:])
            families += node.families(search.fits)
    return families


def k2_asks(search: Search, pairs: Pairs | None) -> list[list[Family]]:
    """Return what K2 typically asks, step by step: parents have a middling number of states."""
    del pairs  # each node asks for all candidates anyway
    lengths = search.lengths
    order = check_ordering(search.variables, search.ordering)
    calls: list[list[Family]] = [[] for _ in range(min(search.max_parents, len(order)))]
    for place, child in enumerate(order):
        widest = sorted(order[:place], key=lambda name: -lengths[name])
        for parents in range(min(search.max_parents, place)):
            at = (place - parents) // 2
            taken = widest[at : at + parents]
            left = [name for name in widest if name not in taken]
            calls[parents] += _Node(child, taken, left).families(search.fits)
    return calls


def k2_bits(variables: int, max_parents: int) -> float:
    """Return how many bits K2's winners have at most, with one of each set included."""
    return sum(
        log2(1 + place - parents) + 1
        for place in range(variables)
        for parents in range(min(max_parents, place))
    )


def k2_calls(variables: int, max_parents: int) -> int:
    """Return how many steps K2 has at most: one for each parent of a node."""
    return min(max_parents, max(variables - 1, 0))


def check_ordering(variables: Collection[str], ordering: Sequence[str] | None) -> list[str]:
    """Return an ordering of all variables."""
    if ordering is None:
        return list(variables)
    unknown = [name for name in ordering if name not in variables]
    absent = [name for name in variables if name not in ordering]
    twice = sorted({name for name in ordering if list(ordering).count(name) > 1})
    faults = (
        ("has unknown variables", unknown),
        ("does not have the variables", absent),
        ("has variables twice", twice),
    )
    for fault, names in faults:
        if names:
            raise ValueError(
                f"the ordering {fault}: {', '.join(names)}; name each variable of the data once"
            )
    return list(ordering)


def _nodes(search: Search) -> list[_Node]:
    """Return the search of each node, from its required parents."""
    order = check_ordering(search.variables, search.ordering)
    place, nodes = {name: i for i, name in enumerate(order)}, []
    for parent, child in search.constraints.required:
        if place[parent] >= place[child]:
            raise ValueError(f"the required edge {parent} -> {child} contradicts the ordering")
    for child in order:
        parents = list(search.constraints.required_parents(child))
        before = [p for p in order[: place[child]] if p not in parents]
        nodes.append(
            _Node(child, parents, [p for p in before if search.constraints.allows(p, child)])
        )
    return nodes
