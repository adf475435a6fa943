"""Tables of sites by Paillier: all shapes, all messages, all that can be wrong with them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.paillier_worlds import (
    SITES,
    columns_of,
    counted,
    plan_of,
    program_of,
    programs_of,
    small_key,
)
from tests.randomness import SeededRandomness
from tests.tampering import changing, run_changing
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.paillier import Column, PrivateKey, TablePlan, count_tables, open_tables
from vertibayes_mpc.paillier.messages import Answer, EncryptedColumns, MaskedCounts, Masks
from vertibayes_mpc.scheduler import Scheduler, run_all
from vertibayes_protocols.transports.local import EnvelopedPackets, Traffic

KEY = small_key()
N = KEY.public.modulus
X, Y, Z = [0, 3, 1, 1, 2], [1, 0, 1, 2, 1], [0, 0, 3, 2, 2]
FIRST, SECOND, THIRD, _ = SITES


@st.composite
def worlds(draw):
    """Draw columns of two to four sites, their codes, and tables of some of them."""
    records = draw(st.integers(0, 8))
    least = -draw(st.integers(0, 1))
    sites = draw(st.integers(2, 4))
    columns = [
        Column(site, name, draw(st.integers(1, 9)))
        for site in SITES[:sites]
        for name in ("u", "v")[: draw(st.integers(1, 2))]
    ]
    codes = {
        c: draw(st.lists(st.integers(least, c.states - 1), min_size=records, max_size=records))
        for c in columns
    }
    tables = []
    for _ in range(draw(st.integers(0, 3))):
        members = draw(st.lists(st.sampled_from(columns), min_size=2, unique_by=lambda c: c.site))
        tables.append(tuple(members))
    return records, least == 0, codes, tuple(dict.fromkeys(tables))


@settings(max_examples=60, deadline=None)
@given(worlds(), st.binary(max_size=4))
def test_tables_equal_counts(world, seed):
    records, complete, codes, tables = world
    used = sorted({column.site for table in tables for column in table})
    keys = {site: small_key(128 if site == SECOND else 256) for site in used}
    public = {site: key.public for site, key in keys.items()}
    plan = TablePlan(b"tables", public, records, tables, complete)
    programs = {
        site: count_tables(
            plan,
            site,
            "analyst",
            keys[site],
            {c: np.array(v, np.int64) for c, v in codes.items() if c.site == site},
            SeededRandomness(seed + site.encode()),
        )
        for site in used
    }
    outputs, transcript = run_all(programs | {"analyst": open_tables(plan)})
    for table, found in zip(tables, outputs["analyst"], strict=True):
        wanted = counted([c.states for c in table], *(codes[c] for c in table))
        assert found.dtype == np.int64 and found.tolist() == wanted.tolist()
    longest = max(map(len, tables), default=0)
    assert max((s.depth for s in transcript), default=0) == (longest + 1 if tables else 0)


@pytest.mark.parametrize("sites", [2, 3, 4])
def test_a_table_has_so_many_messages(sites):
    plan = plan_of(KEY, 5, (4,) * sites)
    _, transcript = run_all(programs_of(KEY, plan, *[X, Y, Z, Y][:sites]))
    last = SITES[sites - 1]
    assert [(type(s.message), s.sender, s.receiver, s.depth) for s in transcript] == [
        *((EncryptedColumns, SITES[i], SITES[i + 1], i + 1) for i in range(sites - 1)),
        (Answer, last, FIRST, sites),
        (Masks, last, "analyst", sites),
        (MaskedCounts, FIRST, "analyst", sites + 1),
    ]


@pytest.mark.parametrize("sites", [2, 3])
def test_at_full_size_and_over_the_wire(sites):
    key = PrivateKey.generate(2048)
    generator = np.random.default_rng(0)
    codes = [generator.integers(0, 3, 20) for _ in range(sites)]
    plan = plan_of(key, 20, (3,) * sites)
    traffic = Traffic()
    scheduler = Scheduler(EnvelopedPackets(bytes(16), traffic))
    for party, program in programs_of(key, plan, *codes).items():
        scheduler.start(party, program)
    (table,) = scheduler.finish("analyst")
    assert table.tolist() == counted((3,) * sites, *codes).tolist()
    assert traffic.rounds == sites + 1 and traffic.messages == sites + 2
    payload = (sites - 1) * 20 * 512 + 512 + 2 * 256
    assert payload < sum(traffic.bytes_sent.values()) < payload + (sites + 2) * 400


# ---- the plan ------------------------------------------------------------------------------------


def test_many_states_and_tables_share_a_plaintext():
    """255 bits and slots of 3 bits: 85 counts in an answer."""
    a, b = columns_of(4, 4)
    wide, wider = Column(SECOND, "wide", 17), Column(SECOND, "wider", 22)
    public = dict.fromkeys(SITES[:2], KEY.public)
    plan = TablePlan(b"tables", public, 5, ((a, b), (a, wide), (a, wider)))
    (groups,) = plan.answers.values()
    assert [len(group) for group in groups] == [21, 21, 1] and len(plan.chains) == 3
    assert plan.passed == [{(FIRST, SECOND): [(a, range(4))]}], "one column for three tables"


def test_the_column_that_most_tables_have_is_the_owners():
    a, b = columns_of(2, 3)
    public = dict.fromkeys(SITES[:3], KEY.public)
    hub = Column(THIRD, "hub", 9)
    plan = TablePlan(b"tables", public, 5, ((a, hub), (hub, b), (a, b, hub)))
    assert [chain.owner for chain in plan.chains] == [THIRD, THIRD, FIRST]
    assert [c.states for c in plan.chains[2].columns] == [2, 3, 9]


def test_states_beyond_the_slots_are_counted_in_several_passes():
    codes = np.arange(40) % 13, np.arange(40) % 9, np.arange(40) % 14
    plan = plan_of(KEY, 40, (13, 9, 14))
    assert [chain.ranges for chain in plan.chains] == [
        (range(9), range(at, min(at + 4, 13))) for at in (0, 4, 8, 12)
    ]
    assert plan.slots(SECOND) == 42
    outputs, _ = run_all(programs_of(KEY, plan, *codes))
    assert outputs["analyst"][0].tolist() == counted((13, 9, 14), *codes).tolist()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tables": (columns_of(4),)}, "columns of two or more sites"),
        ({"tables": (columns_of(4) * 2,)}, "columns of two or more sites, one of each"),
        ({"tables": (columns_of(4, 0),)}, "at least one state"),
        ({"keys": {FIRST: KEY.public}}, "no key of site 2"),
        ({"records": 2**62}, r"from 0 to 2\^62 - 1, got 4611686018427387904"),
        ({"records": -1}, "records must be .* got -1"),
        ({"records": 64, "keys": dict.fromkeys(SITES, small_key(6).public)}, "key is too short"),
    ],
)
def test_plans_that_cannot_be_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        replace(plan_of(KEY, 5), **settings)


def test_each_plan_and_step_has_a_label_of_its_own():
    plan = plan_of(KEY, 5)
    others = [
        plan,
        replace(plan, study=b"another"),
        replace(plan, records=4),
        replace(plan, complete=False),
        replace(plan, tables=plan.tables * 2),
        replace(plan, tables=(columns_of(4, 3),)),
        replace(plan, tables=(columns_of(4, 4)[::-1],)),
        replace(plan, keys=plan.keys | {SECOND: small_key(128).public}),
        replace(plan, keys=plan.keys | {THIRD: KEY.public}),
    ]
    labels = [p.label_of(step) for p in others for step in (0, 1, 2)]
    assert len({*labels}) == len(labels)


@pytest.mark.parametrize("step", [1, 2])
def test_a_message_of_another_table_or_step_is_refused(step):
    """A column of an earlier table, with the same key and as many records; or of another step."""
    plan = plan_of(KEY, 5, (4, 4, 4))
    _, earlier = run_all(programs_of(KEY, plan, X, Y, Z))
    sent = [s.message for s in earlier if isinstance(s.message, EncryptedColumns)]
    for another, message in ((replace(plan, study=b"x"), sent[step - 1]), (plan, sent[2 - step])):
        column, sender = another.tables[0][step], SITES[step - 1]
        program = program_of(KEY, another, column, Y, SeededRandomness())
        next(program)
        with pytest.raises(UnexpectedMessageError, match="of another table or step") as caught:
            program.send({sender: message})
        assert caught.value.party == sender


def test_counts_that_fill_a_slot_are_told_apart():
    plan = plan_of(KEY, 15, (2, 2))
    outputs, _ = run_all(programs_of(KEY, plan, [0] * 15, [1] * 15))
    assert plan.slot_bits == 4 and outputs["analyst"][0].tolist() == [[0, 15], [0, 0]]


# ---- what a caller may do wrong ------------------------------------------------------------------


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
    for column in plan.tables[0]:
        program = count_tables(
            plan, column.site, "analyst", KEY, {column: codes}, SeededRandomness()
        )
        with pytest.raises(ValueError, match=r"integers of shape|codes must be from 0 to 3"):
            next(program)


def test_codes_below_minus_one_are_refused():
    plan = plan_of(KEY, 5, complete=False)
    with pytest.raises(ValueError, match="codes must be from -1 to 3"):
        next(program_of(KEY, plan, plan.tables[0][0], [0, 0, -2, 0, 0], SeededRandomness()))


def test_the_key_of_another_plan_is_refused():
    plan = plan_of(KEY, 5)
    with pytest.raises(ValueError, match="not that of the plan"):
        next(program_of(small_key(128), plan, plan.tables[0][0], X, SeededRandomness()))


def test_an_analyst_that_holds_a_column_is_refused():
    plan = plan_of(KEY, 5)
    with pytest.raises(ValueError, match="the analyst must not hold a column: site 2"):
        next(count_tables(plan, FIRST, SECOND, KEY, {}, SeededRandomness()))


# ---- what a peer may do wrong --------------------------------------------------------------------


def run_tampered(kind, change, receiver=None, states=(4, 4, 4)):
    plan = plan_of(KEY, 5, states)
    programs = programs_of(KEY, plan, *[X, Y, Z][: len(states)])
    run_changing(programs, changing(kind, change, receiver=receiver))


def with_first(value):
    """Return a change that puts an integer into a message's first place."""

    def change(message):
        values = message.values.copy()
        values[0] = np.frombuffer(value.to_bytes(values.shape[1], "little"), np.uint8)
        return replace(message, values=values)

    return change


def reshaped(reshape):
    return lambda message: replace(message, values=reshape(message.values))


# Each message of three sites: its kind, receiver and sender.
MESSAGES = [
    (EncryptedColumns, SECOND, FIRST),
    (EncryptedColumns, THIRD, SECOND),
    (Answer, FIRST, THIRD),
    (MaskedCounts, "analyst", FIRST),
    (Masks, "analyst", THIRD),
]


@pytest.mark.parametrize(("kind", "receiver", "sender"), MESSAGES)
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
def test_a_wrong_shape_names_its_sender(kind, receiver, sender, reshape):
    with pytest.raises(MalformedMessageError, match="expected") as caught:
        run_tampered(kind, reshaped(reshape), receiver)
    assert caught.value.party == sender


@pytest.mark.parametrize(("kind", "receiver", "sender"), MESSAGES[:3])
@pytest.mark.parametrize("bad", [0, N, KEY.p, N * N - N, N * N, N * N + 1, 2**512 - 1])
def test_what_is_no_ciphertext_names_its_sender(kind, receiver, sender, bad):
    with pytest.raises(MalformedMessageError, match="ciphertext 0") as caught:
        run_tampered(kind, with_first(bad), receiver)
    assert caught.value.party == sender


@pytest.mark.parametrize(("kind", "receiver", "sender"), MESSAGES[3:])
@pytest.mark.parametrize("bad", [N, 2**256 - 1])
def test_what_is_not_below_the_modulus_names_its_sender(kind, receiver, sender, bad):
    with pytest.raises(MalformedMessageError, match="plaintext 0") as caught:
        run_tampered(kind, with_first(bad), receiver)
    assert caught.value.party == sender
    assert str(bad) not in str(caught.value)


@pytest.mark.parametrize("sites", [2, 3])
@pytest.mark.parametrize("kind", [Answer, MaskedCounts, Masks])
@pytest.mark.parametrize("other", [1, 2**40, N // 2])
def test_parts_that_do_not_match_name_all_sites(kind, other, sites):
    with pytest.raises(
        UnknownFaultyPartyError, match="do not add up to tables of 5 records"
    ) as caught:
        run_tampered(kind, with_first(other), states=(4,) * sites)
    assert caught.value.parties == SITES[:sites]


def squared(message):
    doubled = int.from_bytes(message.values[0].tobytes(), "little") ** 2 % N**2
    return with_first(doubled)(message)


@pytest.mark.parametrize("receiver", [SECOND, THIRD])
def test_a_column_that_counts_a_record_twice_is_noticed(receiver):
    with pytest.raises(UnknownFaultyPartyError, match="do not add up to tables of 5 records"):
        run_tampered(EncryptedColumns, squared, receiver)


def test_too_many_records_are_noticed_where_some_have_no_state():
    plan = plan_of(KEY, 5, complete=False)
    changed = changing(EncryptedColumns, squared)
    codes = [[0, 1, 2, 3, -1], [0] * 5]
    (table,) = run_changing(programs_of(KEY, plan, *codes), changed)["analyst"]
    assert table.sum() == 5, "one left out, one counted twice: as many as there may be"
    with pytest.raises(UnknownFaultyPartyError, match="do not add up to tables of 5 records"):
        run_changing(programs_of(KEY, plan, [0] * 5, [0] * 5), changed)


@pytest.mark.parametrize(("kind", "receiver", "sender"), MESSAGES)
def test_a_message_of_another_kind_names_its_sender(kind, receiver, sender):
    def wrong(message):
        return (Masks if kind is not Masks else Answer)(message.label, message.values)

    with pytest.raises(UnexpectedMessageError) as caught:
        run_tampered(kind, wrong, receiver)
    assert caught.value.party == sender


@pytest.mark.parametrize("missing", SITES[:3])
def test_a_party_that_is_not_there_is_named(missing):
    programs = programs_of(KEY, plan_of(KEY, 5, (4, 4, 4)), X, Y, Z)
    del programs[missing]
    with pytest.raises(ProtocolError, match="does not go on") as caught:
        run_all(programs)
    assert missing in caught.value.parties


def test_no_value_in_a_repr():
    values = np.full((1, 4), 123, np.uint8)
    for kind in (EncryptedColumns, Answer, MaskedCounts, Masks):
        assert "123" not in repr(kind(b"", values))
