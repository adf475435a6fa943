"""Sites whose lists of people overlap in part, and the pooled table of the people of a study."""

from __future__ import annotations

import numpy as np

from tests.protocols.small import STATES, seeded
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Family, Rows, Variable

WRITTEN = ("{}", "{:04d}", " {}", "0{}", "{} ")  # a number, as each site writes it


def site_of(people, codes, written="{}", rules=("digits",), drop=False):
    """Return a site's data. people: numbers, in any order; codes: {name: codes of all people}."""
    texts = TextColumn.of([written.format(person) for person in people])
    matched = Identifiers.of("a site", {"id": texts}, rules, drop=drop)
    columns = {name: column[np.array(people, int) - 1] for name, column in codes.items()}
    variables = {name: Variable(name, STATES) for name in codes}
    data = SiteData(variables, columns, texts, identifiers=matched)
    return data.in_order_of_ids()


class Listed:
    """Sites with lists of people, drawn at random, and the codes of everybody.

    holders: {site: its variables}; lists: {site: numbers of people, from 1}.
    """

    def __init__(self, holders, lists, everybody=120, seed=5):
        draw = np.random.default_rng(seed)
        names = dict.fromkeys("".join(holders.values()))
        self.codes = {name: draw.integers(0, 3, everybody).astype(np.uint8) for name in names}
        self.holders, self.lists = (
            holders,
            {s: draw.permutation(people) for s, people in lists.items()},
        )
        self.data = {
            site: site_of(self.lists[site], {n: self.codes[n] for n in names}, written)
            for (site, names), written in zip(holders.items(), WRITTEN, strict=False)
        }

    @property
    def common(self):
        """The people whom all sites hold."""
        return sorted(set.intersection(*(set(own.tolist()) for own in self.lists.values())))

    def table(self, *names, people=None):
        """Return the table of the people of the study, from the pooled records."""
        at = np.array(self.common if people is None else people, int) - 1
        counts = np.zeros((3,) * len(names), np.int64)
        np.add.at(counts, tuple(self.codes[name][at] for name in names), 1)
        return counts

    def federate(self, **options):
        """Start a repeatable federation."""
        return seeded(self.data, **options)


DIGITS = AlignmentRequest(rules=("digits",))


def opened(federation, alignment=DIGITS, **options):
    """Open a study with an alignment."""
    parties = federation.session, federation.sites, federation.dealer
    return open_study(*parties, alignment=alignment, **options)


def counted(study, *names):
    """Return the table of some variables."""
    family = Family(names[0], tuple(names[1:]))
    ((revealed,),) = study.reveal([family], missing=False, rows=Rows())
    order = [revealed.family.members.index(name) for name in names]
    return revealed.table.transpose(order)
