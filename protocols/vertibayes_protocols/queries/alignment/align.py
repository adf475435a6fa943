"""Align: the sites find out who is in the study, by matching their lists of people.

    analyst -> sites           Align: names and keys, sizes of the lists, rules of the identifiers
    site -> sites              KnownHead, then NewestHead: has a site gone back?  (opening.heads)
    site -> sites, analyst     Recall: why it refuses, if a site has; whether it has kept this
                               study's alignment; to sites, a part of the key with which
                               identifiers are hashed
    if nobody has kept it:     the ring of blinded identifiers   (vertibayes_mpc.alignment)
    at level 2:                the dealer takes part, and rows travel     (alignment.align_rows)

It is asked first. The ring needs the public keys of all parties, so each site compares them with
what it has pinned; `Meet` does so again, and compares the lists that result: a lie in the ring that
changes the result at one site ends the study there. The site keeps the result on disk, by the id of
the study, and a session that resumes the study continues with it. If some sites have kept it and
others have not, the study cannot continue. A site that went back has forgotten how many alignments
began: it, and each site that has met it, says so before anything of a list leaves.

Security: as `vertibayes_mpc.alignment`, against parties that follow the protocol. Identifiers are
hashed under a key that all sites have and neither the analyst nor the dealer. A site that fills its
list with candidates learns who of them is in the study: a site therefore limits the public sizes of
the others' lists (`most_people`) and how many alignments begin in all studies (`most_alignments`),
and counts them on disk before the first point leaves. An approved study answers the alignment of
its contract alone. Leakage: at level 1, to each site which of its own people are in the study and
how many these are; to the analyst how many people are in which of the lists. To the sites and the
analyst, whether a site has kept the alignment of this study, or refuses as it or another went back.
Cost: as `vertibayes_mpc.alignment`, and three rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import ClassVar

import numpy as np

from vertibayes_mpc.alignment import (
    AlignmentPlan,
    Member,
    Spread,
    deal_people,
    match_people,
    place_people,
)
from vertibayes_mpc.errors import MalformedMessageError, ProtocolError, TooFewPeopleError
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, StreamKey, label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_protocols import wire
from vertibayes_protocols.alignment import AlignedPeople, Alignment
from vertibayes_protocols.approval import Phase
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, Planned, saying
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.alignment.align_checks import (
    check_all_kept,
    check_rules,
    check_sizes,
    check_spent,
    kept_alignment,
    own_list,
    too_few,
)
from vertibayes_protocols.queries.alignment.align_rows import (
    HOW_MANY,
    LESS,
    check_own,
    dealer_key,
    hear_held,
    kept_rows,
    memory_of,
    say_held,
    share_rows,
)
from vertibayes_protocols.queries.opening import heads
from vertibayes_protocols.queries.opening.meet import SESSION_BYTES, check_named, check_pinned
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.study_people import Placement, StudyPeople
from vertibayes_protocols.storage.alignments import KeptAlignment
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS

REVEALED = "which lists of people have how many people in common"
WHO = "who of their own people is in the study"
POOL_KEYS = 50_000  # of all lists: below, starting processes takes longer than they save
PLACES = "places"
REFUSES = "refuses"  # what the other parties read of a reason


@dataclass(frozen=True, slots=True)
class Recall(Message):
    """Whether the sender has kept the alignment of the study, its part of a key, why it refuses.

    The part is empty in messages to the analyst and the dealer. At level 2 sites and dealer also
    send the public half of an ephemeral key.
    """

    kind: ClassVar[str] = "recall"
    kept: bool
    part: bytes = field(repr=False)
    key: bytes = b""
    refused: str = ""  # because of what a site has forgotten


def recalled(
    site: SiteRole, parties: Sequence[Party], dealer: Party, kept: bool, fresh: KeyPair | None
) -> Program[dict[Party, Recall]]:
    """Exchange who has kept the alignment, parts of the sites' key, and ephemeral keys."""
    key = b"" if fresh is None else fresh.public
    refused = REFUSES if site.went_back else ""
    ours = Recall(kept, site.randomness.bytes(KEY_BYTES), key, refused)
    others = [peer for peer in parties if peer not in (site.party, dealer)]
    why = site.went_back[: heads.REASON_CELLS]
    outbox = {**dict.fromkeys(others, ours), site.analyst: Recall(kept, b"", b"", why)}
    if fresh is not None:
        outbox[dealer] = Recall(kept, b"", key, refused)
    peers, cells = [p for p in parties if p != site.party], 2 * KEY_BYTES + len(REFUSES)
    theirs = yield from exchange(outbox, dict.fromkeys(peers, Expect(Recall, cells)))
    for peer, recall in theirs.items():
        part = 0 if peer == dealer else KEY_BYTES
        if (len(recall.part), len(recall.key)) != (part, len(key)):
            raise MalformedMessageError(peer, "its part of the sites' key has a wrong length")
    return {**theirs, site.party: ours}


@dataclass(frozen=True, slots=True)
class Align(Query[AlignedPeople, AlignmentPlan]):
    """Ask the sites to find out who is in the study."""

    kind: ClassVar[str] = "align"
    phase: ClassVar[Phase] = "opening"
    is_dealt: ClassVar[bool] = True
    study: bytes = field(metadata=wire.FREE)  # the id of the study
    session: bytes = field(metadata=wire.FREE)  # random, and new in each run
    # The fields below are FREE, as `matches` compares them with the contract.
    dealer: Party = field(metadata=wire.FREE)
    keys: tuple[bytes, ...] = field(metadata=wire.FREE)  # of the sites, then of the dealer
    alignment: Alignment = field(metadata=wire.FREE)
    carried: CarriedColumns | None = field(default=None, metadata=wire.FREE)

    def __post_init__(self) -> None:
        if not self.study:
            raise ValueError("the study has no id")
        check_named(self.named, self.keys, self.session, self.dealer)
        if (self.carried is not None) != (self.alignment.level == 2):
            raise ValueError("an alignment has columns at level 2, and at no other level")
        if self.carried is not None:
            if set(self.carried.owners.values()) - set(self.alignment.sites):
                raise ValueError("a column of the alignment is at none of its sites")
            if self.carried.size != max(self.alignment.size.values()):
                raise ValueError("the size of the columns must be that of the longest list")

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        alignment: Alignment,
        dealer: Party,
        study: bytes,
        carried: CarriedColumns | None = None,
    ) -> Align:
        """Return the query for a study; `carried` are its columns at level 2."""
        named = (*alignment.sites, dealer) if dealer else alignment.sites
        keys = tuple(analyst.public_keys.get(party, b"") for party in named)
        session = analyst.randomness.bytes(SESSION_BYTES)
        asked = named if carried else alignment.sites
        return cls(asked, study, session, dealer, keys, alignment, carried)

    @property
    def named(self) -> tuple[Party, ...]:
        """All sites, then the dealer, if there is one."""
        return (*self.alignment.sites, self.dealer) if self.dealer else self.alignment.sites

    @property
    def run(self) -> bytes:
        """The name of the run."""
        return label("align", self.study, self.session)

    @property
    def claims(self) -> bytes:
        """The id of the study."""
        return self.study

    def matches(self, contract: Contract) -> None:
        """Refuse other people, columns, parties or keys than those of an approved contract."""
        contract.check_parties(self.kind, self.parties, dealer=self.carried is not None)
        if self.alignment != contract.alignment:
            raise ValueError("the alignment is not that of the contract")
        if self.carried is not None and {*self.carried.variables} != {*contract.variables}:
            raise ValueError("the columns of the alignment are not those of the contract")
        contract.check_keys(self.named, self.keys)

    def plan(self, at: At) -> AlignmentPlan:
        """Return the plan of a run; at level 2 all sites must hold everybody."""
        alignment, rows = self.alignment, self.carried
        if rows is None:
            return alignment.plan(self.run, at.analyst)
        if set(alignment.everyone) != set(alignment.sites) or alignment.apart:
            raise ValueError(
                "at level 2 all sites must hold everybody in the study, and each variable must lie "
                "at one site: use level 1 for other studies"
            )
        rings = {site: rows.rings(site) for site in alignment.sites}
        return alignment.plan(self.run, at.analyst, self.dealer, rings)

    def effects(self, plan: AlignmentPlan, at: At) -> Effects:
        """Return the effects: who or how many people are in the study, to the sites."""
        alignment, rows = self.alignment, self.carried
        asks = alignment.sites if rows is None else self.named
        says = [Fact(REVEALED, site, (at.analyst,)) for site in at.shown_by(alignment.sites)]
        if at.party != at.analyst:
            others = tuple(party for party in asks if party != at.party)
            says.append(Fact(WHO if rows is None else HOW_MANY, at.party, others))
        if rows is None:
            return saying(asks, says)
        stored = min(alignment.size.values()) * rows.stored_bytes
        return replace(
            saying(asks, says),
            columns=tuple(rows.of(at.party)),
            takes=[Planned(memory_of(alignment, rows), stored=stored, less=LESS)],
        )

    def fits(self, site: SiteRole, plan: AlignmentPlan) -> None:
        """Refuse what does not fit the pinned parties, the list of people, or its limits."""
        check_pinned(site, self.named, self.keys, self.dealer)
        heads.check_accepted(site)
        alignment = self.alignment
        own = own_list(site)
        check_rules(site, alignment, own)
        check_sizes(site, alignment, own)
        if self.carried is not None:
            check_own(site, self.carried)
        if kept_alignment(site, self.study, alignment, own) is None:
            check_spent(site)

    def fits_dealer(self, dealer: DealerRole, plan: AlignmentPlan) -> None:
        """Refuse other parties than are pinned, and lists that are too long."""
        check_pinned(dealer, self.named, self.keys, self.dealer)
        if (longest := max(self.alignment.size.values())) > (most := dealer.most_records):
            raise ValueError(f"a list may have {longest} people; at most {most} are allowed")

    def run_site(self, site: SiteRole, plan: AlignmentPlan, give: Give) -> Program[None]:
        """Match the lists, or continue with what all sites have kept."""
        alignment, own = self.alignment, own_list(site)
        kept = kept_alignment(site, self.study, alignment, own)
        fresh = None if self.carried is None else KeyPair.generate(site.randomness)
        others = [peer for peer in alignment.sites if peer != site.party]
        site.went_back = yield from heads.exchange_heads(site, others)
        recalls = yield from recalled(site, self.parties, self.dealer, kept is not None, fresh)
        if any(recall.refused for recall in recalls.values()):
            return  # the analyst says which sites have gone back
        if len({recalls[peer].kept for peer in alignment.sites}) > 1:
            return  # or which sites have kept it
        if kept is None:
            kept = yield from _run(site, self, plan, recalls, fresh)
        if kept is None:
            return
        _take(site, self.study, alignment, kept)
        if self.carried is not None:
            yield from say_held(site)

    def run_dealer(self, dealer: DealerRole, plan: AlignmentPlan) -> Program[None]:
        """Deal what turns and shares the rows, at level 2."""
        sites, fresh = self.alignment.sites, KeyPair.generate(dealer.randomness)
        outbox = dict.fromkeys(sites, Recall(False, b"", fresh.public))
        recalls = yield from exchange(
            outbox, dict.fromkeys(sites, Expect(Recall, KEY_BYTES + len(REFUSES)))
        )
        if any(recall.kept or recall.refused for recall in recalls.values()):
            return
        keys = {
            site: dealer_key(dealer, site, fresh, said.key, plan) for site, said in recalls.items()
        }
        with suppress(TooFewPeopleError):  # the analyst says so
            yield from deal_people(keys, plan)

    def run_analyst(self, analyst: AnalystRole, plan: AlignmentPlan) -> Program[AlignedPeople]:
        """Match the blinded identifiers; a `RecordsDifferError` if too few people are in common."""
        alignment, people, regions = self.alignment, None, dict[tuple[Party, ...], int]()
        recalls = yield from exchange(
            {}, dict.fromkeys(alignment.sites, Expect(Recall, heads.REASON_CELLS))
        )
        heads.check_refused({site: recall.refused for site, recall in recalls.items()})
        kept = [site for site, recall in recalls.items() if recall.kept]
        if kept:
            check_all_kept(alignment, kept)
        else:
            try:
                matched = yield from match_people(plan, analyst.randomness)
            except TooFewPeopleError as error:
                raise RecordsDifferError(too_few(alignment, error.people)) from None
            people, regions = matched.people, dict(matched.regions)
        if self.carried is None:
            return AlignedPeople(people, regions)
        held = yield from hear_held(alignment.sites)
        return AlignedPeople(people, regions, held.name, held.people)

    def revealed(self, plan: AlignmentPlan, at: At, result: AlignedPeople) -> Effects:
        """Return the effects, with how many people are in which of the lists."""
        effects = self.effects(plan, at)
        regions = [
            Fact(
                f"{people} people in these lists and no others",
                f"the lists of {', '.join(sites)}",
                (at.analyst,),
            )
            for sites, people in result.regions.items()
        ]
        return replace(effects, says=[*effects.says, *regions])


# ---- the site's side -----------------------------------------------------------------------------


def _run(
    site: SiteRole,
    query: Align,
    plan: AlignmentPlan,
    recalls: Mapping[Party, Recall],
    fresh: KeyPair | None,
) -> Program[KeptAlignment | None]:
    """Match the lists, after noting on disk that an alignment begins."""
    try:
        check_spent(site)
    except QueryRefusedError as refusal:  # it is too late to refuse
        raise ProtocolError(site.party, refusal.reason) from None
    site.memory.meets.ask(ALIGNMENTS)  # before a blinded identifier leaves the site
    left = site.limits.most_alignments - site.memory.alignments
    _note(site, f"an alignment of the list of people begins: {left} more may (most_alignments)")
    alignment, own = query.alignment, own_list(site)
    key = StreamKey(label("sites' key", *(recalls[peer].part for peer in alignment.sites)))
    try:
        with _processes(site, sum(alignment.size.values())) as spread:
            member = Member(site.party, key, site.randomness, spread=spread)
            if query.carried is not None:
                assert fresh is not None  # of level 2
                dealt = dealer_key(site, query.dealer, fresh, recalls[query.dealer].key, plan)
                member = replace(member, dealer_key=dealt)
                kept = yield from share_rows(site, member, query.carried, plan, alignment)
            else:
                kept = yield from _placed(site, member, alignment, plan, own)
    except TooFewPeopleError as error:
        if error.parties == (site.party,):  # too few of its list are left out: the others go on
            _note(site, f"{error.people} people here would be outside the study: it is ended")
            raise
        said = [f"the alignment has {error.people} people", *own.shapes, *own.findings()]
        _note(site, "; ".join(said))
        return None
    site.memory.aligned.keep(query.study, kept)
    return kept


def _placed(
    site: SiteRole, member: Member, alignment: Alignment, plan: AlignmentPlan, own: Identifiers
) -> Program[KeptAlignment]:
    """Run level 1; return what a site keeps: the place of each record."""
    placed = yield from place_people(member, plan, own.forms)
    here = int((placed.places >= 0).sum())
    share = f"; it has {here / len(own):.1%} of the list" if len(own) else ""
    found = f"{here} of {len(own)} people here are in the study, which has {placed.people}"
    _note(site, f"{found}{share}")
    if alignment.holds_all(site.party) and here != placed.people:
        raise MalformedMessageError(site.analyst, "its places leave out people that all sites hold")
    if not alignment.everyone and here < len(own):
        raise MalformedMessageError(site.analyst, "its places leave out people of the study")
    places = np.full(site.everybody.records, -1, np.int64)
    places[own.records] = placed.places
    people = site.memory.people_digest(own)
    return KeptAlignment(alignment.digest, people, placed.people, {PLACES: places})


def _take(site: SiteRole, study: bytes, alignment: Alignment, kept: KeptAlignment) -> None:
    if alignment.level == 2:
        rows = kept_rows(alignment.sites, kept)
        site.take(StudyPeople(site.everybody, study, hidden=rows))
    else:
        placement = Placement(kept.records, kept.arrays[PLACES])
        site.take(StudyPeople.placed(site.everybody, study, alignment, placement))


def _note(site: SiteRole, what: str) -> None:
    """Write for the owner, into the log and the ledger, what no other party reads."""
    site.remark(what)
    site.ledger.note(what, site.party, ())


@contextmanager
def _processes(site: SiteRole, keys: int) -> Iterator[Spread]:
    """Yield what blinds keys: this process, or several for long lists."""
    if site.processes < 2 or keys < POOL_KEYS:
        yield map
        return
    with ProcessPoolExecutor(site.processes, get_context("spawn")) as pool:
        yield pool.map
