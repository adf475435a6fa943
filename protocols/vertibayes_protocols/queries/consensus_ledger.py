"""What a calibration reveals, in the words of the ledgers of its sites and of its analyst."""

from __future__ import annotations

from collections.abc import Collection

from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.queries.consensus_query import Consensus
from vertibayes_protocols.queries.neighbourhood_sums import least_of, summing
from vertibayes_protocols.roles import Party, SiteRole


def note_at_site(
    site: SiteRole, query: Consensus, agreed: Calibration, length: int, *, exposed: bool
) -> None:
    """Note who sees what of a site, before its first message.

    Parameters
    ----------
    site : SiteRole
    query, agreed
        What the site takes part in.
    length : int
        How many numbers a message between neighbours has.
    exposed : bool
        Whether neighbours see the site's own statistics, or can separate them from a sum.
    """
    asked = len(query.parties)
    sums = f"{_named(query, agreed)}: sums over {query.need} or more of {asked} sites"
    site.ledger.note(f"{sums} {_losses(query)}", "all sites together", (site.analyst,))
    first = query.attendance(agreed, query.first)
    there = query.attendance(agreed, query.first + query.rounds - 1)
    where = f"in each of {_rounds(query)}, without noise"
    for peer in there.receivers(site.party):
        if agreed.mixing == "relay":
            side = _side(agreed.links, site.party, peer)
            others = ", ".join(sorted(side))
            whom = "this site alone" + f" at first, then with {others} as they arrive" * bool(side)
            what = f"{length} numbers, sums over this side of the tree ({whom}), {where}"
            site.ledger.note(what, site.party, (peer,))  # the first message is its own
        elif agreed.shown:
            what = f"{length} numbers of this site's statistics {where}"
            site.ledger.note(what, site.party, (peer,))
        elif peers := summing(there).get(peer):
            least = least_of(summing(first).get(peer, peers))
            sums = f"sums over {least} or more neighbours{', which can be separated' * exposed}"
            about = site.party if exposed else "the neighbours together"
            site.ledger.note(f"{length} numbers, {sums}, {where}", about, (peer,))


def note_at_analyst(
    ledger: Ledger, query: Consensus, agreed: Calibration, parties: Collection[Party], to: Party
) -> None:
    """Note over which sites the sums of a query are, as they were released.

    Parameters
    ----------
    ledger : Ledger
        The analyst's.
    query, agreed
        What was asked for.
    parties : collection of Party
        The sites that have finished: a sum over fewer sites reveals more of each.
    to : Party
        The analyst.
    """
    gone = sorted(set(query.nodes) - set(parties))
    without = f"; without {', '.join(gone)}" if gone else ""
    over = f"{len(parties)} of {len(query.nodes)} sites ({', '.join(sorted(parties))}{without})"
    what = f"{_named(query, agreed)}: sums over {over} {_losses(query)}"
    ledger.note(what, "these sites together" if gone else "all sites together", (to,))


def _named(query: Consensus, agreed: Calibration) -> str:
    """Return what is calibrated, and how: each query's ledger says it once."""
    spec = agreed.spec
    features = [name for name in (*spec.variables, *spec.numerics) if name != spec.target]
    kind = "a Bayesian network" if spec.families else "naive Bayes"
    how = f"mixing {agreed.mixing}, start {agreed.start}"
    named = f"{kind} of {spec.target} from {', '.join(features)}"
    return f"calibration {query.calibration}, {named} ({how})"


def _losses(query: Consensus) -> str:
    statistics = ", and of the statistics after the last" if query.reveal else ""
    rounds = f"{query.first} to {query.first + query.rounds - 1}"
    return f"of loss, errors, records and repairs in rounds {rounds}{statistics}, without noise"


def _rounds(query: Consensus) -> str:
    last = query.first + query.rounds - 1
    return f"rounds {query.first} to {last} of calibration {query.calibration}"


def _side(tree: Graph, node: Party, peer: Party) -> set[Party]:
    """Return the other nodes on a node's side of a tree, seen from a neighbour."""
    side, line = {node}, [node]
    while line:
        further = {p for p in tree.neighbours[line.pop()] if p != peer} - side
        side |= further
        line += further
    return side - {node}
