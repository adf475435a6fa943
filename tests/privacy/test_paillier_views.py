"""What the sites of a Paillier table see: by enumeration of all draws, at a toy key.

N = 35, so that Z_{N^2}^* has 35 * 24 elements: as many as there are pairs of a mask and a unit. The
unsafe variants of what a site sends must be told apart by the same tests.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from tests.paillier_worlds import (
    PRIMES,
    SITES,
    Draws,
    answering,
    columns_of,
    counted,
    integers,
    plan_of,
    program_of,
    programs_of,
    small_key,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.paillier import Column, PrivateKey, PublicKey, TablePlan, count_tables
from vertibayes_mpc.paillier.messages import Answer, EncryptedColumns, MaskedCounts, Masks
from vertibayes_mpc.scheduler import run_all

KEY = small_key(6)
N = KEY.public.modulus
UNITS = [r for r in range(N) if math.gcd(r, N) == 1]
FIRST, SECOND, THIRD, _ = SITES

# ---- two sites -----------------------------------------------------------------------------------

PLAN = plan_of(KEY, 3, (2, 2))
X = (0, 1, 0)
COLUMN = KEY.encrypt([1 << 2 * x for x in X], Draws(1, 2, 3, 0, 4, 1))
INPUTS = list(product(range(2), repeat=3))


def answer(y, mask, unit):
    """Run the second site's program; return what it sends to the owner for the state 0."""
    program = program_of(KEY, PLAN, PLAN.tables[0][1], y, Draws(mask, 0, unit, 1))
    return integers(answering(program, PLAN, COLUMN).outbox[FIRST].values)[0]


def not_rerandomized(y, mask, unit):
    """An unsafe variant: the mask is added, and the randomizers stay the owner's."""
    return product_of(y) * (1 + mask * N) % N**2


def masked_by_slots(y, mask, unit):
    """Another: a mask for each slot, as wide as the slot, added without reduction."""
    return product_of(y) * (1 + mask % 16 * N) * pow(unit, N, N * N) % N**2


def product_of(y):
    return math.prod(c for c, state in zip(COLUMN, y, strict=True) if state == 0)


def table_of(y):
    return tuple(np.bincount([x for x, state in zip(X, y, strict=True) if state == 0], minlength=2))


def views(answer, with_masks):
    """Return {y: the distribution of the answer, with the mask if the analyst joins the owner}."""
    found = {}
    for y in INPUTS:
        drawn = [(answer(y, rho, r), rho) for rho in range(N) for r in UNITS]
        found[y] = Counter(drawn if with_masks else [c for c, _ in drawn])
    return found


def test_the_owner_sees_a_uniform_unit_whatever_the_column():
    units = {c: 1 for c in range(N * N) if math.gcd(c, N) == 1}
    assert all(view == units for view in views(answer, with_masks=False).values())


@pytest.mark.parametrize("unsafe", [not_rerandomized, masked_by_slots])
def test_unsafe_answers_depend_on_the_column(unsafe):
    found = list(views(unsafe, with_masks=False).values())
    assert any(view != found[0] for view in found)


def same_for_same_tables(found, table_of):
    groups = defaultdict(list)
    for y, view in found.items():
        groups[table_of(y)].append(view)
    assert any(len(group) > 1 for group in groups.values()), "nothing to compare"
    return all(view == group[0] for group in groups.values() for view in group)


def test_owner_and_analyst_see_the_table_and_no_more():
    found = views(answer, with_masks=True)
    assert same_for_same_tables(found, table_of)
    assert len({frozenset(view) for view in found.values()}) == len(set(map(table_of, INPUTS)))


def test_owner_and_analyst_would_see_more_of_an_answer_not_rerandomized():
    assert not same_for_same_tables(views(not_rerandomized, with_masks=True), table_of)


@pytest.mark.parametrize("sites", [2, 3])
def test_the_analyst_sees_the_tables_under_masks_that_take_all_values(sites):
    """Over all masks, each pair (D, rho) with D - rho = the counts comes once."""
    records = {2: 3, 3: 1}[sites]
    plan = plan_of(KEY, records, (2,) * sites)
    columns = plan.tables[0]
    slots = 1 << plan.slot_bits
    for codes in product(product(range(2), repeat=records), repeat=sites - 1):
        seen = set()
        for mask in range(N):
            programs = programs_of(KEY, plan, *codes, [0] * records)
            last = program_of(KEY, plan, columns[-1], [0] * records, Draws(mask, 0, 2, 1))
            _, transcript = run_all(programs | {columns[-1].site: last})
            sent = {type(s.message): s.message for s in transcript if s.receiver == "analyst"}
            assert sent.keys() == {MaskedCounts, Masks}
            seen.add(tuple(int(sent[kind].values[0, 0]) for kind in (MaskedCounts, Masks)))
        cells = counted((2,) * (sites - 1), *codes).ravel(order="F")
        packed = sum(int(count) * slots**i for i, count in enumerate(cells))
        assert seen == {((packed + mask) % N, mask) for mask in range(N)}


@pytest.mark.parametrize("sites", [2, 3])
def test_nobody_else_is_sent_anything(sites):
    kinds = {
        (SITES[0], SITES[1]): EncryptedColumns,
        (SITES[sites - 2], SITES[sites - 1]): EncryptedColumns,
    }
    kinds[SITES[sites - 1], FIRST] = Answer
    kinds |= {(SITES[sites - 1], "analyst"): Masks, (FIRST, "analyst"): MaskedCounts}
    plan = plan_of(KEY, 1, (2,) * sites)
    _, transcript = run_all(programs_of(KEY, plan, *[[0]] * sites))
    assert {(s.sender, s.receiver): type(s.message) for s in transcript} == kinds


@pytest.mark.parametrize("free", range(3))
def test_each_answer_has_a_mask_and_a_randomizer_of_its_own(free):
    """Those of one answer vary: it takes all values, and the others none but theirs."""
    plan = plan_of(KEY, 3, (2, 3))
    column = plan.tables[0][1]
    seen = [set() for _ in range(3)]
    for rho, r in product(range(N), UNITS):
        masks, units = [4, 5, 6], [2, 3, 4]
        masks[free], units[free] = rho, r
        program = program_of(KEY, plan, column, [0, 1, 0], Draws(*masks, *units))
        sent = answering(program, plan, COLUMN).outbox[FIRST]
        for values, c in zip(seen, integers(sent.values), strict=True):
            values.add(c)
    assert [len(values) for values in seen] == [
        N * len(UNITS) if i == free else 1 for i in range(3)
    ]


@pytest.mark.parametrize("free", range(3))
def test_each_record_has_a_randomizer_of_its_own(free):
    seen = [set() for _ in range(3)]
    for a, b in product(range(4), range(6)):
        p, q = [1, 2, 3], [3, 4, 5]
        p[free], q[free] = a, b
        program = program_of(KEY, PLAN, PLAN.tables[0][0], [0, 0, 0], Draws(*p, *q))
        sent = next(program).outbox[SECOND]
        for values, c in zip(seen, integers(sent.values), strict=True):
            values.add(c)
    assert [len(values) for values in seen] == [24 if i == free else 1 for i in range(3)]


# ---- three sites ---------------------------------------------------------------------------------

THREE = plan_of(KEY, 1, (2, 2, 2), complete=False)
ODD = {pow(r, 4 * N, N * N) for r in UNITS}  # the randomizers of odd order


def passed_on(x, y, a, b):
    """Return what the third site receives of a record, by the owner's draws a and b."""
    first, second, _ = THREE.tables[0]
    owner = program_of(KEY, THREE, first, [x], Draws(a, b))
    (sent,) = integers(next(owner).outbox[SECOND].values)
    program = program_of(KEY, THREE, second, [y], Draws())
    return integers(answering(program, THREE, [sent]).outbox[THIRD].values)[0]


def third_views():
    """Return {(x, y): the distribution of what the third site receives}; -1: without a state."""
    return {
        (x, y): Counter(passed_on(x, y, a, b) for a in range(4) for b in range(6))
        for x, y in product((-1, 0, 1), repeat=2)
    }


def encryptions(x, y):
    """Return all encryptions of a record's place, by the randomizers of odd order."""
    place = 1 << x + 2 * y if min(x, y) >= 0 else 0
    return {(1 + place * N) * r % N**2: 8 for r in ODD}


def test_the_third_site_sees_fresh_encryptions_of_the_joint_state_whatever_came_before():
    """So what it learns of a record is what any encryption of one number shows: nothing (DCR)."""
    for record, view in third_views().items():
        assert view == encryptions(*record), record


def test_randomizers_of_all_orders_would_show_it_the_state_of_the_second():
    with patch.object(PrivateKey, "encrypt_odd", PrivateKey.encrypt):
        found = third_views()
    randomizers = {
        record: Counter(c % N for c in view.elements()) for record, view in found.items()
    }
    assert randomizers[0, 0] != randomizers[0, 1]


def test_an_encryption_of_zero_that_kept_its_randomizer_would_show_who_has_no_state():
    with patch.object(PublicKey, "zero", lambda key, c: 1):
        found = third_views()
    assert found[0, -1] != encryptions(0, -1)


def last_answer(codes, mask, unit, draws=(1, 2)):
    """Return what the owner receives from the third site for the state 0."""
    x, y, z = codes
    d = passed_on(x, y, *draws)
    program = program_of(KEY, THREE, THREE.tables[0][2], [z], Draws(mask, 0, unit, 1))
    return integers(answering(program, THREE, [d], step=2).outbox[FIRST].values)[0]


def test_the_owner_sees_a_uniform_unit_whatever_the_columns_of_two_others():
    units = {c: 1 for c in range(N * N) if math.gcd(c, N) == 1}
    for codes in [(0, 0, 0), (0, 1, 0), (1, 1, 1), (0, -1, 0), (0, 1, -1)]:
        assert Counter(last_answer(codes, rho, r) for rho in range(N) for r in UNITS) == units


WIDE = small_key(10)
TABLE = plan_of(WIDE, 3, (2, 2, 2))


def answer_of_three(x, y, z, unit):
    """Return the answer of the state 0 of z under the mask 7: what owner and analyst see."""
    first, second, third = TABLE.tables[0]
    owner = program_of(WIDE, TABLE, first, x, SeededRandomness())
    cs = integers(next(owner).outbox[SECOND].values)
    middle = program_of(WIDE, TABLE, second, y, Draws())
    ds = integers(answering(middle, TABLE, cs).outbox[THIRD].values)
    last = program_of(WIDE, TABLE, third, z, Draws(7, 0, unit, 1))
    return integers(answering(last, TABLE, ds, step=2).outbox[FIRST].values)[0]


def test_owner_and_analyst_see_the_table_of_three_and_no_more():
    n, x = WIDE.public.modulus, (0, 0, 1)
    units = [r for r in range(n) if math.gcd(r, n) == 1][::7]
    every = {pow(r, n, n * n) for r in range(n) if math.gcd(r, n) == 1}
    for y, z in [((0, 1, 0), (0, 1, 0)), ((1, 0, 0), (1, 0, 0)), ((0, 0, 1), (0, 0, 0))]:
        cells = counted((2, 2, 2), x, y, z)[..., 0].ravel(order="F")
        packed = 7 + sum(int(count) << 2 * i for i, count in enumerate(cells))
        seen = {answer_of_three(x, y, z, r) for r in units}
        assert len(seen) == len(units)
        assert {c * (1 - packed * n) % n**2 for c in seen} <= every


def test_what_a_third_site_receives_is_encrypted_once_for_each_table():
    """Of two sites it is encrypted once for all: only the owner has more than one table of it."""
    a, b, c = columns_of(2, 2, 2)
    other, wide = Column(THIRD, "other", 2), Column(SECOND, "wide", 3)
    public = dict.fromkeys(SITES[:3], KEY.public)
    three = TablePlan(b"three", public, 1, ((a, b, c), (a, b, other)))
    two = TablePlan(b"two", public, 1, ((a, b), (a, wide), (a, other)))
    for plan, sent in ((three, {SECOND: 2}), (two, {SECOND: 1, THIRD: 1})):
        draws = Draws(*range(4), *range(4)) if plan is three else Draws(1, 1)
        states = {
            column: np.zeros(1, int)
            for table in plan.tables
            for column in table
            if column.site == FIRST
        }
        outbox = next(count_tables(plan, FIRST, "analyst", KEY, states, draws)).outbox
        assert {peer: len(message.values) for peer, message in outbox.items()} == sent
        of_all = [c for message in outbox.values() for c in integers(message.values)]
        assert len(set(of_all)) == (2 if plan is three else 1)


def test_the_toy_keys_are_what_the_tests_take_them_for():
    assert {bits: math.prod(primes).bit_length() for bits, primes in PRIMES.items()} == {
        bits: bits for bits in PRIMES
    }
