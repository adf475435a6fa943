"""Tables of two parties by Paillier: all shapes, all messages, all that can be wrong with them."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.paillier_worlds import counted, plan_of, programs_of, small_key
from tests.randomness import SeededRandomness
from tests.tampering import changing, run_changing
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.paillier import PrivateKey, count_by_state, encrypt_column
from vertibayes_mpc.paillier.messages import Answer, EncryptedBlock, MaskedCounts, Masks
from vertibayes_mpc.scheduler import Scheduler, run_all
from vertibayes_protocols.transports.local import EnvelopedPackets, Traffic

ROOT = Path(__file__).parents[2]
KEY = small_key()
N = KEY.public.modulus
X, Y = [0, 3, 1, 1, 2], [1, 0, 1, 2, 1]


@st.composite
def columns(draw):
    """A column of the owner, one or more of the other party, and their numbers of states."""
    records = draw(st.integers(0, 12))
    sizes = draw(st.lists(st.integers(1, 7), min_size=2, max_size=4))
    codes = [
        draw(st.lists(st.integers(0, s - 1), min_size=records, max_size=records)) for s in sizes
    ]
    return records, sizes, codes


@settings(max_examples=40)
@given(columns(), st.integers(1, 13), st.binary(max_size=4))
def test_tables_equal_counts(drawn, block, seed):
    records, (r, *others), (x, *ys) = drawn
    plan = plan_of(KEY, records, (r, tuple(others)), block=block)
    outputs, transcript = run_all(programs_of(KEY, plan, x, ys, seed))
    assert len(outputs["analyst"]) == len(ys)
    for table, y, states in zip(outputs["analyst"], ys, others, strict=True):
        assert table.dtype == np.int64
        assert table.tolist() == counted(x, y, (r, states)).tolist()
    blocks = [(EncryptedBlock, "owner", "other", 1)] * -(-records // block)
    assert sorted(shape(transcript), key=str) == sorted(
        [
            *blocks,
            (Answer, "other", "owner", 1 + bool(blocks)),
            (Masks, "other", "analyst", 1 + bool(blocks)),
            (MaskedCounts, "owner", "analyst", 2 + bool(blocks)),
        ],
        key=str,
    )


def shape(transcript):
    return [(type(s.message), s.sender, s.receiver, s.depth) for s in transcript]


def test_at_full_size_and_over_the_wire():
    key = PrivateKey.generate(2048)
    generator = np.random.default_rng(0)
    x, y = generator.integers(0, 63, 50), generator.integers(0, 2, 50)
    plan = plan_of(key, 50, (63, (2,)), block=16)
    traffic = Traffic()
    scheduler = Scheduler(EnvelopedPackets(bytes(16), traffic))
    for party, program in programs_of(key, plan, x, [y]).items():
        scheduler.start(party, program)
    (table,) = scheduler.finish("analyst")
    assert table.tolist() == counted(x, y, (63, 2)).tolist()
    assert traffic.rounds == 3 and traffic.messages == 4 + 3
    payload = 50 * 512 + 2 * 512 + 2 * 2 * 256
    assert payload < sum(traffic.bytes_sent.values()) < payload + 7 * 400


def test_a_message_of_another_table_is_refused():
    """The owner's blocks of an earlier table, with the same key and as many records."""
    plan = plan_of(KEY, 3, (2, (2,)))
    _, earlier = run_all(programs_of(KEY, plan, [0, 0, 1], [[0, 0, 1]]))
    (block,) = (sent.message for sent in earlier if isinstance(sent.message, EncryptedBlock))
    program = count_by_state(
        replace(plan, study=b"another"), [np.array([0, 1, 1])], SeededRandomness()
    )
    next(program)
    with pytest.raises(UnexpectedMessageError, match="EncryptedBlock of another table") as caught:
        program.send({"owner": block})
    assert caught.value.party == "owner"


def test_narrow_slots_hold_more_states():
    plan = plan_of(KEY, 3, (127, (1,)), slot_bits=2)
    outputs, _ = run_all(programs_of(KEY, plan, [126, 0, 126], [[0, 0, 0]]))
    assert outputs["analyst"][0][126, 0] == 2


# ---- what a caller may do wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"owner": "other"}, "three different parties"),
        ({"analyst": "owner"}, "three different parties"),
        ({"records": 2**32}, "records must be .* 32 bits.* got 4294967296"),
        ({"records": -1}, "records must be .* got -1"),
        ({"records": 16, "slot_bits": 4}, "records must be from 0 to 15 .* 4 bits.* got 16"),
        ({"owner_states": 8}, "owner_states must be from 1 to 7 .* got 8"),
        ({"owner_states": 0}, "owner_states must be .* got 0"),
        ({"other_states": ()}, "other_states and block must be at least 1"),
        ({"other_states": (3, 0)}, "other_states and block must be at least 1"),
        ({"block": 0}, "other_states and block must be at least 1"),
        ({"slot_bits": 0}, "slot_bits must be .* got 0"),
    ],
)
def test_plans_that_cannot_be_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        replace(plan_of(KEY, 5), **settings)


def test_counts_that_fill_a_slot_are_told_apart():
    plan = plan_of(KEY, 15, (2, (1,)), slot_bits=4)
    outputs, _ = run_all(programs_of(KEY, plan, [0] * 15, [[0] * 15]))
    assert outputs["analyst"][0].tolist() == [[15], [0]]


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros(4, np.int64),
        np.zeros((5, 1), np.int64),
        np.zeros(5),
        np.array([0, 1, 2, 3, 4]),
        np.array([0, 1, 2, 3, -1]),
    ],
)
def test_columns_that_are_not_the_plans_are_refused(codes):
    plan = plan_of(KEY, 5)
    for program in (
        encrypt_column(plan, KEY, codes, SeededRandomness()),
        count_by_state(plan, [codes], SeededRandomness()),
    ):
        with pytest.raises(ValueError, match=r"integers of shape|codes must be from 0 to 3"):
            next(program)


def test_columns_too_many_or_too_few_are_refused():
    for given_columns in ([], [np.zeros(5, np.int64)] * 2):
        with pytest.raises(ValueError, match="zip"):
            next(count_by_state(plan_of(KEY, 5), given_columns, SeededRandomness()))


def test_the_key_of_another_plan_is_refused():
    with pytest.raises(ValueError, match="not that of the plan"):
        next(encrypt_column(plan_of(KEY, 5), small_key(128), np.array(X), SeededRandomness()))


# ---- what a peer may do wrong --------------------------------------------------------------------


def run_tampered(kind, change, seed=b"table"):
    plan = plan_of(KEY, 5, (4, (3,)), block=2)
    run_changing(programs_of(KEY, plan, X, [Y], seed), changing(kind, change))


def with_first(value):
    """Return a change that puts an integer into a message's first place."""

    def change(message):
        values = message.values.copy()
        values[0] = np.frombuffer(value.to_bytes(values.shape[1], "little"), np.uint8)
        return replace(message, values=values)

    return change


def reshaped(reshape):
    return lambda message: replace(message, values=reshape(message.values))


KINDS = [EncryptedBlock, Answer, MaskedCounts, Masks]
SENDER = {EncryptedBlock: "owner", Answer: "other", MaskedCounts: "owner", Masks: "other"}


def test_untampered_it_counts():
    programs = programs_of(KEY, plan_of(KEY, 5, (4, (3,)), block=2), X, [Y])
    (table,) = run_all(programs)[0]["analyst"]
    assert table.tolist() == counted(X, Y, (4, 3)).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reshape",
    [
        lambda values: values[1:],
        lambda values: values[:, 1:],
        lambda values: np.vstack((values, values[:1])),
        lambda values: values.ravel(),
        lambda values: values.astype(np.uint16),
        lambda values: values[:0],
    ],
    ids=["fewer", "narrower", "more", "flat", "wider type", "none"],
)
def test_a_wrong_shape_names_its_sender(kind, reshape):
    with pytest.raises(MalformedMessageError, match="expected") as caught:
        run_tampered(kind, reshaped(reshape))
    assert caught.value.party == SENDER[kind]


@pytest.mark.parametrize("kind", [EncryptedBlock, Answer])
@pytest.mark.parametrize("bad", [0, N, KEY.p, N * N - N, N * N, N * N + 1, 2**512 - 1])
def test_what_is_no_ciphertext_names_its_sender(kind, bad):
    with pytest.raises(MalformedMessageError, match="ciphertext 0") as caught:
        run_tampered(kind, with_first(bad))
    assert caught.value.party == SENDER[kind]


@pytest.mark.parametrize("kind", [MaskedCounts, Masks])
@pytest.mark.parametrize("bad", [N, 2**256 - 1])
def test_what_is_not_below_the_modulus_names_its_sender(kind, bad):
    with pytest.raises(MalformedMessageError, match="plaintext 0") as caught:
        run_tampered(kind, with_first(bad))
    assert caught.value.party == SENDER[kind]
    assert str(bad) not in str(caught.value)


@pytest.mark.parametrize("kind", [Answer, MaskedCounts, Masks])
@pytest.mark.parametrize("other", [1, 2**40, N // 2])
def test_parts_that_do_not_match_name_both_senders(kind, other):
    with pytest.raises(
        UnknownFaultyPartyError, match="do not add up to tables of 5 records"
    ) as caught:
        run_tampered(kind, with_first(other))
    assert caught.value.parties == ("owner", "other")


def test_a_column_that_counts_a_record_twice_is_noticed():
    def squared(message):
        doubled = int.from_bytes(message.values[0].tobytes(), "little") ** 2 % N**2
        return with_first(doubled)(message)

    with pytest.raises(UnknownFaultyPartyError, match="do not add up to tables of 5 records"):
        run_tampered(EncryptedBlock, squared)


def test_a_block_sent_before_names_the_owner():
    first = []

    def replay(message):
        first.append(message)
        return first[0]

    with pytest.raises(
        ReplayedMessageError, match="sent records from 0 on; expected records from"
    ) as caught:
        run_tampered(EncryptedBlock, replay)
    assert caught.value.party == "owner"


def test_a_block_that_does_not_come_next_names_the_owner():
    with pytest.raises(
        UnexpectedMessageError, match="from 2 on; expected records from 0"
    ) as caught:
        run_tampered(EncryptedBlock, lambda message: replace(message, start=message.start + 2))
    assert caught.value.party == "owner"


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_of_another_kind_names_its_sender(kind):
    def wrong(message):
        return (Masks if kind is not Masks else Answer)(message.label, message.values)

    with pytest.raises(UnexpectedMessageError) as caught:
        run_tampered(kind, wrong)
    assert caught.value.party == SENDER[kind]


@pytest.mark.parametrize("missing", ["owner", "other"])
def test_a_party_that_is_not_there_is_named(missing):
    programs = programs_of(KEY, plan_of(KEY, 5, (4, (3,))), X, [Y])
    del programs[missing]
    with pytest.raises(ProtocolError, match="does not go on") as caught:
        run_all(programs)
    assert missing in caught.value.parties


def test_no_value_in_a_repr():
    values = np.full((1, 4), 123, np.uint8)
    for message in (
        EncryptedBlock(b"", values, 0),
        Answer(b"", values),
        MaskedCounts(b"", values),
        Masks(b"", values),
    ):
        assert "123" not in repr(message)


def test_the_example(capsys):
    table, pooled = runpy.run_path(str(ROOT / "examples" / "paillier_table.py"))["count"](60)
    assert np.array_equal(table, pooled) and table.sum() == 60
    assert "identical" in capsys.readouterr().out
