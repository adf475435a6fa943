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

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from vertibayes_mpc.errors import MalformedMessageError, ProtocolError, UnexpectedMessageError
from vertibayes_mpc.masked_sum import Member, SumPlan, collect, contribute
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.approval import Use
from vertibayes_protocols.calibration.agreed import Calibration
from vertibayes_protocols.calibration.classifier import Examples
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Update
from vertibayes_protocols.calibration.nodes import AveragingNode, Checkpoints, Node
from vertibayes_protocols.effects import Effects, Later, Number, RecordStatistics
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.calibration.consensus_query import (
    ConsensusQuery,
    ReleasedConsensus,
    check_site,
    examples_of,
    is_exposed,
    records_of,
)
from vertibayes_protocols.queries.calibration.neighbourhood_sums import (
    HEADROOM,
    Grid,
    least_of,
    plan_over,
    sum_neighbours,
    summing,
    tolerant,
)
from vertibayes_protocols.query import At, Give
from vertibayes_protocols.roles import AnalystRole, SiteRole

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


@dataclass(frozen=True, slots=True)
class Consensus(ConsensusQuery):
    """Ask sites for some rounds of a calibration; the fields are those of `ConsensusQuery`."""

    kind: ClassVar[str] = "consensus"

    def plan(self, at: At) -> Calibration:
        """Return what is calibrated."""
        if set(self.parties) != set(self.asked):
            raise ValueError("the parties must be the nodes that are not absent")
        if at.party not in (*self.parties, at.analyst):
            raise ValueError("it is not among the nodes that are asked")
        return self.agreed

    def effects(self, plan: Calibration, at: At) -> Effects:
        """Return the effects: exact sums over all sites, and what neighbours see."""
        if at.party == at.analyst:
            return self._effects(plan, [fact_of_analyst(self, self.parties, at.analyst)])
        return self._effects(plan, Later(partial(facts_of_site, self, at.party, at.analyst)))

    def revealed(self, plan: Calibration, at: At, result: ReleasedConsensus) -> Effects:
        """Return the effects over the sites that have finished."""
        return self._effects(plan, [fact_of_analyst(self, result.parties, at.analyst)])

    def _effects(self, plan: Calibration, says: Iterable[Fact]) -> Effects:
        spec = plan.spec
        return Effects(
            asks=self.asked,
            columns=(*spec.variables, *spec.numerics),
            tables=(*((len(family.members), 0) for family in spec.tables), (0, spec.cells)),
            counts=None,
            takes=(),
            number=Number(self.number, self.analyst),
            leaves=RecordStatistics(None, None),
            says=says,
            opens=(),
        )

    def fits(self, site: SiteRole, plan: Calibration) -> None:
        """Refuse what the site's keys, policy on neighbours, records or memory do not fit."""
        check_site(site, self)

    def uses_run(self, party: Party, checkpoints: Checkpoints) -> Use:
        """Return that a start, or rounds that began before, begin a run; the reveal uses it up.

        Rounds that are asked again begin a run, too, also if they broke, because sums over
        different sites differ by the numbers of one site.
        """
        is_again = checkpoints.begin(self.same, self.first, self.end)
        return Use(begins=is_again or self.starts(party), ends=self.reveal)

    def run_site(self, site: SiteRole, plan: Calibration, give: Give) -> Program[None]:
        """Take part in the rounds, and in the sum at the end."""
        node = _node(site, self)
        records, trace, diverged = records_of(site, plan), [], not _fits(node)
        if diverged:
            node = _without_records(site, plan)
        for number in range(self.first, self.end + 1):
            first = yield from _round(site, self, node, number)
            if first is None:  # in which round tells of the records: it continues without them
                node, diverged, first = _without_records(site, plan), True, NOTHING
                site.ledger.note(f"its statistics diverge in round {number}", site.party, ())
            soft = np.rint(SOFT * first.soft)
            numbers = [soft, first.errors, records, first.repairs, diverged]
            trace.append(np.array(numbers, np.int64))
            yield from tolerant(send({site.analyst: Finished(number)}))
        site.checkpoints.keep(self.same, self.first - 1, self.end, node)
        values = np.concatenate(trace)
        if self.reveal and not diverged and site.calibrated is not None:
            site.calibrated(self.number, plan.spec, node.model)
        if self.reveal:
            model = Grid(len(self.parties)).encode(site.party, node.model.reshape(-1))
            values = np.concatenate([values, model])
        sum_plan = _plan(self, {**site.signing_keys, site.party: site.signing.public})
        member = Member(site.party, site.signing)
        yield from tolerant(contribute(member, sum_plan, values, site.analyst, site.randomness))

    def run_analyst(self, analyst: AnalystRole, plan: Calibration) -> Program[ReleasedConsensus]:
        """Await the ends of the rounds, and open the sum over the sites that are left."""
        left = self.parties
        for _ in range(self.rounds):
            beats = yield from exchange({}, dict.fromkeys(left, Expect(Finished)), need=1)
            left = tuple(beats)
        total = yield from collect(_plan(self, dict(analyst.signing_keys)), left)
        end, parties = TRACED * self.rounds, total.parties
        traces = total.values[:end].reshape(-1, TRACED).T
        soft, errors, records, repairs, diverged = traces
        _check_diverged(self, diverged, parties)
        statistics = None
        if self.reveal:
            shape = len(plan.classifier.classes), plan.classifier.width
            sums = Grid(len(self.parties)).decode(total.values[end:]).reshape(shape)
            statistics = sums / len(parties)
        return ReleasedConsensus(statistics, soft / SOFT, errors, records, repairs, tuple(parties))


# ---- the site ------------------------------------------------------------------------------------


def _node(site: SiteRole, query: ConsensusQuery) -> Node:
    """Return the node at its start, or as of the round before."""
    if query.starts(site.party):
        return query.agreed.node(site.party, examples_of(site, query.agreed))
    node = site.checkpoints.get(query.same, query.first - 1)
    assert node is not None  # `check_site`
    return node


def _without_records(site: SiteRole, agreed: Calibration) -> Node:
    """Return a node at a start that no record has an influence on."""
    none = Examples(np.zeros((0, agreed.classifier.width)), np.zeros(0, np.int64))
    return agreed.node(site.party, none)


def _round(
    site: SiteRole, query: ConsensusQuery, node: Node, number: int
) -> Program[Update | None]:
    """Take part in one round; return what the records say of what came, None if they diverge."""
    agreed, there, digest = query.agreed, query.attendance(number), query.digest
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
    if values.shape != (length,) or not (np.abs(values) <= LARGEST).all():  # a nan is not
        raise MalformedMessageError(sender, f"sent no {length} numbers of at most {LARGEST:g}")
    return values


def _plan(query: ConsensusQuery, keys: dict[Party, bytes]) -> SumPlan:
    """Return the plan of the sum at the end."""
    classifier = query.agreed.classifier
    width = len(classifier.classes) * classifier.width
    members = {party: keys[party] for party in query.parties}
    length = TRACED * query.rounds + width * query.reveal
    name = label("end of a calibration", query.digest)
    return plan_over(name, members, length, query.need)


# ---- the analyst ---------------------------------------------------------------------------------


def _check_diverged(
    query: ConsensusQuery, diverged: np.ndarray, parties: tuple[Party, ...]
) -> None:
    """Blame all sites if some have diverged: the sum does not say which."""
    if diverged.any():
        place = int(np.flatnonzero(diverged)[0])
        reason = f"the statistics of {diverged[place]} of these {len(parties)} sites diverge in"
        reason = f"{reason} round {query.first + place}: specify a lower learning rate"
        raise ProtocolError(tuple(parties), reason)


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
