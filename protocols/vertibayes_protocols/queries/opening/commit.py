"""Commit: each site masks its columns once, for all tables of the study.

    site -> sites, dealer    Joining: the ids of its columns, its part of the common seed, an
                             ephemeral public key; only to sites, its part of the key that orders
                             shuffled codes
    dealer -> sites          Joining: an ephemeral public key
    site, dealer -> sites    digests of these messages            (queries.opening.comparing)
    site -> sites            its masked columns, block by block   (vertibayes_mpc.commitments)
    site -> sites            digests of the columns that it received; neither if the study does not
                             count by masked tables
    site -> analyst          Committed: a mark of the study, the same at all sites

A site refuses a way of counting that its policy does not name (`Policy.count_by`): who must not
work together differs. Its ledger notes another way than masked tables, with the dealer. A study
that counts by paillier has no dealer, and its columns stay where they are: its sites join it by
their keys (`vertibayes_protocols.queries.opening.joining_by_keys`).

Every label of the study depends on the common seed, the ids, the states, the holders and the name
of an alignment at level 2: parties that were sent different studies, or that rejoined a study with
another seed, accept none of each other's messages. Sites draw new ids each time, so that no label
is used twice: a site that sent other columns the second time would receive a difference that
reveals the masks of the other sites. A holder accepts a variable of several holders
(`vertibayes_mpc.commitments.columns`) only if an alignment has placed its records, so that no two
holders have the same row. At level 2 every site commits its shares of every column.

Security: as `vertibayes_mpc.commitments`. A site that has committed a column in this study with
other data refuses (`SiteMemory.commit`). It writes what it commits to its disk before it sends
anything, unless it refuses exact results of these values (`record_checks`): it then writes them
before its first result with noise, and until then the study can continue with the data before the
correction. The keys of masks and of zero shares come
from the static and the ephemeral keys of two parties (`vertibayes_protocols.key_agreement`) and
from all that both know of the study. A party forgets its ephemeral private key as soon as it has
derived them, and the keys when it leaves the session. So whoever has kept masked columns, and
steals all static keys later, reads none of them. The seals authenticate ephemeral keys
(`vertibayes_protocols.seal`), and so do the static keys in the derivation. A site that sends two
receivers different messages ends the commit before any table is counted, at each site. The digests
of the first messages come before the columns: with different ids the labels of columns differ, and
their honest senders would be blamed. Nobody can compare the columns of two sites: each has one
receiver. Leakage: names, states, holders and record count to all sites and the dealer. Cost: three
rounds, and one round per block; n x columns ring elements from each site to each other site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from vertibayes_mpc.commitments import (
    BLOCK_ROWS,
    CodeColumn,
    Column,
    Holder,
    PartColumn,
    commit,
)
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, StreamKey, label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.approval import Phase
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, Planned, saying
from vertibayes_protocols.key_agreement import Own, Peer, session_stream
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.opening.commit_checks import (
    check_at_dealer,
    check_at_site,
)
from vertibayes_protocols.queries.opening.comparing import compare
from vertibayes_protocols.queries.opening.describe import REVEALED
from vertibayes_protocols.queries.opening.joined import Committed, commitments_of, mark_of
from vertibayes_protocols.queries.opening.joining_by_keys import (
    check_own_key,
    join_by_keys,
    receive_keys,
)
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.record_checks import remember_columns
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.settings import PAILLIER
from vertibayes_protocols.storage.block_file import BlockFile
from vertibayes_protocols.study import CHOICE_INDICATORS, NEEDS_MASKED_TABLES, Joined, Study

ID_BYTES = 16
MASKS = "masks of a site, shared with the dealer"
ZEROS = "zero shares between two sites"
JOININGS = "ids, parts of the common seed, or ephemeral keys"
LESS = "open the study with less memory for its queries"
COLUMNS = "masked columns, or parts of the key that orders codes,"


@dataclass(frozen=True, slots=True)
class Joining(Message):
    """The ids of a site's commitments, in the study's order, and its parts of common secrets."""

    kind: ClassVar[str] = "joining"
    ids: tuple[bytes, ...]
    seed: bytes = field(repr=False)  # its part of the common seed
    # Its part of the key that orders shuffled codes; empty in the message to the dealer.
    order: bytes = field(repr=False)
    key: bytes  # the public half of an ephemeral key: the dealer's message has this alone

    @property
    def digest(self) -> bytes:
        """A digest of what sites and dealer receive alike."""
        return label("joining", *self.ids, self.seed, self.key)


@dataclass(frozen=True, slots=True)
class Commit(Query[Joined, None]):
    """Ask the sites of a study to commit its variables."""

    kind: ClassVar[str] = "commit"
    phase: ClassVar[Phase] = "opening"
    is_dealt: ClassVar[bool] = True
    study: Study

    @classmethod
    def of(cls, study: Study) -> Commit:
        """Return the query for a study."""
        return cls(study.parties, study)

    @property
    def claims(self) -> bytes:
        """The id of the study."""
        return self.study.id

    def matches(self, contract: Contract) -> None:
        """Refuse another study than that of an approved contract."""
        study = self.study
        contract.check_parties(self.kind, self.parties, dealer=True)
        if not study.is_masked:
            raise ValueError(f"{NEEDS_MASKED_TABLES}: approved studies count by masked tables")
        if contract.queries:
            if not {*study.variables} <= {*contract.variables}:
                raise ValueError("the query names variables that the contract does not have")
            return
        if tuple(study.variables) != contract.variables:
            raise ValueError("the variables, or their order, are not those of the contract")
        if study.memory != contract.memory:
            raise ValueError(
                f"queries may take {study.memory:,} bytes of memory: the contract says "
                f"{contract.memory:,}"
            )
        if (study.block_rows, study.most_indicators) != (BLOCK_ROWS, CHOICE_INDICATORS):
            raise ValueError(  # they decide, too, which tables are too large for a candidate
                f"columns are committed in blocks of {study.block_rows} rows and with up to "
                f"{study.most_indicators} indicators: approved studies have {BLOCK_ROWS} rows and "
                f"{CHOICE_INDICATORS} indicators"
            )

    def plan(self, at: At) -> None:
        """Plan nothing."""

    def effects(self, plan: None, at: At) -> Effects:
        """Return the effects: names and states to all parties; masked columns are stored."""
        study = self.study
        says = [
            Fact(REVEALED, site, tuple(party for party in study.parties if party != site))
            for site in at.shown_by(study.sites)
        ]
        if not study.is_masked:
            says += [Fact(_way(study), site, ()) for site in at.shown_by(study.sites)]
        stored = costs_of(study, study.records, missing=True).stored_bytes
        takes = Planned(study.memory, stored=stored, less=LESS)  # memory: of each of its queries
        return replace(saying(study.parties, says), takes=[takes])

    def fits(self, site: SiteRole, plan: None) -> None:
        """Refuse a study that is not as the site has pinned, declared or aligned it."""
        check_at_site(site, self.study)
        if self.study.count_by == PAILLIER:
            check_own_key(site)

    def fits_dealer(self, dealer: DealerRole, plan: None) -> None:
        """Refuse a study of other parties or of more records than the dealer expects."""
        check_at_dealer(dealer, self.study)

    def run_site(self, site: SiteRole, plan: None, give: Give) -> Program[None]:
        """Agree on ids, seed and keys, and send the masked columns."""
        study = self.study
        if not study.is_masked:
            site.remark(_way(study))
        remember_columns(site, study)
        if study.count_by == PAILLIER:
            yield from join_by_keys(site, study)
            return
        held = sum(site.party in holders for holders in study.holders.values())
        fresh = KeyPair.generate(site.randomness)
        joinings = yield from _exchange_joinings(site, study, held, fresh.public)
        site.leave_study()
        site.joined = _join(study, joinings)
        site.holder = _holder(site, site.joined, fresh, joinings)
        del fresh
        if study.is_masked:
            columns = yield from commit(site.holder)
            digests = {
                peer: label("sent", digest, joinings[peer].order)
                for peer, digest in columns.items()
            }
            yield from compare(site.party, COLUMNS, digests, study.sites, study.sites)
        yield from send({site.analyst: Committed(label("mark", site.joined.commitments.study))})

    def run_dealer(self, dealer: DealerRole, plan: None) -> Program[None]:
        """Agree on ids and keys."""
        study, fresh = self.study, KeyPair.generate(dealer.randomness)
        outbox = dict.fromkeys(study.sites, Joining((), b"", b"", fresh.public))
        joinings = yield from exchange(outbox, _expect(study, study.sites))
        _check(study, joinings, 0)
        digests = {site: joining.digest for site, joining in joinings.items()}
        dealer.leave_study()
        dealer.joined = _join(study, joinings)
        dealer.mask_keys = _session_keys(dealer, dealer.joined, fresh, joinings, MASKS)
        del fresh
        yield from compare(dealer.party, JOININGS, digests, study.sites)

    def run_analyst(self, analyst: AnalystRole, plan: None) -> Program[Joined]:
        """Join the study, which must have the same mark at all sites."""
        study = self.study
        if study.count_by == PAILLIER:
            analyst.joined = yield from receive_keys(study)
            return analyst.joined
        mark = mark_of((yield from exchange({}, dict.fromkeys(study.sites, Expect(Committed)))))
        # The analyst only adds shares; the ids, which masks depend on, stay with sites and dealer.
        ids = {name: [name.encode()] for name in study.variables}
        analyst.joined = Joined(study, commitments_of(study, ids, b""), None, mark)
        return analyst.joined


def _way(study: Study) -> str:
    return f"tables are counted by {study.count_by}; the dealer is {study.dealer or 'nobody'}"


def _exchange_joinings(
    site: SiteRole, study: Study, columns: int, key: bytes
) -> Program[dict[Party, Joining]]:
    """Exchange the first messages, of which all receivers must have the same."""
    ids = tuple(site.randomness.bytes(ID_BYTES) for _ in range(columns))  # new ids give new masks
    ours = Joining(ids, site.memory.seed(study.id), site.randomness.bytes(KEY_BYTES), key)
    others = [party for party in study.sites if party != site.party]
    outbox = {**dict.fromkeys(others, ours), study.dealer: replace(ours, order=b"")}
    joinings = yield from exchange(outbox, _expect(study, (*others, study.dealer)))
    _check(study, joinings, KEY_BYTES)
    digests = {party: joining.digest for party, joining in joinings.items()}
    yield from compare(site.party, JOININGS, digests, study.sites, (*study.sites, study.dealer))
    return {**joinings, site.party: ours}


def _holder(
    site: SiteRole, joined: Joined, fresh: KeyPair, joinings: Mapping[Party, Joining]
) -> Holder:
    study, commitments = joined.study, joined.commitments
    columns = {
        study.place(name): _column(site, study, name)
        for name, sites in study.holders.items()
        if site.party in sites
    }
    masks = _session_keys(site, joined, fresh, {study.dealer: joinings[study.dealer]}, MASKS)
    others = {peer: joinings[peer] for peer in study.sites if peer != site.party}
    peers = _session_keys(site, joined, fresh, others, ZEROS)
    sites_key = StreamKey(label("order", *(joinings[peer].order for peer in study.sites)))
    holder = Holder(site.party, commitments, columns, masks[study.dealer], peers, sites_key)
    if commitments.masked_bytes > site.column_memory:
        holder.masked = BlockFile()
    return holder


def _column(site: SiteRole, study: Study, name: str) -> Column:
    """Return what a site adds to a column: all of it, or its part beside those of other holders."""
    if site.hidden is not None:
        return site.hidden.column(name)
    codes, holders = site.column(name), study.holders[name]
    if len(holders) == 1:
        return CodeColumn(codes)
    return PartColumn(codes, len(study.variables[name].states), first=site.party == holders[0])


def _session_keys(
    role: SiteRole | DealerRole,
    joined: Joined,
    fresh: KeyPair,
    joinings: Mapping[Party, Joining],
    purpose: str,
) -> dict[Party, StreamKey]:
    """Return the keys that a party shares with the senders of messages, in this session alone."""
    own, name = Own(role.party, role.keys, fresh), joined.commitments.label
    peers = {p: Peer(p, role.public_keys[p], joining.key) for p, joining in joinings.items()}
    return {party: session_stream(own, peer, purpose, name) for party, peer in peers.items()}


def _expect(study: Study, parties: tuple[Party, ...]) -> dict[Party, Expect[Joining]]:
    cells = 3 * KEY_BYTES + len(study.variables) * (ID_BYTES + 1) + 1
    return dict.fromkeys(parties, Expect(Joining, cells))


def _check(study: Study, joinings: Mapping[Party, Joining], order_bytes: int) -> None:
    """Refuse a `Joining` whose ids, secrets or key have the wrong number or length."""
    for party, joining in joinings.items():
        columns = sum(party in holders for holders in study.holders.values())
        secrets = [0, 0] if party == study.dealer else [KEY_BYTES, order_bytes]
        sent = [*joining.ids, joining.seed, joining.order, joining.key]
        if [len(part) for part in sent] != [ID_BYTES] * columns + [*secrets, KEY_BYTES]:
            reason = "its ids, secrets or key have a wrong number or length"
            raise MalformedMessageError(party, reason)


def _join(study: Study, joinings: Mapping[Party, Joining]) -> Joined:
    """Make the commitments from the sites' ids, and the common seed from their parts."""
    ids: dict[str, list[bytes]] = {name: [] for name in study.variables}
    for site in study.sites:
        mine = [name for name in study.variables if site in study.holders[name]]
        for name, column_id in zip(mine, joinings[site].ids, strict=True):
            ids[name].append(column_id)
    seed = label("common seed", *(joinings[site].seed for site in study.sites))
    return Joined(study, commitments_of(study, ids, seed), StreamKey(seed))
