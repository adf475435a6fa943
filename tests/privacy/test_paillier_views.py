"""What the parties of a Paillier table see: by enumeration of all draws, at a toy key.

N = 35, so that Z_{N^2}^* has 35 * 24 elements: as many as there are pairs of a mask and a unit. The
unsafe variants of the other party's answer must be told apart by the same tests.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from tests.paillier_worlds import Draws, plan_of, programs_of, small_key
from vertibayes_mpc.paillier import count_by_state, encrypt_column, open_tables
from vertibayes_mpc.paillier.messages import EncryptedBlock, MaskedCounts, Masks, to_bytes
from vertibayes_mpc.scheduler import run_all

KEY = small_key(6)
N = KEY.public.modulus
UNITS = [r for r in range(N) if math.gcd(r, N) == 1]
PLAN = plan_of(KEY, 3, (2, (2,)), slot_bits=2)
X = (0, 1, 0)
COLUMN = KEY.encrypt([1 << 2 * x for x in X], Draws(1, 2, 3, 0, 4, 1))
INPUTS = list(product(range(2), repeat=3))


def answer(y, mask, unit):
    """Run the other party's program; return what it sends to the owner for the state 0."""
    program = count_by_state(PLAN, [np.array(y)], Draws(mask, 0, unit, 1))
    next(program)
    step = program.send({"owner": EncryptedBlock(PLAN.label, to_bytes(COLUMN, 2), 0)})
    return int.from_bytes(step.outbox["owner"].values[0].tobytes(), "little")


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


def same_for_same_tables(found):
    groups = defaultdict(list)
    for y, view in found.items():
        groups[table_of(y)].append(view)
    assert any(len(group) > 1 for group in groups.values()), "nothing to compare"
    return all(view == group[0] for group in groups.values() for view in group)


def test_owner_and_analyst_see_the_table_and_no_more():
    found = views(answer, with_masks=True)
    assert same_for_same_tables(found)
    assert len({frozenset(view) for view in found.values()}) == len(set(map(table_of, INPUTS)))


def test_owner_and_analyst_would_see_more_of_an_answer_not_rerandomized():
    assert not same_for_same_tables(views(not_rerandomized, with_masks=True))


def test_the_analyst_sees_the_tables_under_masks_that_take_all_values():
    """Over all masks, each pair (D, rho) with D - rho = the counts comes once."""
    plan = plan_of(KEY, 3, (2, (1,)), slot_bits=2)
    for x in INPUTS:
        seen = set()
        for mask in range(N):
            programs = {
                "owner": encrypt_column(plan, KEY, np.array(x), Draws(1, 2, 3, 0, 4, 1)),
                "other": count_by_state(plan, [np.zeros(3, np.int64)], Draws(mask, 2)),
                "analyst": open_tables(plan),
            }
            _, transcript = run_all(programs)
            sent = {type(s.message): s.message for s in transcript if s.receiver == "analyst"}
            assert sent.keys() == {MaskedCounts, Masks}
            seen.add(tuple(int(sent[kind].values[0, 0]) for kind in (MaskedCounts, Masks)))
        packed = 3 - sum(x) + 4 * sum(x)
        assert seen == {((packed + mask) % N, mask) for mask in range(N)}


def test_nobody_else_is_sent_anything():
    links = {
        ("owner", "other"): EncryptedBlock,
        ("other", "owner"): "Answer",
        ("other", "analyst"): Masks,
        ("owner", "analyst"): MaskedCounts,
    }
    _, transcript = run_all(programs_of(KEY, PLAN, X, [(0, 1, 1)]))
    assert {(s.sender, s.receiver) for s in transcript} == links.keys()


def integers(values):
    return [int.from_bytes(row.tobytes(), "little") for row in values]


@pytest.mark.parametrize("free", range(3))
def test_each_answer_has_a_mask_and_a_randomizer_of_its_own(free):
    """Those of one answer vary: it takes all values, and the others none but theirs."""
    plan = plan_of(KEY, 3, (2, (1, 2)), slot_bits=2)
    seen = [set() for _ in range(3)]
    for rho, r in product(range(N), UNITS):
        masks, units = [4, 5, 6], [2, 3, 4]
        masks[free], units[free] = rho, r
        y = [np.zeros(3, int), np.array([0, 1, 0])]
        program = count_by_state(plan, y, Draws(*masks, *units))
        next(program)
        sent = program.send({"owner": EncryptedBlock(plan.label, to_bytes(COLUMN, 2), 0)}).outbox
        for values, c in zip(seen, integers(sent["owner"].values), strict=True):
            values.add(c)
    assert [len(values) for values in seen] == [
        N * len(UNITS) if i == free else 1 for i in range(3)
    ]


@pytest.mark.parametrize("free", range(3))
def test_each_record_has_a_randomizer_of_its_own(free):
    plan = plan_of(KEY, 3, (2, (1,)), slot_bits=2, block=2)
    seen = [set() for _ in range(3)]
    for a, b in product(range(4), range(6)):
        p, q = [1, 2, 3], [3, 4, 5]
        p[free], q[free] = a, b
        draws = Draws(*p[:2], *q[:2], p[2], q[2])
        program = encrypt_column(plan, KEY, np.zeros(3, int), draws)
        blocks = next(program).outbox["other"], program.send({}).outbox["other"]
        found = [c for block in blocks for c in integers(block.values)]
        for values, c in zip(seen, found, strict=True):
            values.add(c)
    assert [len(values) for values in seen] == [24 if i == free else 1 for i in range(3)]
