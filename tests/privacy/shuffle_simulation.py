"""Whether what a coalition sees of shuffled tables can be simulated: by enumeration, in one run.

One run has all settings of the secret streams beside each other: setting s has the records
``s * n .. s * n + n - 1``, and streams give each setting its own elements and an order of its own
records. The programs treat records alike except for orders, so this is as good as a run for each
setting (`test_every_shuffle_view` compares). The views of all settings are columns of what is sent.

A record that misses a value is counted with probability 1/2^bits of the flags, which are few here:
the settings in which this happens are left out, and what is compared are the views given that it
does not.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pytest

from tests.randomness import HashStream
from tests.worlds import is_held_twice, plain_tables, pooled, world
from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.shuffled_tables import ShufflePlan, count_shuffled, deal_shuffled
from vertibayes_mpc.shuffled_tables.plan import Codes
from vertibayes_mpc.shuffled_tables.site import _Chains

MOST_SETTINGS = 600_000
PROBES = 48  # pairs of settings that differ in one element, to find whether it changes the view


class Secret:
    """The streams that a coalition does not know: for each element its value in each setting."""

    def __init__(self, settings=1, values=None):
        self.settings, self.sizes, self.values = settings, {}, values or {}

    def of(self, key, size):
        """Return the values of an element, of `size` possible ones; 0 unless the test sets them."""
        self.sizes[key] = size
        return self.values.get(key, np.zeros(self.settings, np.uint8))


@dataclass(frozen=True)
class SecretStream:
    """A stream of a pair of parties whose elements are set for each setting."""

    secret: Secret
    pair: tuple

    def elements(self, ring: Ring, name: bytes, shape, start=0):
        assert not start, "one block has all records"
        rows, count = math.prod(shape[:-1]), shape[-1] // self.secret.settings
        drawn = np.zeros((rows, self.secret.settings, count), ring.dtype)
        for row, place in np.ndindex(rows, count):
            drawn[row, :, place] = self.secret.of((self.pair, name, row, place), 2**ring.bits)
        return padded(drawn.reshape(rows, -1), shape[-1]).reshape(shape)

    def permutation(self, name: bytes, count):
        size = count // self.secret.settings
        orders = np.array(list(permutations(range(size))), np.intp)
        chosen = self.secret.of((self.pair, name, "order"), len(orders)) % len(orders)
        return in_blocks(orders[chosen], count)


@dataclass(frozen=True)
class KnownStream:
    """A stream that the coalition knows: the same in all settings."""

    secret: Secret
    pair: tuple
    salt: str

    @property
    def stream(self):
        return HashStream(f"{self.pair} {self.salt}".encode())

    def elements(self, ring: Ring, name: bytes, shape, start=0):
        assert not start, "one block has all records"
        count = shape[-1] // self.secret.settings
        rows = self.stream.elements(ring, name, (math.prod(shape[:-1]), count))
        return padded(np.tile(rows, self.secret.settings), shape[-1]).reshape(shape)

    def permutation(self, name: bytes, count):
        order = self.stream.permutation(name, count // self.secret.settings)
        return in_blocks(np.tile(order, (self.secret.settings, 1)), count)


def padded(rows, length):
    """Fill rows up with zeros: where settings keep unlike numbers of records, to be left out."""
    return np.pad(rows, ((0, 0), (0, length - rows.shape[1])))


def in_blocks(orders, count):
    """Return one order of all records from an order for each setting."""
    settings, size = orders.shape
    order = (orders + size * np.arange(settings)[:, None]).ravel()
    return np.concatenate([order, np.arange(len(order), count)])


class Case(NamedTuple):
    """What is counted, over which columns, and what a coalition lacks.

    columns as `tests.worlds.world`. coalition: "analyst", with all sites but the honest; "sites",
    these without the analyst; "dealer", with the analyst.
    """

    columns: list
    families: list
    coalition: str
    honest: str = ""
    missing: bool = False
    indices: tuple | None = None
    bits: int = 2
    flag_bits: int = 1
    salt: str = ""

    @property
    def records(self):
        return len(next(iter(self.columns[0][2].values())))

    def is_secret(self, pair):
        """Whether the coalition does not know the key of a pair, or of all sites."""
        if self.coalition == "dealer":
            return "dealer" not in pair
        return set(pair) == {self.honest, "dealer"}

    def is_seen(self, sent):
        """Whether the coalition is sent a message, by one who is not of it."""
        if self.coalition == "dealer":
            return sent.receiver == "analyst"
        outside = {self.honest} if self.coalition == "analyst" else {self.honest, "analyst"}
        return sent.receiver not in outside and sent.sender in (self.honest, "dealer")

    def outcome(self, columns):
        """Return what the coalition may learn: the tables, the numbers of complete records."""
        groups = [Group(family[:-1], family[-1:]) for family in self.families]
        tables = plain_tables(columns, self.records, groups, self.missing, self.chosen)
        complete = tuple(self.complete(columns, family) for family in self.families)
        return (
            (complete,) if self.coalition == "sites" else (complete, *(t.tobytes() for t in tables))
        )

    @property
    def chosen(self):
        return None if self.indices is None else np.array(self.indices)

    def complete(self, columns, family):
        """Return how many records of a family miss no value, or all if a missing value counts."""
        codes = np.array(pooled(columns, self.records))[list(family)]
        widths = np.array(
            [columns[i][0] if columns[i][1] and not self.missing else 255 for i in family]
        )
        rows = codes if self.indices is None else codes[:, self.chosen]
        return int((rows < widths[:, None]).all(axis=0).sum())


def data_of(case):
    """Return the columns with all codes that those outside the coalition may hold."""
    cells = [
        (i, site, r)
        for i, (_, _, held) in enumerate(case.columns)
        for site in held
        for r in range(case.records)
        if case.coalition == "dealer" or site == case.honest
        if held[site][r]
    ]
    for codes in product(*(range(case.columns[i][0] + 1) for i, _, _ in cells)):
        changed = [
            (w, m, type(held)((s, np.array(c)) for s, c in held.items()))
            for w, m, held in case.columns
        ]
        for (i, site, r), code in zip(cells, codes, strict=True):
            changed[i][2][site][r] = code
        if not is_held_twice(changed):
            yield changed


def run(case, columns, secret):
    """Run the commitments and the count in all settings.

    Returns
    -------
    views : ndarray of shape (settings, elements)
    good : ndarray of shape (settings,), dtype bool
        Where no incomplete record is counted; the views of others make no sense.
    """
    n, settings = case.records, secret.settings

    def stream(*pair):
        return (
            SecretStream(secret, pair)
            if case.is_secret(pair)
            else KnownStream(secret, pair, case.salt)
        )

    stacked = [
        (w, m, type(held)((s, np.tile(c, settings)) for s, c in held.items()))
        for w, m, held in columns
    ]
    rings = {"code_ring": Ring(case.bits), "flag_ring": Ring(case.flag_bits)}
    w = world(stacked, n * settings, 1, 16 * n * settings, stream, **rings)
    vars(w.commitments)["label"] = b"the same for any number of settings"
    indices = None
    if case.indices is not None:
        indices = (case.chosen + n * np.arange(settings)[:, None]).ravel()
    plan = ShufflePlan(
        w.commitments,
        tuple(case.families),
        Selection(w.commitments, indices, b"rows"),
        case.missing,
        1,
    )
    assert plan.shuffled == plan.tables, "a table of one site's is not counted record by record"
    sent = w.commit()
    programs = {s: count_shuffled(w.holders[s], plan, "analyst") for s in plan.parties}
    programs["dealer"] = deal_shuffled(w.dealer_keys, plan)
    programs["analyst"] = listen(plan)
    with kept_places() as places:
        sent = sent + run_all(programs)[1]
    good = np.ones(settings, np.bool_)
    rows = plan.selection.records // settings
    for number, kept in places.items():
        counts = np.bincount(kept // rows, minlength=settings)
        good &= counts == case.complete(columns, case.families[number])
    seen = sorted(filter(case.is_seen, sent), key=lambda s: (s.sender, s.receiver, s.depth))
    views = [elements_of(case, plan, columns, m, settings) for m in seen]
    return np.concatenate([np.zeros((settings, 0), np.uint8), *views], axis=1), good


def listen(plan):
    """Take what the analyst is sent, and count nothing."""
    yield Round({}, {site: Expect(Codes) for site in plan.parties})


@contextmanager
def kept_places():
    """Note which records the sites keep of each table."""
    true, places = _Chains._keep_complete, {}

    def noted(chains, table, tags):
        true(chains, table, tags)
        places[table.index] = chains.places[table.index]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Chains, "_keep_complete", noted)
        yield places


def elements_of(case, plan, columns, sent, settings):
    """Return a message's elements, of one byte each, for each setting."""
    values, m = sent.message.values, plan.selection.records // settings
    if isinstance(sent.message, Columns):
        lengths = [case.records] * (len(values) // (case.records * settings))
    elif isinstance(sent.message, Codes):
        mine = [table for table in plan.tables if sent.sender in table.chain]
        lengths = [case.complete(columns, t.members) if t.dropping else m for t in mine]
    else:
        lengths = [m] * (len(values) // (m * settings))
    if len(values) != sum(lengths) * settings:  # settings to be left out keep other numbers
        return np.zeros((settings, sum(lengths)), np.uint8)
    ends = np.cumsum(lengths)[:-1] * settings
    return np.concatenate([v.reshape(settings, -1) for v in np.split(values, ends)], axis=1)


# ---- distributions -------------------------------------------------------------------------------


def distributions(case):
    """Return {what may be learnt: [distribution of the view, one for each of its data]}.

    What one data alone has is left out: there is nothing to compare.
    """
    same = defaultdict(list)
    for columns in data_of(case):
        same[case.outcome(columns)].append(columns)
    alike = {outcome: data for outcome, data in same.items() if len(data) > 1}
    places = influential(case, [columns for data in alike.values() for columns in data])
    return {
        outcome: [distribution(case, columns, places) for columns in data]
        for outcome, data in alike.items()
    }


def influential(case, data):
    """Return {element: number of values} of all elements that change the view of some data."""
    found = {}
    generator = np.random.default_rng(5)
    for columns in data:
        sizes = asked(case, columns, generator)
        changes = len(sizes) + 1
        values = {}
        for j, (key, size) in enumerate(sizes.items()):
            drawn = np.tile(generator.integers(size, size=(PROBES, 1)), changes)
            drawn[:, j + 1] += generator.integers(1, max(size, 2), PROBES)
            values[key] = (drawn % size).ravel()
        views, good, _ = good_views(case, columns, values)
        at = np.cumsum(good) - 1  # the place of a good setting among the views
        for j, (key, size) in enumerate(sizes.items()):
            base = np.arange(PROBES) * changes
            other = base + j + 1
            both = good[base] & good[other]
            differ = (views[at[base[both]]] != views[at[other[both]]]).any()
            if differ or (good[base] != good[other]).any():
                found[key] = size
    return found


def asked(case, columns, generator):
    """Return {element: number of values} of all elements that good settings ask for."""
    first = Secret()
    run(case, columns, first)
    values = {key: generator.integers(size, size=256) for key, size in first.sizes.items()}
    return good_views(case, columns, values)[2]


def good_views(case, columns, values):
    """Return the views of the settings that count no incomplete record, and which these are.

    Returns
    -------
    views : ndarray of shape (good settings, elements)
    good : ndarray of shape (settings,), dtype bool
    sizes : dict
        The number of values of each element that these ask for.
    """
    secret = Secret(len(next(iter(values.values()))), values)
    views, good = run(case, columns, secret)
    if not good.all():
        kept = {key: drawn[good] for key, drawn in values.items()}
        secret = Secret(int(good.sum()), kept)
        views, still = run(case, columns, secret)
        assert still.all()
    return views, good, secret.sizes


def distribution(case, columns, places):
    """Return how often each view comes, over all settings that count no incomplete record."""
    settings = math.prod(places.values())
    assert settings <= MOST_SETTINGS, f"{settings} settings of {len(places)} elements"
    values, before = {}, 1
    for key, size in places.items():
        values[key] = (np.arange(settings) // before % size).astype(np.uint8)
        before *= size
    return counted(good_views(case, columns, values)[0])


def counted(views):
    """Return {view: how often}: of elements below 256, as many to a word as fit."""
    bits = max(int(views.max(initial=0)).bit_length(), 1)
    assert bits * views.shape[1] <= 64, f"{views.shape[1]} elements of {bits} bits"
    words = np.zeros(len(views), np.uint64)
    for column in views.T:
        words = words << np.uint64(bits) | column
    found, counts = np.unique(words, return_counts=True)
    return Counter({(bits, int(view)): int(c) for view, c in zip(found, counts, strict=True)})
