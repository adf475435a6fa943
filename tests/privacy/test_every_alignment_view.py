"""Are the views of a coalition the same for all lists with equal sizes and regions?

A view is everything that the coalition can compare. It undoes its own orders, and takes those of
the honest sites for the identity. It notes whose places are the same person, whether a masked row
that comes back is one that it sent, a bit of each row and share that it receives, and which keys it
can name by a scalar that it knows.

Short tests go through all orders of the honest site: worlds that must look alike then have exactly
the same views, equally often. Long ones draw all streams and compare the worlds by chi-square.
Beside each comparison, the same test rejects an unsafe site.
"""

import itertools
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.alignment_worlds import plan_of, programs
from tests.worlds import all_of
from vertibayes_mpc.alignment.chain import MATCHED_BYTES, Chain
from vertibayes_mpc.alignment.curve import POINT_BYTES, blind, hash_to_curve
from vertibayes_mpc.alignment.messages import NUMBERS
from vertibayes_mpc.randomness import KEY_BYTES, StreamKey
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

KNOWN = bytes(KEY_BYTES)
RING = Ring(24)
RARE = 5  # views that are seen less often, over all worlds, are counted together
RUNS, FEW = 60, 40  # of each world; of each world with an unsafe site


class Honest(Chain):
    """A site as it is; the orders that it draws are kept."""

    honest = ""  # the names of those who may be unsafe
    orders_of: ClassVar = {}

    def _order(self, key, owner=""):
        order = self.drawn(key, owner) if self.me in self.honest else super()._order(key, owner)
        self.orders_of[self.me, owner or self.me] = order
        return order

    def drawn(self, key, owner):
        return super()._order(key, owner)


class KeepsTheOrder(Honest):
    """It sends the lists of others in the order in which they came."""

    def drawn(self, key, owner):
        return np.arange(self.plan.sizes[owner]) if owner else super().drawn(key, owner)


class SendsItsListAsItIs(Honest):
    """It sends its own list in the order in which it is stored."""

    def drawn(self, key, owner):
        return super().drawn(key, owner) if owner else np.arange(self.plan.sizes[self.me])


class MasksNoRows(Honest):
    """It sends the rows of others as they came."""

    def _mask(self):
        if self.me not in self.honest or self.owner == self.me:
            super()._mask()


class UsesAKnownScalar(Honest):
    """It blinds with what everybody knows."""

    def __init__(self, site, plan):
        super().__init__(site, plan)
        if self.me in self.honest:
            self.scalar = KNOWN


class Run:
    """One run, and what a coalition of sites with the matcher sees of it."""

    def __init__(self, level, lists, codes, coalition, seed, site=Honest, everyone=None):
        self.plan = plan_of(lists, everyone, level, rings=(RING,))
        self.lists, self.coalition, self.site = lists, coalition, site
        site.honest, site.orders_of = [s for s in lists if s not in coalition], {}
        rows = {s: [np.array(codes[s], RING.dtype)] for s in lists}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("vertibayes_mpc.alignment.site.Chain", site)
            steps = programs(self.plan, lists, rows, seed=seed)
            self.outputs, self.transcript = run_all(steps)

    def sent(self, kind, owner, sender=None, receiver=None):
        """Return what was sent of one list: each message names the list in its label."""
        name = self.plan.name(f"alignment {kind}", owner, 0)
        (values,) = (
            sent.message.values
            for sent in self.transcript
            if sent.message.label == name
            and sender in (None, sent.sender)
            and receiver in (None, sent.receiver)
        )
        return values

    def links(self, owner):
        """Return the keys and rows that the owner of a list sends."""
        values, size = self.sent("links", owner, sender=owner), self.plan.sizes[owner]
        keys, rows = np.split(values, [POINT_BYTES * size])
        return keys.reshape(size, -1), all_of(RING, rows)

    def undone(self, owner, place):
        """Return where a place of a list was, before the orders that the coalition knows."""
        for here in reversed(self.plan.chain(owner)):
            if here in self.coalition:
                place = int(self.site.orders_of[here, owner][place])
        return place

    def persons(self):
        """Return which places are one person."""
        holders = {}
        for owner in self.lists:
            keys = self.sent("keys", owner).reshape(-1, MATCHED_BYTES)
            for place, key in enumerate(keys):
                holders.setdefault(key.tobytes(), []).append((owner, self.undone(owner, place)))
        return sorted(sorted(places) for places in holders.values() if len(places) > 1)

    def returned(self):
        """Return which of the coalition's own rows come back as they were sent."""
        seen, first = [], self.plan.sites[0]
        for owner in self.coalition:
            if first in self.coalition or self.plan.after(owner, -1) in self.coalition:
                order, sent = self.site.orders_of[owner, owner], self.links(owner)[1]
                at = [order[at] for row in self.rows(owner) for at in np.flatnonzero(sent == row)]
                seen.append((owner, sorted(map(int, at))))
        return seen

    def bits(self):
        """Return a bit of each row that the honest sites send first."""
        honest = (owner for owner in self.lists if owner not in self.coalition)
        return [(self.links(owner)[1] & 1).tolist() for owner in honest]

    def share_bits(self):
        """Return a bit of each share of the first site."""
        first = self.plan.sites[0]
        if first not in self.coalition:
            return []
        return [(self.outputs[first].shares[owner][0] & 1).tolist() for owner in self.lists]

    def rows(self, owner):
        """Return the masked rows of the study."""
        last, first = self.plan.after(owner, -1), self.plan.sites[0]
        if last != first:
            return all_of(RING, self.sent("rows", owner))
        masks = all_of(RING, self.sent("row masks", owner))
        return RING.reduce(self.outputs[first].shares[owner][0] + masks)

    def named(self):
        """Return which people of the first list the coalition recognizes in an honest list."""
        key = StreamKey(bytes(KEY_BYTES)).elements(Ring(8), self.plan.name("hash"), (KEY_BYTES,))
        people = self.lists[self.plan.sites[0]]
        points = hash_to_curve([b"p" + person for person in people], key.tobytes())
        keys = blind(points, KNOWN, map)
        mine = [keys[at : at + POINT_BYTES] for at in range(0, len(keys), POINT_BYTES)]
        honest = [owner for owner in self.lists if owner not in self.coalition]
        theirs = {key.tobytes() for owner in honest for key in self.links(owner)[0]}
        return [place for place, key in enumerate(mine) if key in theirs]

    def view(self):
        """Return what the coalition with the matcher notes, aspect by aspect."""
        if self.plan.level == 1:
            return [(self.persons(), self.named())]
        return [(self.persons(), self.named()), self.returned(), self.bits(), self.share_bits()]

    def view_of_the_dealer(self):
        """Return that of the dealer and the matcher: places, before the orders it knows."""
        places = {owner: self.sent("chosen", owner, receiver="dealer") for owner in self.lists}
        for owner, packed in places.items():
            chosen = all_of(NUMBERS, packed).astype(np.intp)
            for here in reversed(self.plan.chain(owner)[1:]):
                chosen = self.site.orders_of[here, owner][chosen]
            places[owner] = chosen.tolist()
        return places

    def view_on_the_way_back(self, as_places=False):
        """Return what the first site sees without the matcher: its places, and others' marks."""
        me = self.plan.sites[0]
        seen = [self.outputs[me].places.tolist()]
        for owner in self.plan.sites[1:]:
            marks = all_of(NUMBERS, self.sent("marks", owner, receiver=me)).astype(np.int64)
            inside = marks[marks < len(marks)]
            if as_places:
                inside = all_of(NUMBERS, self.sent("places", owner))[inside]
            seen.append(inside.tolist())
        return seen


def p_value(worlds, look, runs):
    """Compare the views of worlds, aspect by aspect; each run has keys of its own."""
    views = [
        list(zip(*(look(world, b"%d %d" % (number, run)) for run in range(runs)), strict=True))
        for number, world in enumerate(worlds)
    ]
    return min(map(p_value_of_an_aspect, zip(*views, strict=True))) * len(views[0])


def p_value_of_an_aspect(views):
    counts = [Counter(map(str, seen)) for seen in views]
    total = sum(counts, Counter())
    often = [view for view in total if total[view] >= RARE]
    table = [[*(c[v] for v in often), c.total() - sum(c[v] for v in often)] for c in counts]
    table = np.array(table)[:, np.any(table, axis=0)]
    return chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


def world(codes=None, **lists):
    people = {site: [name.encode() for name in names.split()] for site, names in lists.items()}
    return people, codes or {site: [0] * len(names) for site, names in people.items()}


# Of each group of worlds, sizes and regions are equal; at level 1, the study of the coalition too.
TWO = [
    world(a="p0 p1", b="p0 z1"),
    world(a="p0 p1", b="z2 p1"),
    world(a="p0 p1", b="z2 p0", codes={"a": [0, 0], "b": [2, 5]}),
]
B_LOOKS = [world(a="p0 z1", b="p0 p1"), world(a="z2 p1", b="p0 p1")]
THREE = [world(a="p0 p1", b="p0 p1", c="p0 z1"), world(a="p0 p1", b="p0 p1", c="z2 p1")]
A_IS_HONEST = [world(a="p0 z1", b="p0 p1", c="p0 p1"), world(a="z2 p1", b="p0 p1", c="p0 p1")]
PARTLY = [
    world(a="p0 p1 p2", b="p0 p1", c="p0 z1"),
    world(a="p0 p1 p2", b="p2 p0", c="z2 p0"),
]
SAME_STUDY = [world(a="p0 p1", b="p0 z1"), world(a="p0 p1", b="z2 p0")]
STUDY_OF_C = [
    world(a="p0 p1", b="p0 z1", c="p0 p1"),
    world(a="p0 p1", b="z2 p1", c="p1 p0"),
]
SAFE = {
    "2 sites, a and the matcher": (2, TWO, "a"),
    "2 sites, b and the matcher": (2, B_LOOKS, "b"),
    "3 sites, a, b and the matcher": (2, THREE, "ab"),
    "3 sites, b, c and the matcher": (2, A_IS_HONEST, "bc"),
    "3 sites, a and the matcher": (2, PARTLY, "a"),
    "level 1, 3 sites, a and the matcher": (1, PARTLY, "a"),
    "level 1, 2 sites, a and the matcher": (1, SAME_STUDY, "a"),
}
UNSAFE = {
    "b keeps the order of a's list": (2, TWO[:2], "a", KeepsTheOrder),
    "b sends its list as it is": (2, [TWO[0], TWO[2]], "a", SendsItsListAsItIs),
    "c keeps the orders": (2, THREE, "ab", KeepsTheOrder),
    "level 1, b and c keep the orders": (1, PARTLY, "a", KeepsTheOrder),
    "level 1, b sends its list as it is": (1, SAME_STUDY, "a", SendsItsListAsItIs),
}
UNSAFE_SECRETS = {
    "b does not mask a's rows": (2, TWO[:2], "a", MasksNoRows),
    "b blinds with a known scalar": (2, TWO[:2], "a", UsesAKnownScalar),
}


def compare(level, worlds, coalition, runs, site=Honest):
    return p_value(worlds, lambda w, seed: Run(level, *w, coalition, seed, site).view(), runs)


# ---- all orders ----------------------------------------------------------------------------------


def distribution(level, lists, codes, coalition, site):
    """Count the arrangements over all orders of the honest site, and those that it may keep."""
    (honest,) = set(lists) - set(coalition)
    seen = Counter()
    for drawn in itertools.product(*(permutations(len(people)) for people in lists.values())):
        given = dict(zip(lists, drawn, strict=True))

        def order(chain, key, owner="", given=given):
            return given[owner or chain.me] if chain.me == honest else REAL_ORDER(chain, key, owner)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Chain, "_order", order)
            run = Run(level, lists, codes, coalition, b"", site)
        seen[str(run.persons())] += 1
    return seen


REAL_ORDER = Chain._order


def permutations(count):
    return [np.array(order) for order in itertools.permutations(range(count))]


EXACT = [name for name, (_, worlds, who) in SAFE.items() if len(worlds[0][0]) == len(who) + 1]
EXACT_UNSAFE = [n for n, (_, worlds, who, _) in UNSAFE.items() if len(worlds[0][0]) == len(who) + 1]


@pytest.mark.parametrize("case", EXACT)
def test_over_all_orders_of_an_honest_site_the_arrangements_are_the_same(case):
    level, worlds, coalition = SAFE[case]
    first, *others = [distribution(level, *w, coalition, Honest) for w in worlds]
    assert all(other == first for other in others) and len(first) > 1


@pytest.mark.parametrize("case", EXACT_UNSAFE)
def test_over_all_orders_an_unsafe_site_is_rejected(case):
    level, worlds, coalition, site = UNSAFE[case]
    one, other = [distribution(level, *w, coalition, site) for w in worlds]
    assert one != other


# ---- all streams ---------------------------------------------------------------------------------


@pytest.mark.laws
@pytest.mark.parametrize("case", SAFE)
def test_the_view_of_a_coalition_depends_on_sizes_and_regions_only(case):
    assert compare(*SAFE[case], RUNS) > 1e-3


UNSAFE_CASES = UNSAFE | UNSAFE_SECRETS


@pytest.mark.laws
@pytest.mark.parametrize("case", UNSAFE_CASES)
def test_an_unsafe_site_is_rejected(case):
    level, worlds, coalition, site = UNSAFE_CASES[case]
    assert compare(level, worlds, coalition, FEW, site) < 1e-6


@pytest.mark.laws
def test_without_streams_of_the_sites_shares_are_rows(monkeypatch):
    def zeros(plan, key, owner, people):
        return [np.zeros(people, ring.dtype) for ring in plan.rings(owner)]

    monkeypatch.setattr("vertibayes_mpc.alignment.site.shares_of", zeros)
    monkeypatch.setattr("vertibayes_mpc.alignment.site.shares_of", zeros)
    assert compare(2, [TWO[0], TWO[2]], "a", FEW) < 1e-6


def dealer_and_matcher(worlds, runs, site=Honest):
    def look(world, seed):
        return [Run(2, *world, "", seed, site).view_of_the_dealer()]

    return p_value(worlds, look, runs)


@pytest.mark.laws
@pytest.mark.parametrize("worlds", [TWO, PARTLY], ids=["2 sites", "3 sites"])
def test_places_are_uniform_to_the_dealer_and_the_matcher(worlds):
    assert dealer_and_matcher(worlds, RUNS) > 1e-3


@pytest.mark.laws
def test_the_dealer_and_the_matcher_know_people_if_owners_send_lists_as_they_are():
    assert dealer_and_matcher([TWO[0], TWO[2]], FEW, SendsItsListAsItIs) < 1e-6


def on_the_way_back(runs, **options):
    """The study is c's list; a sees the marks of the list of b, some of whose people a holds."""

    def look(world, seed):
        run = Run(1, *world, "a", seed, everyone=("c",))
        return [run.view_on_the_way_back(**options)]

    return p_value(STUDY_OF_C, look, runs)


@pytest.mark.laws
def test_marks_do_not_show_a_site_which_of_its_people_another_list_has():
    assert on_the_way_back(RUNS) > 1e-3


@pytest.mark.laws
def test_places_on_the_way_back_would():
    assert on_the_way_back(FEW, as_places=True) < 1e-6
