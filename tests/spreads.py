"""Columns and rows spread over sites in any way, with the pooled data that they are of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes_mpc.commitments import BLOCK_ROWS, MOST_INDICATORS
from vertibayes_protocols.federation import federate
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import study_of
from vertibayes_protocols.queries import Commit, Describe, Meet
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.study_people import Placement
from vertibayes_protocols.study import CHOICE_INDICATORS
from vertibayes_protocols.variables import Family, Variable

NOBODY = -1


@dataclass
class Spread:
    """The sites' data and placements, and the pooled data: a row that no site holds is missing."""

    data: dict[str, SiteData]
    placements: dict[str, Placement]
    pooled: SiteData

    @property
    def plain(self):
        """A counter of the pooled data, whose variables are those of the study."""
        return PlainCounter(self.pooled)

    def federate(self, **options):
        """Start a federation whose sites have their placements."""
        return federate(
            self.data, placements=self.placements, randomness=SeededRandomness(), **options
        )

    def open(self, federation, *, choices=False, study=b"one study", **changes):
        """Open the study, with the variables in the order of the pooled data."""
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        session.ask(Meet.of(session.role, sites, dealer))
        described = session.ask(Describe(tuple(sites)))
        memory = min(description.most_memory for description in described.values())
        names = list(self.pooled.variables)
        agreed = study_of(study, described, dealer, names, BLOCK_ROWS, memory, aligned=True)
        most = CHOICE_INDICATORS if choices else MOST_INDICATORS
        agreed = replace(agreed, most_indicators=most, **changes)
        most_variables = min(description.most_variables for description in described.values())
        return OpenStudy(session, session.ask(Commit.of(agreed)), most_variables)

    def counter(self, federation, **options):
        """Open the study for tables."""
        return SecureCounter(self.open(federation, **options))


def spread_out(pooled, owners, lists, generator):
    """Deal pooled data to sites.

    pooled: SiteData. owners: {variable: {site: rows that it holds}}; rows of two sites of one
    variable are disjoint. lists: {site: rows of the study that its list has}, at least those that
    it owns. Each site's list is in an order of its own and has a few strangers.
    """
    records, data, placements = pooled.records, {}, {}
    gaps = {name: np.full(records, len(v.states), np.uint8) for name, v in pooled.variables.items()}
    for site, rows in lists.items():
        strangers = int(generator.integers(0, 3))
        places = generator.permutation([*rows, *[NOBODY] * strangers]).astype(np.int64)
        held = {name: of[site] for name, of in owners.items() if site in of}
        codes = {n: _of_site(pooled, n, places, mine, generator) for n, mine in held.items()}
        complete = sorted(rows) == list(range(records))
        variables = {
            name: Variable(name, pooled.variables[name].states, _may_miss(pooled, codes, name))
            for name in held
        }
        data[site], placements[site] = SiteData(variables, codes), Placement(records, places)
        for name, mine in held.items():
            gaps[name][mine] = pooled.codes[name][mine]
            is_shared = len(owners[name]) > 1
            known = is_shared or not complete or variables[name].missing
            pooled.variables[name] = Variable(name, pooled.variables[name].states, known)
    return Spread(data, placements, SiteData(dict(pooled.variables), gaps))


def _of_site(pooled, name, places, mine, generator):
    """Return a site's column: its rows, missing elsewhere, anything for strangers."""
    states = len(pooled.variables[name].states)
    column = np.full(len(places), states, np.uint8)
    owned = np.isin(places, mine)
    column[owned] = pooled.codes[name][places[owned]]
    strange = places == NOBODY
    column[strange] = generator.integers(0, states, int(strange.sum()))
    return column


def _may_miss(pooled, codes, name):
    return bool((codes[name] == len(pooled.variables[name].states)).any())


def random_spread(seed, *, records=None, variables=None, sites=None, missing=0.1, nobody=0.1):
    """Draw data and a spread of its columns and rows over two to five sites."""
    generator = np.random.default_rng(seed)
    records = int(generator.integers(8, 60)) if records is None else records
    names = [f"v{i}" for i in range(variables or int(generator.integers(2, 6)))]
    sites = [f"s{i}" for i in range(sites or int(generator.integers(2, 6)))]
    known, codes = {}, {}
    for place, name in enumerate(names):
        states = int(generator.integers(2, 4))
        values = generator.integers(0, states, records)
        if place and generator.random() < 0.7:  # most depend on the one before
            copied = generator.random(records) < 0.7
            values = np.where(copied, codes[names[place - 1]] % states, values)
        values[generator.random(records) < missing * generator.integers(0, 2)] = states
        known[name] = Variable(name, tuple("abc"[:states]), True)
        codes[name] = values.astype(np.uint8)
    owners = {name: _owners(generator, records, sites, nobody) for name in names}
    owners[names[0]] |= {s: np.zeros(0, np.intp) for s in sites} if generator.random() < 0.3 else {}
    used = [site for site in sites if any(site in of for of in owners.values())]
    lists = {site: _list(generator, records, owners, site) for site in used}
    return spread_out(SiteData(known, codes), owners, lists, generator)


def _owners(generator, records, sites, nobody):
    """Deal the rows of a column to some sites; some of the rows to nobody."""
    chosen = generator.permutation(sites)[: generator.integers(1, len(sites) + 1)]
    owner = generator.integers(0, len(chosen), records)
    if generator.random() < 0.5:
        owner[generator.random(records) < nobody] = NOBODY
    return {str(site): np.flatnonzero(owner == i) for i, site in enumerate(chosen)}


def _list(generator, records, owners, site):
    """Return the rows of a site's list: those that it owns, and others or all."""
    rows = {int(row) for of in owners.values() for row in of.get(site, ())}
    more = generator.choice([0.0, 0.3, 1.0])
    return sorted(rows | {row for row in range(records) if generator.random() < more})


def families_of(names):
    """Return every single and pair, and triples of neighbours."""
    pairs = [Family(a, (b,)) for a in names for b in names if a < b]
    triples = [Family(a, (b, c)) for a, b, c in zip(names, names[1:], names[2:], strict=False)]
    return [*map(Family, names), *pairs, *triples]


def assert_learned_alike(learned, pooled):
    """The structures, scores and CPTs are the same, bit for bit."""
    assert learned.network.structure == pooled.network.structure
    assert learned.scores == pooled.scores
    for name, cpt in pooled.network.cpts.items():
        assert np.array_equal(learned.network.cpts[name], cpt)
