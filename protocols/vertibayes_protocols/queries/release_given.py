"""What a site keeps, charges and notes when it gives a release, and the same release given again.

The figure, and why no site sends its share before all have kept theirs, are in
`vertibayes_protocols.queries.release_query`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vertibayes_mpc.errors import ProtocolError, UnknownFaultyPartyError
from vertibayes_mpc.extras import load
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_elements
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.queries.release_plan import ReleaseNoise, ReleasePlan
from vertibayes_protocols.queries.tables import COMPLETE
from vertibayes_protocols.release import Rule
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, RunRecord
from vertibayes_protocols.variables import Rows

AGAIN = "released tables that the analyst has not received are given to it again, byte for byte"


@dataclass(frozen=True, slots=True)
class Counted(Labelled):
    """The sender has kept its share of the release; without elements."""

    kind: ClassVar[str] = "counted"


@dataclass(frozen=True, slots=True)
class KeptShare(Labelled):
    """The share that a site has kept, with the label of the release that it is of."""

    kind: ClassVar[str] = "kept share"


def check_budgets(site: SiteRole, plan: ReleasePlan) -> None:
    """Refuse a release that exceeds a budget of the site's policy, or whose noise it cannot add."""
    site.policy.check_released(site.party, site.memory.released, *size_of(plan, site.analyst))
    if plan.noise is not None:
        check_noise(site, plan.tables.rule, plan.noise)


def check_noise(site: SiteRole, rule: Rule, noise: ReleaseNoise) -> None:
    """Refuse noise that the site cannot add, or that exceeds its budget."""
    if rule.kind == "laplace":  # with gaussian, the noise of each site suffices
        site.policy.check_dishonest(site.party, rule.dishonest)
    else:
        try:
            load("opendp.measurements", "noise")
        except ImportError as error:
            raise QueryRefusedError(site.party, str(error)) from None
    site.policy.check_budget(site.party, site.memory.spent, noise.cost)


def record_of(site: SiteRole) -> RunRecord | None:
    """Return what a site remembers of the run of an approved study; None outside of one."""
    if site.run is None or site.joined is None:
        return None
    return site.memory.run_of(site.run.approved.contract.digest, site.joined.study.id)


def revealed_tables(plan: ReleasePlan, analyst: Party) -> list[RevealedTable]:
    """Return the tables of a release, as a ledger has them."""
    words, states = plan.tables.rule.words, plan.states
    families = dict.fromkeys(plan.tables.families)
    sizes = {family: prod(states[name] for name in family.members) for family in families}
    return [
        RevealedTable(family.members, cells, analyst, Rows(), words)
        for family, cells in sizes.items()
    ]


def size_of(plan: ReleasePlan, analyst: Party) -> tuple[int, int]:
    """Return the number of revealed tables, and of their cells together."""
    revealed = revealed_tables(plan, analyst)
    return len(revealed), sum(table.cells for table in revealed)


def give(site: SiteRole, plan: ReleasePlan) -> None:
    """Note a release in memory and ledger, before its first byte is sent.

    Raises
    ------
    ProtocolError
        If another session has spent the budget since the site agreed.
    """
    try:
        check_budgets(site, plan)
    except QueryRefusedError as refusal:  # it is too late to refuse
        raise ProtocolError(site.party, refusal.reason) from None
    contract = None if site.run is None else site.run.approved.contract.digest
    cost = None if plan.noise is None else plan.noise.cost
    site.memory.give(*size_of(plan, site.analyst), cost, contract)
    site.ledger.open(revealed_tables(plan, site.analyst))
    site.note_budget()
    for table in plan.counted.shuffles.dropping:
        others = tuple(sorted(set(table.chain) - {site.party}))
        site.ledger.note(COMPLETE, site.party, others)


def all_have_counted(party: Party, plan: ReleasePlan) -> Program[None]:
    """Wait until all sites have kept their shares."""
    ring, name = plan.ring, label("counted", plan.label)
    peers = [peer for peer in plan.study.sites if peer != party]
    ours = Counted(np.zeros(0, ring.dtype), name)
    expect = dict.fromkeys(peers, Expect(Counted, LABEL_BYTES + 1))
    received = yield from exchange(dict.fromkeys(peers, ours), expect)
    for peer, message in received.items():
        labelled_elements(message, peer, ring, (0,), name)


def given_again(site: SiteRole, plan: ReleasePlan) -> Program[None]:
    """Send the share that was kept; note the release if it has not been noted."""
    record = record_of(site)
    assert record is not None  # considered
    if record.state == GIVEN:
        site.ledger.note(AGAIN, site.party, (site.analyst,))
    else:
        give(site, plan)
    yield from send({site.analyst: KeptShare(record.share, record.label)})


def open_kept(plan: ReleasePlan) -> Program[Elements]:
    """Add up the shares that the sites have kept: they must be of one release."""
    sites, count = plan.study.sites, plan.counted.products.cells
    expect = dict.fromkeys(sites, Expect(KeptShare, max(count, 1) + LABEL_BYTES))
    kept = yield from exchange({}, expect)
    name = kept[sites[0]].label
    if any(message.label != name for message in kept.values()):
        raise UnknownFaultyPartyError(sites, "the shares that they kept are of two releases")
    total = np.zeros(count, plan.ring.dtype)
    for site, message in kept.items():
        total = total + labelled_elements(message, site, plan.ring, (count,), name)
    return plan.ring.reduce(total)
