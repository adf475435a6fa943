"""Alignment at level 2: the sites share the rows of the study's people, and nobody knows who.

    site, dealer -> each other    Recall, with an ephemeral public key   (queries.alignment.align)
    all                           blinded identifiers with masked rows   (vertibayes_mpc.alignment)
    site -> analyst               Held: the name of the alignment, and how many people it has

A row has the person's values in every form in which a study may commit them: indicators, codes,
flags of missing values. A site describes its states and bins over its whole list, because it does
not know who is in the study. The result equals pooled learning under these states and bins.

Afterwards every site is a holder of every column: `Commit` commits the shares, under other masks in
each session. The sites keep the shares on disk by the id of the study.

Record sets are sets of places. All sites know the places, so that atoms are checked within the
study as always. Between studies a site cannot see whether one person came or went. It therefore
refuses if fewer than `fewest_records` people, but not 0, came to its list or left it since an
earlier study, or if this study and another record set differ in size by so few.

Security: as `vertibayes_mpc.alignment` and `vertibayes_mpc.commitments`. Of all sites, each but the
first draws its shares from streams that it has with the dealer. The first site's shares are the
masked rows, less what the dealer sends to it alone. So the shares of all sites but one are uniform
whatever the rows are: the missing share is a stream, or it is masked by the dealer's message. This
also holds for the columns of a site's own table, of which it knows all values, but not at which
places. The dealer receives no row. The places that it receives are uniform, because the owner of a
list keeps its first order to itself; so dealer and analyst together learn no row and no person.
Leakage: to all sites and the dealer how many people are in the study, and the names, states and
sites of the columns; to the analyst how many people are in which of the lists. Not hidden: what the
tables themselves say. If a cell of a site's own columns is 0, or as large as in its whole list,
then whoever knows both learns of each such person whether it is in the study (docs/alignment.md).
Cost: as `vertibayes_mpc.alignment`, and one round. A row takes 14 to 32 bits for each indicator
(`Ring.holding`), 3 bytes for each code and 6 for each flag of missing values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment import AlignmentPlan, Member, share_people
from vertibayes_mpc.alignment.curve import POINT_BYTES
from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES
from vertibayes_mpc.randomness import KeyPair, StreamKey, label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.key_agreement import Own, Peer, session_stream
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.site.hidden_rows import CarriedColumns, HiddenRows
from vertibayes_protocols.storage.alignments import KeptAlignment
from vertibayes_protocols.storage.record_sets import distinct

HOW_MANY = "how many of their people are in the study"
ROW_MASKS = "masks of aligned rows, shared with the dealer"
CARRIED = "carried"
LESS = "align fewer variables, or those of fewer states"


@dataclass(frozen=True, slots=True)
class Held(Message):
    """The name of the alignment whose rows the sender holds, and the number of rows."""

    kind: ClassVar[str] = "held"
    name: bytes
    people: int


# ---- what a party agrees to ----------------------------------------------------------------------


def memory_of(alignment: Alignment, carried: CarriedColumns) -> int:
    """Return how many bytes of memory an alignment takes at one party, at most.

    A site has its own rows, the list that it sends, the one that arrives, and the latter in its
    next order. At the end the first site has its own rows, the last list, the shares of all rows,
    and the masks of one list before and after they are subtracted. Then shares become columns. The
    dealer has less.
    """
    longest = max(
        size * (POINT_BYTES + sum(ring.dtype.itemsize for ring in carried.rings(site)))
        for site, size in alignment.sizes
    )
    shares = min(alignment.size.values()) * carried.stored_bytes
    return 4 * longest + 2 * shares


def check_own(site: SiteRole, carried: CarriedColumns) -> None:
    """Refuse columns that a site does not show, and a list that changed by a few people."""
    for name, owner in carried.owners.items():
        if owner == site.party and site.shown.get(name) != carried.variables[name]:
            raise ValueError(f"it shows no variable {name!r} with these states")
    people = distinct(site.record_digests)
    site.memory.changes.check_people(people, site.policy.fewest_records)


# ---- the run -------------------------------------------------------------------------------------


def dealer_key(
    role: SiteRole | DealerRole, peer: Party, fresh: KeyPair, key: bytes, plan: AlignmentPlan
) -> StreamKey:
    """Return the key of a site and the dealer in one run, from their static and ephemeral keys."""
    ends = Own(role.party, role.keys, fresh), Peer(peer, role.public_keys[peer], key)
    return session_stream(*ends, ROW_MASKS, plan.label)


def share_rows(
    site: SiteRole,
    member: Member,
    carried: CarriedColumns,
    plan: AlignmentPlan,
    alignment: Alignment,
) -> Program[KeptAlignment]:
    """Share the rows of the study's people; return what the site keeps."""
    data = site.everybody
    own = data.identifiers
    assert own is not None  # considered
    mine = {name: data.codes[name][own.records] for name in carried.of(site.party)}
    shared = yield from share_people(member, plan, own.forms, carried.rows(site.party, mine))
    name = label("aligned rows", plan.label, shared.people)
    rows = HiddenRows(name, plan.sites, shared.people, carried, carried.stacked(shared.shares))
    people = site.memory.people_digest(own)
    return KeptAlignment(alignment.digest, people, shared.people, _arrays(rows))


def say_held(site: SiteRole) -> Program[None]:
    """Send the analyst the name of the alignment."""
    assert site.hidden is not None  # it was taken
    yield from send({site.analyst: Held(site.hidden.alignment, site.hidden.records)})


def hear_held(sites: Sequence[Party]) -> Program[Held]:
    """Return the name of the alignment, and how many people it has, as all sites say it."""
    said = yield from exchange({}, dict.fromkeys(sites, Expect(Held, LABEL_BYTES)))
    (first, held), *others = said.items()
    for site, other in others:
        if other != held:
            reason = f"{first} and {site} hold the rows of different alignments"
            raise UnknownFaultyPartyError((first, site), reason)
    if len(held.name) != LABEL_BYTES:
        raise MalformedMessageError(first, "the name of the alignment has a wrong length")
    return held


# ---- what a site keeps ---------------------------------------------------------------------------


def _arrays(rows: HiddenRows) -> dict[str, NDArray[Any]]:
    carried = rows.carried
    notes = {
        "name": rows.alignment.hex(),
        "most_indicators": carried.most_indicators,
        "size": carried.size,
        "columns": carried.described,
    }
    arrays: dict[str, NDArray[Any]] = {CARRIED: np.frombuffer(json.dumps(notes).encode(), np.uint8)}
    for place, name in enumerate(carried.variables):
        arrays |= {f"{form}{place}": share for form, share in rows.shares[name].items()}
    return arrays


def kept_rows(sites: Sequence[Party], kept: KeptAlignment) -> HiddenRows:
    """Return the rows that a site has kept."""
    try:
        notes = json.loads(kept.arrays[CARRIED].tobytes())
        numbers = notes["most_indicators"], notes["size"]
        carried = CarriedColumns.of_described(notes["columns"], *numbers)
        shares = {
            name: {form.name: kept.arrays[f"{form.name}{place}"] for form in carried.forms(name)}
            for place, name in enumerate(carried.variables)
        }
        named = bytes.fromhex(notes["name"]), tuple(sorted(sites))
        return HiddenRows(*named, kept.records, carried, shares)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the rows of the study are damaged: {error}") from None
