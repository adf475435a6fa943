"""What a calibration reveals, in the words of the ledgers of its sites and of its analyst."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.calibration.consensus_checks import is_exposed
from vertibayes_protocols.queries.calibration.consensus_query import ConsensusQuery
from vertibayes_protocols.queries.calibration.neighbourhood_sums import least_of, summing


def facts_of_site(query: ConsensusQuery, party: Party, analyst: Party) -> Iterator[Fact]:
    """Yield who sees what of a site."""
    agreed, asked = query.agreed, len(query.parties)
    length, exposed = agreed.length, is_exposed(party, query)
    sums = f"{_named(query)}: sums over {query.need} or more of {asked} sites"
    yield Fact(f"{sums} {_losses(query)}", "all sites together", (analyst,))
    first, there = query.attendance(query.first), query.attendance(query.end)
    hoods, hoods_at_first = summing(there), summing(first)
    where = f"in each of {_rounds(query)}, without noise"
    for peer in there.receivers(party):
        if agreed.mixing == "relay":
            side = _side(agreed.links, party, peer)
            others = ", ".join(sorted(side))
            whom = "this site alone" + f" at first, then with {others} as they arrive" * bool(side)
            what = f"{length} numbers, sums over this side of the tree ({whom}), {where}"
            yield Fact(what, party, (peer,))  # the first message is its own
        elif agreed.shown:
            yield Fact(f"{length} numbers of this site's statistics {where}", party, (peer,))
        elif peers := hoods.get(peer):
            least = least_of(hoods_at_first.get(peer, peers))
            sums = f"sums over {least} or more neighbours{', which can be separated' * exposed}"
            about = party if exposed else "the neighbours together"
            yield Fact(f"{length} numbers, {sums}, {where}", about, (peer,))


def fact_of_analyst(query: ConsensusQuery, parties: Collection[Party], analyst: Party) -> Fact:
    """Return over which sites the sums are: those over fewer sites reveal more of each."""
    nodes = query.agreed.network.nodes
    gone = sorted(set(nodes) - set(parties))
    without = f"; without {', '.join(gone)}" if gone else ""
    over = f"{len(parties)} of {len(nodes)} sites ({', '.join(sorted(parties))}{without})"
    what = f"{_named(query)}: sums over {over} {_losses(query)}"
    return Fact(what, "these sites together" if gone else "all sites together", (analyst,))


def _named(query: ConsensusQuery) -> str:
    """Return what is calibrated, and how: each query's ledger says it once."""
    agreed, spec = query.agreed, query.agreed.spec
    features = [name for name in (*spec.variables, *spec.numerics) if name != spec.target]
    kind = "a Bayesian network" if spec.families else "naive Bayes"
    how = f"mixing {agreed.mixing}, start {agreed.start}"
    named = f"{kind} of {spec.target} from {', '.join(features)}"
    return f"calibration {query.calibration}, {named} ({how})"


def _losses(query: ConsensusQuery) -> str:
    statistics = ", and of the statistics after the last" if query.reveal else ""
    rounds = f"{query.first} to {query.end}"
    return f"of loss, errors, records and repairs in rounds {rounds}{statistics}, without noise"


def _rounds(query: ConsensusQuery) -> str:
    return f"rounds {query.first} to {query.end} of calibration {query.calibration}"


def _side(tree: Graph, node: Party, peer: Party) -> set[Party]:
    """Return the other nodes on a node's side of a tree, seen from a neighbour."""
    side, line = {node}, [node]
    while line:
        further = {p for p in tree.neighbours[line.pop()] if p != peer} - side
        side |= further
        line += further
    return side - {node}
