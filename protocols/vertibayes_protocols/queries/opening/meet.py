"""Meet: the parties agree on who takes part, and the sites check that they hold the same records.

    analyst -> sites, dealer   Meet: the names and public keys of all parties
    site -> sites              KnownHead, then NewestHead: has a site gone back?  (`heads`), if
                               the session has not compared them in `Align`
    site -> sites              Point: are our lists of identifiers equal?  (vertibayes_mpc.cpace)
    site -> later sites        Confirmation; "later": whose names sort after its own
    site -> earlier sites      Confirmation, once theirs is there
    site -> analyst            Met: the sites whose records differ, the sender's record count, and
                               why it refuses, if a site has gone back

A site refuses a study whose dealer, or whose key for a party, differs from the one that the site
has pinned: an analyst who could name the dealer could read all data. Each two sites compare their
lists of identifiers, in the order of the records, under a key that only these two sites know. A
site commits to a study only with sites that it has met and whose lists are equal.

After an alignment the lists are those of the study's people, in their normal form. Where an
alignment has placed the records, two sites that both hold everybody of the study compare their
lists in the order of the places, and a matcher that garbled the places of one of them is noticed.
Any other two sites compare the number of records of the study, because neither of them knows the
other's people.

Sites first compare what they have of each other's ledgers (`heads`). A site that went back, and
each site that has met it, refuse all further queries of the session. The session does not break,
so that nobody tries again.

Security: the dealer, the relay and an analyst who is not a site learn nothing about the
identifiers. A *site*, even together with the analyst, can test one guess of another site's whole
list per run, and nothing that it receives lets it test further guesses afterwards. Each site counts
the runs since the last equal lists, before a peer can learn the outcome (`most_failed_meets`): as
unanswered when its own code leaves first, and as different when the peer's code is wrong. A run
that ends before is no guess, nor is one in which the peer's code is right. While a run goes on, it
may become a guess, so that other sessions count it as one. Whoever cuts messages
can therefore raise the count only at the site that confirms first, and the owner of this site can
forgive it (`vertibayes meets`).
A site that lies makes the run end and is among the named sites. A site that knows the list can
claim to hold the records; the columns that it then commits may be false, as any column may be
(docs/threat-model.md).
Leakage: for each two sites whether their lists are equal, to both sites and to the analyst,
who also learns the numbers of records. Cost: 6 rounds, about 600 bytes between two sites.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

from vertibayes_mpc.cpace import confirms_first, same_secret
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.prefixed import prefixed
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols import wire
from vertibayes_protocols.approval import Phase
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, saying
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.queries.opening import heads
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.settings import PAILLIER
from vertibayes_protocols.site.data import SiteData

SAME_RECORDS = "records of two sites, compared"
REVEALED = "whether its records are the same, in the same order"
AS_WRITTEN = (
    "Identifiers are compared character by character: outer spaces, upper and lower case and "
    "leading zeros make a different person. With [alignment] in study.toml the study is of the "
    "people that all sites hold"
)
NAME_CELLS = 256  # characters of a name, at most
SESSION_BYTES = 16  # random, and new in each run


@dataclass(frozen=True, slots=True)
class Met(Message):
    """The sites whose records differ from the sender's, its records, and why it refuses."""

    kind: ClassVar[str] = "met"
    different: tuple[str, ...]
    records: int
    refused: str = ""  # because of what a site has forgotten


@dataclass(frozen=True, slots=True)
class Meet(Query[None, None]):
    """Ask the sites and, last in `parties`, the dealer if any to agree on who takes part."""

    kind: ClassVar[str] = "meet"
    phase: ClassVar[Phase] = "opening"
    is_dealt: ClassVar[bool] = True
    keys: tuple[bytes, ...] = field(metadata=wire.FREE)  # `matches` checks them
    session: bytes = field(metadata=wire.FREE)  # random, and new in each run
    dealer: Party = field(metadata=wire.FREE)  # empty: nobody

    def __post_init__(self) -> None:
        check_named(self.parties, self.keys, self.session, self.dealer)

    @classmethod
    def of(cls, analyst: AnalystRole, sites: Sequence[Party], dealer: Party) -> Meet:
        """Return the query for the parties of a study."""
        parties = (*sites, dealer) if dealer else tuple(sites)
        keys = tuple(analyst.public_keys.get(party, b"") for party in parties)
        return cls(parties, keys, analyst.randomness.bytes(SESSION_BYTES), dealer)

    @property
    def sites(self) -> tuple[Party, ...]:
        """All parties but the dealer."""
        return self.parties[:-1] if self.dealer else self.parties

    def matches(self, contract: Contract) -> None:
        """Refuse other parties or keys than those of an approved contract."""
        contract.check_parties(self.kind, self.parties, dealer=True)
        contract.check_keys(self.parties, self.keys)

    def plan(self, at: At) -> None:
        """Plan nothing."""

    def effects(self, plan: None, at: At) -> Effects:
        """Return the effects: whether lists are the same, to both sites and to the analyst."""
        says = [
            Fact(REVEALED, site, (*(s for s in self.sites if s != site), at.analyst))
            for site in at.shown_by(self.sites)
        ]
        return saying(self.parties, says)

    def fits(self, site: SiteRole, plan: None) -> None:
        """Refuse other parties than are pinned, and comparisons that may be guesses."""
        check_pinned(site, self.parties, self.keys, self.dealer)
        if not self.dealer:
            site.policy.check_way(PAILLIER)
        _check_each_has_an_identifier(site)
        others = _others(site, self.sites)
        heads.check_accepted(site)
        compared = [peer for peer in others if _compares_people(site, peer)]
        _check_level(site, compared)
        for peer in compared:
            _check_failed(site, peer)

    def fits_dealer(self, dealer: DealerRole, plan: None) -> None:
        """Refuse other parties than are pinned."""
        check_pinned(dealer, self.parties, self.keys, self.dealer)

    def run_site(self, site: SiteRole, plan: None, give: Give) -> Program[None]:
        """Compare lists with each other site, and send the analyst which differ."""
        others = _others(site, self.sites)
        counted = [peer for peer in others if _compares_people(site, peer)]
        people = _list_of_people(site) if counted else b""
        # What both know is compared with those that do not have the site's list.
        without = without_list(site.records) if site.hidden is None else site.hidden.alignment
        lists = {peer: people if peer in counted else without for peer in others}
        secrets = {peer: _secret(site, peer, lists[peer]) for peer in others}
        site.shared.comparing.update(counted)  # each may become a guess
        try:
            site.went_back = yield from heads.exchange_heads(site, others)
            same = yield from _compared(site, secrets, counted, self.session)
        finally:
            site.shared.comparing.subtract(counted)
        site.met = frozenset(peer for peer in others if same[peer])
        different = tuple(peer for peer in others if not same[peer])
        yield from send(
            {site.analyst: Met(different, site.records, site.went_back[: heads.REASON_CELLS])}
        )

    def run_dealer(self, dealer: DealerRole, plan: None) -> Program[None]:
        """Take no part: the dealer receives no message by which it could compare lists."""
        yield from ()

    def run_analyst(self, analyst: AnalystRole, plan: None) -> Program[None]:
        """Receive which lists differ; a `RecordsDifferError` if some do.

        A `QueryRefusedError` says which site has gone back.
        """
        sites, expect = self.sites, Expect(Met, NAME_CELLS * len(self.parties) + heads.REASON_CELLS)
        met = yield from exchange({}, dict.fromkeys(sites, expect))
        heads.check_refused({site: message.refused for site, message in met.items()})
        pairs: set[frozenset[Party]] = set()
        for site, message in met.items():
            if not set(message.different) <= set(sites) - {site}:
                raise MalformedMessageError(site, "names a party that is not another site")
            pairs |= {frozenset((site, other)) for other in message.different}
        if pairs:
            counts = {site: message.records for site, message in met.items()}
            raise RecordsDifferError(_which_differ(sites, pairs, counts))


def _others(site: SiteRole, sites: Sequence[Party]) -> list[Party]:
    return [party for party in sites if party != site.party]


def _check_each_has_an_identifier(site: SiteRole) -> None:
    """Refuse to compare lists in which records without a valid identifier stay."""
    matched = site.data.identifiers
    if matched is None or site.people is not None:
        return
    if len(matched) < site.data.records:
        reason = (
            "it has records without an identifier of their own, and takes part in studies with "
            "[alignment] only"
        )
        detail = f"{site.data.records - len(matched)} records"
        raise QueryRefusedError(site.party, reason, detail)


def _check_level(site: SiteRole, compared: Collection[Party]) -> None:
    """Refuse to compare whole lists where sites may not learn who is in the study."""
    if compared and site.limits.least_level > 1:
        raise ValueError(
            "sites that compare their lists of people learn who is in the study; here least_level "
            f'= {site.limits.least_level}: declare "level = 2" in [alignment] of study.toml'
        )


def _check_failed(site: SiteRole, peer: Party) -> None:
    """Refuse a comparison with a site whose comparisons may have been too many guesses."""
    try:
        is_forgiven = site.memory.meets.forgive(peer)
    except ValueError as error:
        reason = f"its file of forgiven comparisons with {peer} cannot be used: ask its owner"
        raise QueryRefusedError(site.party, reason, str(error)) from None
    if is_forgiven:
        site.ledger.note(f"the owner has forgiven all comparisons with {peer}", site.party, ())
    count, open_ = site.memory.meets.of(peer), site.shared.comparing[peer]
    if count.total + open_ >= site.policy.most_failed_meets:
        reason = (
            f"too many comparisons with {peer} have failed: if they were not guesses, its owner "
            "can forgive them with `vertibayes meets`"
        )
        detail = (
            f"{count.different} comparisons with {peer} have found different lists, and {peer} did "
            f"not answer {count.unanswered}; {open_} are not over yet: "
            f"most_failed_meets = {site.policy.most_failed_meets}"
        )
        raise QueryRefusedError(site.party, reason, detail)


def _compared(
    site: SiteRole, secrets: Mapping[Party, bytes], peers: Collection[Party], session: bytes
) -> Program[dict[Party, bool]]:
    """Compare lists, and count the comparisons of people with some of the peers."""
    args = site.party, secrets, session, site.randomness
    if not peers:
        return (yield from same_secret(*args))
    counted = Comparisons(site, peers)
    try:
        return (yield from same_secret(*args, counted.asked, counted.outcome))
    finally:
        counted.close()


class Comparisons:
    """Counts a site's comparisons in one run."""

    def __init__(self, site: SiteRole, peers: Collection[Party]) -> None:
        self._site, self._peers = site, frozenset(peers)
        self._open: list[Party] = []  # which have this site's code, and have not sent theirs

    def asked(self, peers: Collection[Party]) -> None:
        """Count comparisons before this site's code leaves."""
        counted = [peer for peer in peers if peer in self._peers]
        self._site.memory.meets.ask(*counted)
        self._open += counted

    def outcome(self, peer: Party, is_same: bool) -> None:
        """Count a peer's code; a right one forgets its earlier comparisons."""
        if peer not in self._peers:
            return
        if peer in self._open:
            self._open.remove(peer)
        if is_same:
            self._site.memory.met(peer)
            return
        self._site.memory.meets.differ(peer, was_asked=confirms_first(self._site.party, peer))
        self._note(f"the list of people differs from that of {peer}", peer)

    def close(self) -> None:
        """Note which peers did not answer; write what is not on disk."""
        for peer in self._open:
            self._note(f"{peer} did not answer a comparison of the lists of people", peer)
        self._site.memory.save()

    def _note(self, what: str, peer: Party) -> None:
        left = self._site.policy.most_failed_meets - self._site.memory.meets.of(peer).total
        text = f"{what}: {max(left, 0)} more may fail (most_failed_meets)"
        self._site.remark(text)
        self._site.ledger.note(text, self._site.party, ())


def _secret(site: SiteRole, peer: Party, lists: bytes) -> bytes:
    """Return a list's digest under the key of two sites: no other party can test a guess."""
    key = site.keys.agree(site.public_keys[peer], SAME_RECORDS)
    return hmac.new(key.secret, lists, hashlib.sha256).digest()


def list_digest(data: SiteData, *, aligned: bool = False) -> bytes:
    """Return the digest of all identifiers, in the order of the records.

    After an alignment these are the identifiers in their normal form. Without identifiers it is the
    digest of the number of records: the sites must then make sure by other means that their records
    are the same.
    """
    if data.ids is None:
        return without_list(data.records)
    digest = hashlib.sha256(label("identifiers in order", data.records))
    if aligned and data.identifiers is not None:
        digest.update(prefixed(*data.identifiers.forms))
        return digest.digest()
    texts = [prefixed(text.encode()) for text in data.ids.texts]
    digest.update(b"".join(texts[place] for place in data.ids.places))
    return digest.digest()


def without_list(records: int) -> bytes:
    """Return the digest of a list without identifiers: that of the number of records alone."""
    return label("records without identifiers", records)


def _list_of_people(site: SiteRole) -> bytes:
    """Return the digest of a site's list, in the order of the study if an alignment gave one."""
    data, placement, ids = site.data, site.placement, site.data.identifiers
    if placement is None:
        return list_digest(data, aligned=site.people is not None)
    digest = hashlib.sha256(label("identifiers by place", placement.records))
    digest.update(prefixed(*(() if ids is None else ids.take(placement.own, data.records).forms)))
    return digest.digest()


def _compares_people(site: SiteRole, peer: Party) -> bool:
    """Whether two sites compare people: if records are placed, both hold everybody of the study."""
    if site.people is not None and site.placement is not None:
        return {site.party, peer} <= set(site.people.everyone)
    known = site.placement is None and site.hidden is None
    return site.data.ids is not None and known


def _which_differ(
    sites: Sequence[Party], pairs: set[frozenset[Party]], counts: Mapping[Party, int]
) -> str:
    """Return a message that names the sites that differ, and those that do not."""
    if len(set(counts.values())) > 1:
        return different_numbers(counts)
    differ = [f"{a} and {b}" for a, b in combinations(sites, 2) if frozenset((a, b)) in pairs]
    agree = [f"{a} and {b}" for a, b in combinations(sites, 2) if frozenset((a, b)) not in pairs]
    message = f"the records are not the same at {', at '.join(differ)}"
    message += f"; they are the same at {', at '.join(agree)}" if agree else ""
    return f"{message}. {AS_WRITTEN}"


def different_numbers(counts: Mapping[Party, int]) -> str:
    """Return a message that the sites hold different numbers of records, and what to do."""
    numbers = ", ".join(f"{site} {count}" for site, count in counts.items())
    return (
        f"the sites hold different numbers of records: {numbers}; with [alignment] in study.toml "
        "the study is of the people that all sites hold"
    )


def check_named(
    parties: Sequence[Party], keys: Sequence[bytes], session: bytes, dealer: Party
) -> None:
    """Refuse sites and a dealer if any, in this order, that are not parties of a study."""
    if len(keys) != len(parties) or len(session) != SESSION_BYTES:
        raise ValueError("the study must have one key per party, and a session")
    if len({*parties}) < len(parties) or len(parties) < 1 + bool(dealer):
        raise ValueError("the study has no sites, or names a party twice")
    if dealer and parties[-1] != dealer:
        raise ValueError("the study must name its dealer last")


def check_pinned(
    role: SiteRole | DealerRole, parties: Sequence[Party], keys: Sequence[bytes], named: Party
) -> None:
    """Refuse, with a ValueError, parties that differ from those that a party has pinned.

    The dealer is named as the last of the parties, or nobody is, and the pinned one takes no part.
    """
    dealer = role.dealer if isinstance(role, SiteRole) else role.party
    if named not in ("", dealer):
        raise ValueError(
            f"the study names {named!r} as the dealer, the dealer pinned here is {dealer!r}"
        )
    if not named and dealer in parties:
        raise ValueError(f"the dealer pinned here, {dealer!r}, cannot be a site of the study")
    known = {**role.public_keys, role.party: role.keys.public}
    for name, key in zip(parties, keys, strict=True):
        if name not in known:
            raise ValueError(f"no public key of {name!r} is pinned here")
        if key != known[name]:
            theirs = encode_public(key) if key else "none"
            raise ValueError(
                f"the study has another public key for {name!r} than is pinned here: {theirs}, "
                f"here {encode_public(known[name])}"
            )
