"""The parties' states: site, dealer, analyst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.paillier import PrivateKey
from vertibayes_mpc.randomness import KeyPair, Randomness, StreamKey, SystemRandomness
from vertibayes_mpc.rounds import Party as Party
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols import clock
from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.approval import Approvals, Run, nothing_approved
from vertibayes_protocols.calibration.agreed import ClassifierSpec
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.nodes import Checkpoints
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.policy import GIBIBYTE, Policy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.hidden_rows import HiddenRows
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.site.study_people import Placement, StudyPeople
from vertibayes_protocols.storage.block_file import BlockFile
from vertibayes_protocols.storage.changes import Snapshot
from vertibayes_protocols.storage.memory import Digests, SiteMemory
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Variable

# Takes the number of a calibration's last query, the classifier, and a site's own statistics.
Calibrated: TypeAlias = Callable[[int, ClassifierSpec, Floats], None]


@dataclass(frozen=True)
class Running:
    """A study that a session runs."""

    analyst: Party  # who runs it
    since: str  # when the session began to, in UTC
    session: object = field(repr=False)  # the role of the session


@dataclass
class SharedState:
    """What the sessions of a party share beside its memory; nothing of it outlives the process."""

    running: dict[bytes, Running] = field(default_factory=dict)
    queries: int = 0  # how many queries were begun, in all sessions
    # Of a site alone: digests of its records, the statistics from which calibrations resume (by the
    # analyst's key), and how many comparisons of lists have begun (by peer).
    digests: Digests | None = field(default=None, repr=False)  # None until they are computed
    checkpoints: dict[bytes, Checkpoints] = field(default_factory=dict, repr=False)
    comparing: Counter[Party] = field(default_factory=Counter)

    def claim(self, study: bytes, session: SiteRole | DealerRole) -> Running | None:
        """Note that a session runs a study; return the other session that does, if there is one."""
        since = clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")
        running = self.running.setdefault(study, Running(session.analyst, since, session))
        return None if running.session is session else running

    def release(self, session: object) -> None:
        """Note that a session is over, and runs nothing any more."""
        self.running = {s: r for s, r in self.running.items() if r.session is not session}


@dataclass
class SiteRole:
    """A site."""

    party: Party
    data: SiteData = field(repr=False)
    keys: KeyPair
    public_keys: Mapping[Party, bytes]  # of the dealer and of the other sites, pinned by this site
    # Whom it takes for them: never the same, and neither is a site that it knows as another.
    dealer: Party = "dealer"
    analyst: Party = "analyst"
    policy: Policy = field(default_factory=Policy)
    memory: SiteMemory = field(default_factory=SiteMemory)
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False)
    column_memory: int = GIBIBYTE // 4  # bytes of masked columns in memory; more are in a file
    ledger: Ledger = field(default_factory=Ledger, repr=False)
    joined: Joined | None = field(default=None, repr=False)
    holder: Holder | None = field(default=None, repr=False)
    met: frozenset[Party] = frozenset()  # in this session: equal records in the same order
    went_back: str = ""  # why it refuses this session: its memory went back, or a peer's
    heads_of: frozenset[Party] = frozenset()  # in this session: whose ledgers it has compared
    # Earlier keys of the other sites, each of which has signed the next.
    former_keys: Mapping[Party, Collection[bytes]] = field(default_factory=dict, repr=False)
    analyst_key: bytes = b""  # as it is pinned; sums need it
    signing_keys: Mapping[Party, bytes] = field(default_factory=dict, repr=False)  # of other sites
    modulus: int = field(default=RSA_2048, repr=False)  # N of the schemes: nobody has its factors
    batches: Sequence[LocalData] = field(default=(), repr=False)  # what sums are of; else `data`
    approvals: Approvals = field(default=nothing_approved, repr=False)
    remark: Callable[[str], None] = field(default=lambda _: None, repr=False)  # to its owner
    limits: AlignmentLimits = field(default_factory=AlignmentLimits, repr=False)
    paillier: PrivateKey | None = field(default=None, repr=False)  # a new one a study if None
    processes: int = 1  # how many blind the identifiers of long lists
    run: Run | None = field(default=None, init=False, repr=False)  # of an approved study
    # Who is in the study, in this session; None if it has all its records, in their order.
    people: StudyPeople | None = field(default=None, init=False, repr=False)
    pairs: dict[tuple[str, bytes], StreamKey] = field(default_factory=dict, init=False, repr=False)
    shared: SharedState = field(default_factory=SharedState, init=False, repr=False)
    calibrated: Calibrated | None = field(default=None, init=False, repr=False)  # takes its model
    _values: tuple[Study, Snapshot] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        others = set(self.public_keys) - {self.dealer}
        check_apart(self.dealer, self.analyst, {self.party, *others})
        if not self.batches:
            self.batches = [self.data.local]

    def for_session(self, analyst: Party, analyst_key: bytes) -> SiteRole:
        """Return the site's state in a session with one of its analysts.

        Sessions run side by side: each has its own study, masked columns and run, and all have the
        same memory, ledger and approvals.
        """
        session = copy(self)
        session.analyst, session.analyst_key = analyst, analyst_key
        session.joined = session.holder = session.run = session._values = None
        session.people, session.went_back = None, ""
        session.met = session.heads_of = frozenset()
        return session

    @cached_property
    def signing(self) -> SigningKey:
        """Its signing key, which follows from its private key."""
        return SigningKey.of(self.keys)

    def note_budget(self) -> None:
        """Note in the ledger what all releases with noise cost together: after each release."""
        spent = self.memory.spent
        if spent.eps:
            eps, delta = spent.proved(self.policy.most_delta)
            what = f"all releases with noise so far cost epsilon {eps:.4g} and delta {delta:.2g}"
            if plain := self.memory.left_plain:
                what += f"; {plain} tables, sums or scores also left without noise, which epsilon "
                what += "does not bound"
            self.ledger.note(what, f"the records of {self.party}", ())

    def leave(self) -> None:
        """Let go of the study that it has joined, and of whom it has met: a session is over."""
        self.leave_study()
        self.leave_people()
        self.met = self.heads_of = frozenset()
        self.run, self.went_back = None, ""
        self.shared.release(self)

    def leave_study(self) -> None:
        """Let go of the study that it has joined, and of the others' columns."""
        if self.holder is not None and isinstance(self.holder.masked, BlockFile):
            self.holder.masked.close()
        self.joined = self.holder = None

    def take(self, people: StudyPeople) -> None:
        """Take who is in the study, in this session: its data are then those of these people."""
        self.leave_people()
        self.people, self.data = people, people.data

    def leave_people(self) -> None:
        """Have the data of all people again; let go of what was met and committed of the others.

        Otherwise tables of one study would be checked and remembered as those of another's people.
        """
        self.leave_study()
        self.met = frozenset()
        if self.people is not None and self.people.study:
            self.data, self.people, self._values = self.people.everybody, None, None

    @property
    def everybody(self) -> SiteData:
        """The data of all people that it holds, also in a session that has aligned."""
        return self.data if self.people is None else self.people.everybody

    @property
    def placement(self) -> Placement | None:
        """Where its records are in the study, if other sites may have people that it has not."""
        return None if self.people is None else self.people.placement

    @property
    def hidden(self) -> HiddenRows | None:
        """Its shares of the study's rows, if no site knows who is in the study."""
        return None if self.people is None else self.people.hidden

    @property
    def records(self) -> int:
        """The number of records of the study, as far as the site knows it."""
        if self.hidden is not None:
            return self.hidden.records
        return self.data.records if self.placement is None else self.placement.records

    def column(self, name: str) -> NDArray[np.unsignedinteger]:
        """Return the codes of a column in the order of the study; missing without a record."""
        codes = self.data.codes[name]
        if self.placement is None:
            return codes
        return self.placement.spread(codes, len(self.data.variables[name].states))

    @property
    def record_digests(self) -> Digests:
        """A keyed digest of each of its records, in the order of its data."""
        chosen = None if self.people is None else self.people.chosen
        if self.shared.digests is None:
            self.shared.digests = self.memory.digests(self.everybody)
        return self.shared.digests if chosen is None else self.shared.digests[chosen]

    @property
    def checkpoints(self) -> Checkpoints:
        """Its statistics in the last calibrations of the session's analyst."""
        return self.shared.checkpoints.setdefault(self.analyst_key, Checkpoints())

    def values_of(self, study: Study) -> Snapshot:
        """Return the values of all columns that it offers, in a study, which are computed once.

        With a placement, they are those of its records that are in the study. If the site does not
        know who is in the study, they are those of all its records.
        """
        if self._values is None or self._values[0] is not study:
            data, digests = self.data, self.record_digests
            if self.placement is not None:
                own = self.placement.own
                data, digests = data.rows(own), digests[own]
            values = self.memory.snapshot(data, data.variables, digests)
            self._values = study, replace(values, rule=self._rule)
        return self._values[1]

    @property
    def _rule(self) -> str:
        """By which rule its tables leave in a run, as `Rule.name`; empty by none."""
        rule = None if self.run is None else self.run.approved.contract.rule
        return "" if rule is None else rule.name

    @property
    def approved_beside(self) -> frozenset[bytes]:
        """Beside which earlier studies its owner has approved these data of all its people."""
        if self.run is None or not (approved := self.run.approved.data):
            return frozenset()
        return self.memory.approved_beside(self.everybody, self._rule, approved)

    def own(self, study: Study) -> list[str]:
        """Return the variables of a study that are in its own table."""
        if self.hidden is not None:
            return [n for n in self.hidden.carried.of(self.party) if n in study.variables]
        return [name for name, sites in study.holders.items() if self.party in sites]

    def digests_of(self, chosen: NDArray[np.intp] | None) -> Digests:
        """Return the digests of its records at some places of the study, or at all if None.

        If the site does not know who is in the study, they are those of the places.
        """
        digests = self.record_digests if self.hidden is None else self.hidden.people
        if self.placement is not None:
            return digests[self.placement.own_among(chosen)]
        return digests if chosen is None else digests[chosen]

    @property
    def shown(self) -> dict[str, Variable]:
        """The variables that it shows, in the order of its data: in a run, of its contract.

        If it does not hold all records of the study, values may be missing in each of them.
        """
        known = {name: v for name, v in self.data.variables.items() if self.policy.shows(name)}
        if self.placement is not None and not self.placement.is_complete:
            known = {name: replace(variable, missing=True) for name, variable in known.items()}
        if self.run is None:
            return known
        asked = set(self.run.approved.contract.variables)
        return {name: variable for name, variable in known.items() if name in asked}


@dataclass
class DealerRole:
    """The dealer: keys, and nothing else."""

    party: Party
    keys: KeyPair
    public_keys: Mapping[Party, bytes]  # of all sites
    policy: Policy = field(default_factory=Policy)  # how large the tables are that it deals for
    most_records: int = 10_000_000  # of a study
    analyst: Party = "analyst"  # who opens scores
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False)
    modulus: int = field(default=RSA_2048, repr=False)  # as of `SiteRole`
    joined: Joined | None = field(default=None, repr=False)
    mask_keys: Mapping[Party, StreamKey] = field(default_factory=dict, repr=False)
    shared: SharedState = field(default_factory=SharedState, init=False, repr=False)

    def for_session(self, analyst: Party, analyst_key: bytes) -> DealerRole:  # noqa: ARG002
        """Return the dealer's state in a session with one of its analysts: as at a site."""
        session = copy(self)
        session.analyst = analyst
        session.leave_study()
        return session

    def leave(self) -> None:
        """Let go of the study that it has joined: a session is over."""
        self.leave_study()
        self.shared.release(self)

    def leave_study(self) -> None:
        """Let go of the study that it has joined."""
        self.joined, self.mask_keys = None, {}


@dataclass
class AnalystRole:
    """The analyst: what was described, committed and opened."""

    party: Party = "analyst"
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False)
    ledger: Ledger = field(default_factory=Ledger, repr=False)
    joined: Joined | None = field(default=None, repr=False)
    public_keys: dict[Party, bytes] = field(default_factory=dict)  # sites compare them with theirs
    signing_keys: dict[Party, bytes] = field(default_factory=dict, repr=False)
    # Each member of a sum agrees a key with it.
    keys: KeyPair = field(default_factory=lambda: KeyPair.generate(SystemRandomness()))
    modulus: int = field(default=RSA_2048, repr=False)  # as of `SiteRole`
    policy: Policy = field(default_factory=Policy)  # the memory and time of what it asks
    last_sum: int = -1  # the number of its last sum
    pairs: dict[tuple[str, bytes], StreamKey] = field(default_factory=dict, init=False, repr=False)

    def next_number(self) -> int:
        """Return the number of its next sum: above all before, in any of its processes."""
        self.last_sum = max(self.last_sum + 1, clock.time_ns() // 1000)
        return self.last_sum


def check_apart(dealer: Party, analyst: Party, sites: Collection[Party]) -> None:
    """Refuse a deployment in which the dealer is also the analyst or holds data.

    A dealer that is a site could read every column, one that is the analyst linear equations in
    the data; an analyst that is a site would be sent masked columns.
    """
    if dealer == analyst:
        raise ValueError(f"{dealer!r} cannot be both the dealer and the analyst")
    for party, role in ((dealer, "dealer"), (analyst, "analyst")):
        if party in sites:
            raise ValueError(f"{party!r} is the {role}: no site can have that name")


def agree_pairs(
    role: SiteRole | AnalystRole, peers: Iterable[Party], purpose: str
) -> dict[Party, StreamKey]:
    """Return the keys that a party agrees with peers whose public keys it has pinned."""
    streams: dict[Party, StreamKey] = {}
    for peer in peers:
        place = purpose, role.public_keys[peer]
        if place not in role.pairs:
            role.pairs[place] = role.keys.agree(role.public_keys[peer], purpose)
        streams[peer] = role.pairs[place]
    return streams
