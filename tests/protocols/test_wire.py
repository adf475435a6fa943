import struct
import tracemalloc
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.vectors.messages import example, message_classes
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Expect, Message
from vertibayes_protocols import wire
from vertibayes_protocols.wire import ALIGN, DTYPES, decode, encode

ANY = Expect(Message, 10_000)


@dataclass(frozen=True, slots=True)
class Everything(Message):
    kind: ClassVar[str] = "test: everything"
    number: int
    flag: bool
    text: str
    code: bytes
    first: NDArray[np.uint32]
    texts: tuple[str, ...]
    pair: tuple[int, tuple[bytes, bool]]
    arrays: tuple[NDArray[np.float64], ...]
    perhaps: str | int


@dataclass(frozen=True, slots=True)
class Array(Message):
    kind: ClassVar[str] = "test: array"
    values: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Below(Array):
    """Has no kind of its own, and is never found on the wire."""


texts = st.text(max_size=5)
numbers = st.integers(-(2**63), 2**63 - 1)
arrays = hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
messages = st.builds(
    Everything,
    numbers,
    st.booleans(),
    texts,
    st.binary(max_size=70),
    arrays,
    st.lists(texts, max_size=3).map(tuple),
    st.tuples(numbers, st.tuples(st.binary(max_size=3), st.booleans())),
    st.lists(arrays, max_size=3).map(tuple),
    texts | numbers,
)
EXAMPLE = Everything(
    5,
    True,
    "ü",
    b"\0\1",
    np.arange(3, dtype=np.uint32),
    ("a", ""),
    (1, (b"x", False)),
    (np.ones((2, 2)), np.zeros(0)),
    "z",
)
BODY = encode(EXAMPLE)


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def values(message):
    return tuple(getattr(message, item.name) for item in fields(message))


def read(body, expect):
    """Return the message, or who is blamed for it."""
    try:
        return decode(body, "liar", expect)
    except ProtocolError as error:
        return error.party


def body_of(head, kind="test: array", tail=b""):
    """Return a body by hand: its kind, its head, padding, and what is behind it."""
    start = bytes([len(kind)]) + kind.encode() + struct.pack("<L", len(head)) + head
    return start + bytes(-len(start) % ALIGN) + tail


def array_head(*shape, code=3):
    return b"a" + bytes([code, len(shape)]) + b"".join(struct.pack("<Q", n) for n in shape)


@given(messages)
def test_a_message_comes_out_as_it_went_in(message):
    body = encode(message)
    found = decode(body, "p", ANY)
    assert type(found) is Everything and same(values(found), values(message))
    assert len(body) % ALIGN == 0 and encode(found) == body


@given(arrays, st.booleans())
def test_arrays_are_read_only_views_of_the_packet_in_any_order_of_axes(array, turned):
    array = array.T if turned else array
    body = encode(Array(array))
    found = decode(body, "p", ANY).values
    assert same(found, np.ascontiguousarray(array).reshape(array.shape))
    if array.size:
        assert not found.flags.writeable and np.shares_memory(found, np.frombuffer(body, "u1"))


@pytest.mark.parametrize(
    "value", [None, 1.5, [1], {"a": 1}, np.uint8(1), np.zeros(1, bool), ("a", None)]
)
def test_a_value_of_no_known_type_is_not_sent(value):
    with pytest.raises(TypeError, match="cannot be sent"):
        encode(replace(EXAMPLE, perhaps=value))


def test_every_truncation_and_every_byte_more_names_the_sender():
    kind_end = 1 + len(Everything.kind)
    cut = [BODY[:end] for end in (0, *range(kind_end, len(BODY)))]
    for body in (*cut, BODY + b"\0", BODY + bytes(ALIGN)):
        with pytest.raises(MalformedMessageError) as caught:
            decode(body, "liar", Expect(Everything, 100))
        assert caught.value.party == "liar"


@settings(max_examples=1500, deadline=None)
@given(messages, st.data())
def test_changed_bytes_give_a_message_or_blame_the_sender(message, data):
    body = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = read(body, Expect(Everything, 1000))
    assert found == "liar" or type(found) is Everything


@settings(max_examples=500)
@given(st.binary(max_size=80), st.binary(max_size=130))
def test_any_head_gives_a_message_or_blames_the_sender(head, tail):
    for body in (body_of(head, tail=tail), body_of(b"a" + head, tail=tail), head):
        found = read(body, Expect(Array, 100))
        assert found == "liar" or type(found) is Array


def test_every_flipped_bit_of_a_head_gives_a_message_or_blames_the_sender():
    head = len(BODY) - 2 * ALIGN  # behind it are the arrays' buffers
    found = []
    for bit in range(8 * head):
        body = bytearray(BODY)
        body[bit // 8] ^= 1 << bit % 8
        found.append(read(body, Expect(Everything, 100)))
    assert {type(f) for f in found if f != "liar"} == {Everything}
    assert found.count("liar") > head


@pytest.mark.parametrize(
    "head",
    [
        array_head(2**60),
        array_head(2**64 - 1, 2**64 - 1),
        array_head(2**63, 0),
        array_head(101),
        array_head(*(2,) * 7),
        b"s" + struct.pack("<L", 2**32 - 1),
        b"y" + struct.pack("<L", 101) + bytes(101),
        b"t" + struct.pack("<L", 2**32 - 1),
        b"t" + struct.pack("<L", 101) + b"b\0" * 101,
    ],
    ids=str,
)
def test_nothing_is_allocated_for_what_is_announced(head):
    body = body_of(head)
    tracemalloc.start()
    with pytest.raises(MalformedMessageError, match=r"more than are allowed|Maximum|too big"):
        decode(body, "liar", Expect(Array, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_elements_characters_and_items_are_counted_together():
    message = replace(EXAMPLE, arrays=(np.ones((2, 2)),))
    # text: 2 bytes, code: 2, first: 3, texts: 2 + 1 + 0, pair: 2 + 2 + 1, arrays: 1 + 4, perhaps: 1
    assert type(read(encode(message), Expect(Message, 21))) is Everything
    with pytest.raises(MalformedMessageError, match="1 cells more than are allowed"):
        decode(encode(message), "liar", Expect(Message, 20))


@pytest.mark.parametrize("kind", ["test: array", "unheard of", ""])
def test_another_kind_is_unexpected(kind):
    with pytest.raises(UnexpectedMessageError, match="test: everything") as caught:
        decode(body_of(array_head(0), kind), "liar", Expect(Everything))
    assert caught.value.party == "liar"


def test_kinds_are_those_of_the_class_and_below_that_have_a_name_of_their_own():
    assert wire.kinds(Array) == {"test: array": Array}
    assert wire.kinds(Below) == {}
    assert {"test: array", "test: everything"} < set(wire.kinds(Message))


def small_kinds(*kinds):
    """Return a base class of its own with a class for each kind: other tests do not see these."""
    base = type("Base", (), {"kind": ""})
    return base, [type(f"Kind{at}", (base,), {"kind": kind}) for at, kind in enumerate(kinds)]


def test_two_classes_of_one_kind_are_refused_and_named():
    base, classes = small_kinds("a", "b")
    assert wire.kinds(base) == dict(zip("ab", classes, strict=True))
    base, classes = small_kinds("a", "b", "a")
    named = r"Kind0 and .*\.Kind2 are both messages of kind 'a'"
    with pytest.raises(TypeError, match=named):
        wire.kinds(base)


def test_a_dataclass_with_slots_counts_as_one_class_of_its_kind():
    base, (first,) = small_kinds("a")
    second = dataclass(frozen=True, slots=True)(first)
    assert second is not first and base.__subclasses__() == [first, second]
    assert wire.kinds(base) == {"a": second}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", True),
        ("number", "5"),
        ("flag", 1),
        ("text", b"a"),
        ("code", "a"),
        ("first", (1, 2)),
        ("texts", "ab"),
        ("texts", ("a", 1)),
        ("pair", (1,)),
        ("pair", (1, (b"x", False), 2)),
        ("pair", (1, (b"x", 0))),
        ("arrays", np.zeros(2)),
        ("arrays", (np.zeros(2), 1)),
        ("perhaps", b"z"),
        ("perhaps", True),
    ],
)
def test_a_field_of_a_wrong_type_is_malformed(name, value):
    with pytest.raises(MalformedMessageError, match=f"{name} is no") as caught:
        decode(encode(replace(EXAMPLE, **{name: value})), "liar", ANY)
    assert caught.value.party == "liar"


@pytest.mark.parametrize("cls", message_classes().values(), ids=lambda cls: cls.kind)
def test_every_message_is_read_by_its_declared_types_and_no_others(cls):
    message = example(cls)
    found = decode(encode(message), "p", Expect(cls, 1000))
    assert type(found) is cls and same(values(found), values(message))
    for name in (item.name for item in fields(cls)):
        other = (b"",) if isinstance(getattr(message, name), bool | int) else True
        changed = encode(replace(message, **{name: other}))
        with pytest.raises(MalformedMessageError, match=f"{name} is no"):
            decode(changed, "liar", Expect(cls, 1000))


@dataclass(frozen=True, slots=True)
class Undeclared(Message):
    kind: ClassVar[str] = "test: undeclared"
    values: dict[str, int]


def test_a_type_that_cannot_be_decoded_is_not_blamed_on_the_sender():
    body = body_of(b"b\1", Undeclared.kind)
    with pytest.raises(TypeError, match=r"declared as dict\[str, int\], which cannot be decoded"):
        decode(body, "p", Expect(Undeclared))


@pytest.mark.parametrize(("nested", "fits"), [(5, True), (6, True), (7, False)])
def test_tuples_in_tuples_are_not_read_too_deep(nested, fits):
    head = (b"t" + struct.pack("<L", 1)) * nested + b"b\0"
    with pytest.raises(MalformedMessageError, match="values is no" if fits else "too deep"):
        decode(body_of(head), "p", ANY)
