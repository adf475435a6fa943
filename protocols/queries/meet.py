"""Meet: the parties of a study agree on who they are; the sites, that their records are the same.

    analyst -> sites, dealer   Meet: names and public keys of all, as the study has them
    site -> sites              Point, Confirmation: are our lists of identifiers equal?  (mpc.cpace)
    site -> analyst            Met: whose records differ from its own, and how many these are

A site refuses a study that names another dealer, or another key for a party, than it has pinned:
an analyst who could name the dealer could read everything. What the sites compare is their list of
identifiers in the order of their records, under a key of the two sites alone: a missing record, a
foreign one or another order make it another list. A site commits to no study with a site that it
has not met, or whose list differs (`protocols.queries.commit`).

Security: dealer, relay and an analyst who is not a site learn nothing of the identifiers: the key
is the two sites'. A *site*, even with the analyst, tests one guess of another's whole list in a
run, its own list if it is honest; nothing that it receives is of use for testing more afterwards,
and runs since the last that ended in equal lists are counted, before a peer can have learned of it
(`most_failed_meets`).
A site that lies makes the run end and is among those named. A site that knows the list can claim to
hold the records: what it then commits is its lie, as any column may be (docs/threat-model.md).
Leakage: for each two sites whether their lists are equal, to both and to the analyst, who also
learns the numbers of records. Cost: 3 rounds, some 500 bytes between two sites.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from mpc.cpace import prefixed, same_secret
from mpc.errors import MalformedMessageError
from mpc.randomness import KeyPair, label
from mpc.rounds import Expect, Message, Party, Program, exchange, send
from protocols.errors import QueryRefusedError, RecordsDifferError
from protocols.public_keys import encode_public
from protocols.roles import AnalystRole, DealerRole, SiteRole
from protocols.session import Conversation, Query
from protocols.site.data import SiteData
from protocols.wire import VERSION

SAME_RECORDS = "records of two sites, compared"
SESSION_BYTES = 16
REVEALED = "whether its records are the same, in the same order"
AS_WRITTEN = (
    "Identifiers are compared as they are written: outer spaces, upper and lower case and leading "
    "zeros make another person"
)
NAME_CELLS = 256  # characters of a name, at most


@dataclass(frozen=True, slots=True)
class Meet(Query[None]):
    """Ask parties to agree on who they are: the sites and, last of `parties`, the dealer.

    `keys` are the parties' public keys, in their order; `session` is drawn anew for each run;
    `version` is that of what parties say to each other.
    """

    kind: ClassVar[str] = "meet"
    keys: tuple[bytes, ...]
    session: bytes
    version: int = VERSION

    @classmethod
    def of(cls, analyst: AnalystRole, sites: Sequence[Party], dealer: Party) -> Meet:
        """Return the query for the parties of a study, with the keys that the analyst has."""
        parties = (*sites, dealer)
        keys = tuple(analyst.public_keys.get(party, b"") for party in parties)
        return cls(parties, keys, analyst.randomness.bytes(SESSION_BYTES))


@dataclass(frozen=True, slots=True)
class Met(Message):
    """The sites whose records differ from the sender's, and the number of these."""

    kind: ClassVar[str] = "met"
    different: tuple[str, ...]
    records: int


def _check(
    party: Party, keys: KeyPair, pinned: Mapping[Party, bytes], dealer: Party, query: Meet
) -> None:
    """Refuse parties that are not those of a party's own configuration."""
    if query.version != VERSION:
        reason = f"it speaks version {VERSION} of the protocols, the analyst {query.version}"
        raise QueryRefusedError(party, f"{reason}: the same release of vertibayes is wanted")
    *sites, named = query.parties or ("",)
    if named != dealer:
        reason = f"the study names {named!r} as the dealer, the dealer pinned here is {dealer!r}"
        raise QueryRefusedError(party, reason)
    if len(query.keys) != len(query.parties) or len(query.session) != SESSION_BYTES:
        raise QueryRefusedError(party, "a public key for each party is wanted, and a session")
    if len({*query.parties}) < len(query.parties) or not sites:
        raise QueryRefusedError(party, "the study has no sites, or names a party twice")
    known = {**pinned, party: keys.public}
    for name, key in zip(query.parties, query.keys, strict=True):
        if name not in known:
            raise QueryRefusedError(party, f"no public key of {name!r} is pinned here")
        if key != known[name]:
            theirs = encode_public(key) if key else "none"
            reason = (
                f"the study has another public key for {name!r} than is pinned here: {theirs}, "
                f"here {encode_public(known[name])}"
            )
            raise QueryRefusedError(party, reason)


def _consider_at_site(site: SiteRole, query: Meet) -> None:
    _check(site.party, site.keys, site.public_keys, site.dealer, query)
    if site.party not in query.parties:
        raise QueryRefusedError(site.party, "it is not among the parties of the study")
    others = tuple(party for party in query.parties[:-1] if party != site.party)
    for peer in others if site.data.ids is not None else ():
        if site.memory.failed_meets(peer) >= site.policy.most_failed_meets:
            reason = (
                f"{site.policy.most_failed_meets} comparisons with {peer} did not end in equal "
                "lists: if these were not guesses, allow more by most_failed_meets of its policy"
            )
            raise QueryRefusedError(site.party, reason)
    site.ledger.note(REVEALED, site.party, (*others, site.analyst))


def _consider_at_dealer(dealer: DealerRole, query: Meet) -> None:
    _check(dealer.party, dealer.keys, dealer.public_keys, dealer.party, query)


def _site(site: SiteRole, query: Meet) -> Program[None]:
    others = [party for party in query.parties[:-1] if party != site.party]
    lists = list_digest(site.data)
    secrets = {peer: _secret(site, peer, lists) for peer in others}
    count = site.memory.meet if site.data.ids is not None else lambda _: None
    same = yield from same_secret(site.party, secrets, query.session, site.randomness, count)
    site.memory.met([peer for peer in others if same[peer]])
    site.met = frozenset(peer for peer in others if same[peer])
    different = tuple(peer for peer in others if not same[peer])
    yield from send({site.analyst: Met(different, site.data.records)})


def _secret(site: SiteRole, peer: Party, lists: bytes) -> bytes:
    """Return a list's digest under the key of two sites: nobody else can so much as guess at it."""
    key = site.keys.agree(site.public_keys[peer], SAME_RECORDS)
    return hmac.new(key.secret, lists, hashlib.sha256).digest()


def list_digest(data: SiteData) -> bytes:
    """Return the digest of all identifiers, in the order of the records.

    Without identifiers it is that of their number: sites have then to know otherwise that their
    records are the same.
    """
    if data.ids is None:
        return label("records without identifiers", data.records)
    digest = hashlib.sha256(label("identifiers in order", data.records))
    texts = [prefixed(text.encode()) for text in data.ids.texts]
    digest.update(b"".join(texts[place] for place in data.ids.places))
    return digest.digest()


def _dealer(dealer: DealerRole, query: Meet) -> Program[None]:
    """Take no part: it is sent nothing by which lists could be told apart."""
    del dealer, query
    yield from ()


def _analyst(analyst: AnalystRole, query: Meet) -> Program[None]:
    sites = query.parties[:-1]
    expect = Expect(Met, NAME_CELLS * len(query.parties))
    met = yield from exchange({}, dict.fromkeys(sites, expect))
    pairs: set[frozenset[Party]] = set()
    counts: dict[Party, int] = {}
    for site, message in met.items():
        if not set(message.different) <= set(sites) - {site}:
            raise MalformedMessageError(site, "names a party that is not another site")
        pairs |= {frozenset((site, other)) for other in message.different}
        counts[site] = message.records
    for site in sites:
        analyst.ledger.note(REVEALED, site, (*(s for s in sites if s != site), analyst.party))
    if pairs:
        raise RecordsDifferError(_told(sites, pairs, counts))


def _told(sites: Sequence[Party], pairs: set[frozenset[Party]], counts: Mapping[Party, int]) -> str:
    """Say which sites differ, and which do not."""
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{site} {count}" for site, count in counts.items())
        return f"the sites hold different numbers of records: {told}"
    differ = [f"{a} and {b}" for a, b in combinations(sites, 2) if frozenset((a, b)) in pairs]
    agree = [f"{a} and {b}" for a, b in combinations(sites, 2) if frozenset((a, b)) not in pairs]
    told = f"the records are not the same at {', at '.join(differ)}"
    told += f"; they are the same at {', at '.join(agree)}" if agree else ""
    return f"{told}. {AS_WRITTEN}"


MEET = (
    Conversation(Meet, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
