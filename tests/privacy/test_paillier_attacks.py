"""Attacks on the Paillier table, carried out against unsafe variants of it and against ours.

Then what sites that must not work together can do, and parties that do not follow the protocol:
the threat model does not cover either.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations
from unittest.mock import patch

import numpy as np
import pytest

from tests.paillier_worlds import (
    SITES,
    Draws,
    answering,
    columns_of,
    integers,
    plan_of,
    program_of,
    programs_of,
    small_key,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import jacobi, uniform_below
from vertibayes_mpc.paillier import TablePlan, counting, keys, open_tables
from vertibayes_mpc.paillier.messages import (
    Answer,
    EncryptedColumns,
    MaskedCounts,
    Masks,
    to_bytes,
)
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_mpc.scheduler import run_all

KEY = small_key()
P, N = KEY.p, KEY.public.modulus
RECORDS = 24
GENERATOR = np.random.default_rng(3)


FIRST, SECOND, THIRD, FOURTH = SITES


def answers_to(column, plan, y, seed=b"a"):
    """Return the second site's answers to encrypted records: ours."""
    program = program_of(KEY, plan, plan.tables[0][1], y, SeededRandomness(seed))
    return integers(answering(program, plan, column).outbox[FIRST].values)


def answers_not_rerandomized(column, plan, y, seed=b"a"):
    randomness, products = SeededRandomness(seed), []
    for state in range(2):
        product = 1
        for c in (c for c, s in zip(column, y, strict=True) if s == state):
            product = product * c % N**2
        products.append(product * (1 + uniform_below(N, randomness) * N) % N**2)
    return products


# ---- an answer that is not re-randomized ---------------------------------------------------------


def column_read_by_the_owner(column, answer):
    """Find the records of an answer: modulo p, masks are gone, and randomizers multiply.

    Meet in the middle: the products of all subsets of one half against those of the other.
    """
    half = len(column) // 2
    left = dict(subset_products(range(half), column))
    for product, subset in subset_products(range(half, len(column)), column):
        rest = answer * pow(product, -1, P) % P
        if rest in left:
            return sorted((*left[rest], *subset))
    return None


def subset_products(places, column):
    places = list(places)
    subsets = chain.from_iterable(combinations(places, k) for k in range(len(places) + 1))
    products = {(): 1}
    for subset in subsets:
        if subset:
            products[subset] = products[subset[:-1]] * column[subset[-1]] % P
        yield products[subset], subset


@pytest.fixture(scope="module")
def world():
    x, y = GENERATOR.integers(0, 4, RECORDS), GENERATOR.integers(0, 2, RECORDS)
    plan = plan_of(KEY, RECORDS, (30, 30))  # so many that each answer has the counts of one state
    column = KEY.encrypt([1 << plan.slot_bits * int(s) for s in x], SeededRandomness())
    return plan, column, y


def test_the_owner_reads_a_column_from_an_answer_not_rerandomized(world):
    plan, column, y = world
    answer = answers_not_rerandomized(column, plan, y)[1]
    assert column_read_by_the_owner(column, answer) == np.flatnonzero(y).tolist()


def test_the_owner_reads_nothing_from_ours(world):
    plan, column, y = world
    assert column_read_by_the_owner(column, answers_to(column, plan, y)[1]) is None


# ---- a mask for each slot ------------------------------------------------------------------------

COUNT, SLOT_BITS, RUNS = 200, 8, 400


def masked_by_slots(counts, randomness):
    """The unsafe variant: each count has a mask as wide as its slot; the owner decrypts this."""
    masks = [uniform_below(1 << SLOT_BITS, randomness) for _ in counts]
    return sum((c + m) << SLOT_BITS * i for i, (c, m) in enumerate(zip(counts, masks, strict=True)))


def overflow(value):
    """Whether the uppermost of two slots flowed over: then its count was not 0."""
    return value >> 2 * SLOT_BITS != 0


def test_the_owner_sees_masked_slots_flow_over():
    randomness = SeededRandomness()
    seen = {
        count: sum(overflow(masked_by_slots([3, count], randomness)) for _ in range(RUNS)) / RUNS
        for count in (0, COUNT)
    }
    assert seen[0] < 0.02  # a carry from below alone
    assert abs(seen[COUNT] - COUNT / 2**SLOT_BITS) < 0.1


def test_slots_of_32_bits_hide_10_000_records_to_two_in_a_million():
    """The distance of (count + mask) from (mask): the share of masks by which a slot flows over."""
    assert float(Fraction(10_000, 2**32)) == pytest.approx(2.3e-6, rel=0.02)
    values, small = np.arange(2**SLOT_BITS), 2**SLOT_BITS + COUNT
    views = [np.bincount(values + count, minlength=small) for count in (0, COUNT)]
    assert np.abs(views[0] - views[1]).sum() / 2 / 2**SLOT_BITS == COUNT / 2**SLOT_BITS


def decrypted_answers(count):
    """Return what the owner decrypts of ours, over many runs: upper bits, of 8 values."""
    plan = plan_of(KEY, COUNT, (1, 1), complete=False)
    assert plan.slot_bits == SLOT_BITS
    column = KEY.encrypt([1 << SLOT_BITS] * COUNT, SeededRandomness())
    y = np.where(np.arange(COUNT) < count, 0, -1)
    found = []
    for run in range(RUNS):
        answers = answers_to(column, plan, y, b"run %d" % run)
        found.append(KEY.decrypt(answers[:1])[0])
    return found


def test_under_masks_modulo_n_the_owner_sees_the_same_for_all_counts():
    for count in (0, COUNT):
        buckets = np.bincount([d * 8 // N for d in decrypted_answers(count)], minlength=8)
        assert ((buckets - RUNS / 8) ** 2 / (RUNS / 8)).sum() < 33  # 7 degrees, p = 3e-5


def test_the_same_comparison_rejects_masked_slots():
    randomness, top = SeededRandomness(), 2 ** (2 * SLOT_BITS + 1)
    for count in (0, COUNT):
        seen = [masked_by_slots([3, count], randomness) * 8 // top for _ in range(RUNS)]
        buckets = np.bincount(seen, minlength=8)
        assert ((buckets - RUNS / 8) ** 2 / (RUNS / 8)).sum() > 100


# ---- what a third site and later ones receive ----------------------------------------------------

THREE = plan_of(KEY, RECORDS, (2, 2, 2))
Y3 = GENERATOR.integers(0, 2, RECORDS)


def passed_on(encrypt, plan=THREE, y=Y3):
    """Return what the second site passes on of a column, encrypted by a function."""
    x = GENERATOR.integers(0, 2, RECORDS)
    column = encrypt([1 << plan.slot_bits * int(state) for state in x], SeededRandomness())
    program = program_of(KEY, plan, plan.tables[0][1], y, Draws())
    return integers(answering(program, plan, column).outbox[THIRD].values)


def test_a_third_site_reads_records_from_randomizers_of_all_orders():
    """Powers are squares: a ciphertext with the Jacobi symbol -1 was not moved: its state is 0."""
    symbols = np.array([jacobi(c, N) for c in passed_on(KEY.encrypt)])
    assert not Y3[symbols == -1].any() and (symbols == -1).sum() >= 3
    assert all(jacobi(c, N) == 1 for c in passed_on(KEY.encrypt_odd)), "ours"


def linked(one, other, most=64):
    """Return s, if one ciphertext is the 2^s-th power of the other, or the other of the one."""
    square = N * N
    for shift in range(most):
        if pow(one, 1 << shift, square) == other:
            return shift
        if pow(other, 1 << shift, square) == one:
            return -shift
    return None


def test_a_third_site_reads_records_from_a_column_that_is_passed_on_twice():
    """For two tables with columns y and v of the second site: their ciphertexts differ by y - v."""
    v = GENERATOR.integers(0, 2, RECORDS)
    used, fresh = (KEY.encrypt_odd([1] * RECORDS, SeededRandomness(seed)) for seed in (b"", b"x"))
    first, second = passed_on(lambda *_: used), passed_on(lambda *_: used, y=v)
    shifts = [linked(*pair) for pair in zip(first, second, strict=True)]
    assert shifts == (2 * THREE.slot_bits * (v - Y3)).tolist()
    ours = zip(first, passed_on(lambda *_: fresh, y=v), strict=True)
    assert [linked(*pair) for pair in ours] == [None] * RECORDS


def test_a_second_and_a_fourth_site_read_nothing_of_the_third():
    """They would, from powers without fresh randomizers: the second site knows what they are of."""
    plan = plan_of(KEY, RECORDS, (2, 2, 2, 2))
    known, z = KEY.encrypt_odd([1] * RECORDS, SeededRandomness()), Y3
    bits = plan.slot_bits * 4
    unsafe = [KEY.public.shift(c, bits * int(state)) for c, state in zip(known, z, strict=True)]
    assert [linked(*pair) for pair in zip(known, unsafe, strict=True)] == (bits * z).tolist()
    program = program_of(KEY, plan, plan.tables[0][2], z, SeededRandomness())
    ours = integers(answering(program, plan, known, step=2).outbox[FOURTH].values)
    assert [linked(*pair) for pair in zip(known, ours, strict=True)] == [None] * RECORDS
    assert KEY.decrypt(ours) == [1 << bits * int(state) for state in z]


def work_of(plan, y):
    """Return what the second site raises to which powers, in order, for its column."""
    column, work = KEY.encrypt([1] * RECORDS * len(plan.chains), SeededRandomness()), []
    program = program_of(KEY, plan, plan.tables[0][1], y, Draws())
    with patch.object(keys, "powmod", lambda b, e, n: work.append(e.bit_length()) or pow(b, e, n)):
        answering(program, plan, column)
    return work


def moved_one_by_one(public, ciphertext, bits, places, is_zero):
    """Work for the place of one record alone, as it is picked."""

    class Lazy:
        def __getitem__(self, at):
            return public.zero(ciphertext) if at < 0 else public.shift(ciphertext, bits * at)

    return Lazy()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("states", [3, 30])
def test_how_long_a_second_site_works_shows_missing_values_and_states(monkeypatch, states, whole):
    """It would if it worked for each record's own place. 30 states are counted in two passes."""
    columns = columns_of(2, states, 40)
    settings = {"tables": (columns,), "complete": False, "whole": frozenset(columns[1:] * whole)}
    plan = plan_of(KEY, RECORDS, **settings)
    least = 0 if whole else -1
    others = [np.full(RECORDS, state) for state in sorted({least, 0, states - 1})]
    others.append(GENERATOR.integers(least, states, RECORDS))
    assert len({tuple(work_of(plan, y)) for y in others}) == 1
    is_counted = whole and states == 3
    assert (max(work_of(plan, others[0])) == N.bit_length()) != is_counted, "c^N, where it may be"
    monkeypatch.setattr(counting, "_each_place", moved_one_by_one)
    assert len({sum(work_of(plan, y)) for y in others}) == len(others)


# ---- outside the model: sites that must not work together ----------------------------------------


def test_an_owner_and_a_third_site_read_each_record_of_the_second():
    """The reason for the rule: the owner decrypts what the third site receives."""
    plaintexts = KEY.decrypt(passed_on(KEY.encrypt_odd))
    assert [p.bit_length() - 1 >= 2 * THREE.slot_bits for p in plaintexts] == Y3.tolist()


# ---- outside the model: parties that lie ---------------------------------------------------------


def lying_owner(plan, key, randomness):
    """Encrypts the weights 1, 2, 4, .. instead of the places of states."""
    weights = key.encrypt([1 << i for i in range(plan.records)], randomness)
    sent = EncryptedColumns(plan.label_of(1), to_bytes(weights, 64))
    yield Round({SECOND: sent}, {})
    inbox = yield Round({}, {SECOND: Expect(Answer, 10_000)})
    counts = key.decrypt(integers(inbox[SECOND].values))
    yield Round({"analyst": MaskedCounts(plan.label_of(0), to_bytes(counts, 32))}, {})
    return counts


def colluding_analyst():
    """Hands the masks on, as they come."""
    inbox = yield Round({}, {SECOND: Expect(Masks, 10_000)})
    yield Round({}, {FIRST: Expect(MaskedCounts, 10_000)})
    return integers(inbox[SECOND].values)


def test_an_owner_that_lies_reads_a_column_together_with_the_analyst(world):
    plan, _, y = world
    programs = programs_of(KEY, plan, np.zeros(RECORDS), y)
    programs[FIRST] = lying_owner(plan, KEY, SeededRandomness())
    outputs, _ = run_all(programs | {"analyst": colluding_analyst()})
    read = (outputs[FIRST][1] - outputs["analyst"][1]) % N
    assert [read >> i & 1 for i in range(RECORDS)] == y.tolist()


def test_an_owner_that_lies_is_noticed_by_an_honest_analyst(world):
    plan, _, y = world
    programs = programs_of(KEY, plan, np.zeros(RECORDS), y)
    programs[FIRST] = lying_owner(plan, KEY, SeededRandomness())
    with pytest.raises(UnknownFaultyPartyError, match="do not add up to tables of 24") as caught:
        run_all(programs | {"analyst": open_tables(plan)})
    assert caught.value.parties == (FIRST, SECOND)


def lying_last_site(plan, public):
    """Moves each record to bits of its own, in place of counting, under masks of 0."""
    inbox = yield Round({}, {FIRST: Expect(EncryptedColumns, 10_000)})
    total = 1
    for place, ciphertext in enumerate(integers(inbox[FIRST].values)):
        total = total * public.shift(ciphertext, bits_of(plan, place)) % public.square
    (count,) = plan.answers_of(SECOND, 0).values()
    label, answers = plan.label_of(0), [total] + [1] * (count - 1)
    masks = Masks(label, to_bytes([0] * count, 32))
    yield Round({FIRST: Answer(label, to_bytes(answers, 64)), "analyst": masks}, {})


def bits_of(plan, record):
    """Return where a record's state 0 goes: state 1 goes a slot further, between other records."""
    pair, offset = divmod(record, plan.slot_bits)
    return 2 * plan.slot_bits * pair + offset


def test_a_last_site_that_lies_reads_a_column_together_with_the_analyst():
    """Of each record, from one answer: a bit for each state. An honest analyst ends the run."""
    plan, x = plan_of(KEY, RECORDS, (2, 2)), GENERATOR.integers(0, 2, RECORDS)
    programs = programs_of(KEY, plan, x, np.zeros(RECORDS))
    programs[SECOND] = lying_last_site(plan, KEY.public)
    outputs, _ = run_all(programs | {"analyst": open_messages()})
    (read, *_) = outputs["analyst"]
    states = [read >> bits_of(plan, record) + plan.slot_bits & 1 for record in range(RECORDS)]
    assert states == x.tolist()
    programs = programs_of(KEY, plan, x, np.zeros(RECORDS))
    programs[SECOND] = lying_last_site(plan, KEY.public)
    with pytest.raises(UnknownFaultyPartyError, match="do not add up"):
        run_all(programs | {"analyst": open_tables(plan)})


def open_messages():
    """Receive what the owner has decrypted, and the masks: an analyst that colludes."""
    yield Round({}, {SECOND: Expect(Masks, 10_000)})
    inbox = yield Round({}, {FIRST: Expect(MaskedCounts, 10_000)})
    return integers(inbox[FIRST].values)


def test_an_owner_reads_counts_alone_under_a_modulus_made_for_it(monkeypatch):
    """3 divides 7 - 1: masks and randomizers modulo 21^2 leave a group of order 3 free."""
    monkeypatch.setattr(keys, "FEWEST_BITS", 0)
    with pytest.raises(ValueError, match="must have the same length"):
        keys.PrivateKey(3, 7)
    public, generator, y = keys.PublicKey(21), 5, [0, 1, 0, 0, 1]
    assert len({pow(generator, k, 49) for k in range(42)}) == 42
    table = columns_of(1, 2)
    plan = TablePlan(b"table", {FIRST: public, SECOND: KEY.public}, 5, (table,))
    program = program_of(KEY, plan, table[1], y, SeededRandomness())
    answers = integers(answering(program, plan, [generator] * 5).outbox[FIRST].values)
    powers = [pow(generator, 14 * k, 49) for k in range(3)]
    assert [powers.index(pow(answer, 14, 49)) for answer in answers] == [3 % 3, 2 % 3]
