"""Sites with overlapping lists of people: the study has the people of all lists, in some order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

LEVEL_2 = AlignmentRequest(2, ("digits",))
FREE = Policy(free_tables=True, most_epsilon=1e5)


@dataclass
class Lists:
    """The codes of everybody, the list of each site, and each site's columns."""

    variables: dict
    codes: dict
    people: dict
    names: dict

    @property
    def common(self):
        return reduce(np.intersect1d, self.people.values())

    @property
    def data(self):
        return {site: self.site(site) for site in self.people}

    def site(self, site):
        """Return a site's data: its columns of its people, with their numbers as identifiers."""
        people = self.people[site]
        ids = TextColumn(tuple(f"{person + 1:05d}" for person in people), np.arange(len(people)))
        return SiteData(
            {name: self.variables[name] for name in self.names[site]},
            {name: self.codes[name][people] for name in self.names[site]},
            ids,
            identifiers=Identifiers.of(site, {"id": ids}, LEVEL_2.rules),
        )

    @property
    def pooled(self):
        """Return the joined table."""
        codes = {name: codes[self.common] for name, codes in self.codes.items()}
        return SiteData(self.variables, codes)

    @property
    def plain(self):
        return PlainCounter(self.pooled)

    def federate(self, **options):
        return federate(self.data, **{"policy": FREE, **options})

    def counter(self, federation, **options):
        return SecureCounter.of(federation, alignment=LEVEL_2, order=[*self.variables], **options)

    def open(self, federation, **options):
        options = {"alignment": LEVEL_2, "order": [*self.variables], **options}
        return open_study(federation.session, federation.sites, DEALER, **options)


def random_lists(seed, sites=None, people=120, variables=6, held=0.7, missing=True):
    """Draw lists: each site holds most of the people, shuffled, and some of the columns."""
    generator = np.random.default_rng(seed)
    sites = "abcd"[: sites or generator.integers(2, 5)]
    drawn, codes, names = {}, {}, {site: [] for site in sites}
    for place, name in enumerate("uvwxyz"[:variables]):
        states, gaps = int(generator.integers(2, 4)), bool(missing and generator.random() < 0.5)
        drawn[name] = Variable(name, tuple(map(str, range(states))), gaps)
        codes[name] = generator.integers(0, states, people).astype(np.uint8)
        if place and generator.random() < 0.7:  # depends on the variable before
            codes[name] = np.where(
                generator.random(people) < 0.7, codes["uvwxyz"[place - 1]] % states, codes[name]
            ).astype(np.uint8)
        codes[name][gaps & (generator.random(people) < 0.15)] = states
        names[sites[place % len(sites)]].append(name)
    lists = {
        s: generator.permutation(np.flatnonzero(generator.random(people) < held)) for s in sites
    }
    for site, own in lists.items():
        if len(own) == people:
            lists[site] = own[10:]
    return Lists(drawn, codes, lists, names)
