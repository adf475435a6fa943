"""Attacks on the Paillier table, carried out against unsafe variants of it and against ours.

Then what parties that do not follow the protocol can do, which the threat model does not cover.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest

from tests.paillier_worlds import plan_of, programs_of, small_key
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.paillier import TablePlan, count_by_state, keys, open_tables
from vertibayes_mpc.paillier.messages import Answer, EncryptedBlock, MaskedCounts, Masks, to_bytes
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_mpc.scheduler import run_all

KEY = small_key()
P, N = KEY.p, KEY.public.modulus
RECORDS = 24
GENERATOR = np.random.default_rng(3)


def answers_to(column, plan, y, seed=b"a"):
    """Return the other party's answers to encrypted records: ours."""
    program = count_by_state(plan, [np.asarray(y)], SeededRandomness(seed))
    next(program)
    sent = program.send({"owner": EncryptedBlock(plan.label, to_bytes(column, 64), 0)}).outbox
    return [int.from_bytes(row.tobytes(), "little") for row in sent["owner"].values]


def answers_not_rerandomized(column, plan, y, seed=b"a"):
    randomness, found = SeededRandomness(seed), []
    for state in range(plan.answers):
        product = 1
        for c in (c for c, s in zip(column, y, strict=True) if s == state):
            product = product * c % N**2
        found.append(product * (1 + uniform_below(N, randomness) * N) % N**2)
    return found


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
    plan = plan_of(KEY, RECORDS, (4, (2,)))
    column = KEY.encrypt([1 << 32 * int(state) for state in x], SeededRandomness())
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
    plan = plan_of(KEY, COUNT, (2, (2,)), slot_bits=SLOT_BITS)
    column = KEY.encrypt([1 << SLOT_BITS] * COUNT, SeededRandomness())
    y = np.arange(COUNT) >= count
    found = []
    for run in range(RUNS):
        answers = answers_to(column, plan, y.astype(int), b"run %d" % run)
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


# ---- outside the model: parties that lie ---------------------------------------------------------


def lying_owner(plan, key, randomness):
    """Encrypts the weights 1, 2, 4, .. instead of the places of states."""
    weights = key.encrypt([1 << i for i in range(plan.records)], randomness)
    yield Round({plan.other: EncryptedBlock(plan.label, to_bytes(weights, 64), 0)}, {})
    inbox = yield Round({}, {plan.other: Expect(Answer, 128)})
    answer = [int.from_bytes(row.tobytes(), "little") for row in inbox[plan.other].values]
    counts = key.decrypt(answer)
    yield Round({plan.analyst: MaskedCounts(plan.label, to_bytes(counts, 32))}, {})
    return counts


def colluding_analyst(plan):
    """Hands the masks on, as they come."""
    inbox = yield Round({}, {plan.owner: Expect(MaskedCounts, 64), plan.other: Expect(Masks, 64)})
    return [int.from_bytes(row.tobytes(), "little") for row in inbox[plan.other].values]


def test_an_owner_that_lies_reads_a_column_together_with_the_analyst(world):
    plan, _, y = world
    programs = programs_of(KEY, plan, np.zeros(RECORDS), [y])
    programs["owner"] = lying_owner(plan, KEY, SeededRandomness())
    outputs, _ = run_all(programs | {"analyst": colluding_analyst(plan)})
    read = (outputs["owner"][1] - outputs["analyst"][1]) % N
    assert [read >> i & 1 for i in range(RECORDS)] == y.tolist()


def test_an_owner_that_lies_is_noticed_by_an_honest_analyst(world):
    plan, _, y = world
    programs = programs_of(KEY, plan, np.zeros(RECORDS), [y])
    programs["owner"] = lying_owner(plan, KEY, SeededRandomness())
    with pytest.raises(UnknownFaultyPartyError, match="do not add up to tables of 24") as caught:
        run_all(programs | {"analyst": open_tables(plan)})
    assert caught.value.parties == ("owner", "other")


def test_an_owner_reads_counts_alone_under_a_modulus_made_for_it(monkeypatch):
    """3 divides 7 - 1: masks and randomizers modulo 21^2 leave a group of order 3 free."""
    monkeypatch.setattr(keys, "FEWEST_BITS", 0)
    with pytest.raises(ValueError, match="must have the same length"):
        keys.PrivateKey(3, 7)
    public, generator, y = keys.PublicKey(21), 5, [0, 1, 0, 0, 1]
    assert len({pow(generator, k, 49) for k in range(42)}) == 42
    plan = TablePlan(b"table", public, "owner", "other", "analyst", 5, 1, (2,), slot_bits=3)
    program = count_by_state(plan, [np.array(y)], SeededRandomness())
    next(program)
    sent = program.send(
        {"owner": EncryptedBlock(plan.label, to_bytes([generator] * 5, 2), 0)}
    ).outbox
    answers = [int.from_bytes(row.tobytes(), "little") for row in sent["owner"].values]
    powers = [pow(generator, 14 * k, 49) for k in range(3)]
    assert [powers.index(pow(answer, 14, 49)) for answer in answers] == [3 % 3, 2 % 3]
