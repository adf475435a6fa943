"""Align: the sites find out who is in the study, by matching their lists of people.

    analyst -> sites           Align: names and keys, sizes of the lists, rules of the identifiers
    site -> sites, analyst     Recall: whether it has kept this study's alignment; to sites, a part
                               of the key with which identifiers are hashed
    if nobody has kept it:     the ring of blinded identifiers   (vertibayes_mpc.alignment)
    at level 2:                the dealer takes part, and rows travel     (queries.align_rows)

It is asked first, before `Meet`. The ring needs the public keys of all parties, so each site
compares them with what it has pinned here; `Meet` does so again, and compares the lists that result
from the alignment. A lie in the ring that changes the result at one site therefore ends the study
at `Meet`, where no list was aligned wrongly without being different.

At level 1 each site learns which of its own people are in the study. In this session its data are
then those of these people (`SiteRole.people`). The site keeps the result on disk, by the id of the
study: a session that resumes the study continues with it. If some sites have kept it and others
have not, the study cannot continue.

Security: as `vertibayes_mpc.alignment`, against parties that follow the protocol. Identifiers are
hashed under a key that all sites have and neither the analyst nor the dealer. A site that fills its
list with candidates learns who of them is in the study: a site therefore limits the public sizes of
the others' lists (`most_people`) and how many alignments begin in all studies (`most_alignments`),
and counts them on disk before the first point leaves. An approved study answers the alignment of
its contract alone. Leakage: at level 1, to each site which of its own people are in the study and
how many these are; to the analyst how many people are in which of the lists. To the sites and the
analyst, whether a site has kept the alignment of this study. Cost: as `vertibayes_mpc.alignment`,
and one round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from vertibayes_protocols.alignment import AlignedPeople, Alignment
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError, refusing
from vertibayes_protocols.queries.align_checks import (
    check_all_kept,
    check_rules,
    check_sizes,
    check_spent,
    kept_alignment,
    own_list,
    too_few,
)
from vertibayes_protocols.queries.align_rows import (
    HOW_MANY,
    Held,
    check_carried,
    check_own,
    dealer_key,
    hear_held,
    kept_rows,
    rings_of,
    say_held,
    share_rows,
)
from vertibayes_protocols.queries.meet import SESSION_BYTES, check_pinned
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.placement import Placement
from vertibayes_protocols.site.study_people import StudyPeople
from vertibayes_protocols.storage.alignments import KeptAlignment

REVEALED = "which lists of people have how many people in common"
POOL_KEYS = 50_000  # of all lists: below, starting processes takes longer than they save
PLACES = "places"


@dataclass(frozen=True, slots=True)
class Align(Query[AlignedPeople]):
    """Ask the sites to find out who is in the study.

    `keys` are the public keys of the sites and of the dealer, in this order. `session` is random
    and new in each run. At level 2 `columns` has the name, states, missing values and site of each
    column that is shared, and `most_indicators` is as of `Study`. The other fields are those of
    `Alignment`.
    """

    kind: ClassVar[str] = "align"
    study: bytes
    session: bytes
    dealer: str
    keys: tuple[bytes, ...]
    level: int
    rules: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]
    everyone: tuple[str, ...]
    apart: tuple[tuple[str, str], ...]
    fewest: int
    columns: tuple[tuple[str, tuple[str, ...], bool, str], ...]
    most_indicators: int

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        alignment: Alignment,
        dealer: Party,
        study: bytes,
        carried: CarriedColumns | None = None,
    ) -> Align:
        """Return the query for a study.

        Parameters
        ----------
        analyst : AnalystRole
            The analyst, who knows the public keys.
        alignment, dealer, study : Alignment, Party, bytes
            The alignment, the dealer and the id of the study.
        carried : CarriedColumns, optional
            At level 2 the columns of the study.
        """
        named = (*alignment.sites, dealer)
        return cls(
            named if alignment.level == 2 else alignment.sites,
            study,
            analyst.randomness.bytes(SESSION_BYTES),
            dealer,
            tuple(analyst.public_keys.get(party, b"") for party in named),
            alignment.level,
            alignment.rules,
            alignment.sizes,
            alignment.everyone,
            alignment.apart,
            alignment.fewest,
            () if carried is None else carried.described,
            0 if carried is None else carried.most_indicators,
        )

    @property
    def named(self) -> tuple[Party, ...]:
        """All sites, then the dealer."""
        return (*(site for site, _ in self.sizes), self.dealer)

    @property
    def alignment(self) -> Alignment:
        """The alignment; a ValueError if it is not valid."""
        groups = self.everyone, self.apart, self.fewest
        return Alignment(self.level, self.rules, self.sizes, *groups)

    @property
    def carried(self) -> CarriedColumns:
        """The columns of level 2; a ValueError if one appears twice."""
        size = max((size for _, size in self.sizes), default=0)
        return CarriedColumns.of_described(self.columns, self.most_indicators, size)

    @property
    def run(self) -> bytes:
        """The name of the run."""
        return label("align", self.study, self.session)


@dataclass(frozen=True, slots=True)
class Recall(Message):
    """Whether the sender has kept the alignment of the study, and its part of the sites' key.

    The part is empty in messages to the analyst and the dealer. At level 2 sites and dealer also
    send the public half of an ephemeral key.
    """

    kind: ClassVar[str] = "recall"
    kept: bool
    part: bytes = field(repr=False)
    key: bytes = b""


# ---- a site agrees, or refuses -------------------------------------------------------------------


def _consider(site: SiteRole, query: Align) -> None:
    check_pinned(site.party, site.keys, site.public_keys, site.dealer, query)
    with refusing(site.party):
        alignment = query.alignment
    asked = query.named if alignment.level == 2 else alignment.sites
    if query.parties != asked or site.party not in alignment.sites:
        raise QueryRefusedError(site.party, "the query asks other parties than the study's sites")
    own = own_list(site)
    check_rules(site, alignment, own)
    check_sizes(site, alignment, own)
    if alignment.level == 2:
        with refusing(site.party):
            carried = query.carried
        check_carried(site.party, site.policy, alignment, carried)
        check_own(site, carried)
    if kept_alignment(site, query.study, alignment, own) is None:
        check_spent(site)
    others = tuple(party for party in alignment.sites if party != site.party)
    site.ledger.note(REVEALED, site.party, (site.analyst,))
    if alignment.level == 1:
        site.ledger.note("who of their own people is in the study", site.party, others)
    else:
        site.ledger.note(HOW_MANY, site.party, (*others, site.dealer))


def plan_of(query: Align, alignment: Alignment, analyst: Party) -> AlignmentPlan:
    """Return the plan of a run."""
    if alignment.level == 1:
        return alignment.plan(query.run, analyst)
    return alignment.plan(query.run, analyst, query.dealer, rings_of(alignment, query.carried))


# ---- the site's side -----------------------------------------------------------------------------


def _site(site: SiteRole, query: Align) -> Program[None]:
    alignment, own = query.alignment, own_list(site)
    kept = kept_alignment(site, query.study, alignment, own)
    fresh = KeyPair.generate(site.randomness) if alignment.level == 2 else None
    recalls = yield from _recalled(site, query, kept is not None, fresh)
    if len({recalls[peer].kept for peer in alignment.sites}) > 1:
        return  # the analyst says which sites have kept it
    if kept is None:
        kept = yield from _run(site, query, own, recalls, fresh)
    if kept is None:
        return
    _take(site, query.study, alignment, kept)
    if alignment.level == 2:
        yield from say_held(site)


def _recalled(
    site: SiteRole, query: Align, kept: bool, fresh: KeyPair | None
) -> Program[dict[Party, Recall]]:
    """Exchange who has kept the alignment, parts of the sites' key, and ephemeral keys."""
    key = b"" if fresh is None else fresh.public
    ours = Recall(kept, site.randomness.bytes(KEY_BYTES), key)
    others = [peer for peer in query.parties if peer not in (site.party, query.dealer)]
    outbox = {**dict.fromkeys(others, ours), site.analyst: Recall(kept, b"")}
    if fresh is not None:
        outbox[query.dealer] = Recall(kept, b"", key)
    peers = [peer for peer in query.parties if peer != site.party]
    theirs = yield from exchange(outbox, dict.fromkeys(peers, Expect(Recall, 2 * KEY_BYTES)))
    for peer, recall in theirs.items():
        part = 0 if peer == query.dealer else KEY_BYTES
        if (len(recall.part), len(recall.key)) != (part, len(key)):
            raise MalformedMessageError(peer, "its part of the sites' key has a wrong length")
    return {**theirs, site.party: ours}


def _run(
    site: SiteRole,
    query: Align,
    own: Identifiers,
    recalls: Mapping[Party, Recall],
    fresh: KeyPair | None,
) -> Program[KeptAlignment | None]:
    """Match the lists, after noting on disk that an alignment begins.

    Raises
    ------
    ProtocolError
        If alignments in other sessions were the last ones since the site agreed.
    """
    try:
        check_spent(site)
    except QueryRefusedError as refusal:  # it is too late to refuse
        raise ProtocolError(site.party, refusal.reason) from None
    site.memory.align()
    left = site.limits.most_alignments - site.memory.alignments
    _note(site, f"an alignment of the list of people begins: {left} more may (most_alignments)")
    alignment = query.alignment
    key = StreamKey(label("sites' key", *(recalls[peer].part for peer in alignment.sites)))
    plan = plan_of(query, alignment, site.analyst)
    try:
        with _processes(site, sum(alignment.size.values())) as spread:
            member = Member(site.party, key, site.randomness, spread=spread)
            if fresh is not None:
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
    _note(site, f"{here} of {len(own)} people here are in the study, which has {placed.people}")
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


# ---- the dealer's side, at level 2 --------------------------------------------------------------


def _consider_at_dealer(dealer: DealerRole, query: Align) -> None:
    check_pinned(dealer.party, dealer.keys, dealer.public_keys, dealer.party, query)
    with refusing(dealer.party):
        alignment, carried = query.alignment, query.carried
    if alignment.level != 2 or query.parties != query.named:
        raise QueryRefusedError(dealer.party, "it takes part in alignments of level 2 alone")
    check_carried(dealer.party, dealer.policy, alignment, carried)
    if (longest := max(alignment.size.values())) > dealer.most_records:
        reason = f"a list may have {longest} people; at most {dealer.most_records} are allowed"
        raise QueryRefusedError(dealer.party, reason)


def _dealer(dealer: DealerRole, query: Align) -> Program[None]:
    alignment, fresh = query.alignment, KeyPair.generate(dealer.randomness)
    ours = Recall(False, b"", fresh.public)
    expect = dict.fromkeys(alignment.sites, Expect(Recall, KEY_BYTES))
    recalls = yield from exchange(dict.fromkeys(alignment.sites, ours), expect)
    if any(recall.kept for recall in recalls.values()):
        return
    plan = plan_of(query, alignment, dealer.analyst)
    keys = {
        site: dealer_key(dealer, site, fresh, recall.key, plan) for site, recall in recalls.items()
    }
    with suppress(TooFewPeopleError):  # the analyst says so
        yield from deal_people(keys, plan)


# ---- the analyst's side --------------------------------------------------------------------------


def _analyst(analyst: AnalystRole, query: Align) -> Program[AlignedPeople]:
    alignment = query.alignment
    recalls = yield from exchange({}, dict.fromkeys(alignment.sites, Expect(Recall)))
    kept = [site for site, recall in recalls.items() if recall.kept]
    for site in alignment.sites:
        analyst.ledger.note(REVEALED, site, (analyst.party,))
    if kept:
        check_all_kept(alignment, kept)
        held = (yield from hear_held(alignment.sites)) if alignment.level == 2 else Held(b"", 0)
        return AlignedPeople(None, {}, held.name, held.people)
    plan = plan_of(query, alignment, analyst.party)
    try:
        matched = yield from match_people(plan, analyst.randomness)
    except TooFewPeopleError as error:
        raise RecordsDifferError(too_few(alignment, error.people)) from None
    for sites, people in matched.regions.items():
        what = f"{people} people in these lists and no others"
        analyst.ledger.note(what, f"the lists of {', '.join(sites)}", (analyst.party,))
    held = (yield from hear_held(alignment.sites)) if alignment.level == 2 else Held(b"", 0)
    return AlignedPeople(matched.people, dict(matched.regions), held.name, held.people)


ALIGN = (
    Conversation(Align, _analyst)
    .side(SiteRole, _consider, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
