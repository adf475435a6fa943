"""Federations in one process: sites that hold columns or records, and the analyst's sessions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vertibayes_mpc.additive_scheme.scheme import RSA_2048
from vertibayes_mpc.randomness import KeyPair, Randomness, SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.parties import serve
from vertibayes_protocols.policy import FREE, GIBIBYTE, Policy
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole, check_apart
from vertibayes_protocols.session import Session, Traffic
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.site.study_people import Placement, StudyPeople
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.local import LocalTransport
from vertibayes_protocols.variables import Variable

ANALYST: Party = "analyst"
DEALER: Party = "dealer"


class Federation(NamedTuple):
    """A session, and what one process can see of it."""

    session: Session
    sites: tuple[Party, ...]
    dealer: Party
    traffic: Traffic
    roles: dict[Party, SiteRole]

    def __enter__(self) -> Federation:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()


def budget_for(memory: int, sites: int) -> int:
    """Return the `memory_budget` of `federate` that lets a query take so much at each party."""
    return -(-memory * (sites + 1) * 4 // 3)


def federate(
    data: Mapping[Party, SiteData],
    *,
    policy: Policy | None = None,
    memories: Mapping[Party, SiteMemory] | None = None,
    memory_budget: int = GIBIBYTE,
    randomness: Randomness | None = None,
    placements: Mapping[Party, Placement] | None = None,
    limits: AlignmentLimits | None = None,
) -> Federation:
    """Start a party for each site's data, and a dealer, in this process.

    Parameters
    ----------
    data : mapping of Party to SiteData
        The sites by name; "dealer" and "analyst" are taken.
    policy : Policy, optional
        Of all sites; the default one with `free_tables` if None.
    memories : mapping of Party to SiteMemory, optional
        What sites remember of earlier sessions; nothing if None.
    memory_budget : int, default=2**30
        Bytes for all parties together: a quarter of it holds masked columns, and more of these are
        kept in files; the rest is for the queries, which are cut to fit. A policy's `most_memory`
        limits a query too.
    randomness : Randomness, optional
        The operating system's if None; a test may inject another.
    placements : mapping of Party to Placement, optional
        Where the records of sites are among those of the study; a site without one has all
        records, in their order. Sites that have rows of one variable need one.
    limits : AlignmentLimits, optional
        What all sites allow in alignments; the defaults if None.

    Returns
    -------
    federation : Federation
        The parties of all sites and the dealer, to be used in a ``with`` block.

    Raises
    ------
    ValueError
        If a site has a name that is taken, there are no sites, or a memory belongs to no site.
    """
    if not data:
        raise ValueError("a federation needs at least one site")
    check_apart(DEALER, ANALYST, tuple(data))
    if strangers := set(memories or {}) - set(data):
        raise ValueError(f"a memory of {', '.join(sorted(strangers))}, which is not a site")
    source = randomness or SystemRandomness()
    keys = {party: KeyPair.generate(source) for party in (*data, DEALER)}
    public = {party: pair.public for party, pair in keys.items()}
    share = memory_budget * 3 // 4 // (len(data) + 1)
    most = share if policy is None else min(policy.most_memory, share)
    rules = replace(policy or FREE, most_memory=max(most, 1))
    analyst = AnalystRole(ANALYST, source, public_keys=public)
    roles = {
        site: SiteRole(
            party=site,
            data=columns,
            keys=keys[site],
            public_keys={party: key for party, key in public.items() if party != site},
            dealer=DEALER,
            analyst=ANALYST,
            policy=rules,
            memory=(memories or {}).get(site) or SiteMemory(randomness=source),
            randomness=source,
            column_memory=memory_budget // (4 * len(data)),
            analyst_key=analyst.keys.public,
            limits=limits or AlignmentLimits(),
        )
        for site, columns in data.items()
    }
    for site, placement in (placements or {}).items():
        roles[site].people = StudyPeople(data[site], placement=placement)
    sites = {site: public[site] for site in data}
    dealer = DealerRole(DEALER, keys[DEALER], sites, rules, randomness=source)
    programs = {site: serve(role, ANALYST, KINDS) for site, role in roles.items()}
    programs[DEALER] = serve(dealer, ANALYST, KINDS)
    transport = LocalTransport(ANALYST, programs, source)
    session = Session(analyst, transport)
    return Federation(session, tuple(data), DEALER, transport.traffic, roles)


class RecordFederation:
    """Sites that hold different records of the same columns, in this process; they come and go.

    A site that leaves keeps its memory, and has it again when it comes back under its name: what
    was released of its records stays charged to its budget.
    """

    def __init__(
        self,
        parties: Mapping[Party, LocalData],
        *,
        policy: Policy | None = None,
        modulus: int | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self.randomness = randomness or SystemRandomness()
        self.policy, self.modulus = policy or FREE, modulus or RSA_2048
        self.roles: dict[Party, SiteRole] = {}
        self._memories: dict[Party, SiteMemory] = {}  # also of those who have left
        self.traffic = Traffic()
        keys = KeyPair.generate(self.randomness)
        self.analyst = AnalystRole(ANALYST, self.randomness, keys=keys, modulus=self.modulus)
        for party, data in parties.items():
            self.join(party, data)

    def join(self, party: Party, data: LocalData) -> None:
        """Start a site, with a new key that all others pin, and with its memory if it was there."""
        if party == ANALYST or party in self.roles:
            raise ValueError(f"{party!r} is the name of another party")
        columns = {n: codes.astype(np.uint16) for n, codes in data.codes.items()}
        # any value may be missing
        variables = {n: Variable(n, v.states, True) for n, v in data.variables.items()}
        role = SiteRole(
            party=party,
            data=SiteData(variables, columns, numerics=data.numerics, numbers=data.numbers),
            keys=KeyPair.generate(self.randomness),
            public_keys=self.analyst.public_keys,  # one mapping for all: who joins is in it
            analyst=ANALYST,
            policy=self.policy,
            memory=self._memories.get(party) or SiteMemory(randomness=self.randomness),
            randomness=self.randomness,
            analyst_key=self.analyst.keys.public,
            signing_keys=self.analyst.signing_keys,
            modulus=self.modulus,
            batches=[data],
        )
        self.roles[party] = role
        self.analyst.public_keys[party] = role.keys.public
        self.analyst.signing_keys[party] = role.signing.public

    def leave(self, party: Party) -> None:
        """End a site; the others forget its key."""
        self._memories[party] = self.roles[party].memory
        for known in (self.roles, self.analyst.public_keys, self.analyst.signing_keys):
            del known[party]

    def session(self, absent: Collection[Party] = ()) -> Session:
        """Begin a session with all sites but the absent."""
        programs = {
            party: serve(role, ANALYST, KINDS)
            for party, role in self.roles.items()
            if party not in absent
        }
        transport = LocalTransport(ANALYST, programs, self.randomness, self.traffic)
        return Session(self.analyst, transport)
