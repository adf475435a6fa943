"""How sure each edge of a network is, without another query: the parametric bootstrap.

Samples are drawn from the learned network, and a structure is learned from each sample by the same
learner. The strength of an edge is the share of the samples in which its two nodes are adjacent.
The samples follow from the learned network alone, so nothing further is revealed.

The samples have no missing cells: where records have missing cells, the strengths are those of as
many complete records, and therefore too high. Where the learned tables were cut or have noise, the
samples are from the network of these tables, and the strengths do not show the error of the rule.

References
----------
Friedman, Goldszmidt and Wyner (1999), "Data analysis with Bayesian networks: a bootstrap approach",
UAI, section 3.
Scutari and Nagarajan (2013), "Identifying significant edges in graphical models of molecular
networks", doi:10.1016/j.artmed.2012.12.006.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vertibayes.counting.plain import PlainCounter
from vertibayes.dag import Structure
from vertibayes.edges import ArcStrength, Edge
from vertibayes.network import Network
from vertibayes.sampling import sample
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.search import Progress, TimeIsUp, never, silent

Learn: TypeAlias = Callable[[PlainCounter], Structure]

SAMPLES = 10
STAGE = "arc strengths"


@dataclass(frozen=True)
class Strengths:
    """How sure the edges of a network are."""

    edges: tuple[ArcStrength, ...]
    samples: int
    planned: int
    records: int  # the number of records of each sample
    threshold: float  # of the averaged structure; see `l1_threshold`
    averaged: Structure  # the averaged structure; see `averaged_structure`

    @property
    def by_edge(self) -> dict[Edge, ArcStrength]:
        """The strengths by (parent, child)."""
        return {(arc.parent, arc.child): arc for arc in self.edges}


def arc_strengths(
    network: Network,
    learn: Learn,
    records: int,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    gains: Mapping[Edge, float] | None = None,
    constraints: Constraints = Constraints(),
    progress: Progress = silent,
    time_is_up: TimeIsUp = never,
) -> Strengths:
    """Return how sure each edge of a learned network is, by the parametric bootstrap.

    Parameters
    ----------
    network : Network
        The learned network.
    learn : callable
        Takes a `PlainCounter` of a sample; returns the structure that the learner of the network
        learns from it.
    records : int
        The number of records of each sample: as many as the network was learned from. Fewer records
        give lower strengths.
    samples : int, default=10
        The number of samples. Strengths are multiples of its reciprocal.
    seed : int, default=0
        The seed of the first sample; each further sample has the next.
    gains : mapping of (parent, child) to float, optional
        The gain of each learned edge; see `structure.gains.edge_gains`.
    constraints : Constraints
        What the learner keeps.
    progress : callable, optional
        Called with ("arc strengths", samples done, samples).
    time_is_up : callable, optional
        Called after each sample: whether to end.

    Returns
    -------
    strengths : Strengths
        From as many samples as the time allowed.

    Raises
    ------
    ValueError
        If a number is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from vertibayes_protocols.variables import Variable
    >>> from vertibayes.structure.learners import learn_structure
    >>> structure = Structure.of("ab", [("a", "b")])
    >>> variables = {name: Variable(name, ("no", "yes")) for name in "ab"}
    >>> cpts = {"a": np.array([0.5, 0.5]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])}
    >>> network = Network(structure, variables, cpts)
    >>> arc_strengths(network, lambda counter: learn_structure(counter, "k2"), 200).edges
    (ArcStrength(parent='a', child='b', strength=1.0, direction=0.5, gain=None),)
    """
    if samples < 0:
        raise ValueError(f"the number of samples must be at least 0, got {samples}")
    learned: list[Structure] = []
    for number in range(samples if records else 0):
        progress(STAGE, number, samples)
        learned.append(learn(PlainCounter(sample(network, records, seed + number))))
        if time_is_up():
            break
    edges = strengths_from(network.structure, learned, gains=gains, constraints=constraints)
    threshold = l1_threshold([arc.strength for arc in edges])
    nodes = network.structure.nodes
    averaged = averaged_structure(edges, nodes, threshold=threshold, constraints=constraints)
    return Strengths(edges, len(learned), samples, records, threshold, averaged)


def strengths_from(
    structure: Structure,
    learned: Sequence[Structure],
    *,
    gains: Mapping[Edge, float] | None = None,
    constraints: Constraints = Constraints(),
) -> tuple[ArcStrength, ...]:
    """Return how sure each edge of a structure is, from the structures of samples."""
    if not learned:
        return ()
    votes: Counter[Edge] = Counter()
    for sampled in learned:
        votes.update(_votes(sampled, constraints))
    strengths, own = [], set(structure.edges)
    for one, other in {(min(edge), max(edge)) for edge in (*own, *votes)}:
        edge = one, other
        if (other, one) in own or (edge not in own and votes[other, one] > votes[edge]):
            edge = other, one
        ahead, total = votes[edge], votes[one, other] + votes[other, one]
        direction = ahead / total if total else 0.5
        strength = total / (2 * len(learned))
        strengths.append(ArcStrength(*edge, strength, direction, (gains or {}).get(edge)))
    return tuple(sorted(strengths, key=lambda arc: (-arc.strength, arc.parent, arc.child)))


def _votes(structure: Structure, constraints: Constraints) -> Iterator[Edge]:
    """Return each edge twice if it cannot be reversed, and otherwise once in each direction."""
    compelled = set(cpdag_of(structure, constraints).compelled)
    for parent, child in structure.edges:
        yield parent, child
        yield (parent, child) if (parent, child) in compelled else (child, parent)


def l1_threshold(strengths: Sequence[float]) -> float:
    """Return the strength above which edges are significant (Scutari and Nagarajan 2013).

    If each strength were 0 or 1, the distribution function F of the strengths would be constant
    between 0 and 1. The constant t that is nearest to F, by the integral of abs(F(x) - t), is the
    median of F(x) over x; it is F(1/2), because F never falls. The threshold is the quantile of t:
    the largest strength of at most 1/2. So the significant edges are those that more than half of
    the samples have.

    Examples
    --------
    >>> l1_threshold([0.1, 0.35, 0.9, 1.0])
    0.35
    """
    return max((strength for strength in strengths if strength <= 0.5), default=0.0)


def averaged_structure(
    strengths: Iterable[ArcStrength],
    nodes: Sequence[str],
    *,
    threshold: float = 0.5,
    constraints: Constraints = Constraints(),
) -> Structure:
    """Return the structure of the edges that are stronger than a threshold.

    Required edges come first, then the others by strength. An edge takes its more frequent
    direction; it is reversed if a constraint or a cycle forbids this, and left out if they forbid
    both.

    Parameters
    ----------
    strengths : iterable of ArcStrength
        How sure each edge is.
    nodes : sequence of str
        All nodes.
    threshold : float, default=0.5
        Only stronger edges are kept.
    constraints : Constraints
        What the structure keeps. The number of parents is not limited.

    Returns
    -------
    structure : Structure
        The averaged structure; it has all nodes.

    Examples
    --------
    >>> strengths = [ArcStrength("a", "b", 1.0, 1.0, None), ArcStrength("b", "c", 0.9, 0.8, None)]
    >>> averaged_structure([*strengths, ArcStrength("c", "a", 0.8, 0.9, None)], "abc").edges
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    edges: dict[Edge, None] = dict.fromkeys(constraints.required)
    children: dict[str, set[str]] = {node: set() for node in nodes}
    for parent, child in edges:
        children[parent].add(child)
    for arc in sorted(strengths, key=lambda arc: -arc.strength):
        ways = [(arc.parent, arc.child), (arc.child, arc.parent)]
        if arc.strength <= threshold or any(way in edges for way in ways):
            continue
        for parent, child in ways if arc.direction >= 0.5 else ways[::-1]:
            if constraints.allows(parent, child) and not _leads(children, child, parent):
                edges[parent, child] = None
                children[parent].add(child)
                break
    return Structure.of(list(nodes), sorted(edges))


def _leads(children: Mapping[str, set[str]], start: str, end: str) -> bool:
    """Whether a path leads from one node to another."""
    reached, ahead = {start}, [start]
    while ahead:
        new = children[ahead.pop()] - reached
        reached |= new
        ahead += new
    return end in reached
