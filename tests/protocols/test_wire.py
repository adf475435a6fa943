import struct
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.vectors.forged import at, forged, places, put
from tests.vectors.messages import EACH_TYPE, example, message_classes
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Expect, Message
from vertibayes_protocols import wire
from vertibayes_protocols.wire import ALIGN, DTYPES, Most, decode, encode

ANY = Expect(Message, 10_000)


@dataclass(frozen=True)
class Span:
    low: float
    high: float
    name: str | None = None

    def __post_init__(self):
        if not self.low <= self.high:
            raise ValueError("bounds must ascend")


class Pair(NamedTuple):
    span: Span
    code: bytes


@dataclass(frozen=True, slots=True)
class Everything(Message):
    kind: ClassVar[str] = "test: everything"
    number: int
    flag: bool
    real: float
    text: str
    code: bytes
    first: NDArray[np.generic]
    texts: Annotated[tuple[str, ...], Most(3)]
    pair: tuple[int, tuple[bytes, bool]]
    arrays: tuple[NDArray[np.generic], ...]
    perhaps: str | int
    word: Literal["one", "other"]
    span: Span | None
    records: tuple[Span | Pair, ...]
    mapping: Mapping[str, tuple[Span, ...]]


@dataclass(frozen=True, slots=True)
class Array(Message):
    kind: ClassVar[str] = "test: array"
    values: NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Below(Array):
    """Has no kind of its own, and is never found on the wire."""


Item: TypeAlias = bool | Span | tuple[()] | NDArray[np.uint8] | None


@dataclass(frozen=True, slots=True)
class Many(Message):
    kind: ClassVar[str] = "test: many"
    values: tuple[Item, ...] | Mapping[bytes, None] | NDArray[np.uint64] | str | bytes


texts = st.text(max_size=5)
numbers = st.integers(-(2**63), 2**63 - 1)
arrays = hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
bounds = st.tuples(*[st.floats(allow_nan=False)] * 2).map(sorted)
spans = st.builds(lambda ends, name: Span(*ends, name), bounds, st.none() | texts)
messages = st.builds(
    Everything,
    numbers,
    st.booleans(),
    st.floats(),
    texts,
    st.binary(max_size=70),
    arrays,
    st.lists(texts, max_size=3).map(tuple),
    st.tuples(numbers, st.tuples(st.binary(max_size=3), st.booleans())),
    st.lists(arrays, max_size=3).map(tuple),
    texts | numbers,
    st.sampled_from(("one", "other")),
    st.none() | spans,
    st.lists(spans | st.builds(Pair, spans, st.binary(max_size=3)), max_size=3).map(tuple),
    st.dictionaries(texts, st.lists(spans, max_size=2).map(tuple), max_size=3),
)
EXAMPLE = Everything(
    number=5,
    flag=True,
    real=0.5,
    text="ü",
    code=b"\0\1",
    first=np.arange(3, dtype=np.uint32),
    texts=("a", ""),
    pair=(1, (b"x", False)),
    arrays=(np.ones((2, 2)), np.zeros(0)),
    perhaps="z",
    word="other",
    span=Span(0, 1),
    records=(Pair(Span(-1.5, 2.5, "b"), b"c"), Span(0, 0)),
    mapping={"m": (Span(3, 4),), "": ()},
)
BODY = encode(EXAMPLE)


def same(a, b):
    """Whether two values are equal, with their types; a nan is equal to itself."""
    steps = list(places(a))
    return steps == list(places(b)) and all(_same(at(a, path), at(b, path)) for path in steps)


def _same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (isinstance(a, tuple | dict) or repr(a) == repr(b))


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
    assert type(found) is Everything and same(found, message)
    assert len(body) % ALIGN == 0 and encode(found) == body


@given(arrays, st.booleans())
def test_arrays_are_read_only_views_of_the_packet_in_any_order_of_axes(array, turned):
    array = array.T if turned else array
    body = encode(Array(array))
    found = decode(body, "p", ANY).values
    assert _same(found, np.ascontiguousarray(array).reshape(array.shape))
    if array.size:
        assert not found.flags.writeable and np.shares_memory(found, np.frombuffer(body, "u1"))


@pytest.mark.parametrize(
    "value", [[1], {1}, 2**63, np.uint8(1), np.zeros(1, bool), ("a", [])], ids=str
)
def test_a_value_of_no_known_type_is_not_sent(value):
    with pytest.raises(TypeError, match="cannot be sent"):
        encode(replace(EXAMPLE, perhaps=value))


def test_every_truncation_and_every_byte_more_names_the_sender():
    kind_end = 1 + len(Everything.kind)
    cut = [BODY[:end] for end in (0, *range(kind_end, len(BODY)))]
    for body in (*cut, BODY + b"\0", BODY + bytes(ALIGN)):
        with pytest.raises(MalformedMessageError) as caught:
            decode(body, "liar", Expect(Everything, 1000))
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
        found.append(read(body, Expect(Everything, 1000)))
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
        array_head(*(1,) * 33),
        b"s" + struct.pack("<L", 2**32 - 1),
        b"y" + struct.pack("<L", 101) + bytes(101),
        b"t" + struct.pack("<L", 2**32 - 1),
        b"t" + struct.pack("<L", 101) + b"b\0" * 101,
        b"t" + struct.pack("<L", 90) + bytes(80),
        b"m" + struct.pack("<L", 2**32 - 1),
        b"t" + struct.pack("<L", 1) + b"d" + struct.pack("<L", 2**32 - 1),
        b"t" + struct.pack("<L", 1) + array_head(2**60, code=0),
    ],
    ids=lambda head: head[:12].hex(),
)
def test_nothing_is_allocated_for_what_is_announced(head):
    body = body_of(head, Many.kind)
    tracemalloc.start()
    with pytest.raises(
        MalformedMessageError, match=r"more than are|Maximum|too big|cut short|axes"
    ):
        decode(body, "liar", Expect(Many, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_elements_characters_and_items_are_counted_together():
    message = replace(EXAMPLE, arrays=(np.ones((2, 2)),))
    # text: 2 bytes, code: 2, first: 3, texts: 2 + 1 + 0, pair: 2 + 2 + 1, arrays: 1 + 4,
    # perhaps: 1, word: 5, span: 4, records: 2 + 4 + 4 + 1 + 1 + 4, mapping: 2 + 1 + 1 + 4 + 0 + 0
    assert type(read(encode(message), Expect(Message, 54))) is Everything
    with pytest.raises(MalformedMessageError, match="1 cells more than are allowed"):
        decode(encode(message), "liar", Expect(Message, 53))


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


# ---- declared types ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", True),
        ("number", "5"),
        ("flag", 1),
        ("real", "0.5"),
        ("real", {"a": 1}),
        ("text", b"a"),
        ("code", "a"),
        ("first", (1, 2)),
        ("texts", "ab"),
        ("texts", ("a", 1)),
        ("texts", ("a", "b", "c", "d")),
        ("pair", (1,)),
        ("pair", (1, (b"x", False), 2)),
        ("pair", (1, (b"x", 0))),
        ("arrays", np.zeros(2)),
        ("arrays", (np.zeros(2), 1)),
        ("perhaps", b"z"),
        ("perhaps", True),
        ("perhaps", None),
        ("word", "another"),
        ("word", 1),
        ("span", Pair(Span(0, 1), b"")),
        ("span", (0.0, 1.0, None)),
        ("records", (None,)),
        ("records", (EACH_TYPE.records[0],)),
        ("mapping", (("m", ()),)),
        ("mapping", {b"m": ()}),
        ("mapping", {"m": Span(0, 1)}),
    ],
)
def test_a_field_of_a_wrong_type_is_malformed(name, value):
    with pytest.raises(MalformedMessageError, match=f"{name} is no valid value") as caught:
        decode(encode(replace(EXAMPLE, **{name: value})), "liar", ANY)
    assert caught.value.party == "liar"


@pytest.mark.parametrize("cls", message_classes().values(), ids=lambda cls: cls.kind)
def test_every_message_is_read_by_its_declared_types_and_no_others(cls):
    message = example(cls)
    found = decode(encode(message), "p", Expect(cls, 1000))
    assert type(found) is cls and same(found, message)
    for path in places(message):
        other = (b"",) if isinstance(at(message, path), bool | int) else True
        with pytest.raises(MalformedMessageError, match=f"{path[0]} is no valid value"):
            decode(encode(put(message, path, other)), "liar", Expect(cls, 1000))


def test_arrays_of_other_elements_than_declared_are_malformed():
    (cls,) = (cls for kind, cls in message_classes().items() if kind == "odds numbers")
    for dtype in DTYPES:
        body = encode(forged(example(cls), values=np.zeros(3, dtype)))
        assert type(read(body, Expect(cls, 100))) is (cls if dtype == np.int64 else str)


def test_a_whole_number_where_a_float_is_declared_is_sent_as_a_float():
    whole = replace(EXAMPLE, real=2, span=Span(0, 1), mapping={"m": (Span(-1, 3),)})
    real = replace(EXAMPLE, real=2.0, span=Span(0.0, 1.0), mapping={"m": (Span(-1.0, 3.0),)})
    assert encode(whole) == encode(real)
    body = encode(real).replace(b"f" + struct.pack("<d", 3), b"i" + struct.pack("<q", 3))
    assert body != encode(real)
    with pytest.raises(MalformedMessageError, match=r"high is no valid value: not of the type flo"):
        decode(body, "liar", ANY)


@pytest.mark.parametrize("name", [b"Spam", b"Pair", b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_an_object_of_another_name_than_declared_is_malformed(name):
    body = encode(replace(EXAMPLE, records=(), mapping={})).replace(b"Span", name)
    with pytest.raises(MalformedMessageError, match="span is no valid value"):
        decode(body, "liar", ANY)


def test_a_key_that_appears_twice_is_malformed():
    body = encode(replace(EXAMPLE, mapping={"one": (), "two": ()}))
    key = b"s" + struct.pack("<L", 3)
    with pytest.raises(MalformedMessageError, match="mapping is no valid value: a key appears tw"):
        decode(body.replace(key + b"two", key + b"one"), "liar", ANY)


def test_bounds_are_checked_in_objects_in_objects():
    crossed = forged(Span(0, 1), low=2.0)
    for path in [("span",), ("records", 0, "span"), ("records", 1), ("mapping", "m", 0)]:
        with pytest.raises(MalformedMessageError, match="Span: bounds must ascend"):
            decode(encode(put(EXAMPLE, path, crossed)), "liar", ANY)


# ---- memory --------------------------------------------------------------------------------------


SMALLEST = {
    "none": b"n",
    "flag": b"b\0",
    "tuple": b"t" + struct.pack("<L", 0),
    "record": b"d" + struct.pack("<L", 4) + b"Span" + (b"f" + bytes(8)) * 2 + b"n",
    "array": b"a\0\1" + bytes(8),
}


@pytest.mark.parametrize("what", SMALLEST)
def test_memory_is_bounded_by_the_frame(what):
    count = wire.decoding.MOST_VALUES // 8
    item = SMALLEST[what]
    body = body_of(b"t" + struct.pack("<L", count) + item * count, Many.kind)
    assert len(decode(body, "p", Expect(Many, 10**7)).values) == count
    assert peak_of(lambda: decode(body, "p", Expect(Many, 10**7))) < 64 * len(body)


def test_the_memory_of_a_mapping_is_bounded_by_the_frame():
    message = Many({b"%d" % number: None for number in range(50_000)})
    body = encode(message)
    assert peak_of(lambda: decode(body, "p", Expect(Many, 10**7))) < 64 * len(body)


@pytest.mark.parametrize("what", SMALLEST)
def test_a_message_has_a_limited_number_of_values(what):
    cost = {"array": wire.decoding.ARRAY_VALUES, "record": 4}.get(what, 1)
    most = (wire.decoding.MOST_VALUES - 1) // cost  # the tuple around them is a value too
    head = [b"t" + struct.pack("<L", n) + SMALLEST[what] * n for n in (most, most + 1)]
    fits, more = (body_of(one, Many.kind) for one in head)
    assert len(decode(fits, "p", Expect(Many, 10**7)).values) == most
    with pytest.raises(MalformedMessageError, match="more than 200,000 values"):
        decode(more, "liar", Expect(Many, 10**7))


def peak_of(call):
    """Return the most memory that a call takes at one time."""
    call()  # types are compiled
    tracemalloc.start()
    kept = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept is not None
    return peak
