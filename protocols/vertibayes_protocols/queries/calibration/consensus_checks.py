"""What a site refuses of a calibration, beside what is refused of all queries.

Each check raises a ValueError or a `QueryRefusedError`.
"""

from __future__ import annotations

from math import floor

import numpy as np

from vertibayes_mpc.masked_sum import Neighbourhood, compromise_probability
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.calibration.classifier import Examples
from vertibayes_protocols.calibration.nodes import Attendance
from vertibayes_protocols.queries.calibration.consensus_query import ConsensusQuery
from vertibayes_protocols.queries.calibration.neighbourhood_sums import least_of, summing
from vertibayes_protocols.queries.sums.statistics import check_own_records, site_records
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.roles import SiteRole

LOST = "its process was started again, and it has lost its statistics of this calibration"


def check_site(site: SiteRole, query: ConsensusQuery) -> None:
    """Refuse nodes, neighbours and records; reasons that say something of the data come last."""
    agreed = query.agreed
    _check_pinned(site, agreed)
    _check_sums(site, query)
    exposed = is_exposed(site.party, query)
    if exposed:
        site.policy.check_neighbours()
    check_own_records(
        site, Terms(agreed.spec.declaration, len(agreed.network.nodes), agreed.most_records)
    )
    records = records_of(site, agreed)
    _check_memory(site, agreed, records)
    if exposed:
        site.policy.check_exposed(records)
    if not query.starts(site.party) and site.checkpoints.get(query.same, query.first - 1) is None:
        raise ValueError(LOST)


def _check_pinned(site: SiteRole, agreed: Calibration) -> None:
    nodes = agreed.network.nodes
    if strangers := set(nodes) - {site.party} - set(site.signing_keys):
        reason = f"no signing key of {min(strangers)} is pinned here"
        raise ValueError(f"{reason}; it is the second half of what keygen prints")
    if site.dealer in nodes:  # whose key is pinned too
        raise ValueError("the dealer holds no records: it cannot be a node")


def _check_sums(site: SiteRole, query: ConsensusQuery) -> None:
    """Refuse sums that dishonest members could open."""
    groups = [(len(query.parties), query.need)]
    if not query.agreed.shown:
        hoods = _hoods(site.party, query.attendance(query.first)).values()
        groups += [(len(hood), least_of(hood)) for hood in hoods]
    for members, least in groups:
        _check_honest(site, members, least)


def _check_honest(site: SiteRole, members: int, least: int) -> None:
    """Refuse a sum that dishonest members, with an aggregator that lies, could open."""
    if not site.policy.dishonest:
        return
    corrupt = floor(site.policy.dishonest * members)
    if least - corrupt < 2:
        reason = f"fewer than two honest members could be in a sum over {members} sites"
        raise ValueError(reason)
    if compromise_probability(members, Neighbourhood(members - 1, least), corrupt):
        reason = (
            f"{corrupt} of {members} members could open the vector of another with an aggregator "
            f"that sends two lists: the sum must need more than {(members + corrupt) // 2} members,"
            f" and it needs {least}"
        )
        raise ValueError(reason)


def _hoods(party: Party, there: Attendance) -> dict[Party, tuple[Party, ...]]:
    """Return the neighbours to whose sums a site contributes, and who is in each sum."""
    return {node: hood for node, hood in summing(there).items() if party in hood}


def is_exposed(party: Party, query: ConsensusQuery) -> bool:
    """Whether neighbours see a site's own statistics, or can separate them from a sum.

    With unequal weights, a sum adds counts that are divided by different numbers. Who knows these
    finds remainders of the counts of each site by the Chinese remainder theorem. If all neighbours
    of a node's neighbours are its own, except one site, its sums of two rounds differ by what they
    had of this site.
    """
    if query.agreed.shown:
        return True
    for there in (query.attendance(query.first), query.attendance(query.first + 1)):
        if query.agreed.mixing == "metropolis" and _weighs_unequally(party, there):
            return True  # weights of a plain mean are equal
        if any(_is_alone(party, there, node, hood) for node, hood in summing(there).items()):
            return True
    return False


def _weighs_unequally(party: Party, there: Attendance) -> bool:
    """Whether neighbours have unequal weights in a sum to which a site contributes."""
    hoods = {n: h for n, h in _hoods(party, there).items() if n not in there.back}
    if not hoods:
        return False
    weights = there.network.without(there.absent | there.back).metropolis_weights()
    return any(len({weights[node][peer] for peer in hood}) > 1 for node, hood in hoods.items())


def _is_alone(party: Party, there: Attendance, node: Party, hood: tuple[Party, ...]) -> bool:
    """Whether a node's neighbours hear a site, and nobody else beside them and the node."""
    near = {node, *hood}
    beyond = (p for peer in hood for p in there.senders(peer) if p not in near)
    return next(beyond, None) == party and all(peer == party for peer in beyond)


def _check_memory(site: SiteRole, agreed: Calibration, records: int) -> None:
    """Refuse a classifier for which the records take too much memory."""
    needed = 8 * records * (agreed.classifier.width + 3 * len(agreed.classifier.classes))
    if needed > (most := site.policy.most_memory):
        reason = f"the calibration needs {needed} bytes for its records, at most {most} are allowed"
        raise ValueError(reason)


def examples_of(site: SiteRole, agreed: Calibration) -> Examples:
    """Return the site's records whose class is known."""
    batches = site_records(site, agreed.spec.declaration)
    columns, classes = zip(*(agreed.classifier.examples(b) for b in batches), strict=True)
    return Examples(np.concatenate(columns), np.concatenate(classes))


def records_of(site: SiteRole, agreed: Calibration) -> int:
    """Return how many records of a known class the site has."""
    target = agreed.spec.variables[agreed.spec.target]
    batches = site_records(site, agreed.spec.declaration)
    return sum(int((b.codes[target.name] < len(target.states)).sum()) for b in batches)
