"""What a site keeps of a release, and the same release given again.

The figure, and why no site sends its share before all have kept theirs, are in
`vertibayes_protocols.queries.releases.release`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_elements
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_protocols.queries.releases.plan import ReleasePlan
from vertibayes_protocols.query import Give
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, RunRecord

AGAIN = "released tables that the analyst has not received are given to it again, byte for byte"


@dataclass(frozen=True, slots=True)
class Counted(Labelled):
    """The sender has kept its share of the release; without elements."""

    kind: ClassVar[str] = "counted"


@dataclass(frozen=True, slots=True)
class KeptShare(Labelled):
    """The share that a site has kept, with the label of the release that it is of."""

    kind: ClassVar[str] = "kept share"


def record_of(site: SiteRole) -> RunRecord | None:
    """Return what a site remembers of the run of an approved study; None outside of one."""
    if site.run is None or site.joined is None:
        return None
    return site.memory.run_of(site.run.approved.contract.digest, site.joined.study.id)


def all_have_counted(party: Party, plan: ReleasePlan) -> Program[None]:
    """Wait until all sites have kept their shares."""
    ring, name = plan.ring, label("counted", plan.label)
    peers = [peer for peer in plan.study.sites if peer != party]
    ours = Counted(np.zeros(0, ring.dtype), name)
    expect = dict.fromkeys(peers, Expect(Counted, LABEL_BYTES + 1))
    received = yield from exchange(dict.fromkeys(peers, ours), expect)
    for peer, message in received.items():
        labelled_elements(message, peer, ring, (0,), name)


def give_again(site: SiteRole, give: Give) -> Program[None]:
    """Send the share that was kept; give the release if it has not been given."""
    record = record_of(site)
    assert record is not None  # considered
    if record.state == GIVEN:
        site.ledger.note(AGAIN, site.party, (site.analyst,))
    else:
        give()
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
