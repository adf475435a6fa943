"""Calibration between machines: sites reach one classifier, each speaking with its neighbours.

    analyst -> sites        Consensus: classifier, network, who is there, rounds a to b
    site                    checks its policy and records; notes who will see what
    each round
      shown    u -> v       Statistics: those of u, for each neighbour v
      summed   u <-> v      masked sums: v learns the sum of its neighbours' weighted statistics
      site                  averages (or adds up), and updates with its own records
      site -> analyst       Finished: the number of the round
    sites <-> analyst       one masked sum over all sites: losses of each round, and statistics

What a node computes is in `vertibayes_protocols.calibration.nodes`. A calibration is one query, or
several of some rounds each: a site keeps its statistics in memory from one to the next. A site
whose process was started again has lost them; the next query names it in `back`.

Security: honest-but-curious sites and analyst. The query names the classifier, never statistics:
the start follows from it and from a site's own records. A site takes part only if its policy allows
exact sums, and shows its own statistics to neighbours, as they are or in sums that can be
separated, only if `exact_neighbours` does, and if it has `fewest_records`. All masks and labels
follow from the digest of the query, whose number is above all before. A site that lies can move the
statistics of all; nobody notices.
Leakage: *shown*, each neighbour sees k numbers of a site in each round: after a few rounds, they
are enough equations for its records. *Summed*, each neighbour sees the sum over the neighbourhood:
with all other neighbours but one, it has the numbers of this one. Sums with unequal weights can be
separated. The analyst sees sums over all sites;
together with all but one, it has those of the one. Sums with and without a site differ by the site,
and the analyst can say that a site is gone. Of sites that diverge, the sum says how many, not
which. There is no noise: no budget is charged, and none limits the rounds.
Cost: `shown`, one message of 8 k bytes per edge, direction and round (a relay: 16 k); `summed`, 5
messages per neighbour in each of the groups of `neighbourhood_sums`, of 8 k bytes and keys; one
short message per site and round to the analyst; 5 rounds at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor
from operator import attrgetter
from typing import ClassVar

import numpy as np

from vertibayes_mpc.errors import MalformedMessageError, ProtocolError, UnexpectedMessageError
from vertibayes_mpc.masked_sum import (
    Member,
    Neighbourhood,
    SumPlan,
    collect,
    compromise_probability,
    contribute,
)
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.calibration.classifier import Examples
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Update
from vertibayes_protocols.calibration.nodes import Attendance, AveragingNode, Node
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.queries.consensus_ledger import note_at_analyst, note_at_site
from vertibayes_protocols.queries.consensus_query import Consensus, ReleasedConsensus
from vertibayes_protocols.queries.contributing import check_number, check_own_records, site_records
from vertibayes_protocols.queries.neighbourhood_sums import (
    HEADROOM,
    Grid,
    least_of,
    plan_over,
    sum_neighbours,
    summing,
    tolerant,
)
from vertibayes_protocols.queries.terms import Terms
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.session import Conversation

LOST = "its process was started again, and it has lost its statistics of this calibration"
TRACED = 5  # numbers of a round: soft loss, errors, records, repairs, sites that diverge
LARGEST = 1e14  # of a node's statistics
SOFT = 1 << 20  # steps of a record's soft loss
NOTHING = Update(np.zeros(0), np.zeros(()), np.zeros((), np.int64), np.zeros((), np.int64))


@dataclass(frozen=True, slots=True)
class Statistics(Message):
    """A node's message of a round to a neighbour, under the query's digest: shape (length,)."""

    kind: ClassVar[str] = "calibration statistics"
    query: bytes
    round: int
    values: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finished(Message):
    """A site has finished a round."""

    kind: ClassVar[str] = "calibration round finished"
    round: int


# ---- before a site agrees ------------------------------------------------------------------------


def _consider(site: SiteRole, query: Consensus) -> None:
    with refusing(site.party):
        agreed = query.agreed()
    if site.party not in query.parties:
        raise QueryRefusedError(site.party, "it is not among the nodes that are asked")
    _check_pinned(site, query)
    _check_policy(site, query, agreed)
    exposed = _is_exposed(site, query, agreed)
    if exposed:
        site.policy.check_neighbours(site.party)
    check_number(site, query)
    check_own_records(site, _terms(agreed))  # from here on, reasons say something of the data
    records = _records(site, agreed)
    _check_memory(site, agreed, records)
    if exposed:
        site.policy.check_exposed(site.party, records)
    if not _starts(site, query) and site.checkpoints.get(query.same, query.first - 1) is None:
        raise QueryRefusedError(site.party, LOST)


def _check_pinned(site: SiteRole, query: Consensus) -> None:
    if strangers := set(query.nodes) - {site.party} - set(site.signing_keys):
        reason = f"no signing key of {min(strangers)} is pinned here"
        raise QueryRefusedError(
            site.party, f"{reason}; it is the second half of what keygen prints"
        )
    if site.dealer in query.nodes:  # whose key is pinned too
        raise QueryRefusedError(site.party, "the dealer holds no records: it cannot be a node")


def _check_policy(site: SiteRole, query: Consensus, agreed: Calibration) -> None:
    policy, spec = site.policy, agreed.spec
    policy.check_exact(site.party)
    policy.check_shown(site.party, (*spec.variables, *spec.numerics))
    sizes = [(len(family.members), 0) for family in spec.tables]
    policy.check_tables(site.party, [*sizes, (0, spec.cells)])
    groups = [(len(query.parties), len(query.parties) - query.most_gone)]
    if not agreed.shown:
        hoods = _hoods(site, query.attendance(agreed, query.first)).values()
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
        raise QueryRefusedError(site.party, reason)
    if compromise_probability(members, Neighbourhood(members - 1, least), corrupt):
        reason = (
            f"{corrupt} of {members} members could open the vector of another with an aggregator "
            f"that sends two lists: the sum must need more than {(members + corrupt) // 2} members,"
            f" and it needs {least}"
        )
        raise QueryRefusedError(site.party, reason)


def _hoods(site: SiteRole, there: Attendance) -> dict[Party, tuple[Party, ...]]:
    """Return the neighbours to whose sums the site contributes, and who is in each sum."""
    return {node: hood for node, hood in summing(there).items() if site.party in hood}


def _is_exposed(site: SiteRole, query: Consensus, agreed: Calibration) -> bool:
    """Whether neighbours see the site's own statistics, or can separate them from a sum.

    With unequal weights, a sum adds counts that are divided by different numbers. Who knows these
    finds remainders of the counts of each site by the Chinese remainder theorem. If all neighbours
    of a node's neighbours are its own, except one site, its sums of two rounds differ by what they
    had of this site.
    """
    if agreed.shown:
        return True
    first, later = (query.attendance(agreed, query.first + i) for i in range(2))
    for there in (first, later):
        hoods = _hoods(site, there)
        if any(len(set(there.weights(node, agreed.mixing).values())) > 1 for node in hoods):
            return True
        for node, hood in summing(there).items():
            if {p for peer in hood for p in there.senders(peer)} - {node, *hood} == {site.party}:
                return True
    return False


def _check_memory(site: SiteRole, agreed: Calibration, records: int) -> None:
    """Refuse a classifier for which the records take too much memory."""
    needed = 8 * records * (agreed.classifier.width + 3 * len(agreed.classifier.classes))
    if needed > (most := site.policy.most_memory):
        reason = f"the calibration needs {needed} bytes for its records, at most {most} are allowed"
        raise QueryRefusedError(site.party, reason)


def _terms(agreed: Calibration) -> Terms:
    """Return what a site must have, as terms of a sum."""
    return Terms(agreed.spec.declaration, len(agreed.network.nodes), agreed.most_records)


def _examples(site: SiteRole, agreed: Calibration) -> Examples:
    """Return the site's records whose class is known."""
    batches = site_records(site, agreed.spec.declaration)
    columns, classes = zip(*(agreed.classifier.examples(b) for b in batches), strict=True)
    return Examples(np.concatenate(columns), np.concatenate(classes))


def _records(site: SiteRole, agreed: Calibration) -> int:
    """Return how many records of a known class the site has."""
    target = agreed.spec.variables[agreed.spec.target]
    batches = site_records(site, agreed.spec.declaration)
    return sum(int((b.codes[target.name] < len(target.states)).sum()) for b in batches)


def _starts(site: SiteRole, query: Consensus) -> bool:
    """Whether the site begins with its start, and not with what it had."""
    return query.first == 1 or site.party in query.back


def _node(site: SiteRole, query: Consensus, agreed: Calibration) -> Node:
    """Return the node at its start, or as of the round before."""
    if _starts(site, query):
        return agreed.node(site.party, _examples(site, agreed))
    node = site.checkpoints.get(query.same, query.first - 1)
    assert node is not None  # `_consider`
    return node


# ---- the site ------------------------------------------------------------------------------------


def _site(site: SiteRole, query: Consensus) -> Program[None]:
    agreed = query.agreed()
    node = _node(site, query, agreed)
    site.memory.sum(query.number, Cost(), query.analyst)
    exposed = _is_exposed(site, query, agreed)
    note_at_site(site, query, agreed, node.length, exposed=exposed)
    records, trace, diverged = _records(site, agreed), [], not _fits(node)
    if diverged:
        node = _without_records(site, agreed)
    last = query.first + query.rounds - 1
    for number in range(query.first, last + 1):
        first = yield from _round(site, query, agreed, node, number)
        if first is None:  # in which round tells of the records: it continues without them
            node, diverged, first = _without_records(site, agreed), True, NOTHING
            site.ledger.note(f"its statistics diverge in round {number}", site.party, ())
        soft = np.rint(SOFT * first.soft)
        numbers = [soft, first.errors, records, first.repairs, diverged]
        trace.append(np.array(numbers, np.int64))
        yield from tolerant(send({site.analyst: Finished(number)}))
    site.checkpoints.keep(query.same, query.first - 1, last, node)
    values = np.concatenate(trace)
    if query.reveal and not diverged and site.calibrated is not None:
        site.calibrated(query.number, agreed.spec, node.model)
    if query.reveal:
        model = Grid(len(query.parties)).encode(site.party, node.model.reshape(-1))
        values = np.concatenate([values, model])
    plan = _plan(query, agreed, {**site.signing_keys, site.party: site.signing.public})
    member = Member(site.party, site.signing)
    yield from tolerant(contribute(member, plan, values, site.analyst, site.randomness))


def _without_records(site: SiteRole, agreed: Calibration) -> Node:
    """Return a node at a start that no record has an influence on."""
    none = Examples(np.zeros((0, agreed.classifier.width)), np.zeros(0, np.int64))
    return agreed.node(site.party, none)


def _round(
    site: SiteRole, query: Consensus, agreed: Calibration, node: Node, number: int
) -> Program[Update | None]:
    """Take part in one round; return what the site's records say of what it received.

    Return None if the statistics diverge.
    """
    there = query.attendance(agreed, number)
    digest = query.digest
    if agreed.shown:
        outbox = {p: Statistics(digest, number, v) for p, v in node.outgoing(there).items()}
        expect = dict.fromkeys(there.senders(site.party), Expect(Statistics, node.length + 64))
        messages = yield from exchange(outbox, expect, need=0)
        received = {p: _numbers(p, m, digest, number, node.length) for p, m in messages.items()}
        return _updated(node, lambda: node.receive(there, received))
    assert isinstance(node, AveragingNode)  # relays are shown
    vectors = {
        peer: there.weights(peer, agreed.mixing)[site.party] * values / agreed.size
        for peer, values in node.outgoing(there).items()
    }
    name = label("round of a calibration", digest, number)
    total, heard = yield from sum_neighbours(site, there, vectors, node.length, name)
    return _updated(node, lambda: node.add(there, total * agreed.size, heard))


def _updated(node: Node, step: Callable[[], Update]) -> Update | None:
    """Return the update of a round; None if the node then has statistics that no sum can hold."""
    try:
        first = step()
    except ValueError:
        return None
    return first if _fits(node) else None


def _fits(node: Node) -> bool:
    """Whether a sum can hold the node's statistics."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(node.model) <= 2.0**HEADROOM).all())  # a nan is not


def _numbers(sender: Party, message: Statistics, digest: bytes, number: int, length: int) -> Floats:
    """Return what a neighbour has sent, or blame it for what no node sends."""
    values = message.values
    if message.query != digest:
        raise UnexpectedMessageError(sender, "was sent another query")
    if message.round != number:
        reason = f"sent statistics of round {message.round} in round {number}"
        raise UnexpectedMessageError(sender, reason)
    fits = values.shape == (length,) and values.dtype == np.float64
    if not fits or not (np.abs(values) <= LARGEST).all():  # a nan is not
        raise MalformedMessageError(sender, f"sent no {length} numbers of at most {LARGEST:g}")
    return values


def _plan(query: Consensus, agreed: Calibration, keys: dict[Party, bytes]) -> SumPlan:
    """Return the plan of the sum at the end."""
    width = len(agreed.classifier.classes) * agreed.classifier.width
    members = {party: keys[party] for party in query.parties}
    length = TRACED * query.rounds + width * query.reveal
    name = label("end of a calibration", query.digest)
    return plan_over(name, members, length, len(members) - query.most_gone)


# ---- the analyst ---------------------------------------------------------------------------------


def _analyst(analyst: AnalystRole, query: Consensus) -> Program[ReleasedConsensus]:
    agreed, left = query.agreed(), query.parties
    for _ in range(query.rounds):
        beats = yield from exchange({}, dict.fromkeys(left, Expect(Finished)), need=1)
        left = tuple(beats)
    total = yield from collect(_plan(query, agreed, dict(analyst.signing_keys)), left)
    note_at_analyst(analyst.ledger, query, agreed, total.parties, analyst.party)
    return _released(query, agreed, total.values, total.parties)


def _released(
    query: Consensus, agreed: Calibration, values: np.ndarray, parties: Sequence[Party]
) -> ReleasedConsensus:
    end = TRACED * query.rounds
    soft, errors, records, repairs, diverged = values[:end].reshape(-1, TRACED).T
    if diverged.any():
        place = int(np.flatnonzero(diverged)[0])
        reason = f"the statistics of {diverged[place]} of these {len(parties)} sites diverge in"
        reason = f"{reason} round {query.first + place}: specify a lower learning rate"
        raise ProtocolError(tuple(parties), reason)
    statistics = None
    if query.reveal:
        shape = len(agreed.classifier.classes), agreed.classifier.width
        sums = Grid(len(query.parties)).decode(values[end:]).reshape(shape)
        statistics = sums / len(parties)
    return ReleasedConsensus(statistics, soft / SOFT, errors, records, repairs, tuple(parties))


CONSENSUS = Conversation(Consensus, _analyst, attrgetter("need")).side(SiteRole, _consider, _site)
