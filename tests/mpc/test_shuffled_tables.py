"""Count by shuffle: equal to pooled counts, on all shapes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.masked_tables import Group
from tests.worlds import plain_tables, shuffle, world


@st.composite
def splits(draw):
    """Columns over sites, some of them held by several, with families to count."""
    sites = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    records = draw(st.integers(0, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for _ in range(draw(st.integers(1, 6))):
        width, missing = draw(st.sampled_from([1, 2, 3, 20])), draw(st.booleans())
        held = draw(st.lists(st.sampled_from(sites), min_size=1, max_size=3, unique=True))
        codes = generator.integers(0, width + 1, records)
        whose = generator.integers(0, len(held), records)
        parts = {s: np.where(whose == j, codes, 0) for j, s in enumerate(held)}
        columns.append((width, missing, parts))
    order = st.permutations(range(len(columns)))
    families = [
        tuple(places[: draw(st.integers(1, min(4, len(columns))))])
        for places in draw(st.lists(order, min_size=1, max_size=4))
    ]
    chosen = None
    if draw(st.booleans()):
        chosen = np.flatnonzero(generator.random(records) < 0.6)
    return columns, records, families, chosen


@settings(max_examples=200, deadline=None)
@given(splits(), st.booleans())
def test_shuffled_tables_equal_pooled_counts(split, missing):
    columns, records, families, chosen = split
    w = world(columns, records)
    w.commit()
    name = b"" if chosen is None else b"sample"
    plan, tables, transcript = shuffle(w, families, missing, chosen, name)
    groups = [Group(f[:-1], f[-1:]) if len(f) > 1 else Group(f) for f in families]
    for table, wanted in zip(
        tables, plain_tables(columns, records, groups, missing, chosen), strict=True
    ):
        assert table.dtype == np.int64 and table.flags.c_contiguous
        assert np.array_equal(table, wanted)
    assert max(s.depth for s in transcript) <= plan.rounds
    assert not [s for s in transcript if s.receiver == "dealer"]
