"""Small federations at the level of mpc: sites with codes, a dealer, an analyst."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.randomness import HashStream
from vertibayes_mpc.commitments import (
    CodeColumn,
    Commitments,
    Holder,
    Operand,
    PartColumn,
    Selection,
    commit,
)
from vertibayes_mpc.labelled import Piece, size_of, unpacked
from vertibayes_mpc.masked_tables import Plan, count_tables, deal_tables, open_tables
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.shuffled_tables import ShufflePlan, count_shuffled, deal_shuffled, open_shuffled


class Parts(dict):
    """The codes of a column's holders by rows: the width, which is missing, where they hold none.

    Columns of several holders that are plain dictionaries have 0 there.
    """


@st.composite
def columns_of_sites(draw, most, widths):
    """Columns, some of them held by several sites; how many records; which are chosen, or None."""
    sites = [f"s{i}" for i in range(draw(st.integers(1, most)))]
    records = draw(st.integers(0, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for _ in range(draw(st.integers(1, 6))):
        width, missing = draw(widths), draw(st.booleans())
        held = draw(st.lists(st.sampled_from(sites), min_size=1, max_size=3, unique=True))
        codes = generator.integers(0, width + 1, records)
        whose = generator.integers(0, len(held), records)
        parts = {s: np.where(whose == j, codes, 0) for j, s in enumerate(held)}
        columns.append((width, missing, parts))
    chosen = np.flatnonzero(generator.random(records) < 0.6) if draw(st.booleans()) else None
    return columns, records, chosen


def is_held_twice(columns):
    """Whether two sites hold one row of a column of parts."""
    return any(
        (np.sum([np.array(codes) != width for codes in held.values()], axis=0) > 1).any()
        for width, _, held in columns
        if isinstance(held, Parts)
    )


def column_of(site, width, held):
    """Return a site's part of a column."""
    codes = np.array(held[site], np.uint8)
    if isinstance(held, Parts):
        return PartColumn(codes, width, first=site == min(held))
    return CodeColumn(codes)


@dataclass
class World:
    commitments: Commitments
    holders: dict
    dealer_keys: dict
    plans: int = 0
    run: Callable = run_all
    made: dict = field(default_factory=dict)  # plans of all records, which are the same each time

    def again(self, run):
        """Return a world in which nothing was sent yet; `run` runs programs as `run_all` does."""
        fresh = {site: replace(holder, masked={}) for site, holder in self.holders.items()}
        return replace(self, holders=fresh, plans=0, run=run)

    def commit(self):
        """Run the commitments; return the messages."""
        return self.run({s: commit(self.holders[s]) for s in self.commitments.sites})[1]

    def plan(self, groups, missing=False, indices=None, name=b""):
        self.plans += 1
        groups, asked = tuple(groups), (tuple(groups), missing, name, self.plans)
        if indices is None and asked in self.made:
            return self.made[asked]
        selection = Selection(self.commitments, indices, name)
        self.made[asked] = Plan(self.commitments, groups, selection, missing, self.plans)
        return self.made[asked]

    def programs(self, plan):
        """Return the programs that count the tables of a plan."""
        programs = {s: count_tables(self.holders[s], plan, "analyst") for s in plan.parties}
        dealer = deal_tables(self.dealer_keys, plan)
        return {**programs, "dealer": dealer, "analyst": open_tables(plan)}

    def count(self, plan):
        """Count the tables of a plan; return them and the messages."""
        outputs, transcript = self.run(self.programs(plan))
        return outputs["analyst"], transcript


def world(columns, records, bits=16, block_rows=16, stream=None, **rings):
    """Make a world.

    columns: a list of (width, missing, {site: codes}); codes are 0 where a site does not hold the
    record. stream: (party, party) -> Stream; repeatable by default. rings: of codes and flags.
    """
    stream = stream or (lambda a, b: HashStream(f"{a} {b}".encode()))
    pair = lambda a, b: stream(*sorted((a, b)))  # noqa: E731
    operands = tuple(
        Operand(f"id {i}".encode(), width, tuple(sorted(held)), missing)
        for i, (width, missing, held) in enumerate(columns)
    )
    commitments = Commitments(
        b"study", Ring(bits), records, operands, block_rows=block_rows, **rings
    )
    holders = {
        site: Holder(
            site,
            commitments,
            {
                i: column_of(site, columns[i][0], columns[i][2])
                for _, i in commitments.forms_held_by(site)
            },
            pair(site, "dealer"),
            {peer: pair(site, peer) for peer in commitments.sites if peer != site},
            pair("all", "sites"),
        )
        for site in commitments.sites
    }
    return World(commitments, holders, {s: pair(s, "dealer") for s in commitments.sites})


def taken_apart(commitments, party, values):
    """Take a message of columns apart: {(form, place): elements of shape (width, rows)}."""
    forms = commitments.forms_held_by(party)
    rows = next(n for n in count() if len(values) == size_of(layout_of(forms, n)))
    columns = unpacked(layout_of(forms, rows), values, party)
    return {(form.name, place): next(columns) for form, place in forms}


def all_of(ring, packed):
    """Take all elements of a message of one array: as many as its bytes have."""
    return ring.unpack(packed, 8 * len(packed) // ring.packed_bits)


@contextmanager
def whole_bytes():
    """Let elements of up to 8 bits take a byte of a message: each, and so each of its settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ring, "packed_bits", property(lambda ring: 8 * ring.dtype.itemsize))
        yield


def layout_of(forms, rows):
    """How a message of columns has those of some rows."""
    return [Piece(form.ring, (form.width, rows)) for form, _ in forms]


def put_together(commitments, party, columns):
    """Put columns into a message: the inverse of `taken_apart`."""
    forms = commitments.forms_held_by(party)
    return np.concatenate([form.ring.pack(columns[form.name, place]) for form, place in forms])


def pooled(columns, records):
    """The codes of all columns, put together."""
    gaps = [width * isinstance(held, Parts) for width, _, held in columns]
    return [
        sum((np.array(c, np.int64) - gap for c in held.values()), np.full(records, gap, np.int64))
        for gap, (_, _, held) in zip(gaps, columns, strict=True)
    ]


def plain_tables(columns, records, groups, missing=False, indices=None):
    """Count the tables of groups from pooled codes."""
    codes = pooled(columns, records)
    chosen = slice(None) if indices is None else indices
    tables = []
    for prefix, lasts in groups:
        for members in [(*prefix, z) for z in lasts] or [tuple(prefix)]:
            table = np.zeros([columns[i][0] + 1 for i in members], np.int64)
            np.add.at(table, tuple(codes[i][chosen] for i in members), 1)
            hide = [columns[i][1] and not missing for i in members]
            tables.append(table[tuple(slice(-1) if h else slice(None) for h in hide)])
    return tables


def shuffle(w, families, missing=False, indices=None, name=b""):
    """Count families by shuffle; return the plan, the tables and the messages."""
    w.plans += 1
    selection = Selection(w.commitments, indices, name)
    plan = ShufflePlan(w.commitments, tuple(families), selection, missing, w.plans)
    programs = {s: count_shuffled(w.holders[s], plan, "analyst") for s in plan.parties}
    programs["dealer"] = deal_shuffled(w.dealer_keys, plan)
    programs["analyst"] = open_shuffled(plan)
    outputs, transcript = run_all(programs)
    return plan, outputs["analyst"], transcript
