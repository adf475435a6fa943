"""What authors declare: types that cannot be read, fields that stay, what a contract has."""

import enum
import types
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vectors.forged import forged
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message
from vertibayes_protocols import wire
from vertibayes_protocols.canonical import canonical_json
from vertibayes_protocols.queries.predictions.predict import Predict
from vertibayes_protocols.variables import Rows, Variable
from vertibayes_protocols.wire import Most, declared_of, decode, difference, encode
from vertibayes_protocols.wire.types import parts_of

# ---- types that cannot be read -------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    rest: "Loop | None"


@dataclass(frozen=True)
class Left:
    rights: "tuple[Right, ...]"


class Right(NamedTuple):
    left: "Left | None"


@dataclass(frozen=True)
class Absent:
    value: "NoSuchType"  # noqa: F821


@dataclass(frozen=True)
class Alike:
    name: str
    free: int = field(default=0, metadata=wire.FREE)


@dataclass(frozen=True)
class AlsoAlike:
    name: str


Namesake = dataclass(frozen=True)(type("Alike", (), {"__annotations__": {"number": int}}))


class Colour(enum.Enum):
    RED = 1


T = TypeVar("T")
Untyped = namedtuple("Untyped", "value")


def message_of(hint, kind=""):
    """Return a class of messages with a field of a type."""
    members = {"kind": kind, "__annotations__": {"kind": ClassVar[str], "value": hint}}
    return dataclass(frozen=True)(type("Declared", (Message,), members))


@pytest.mark.parametrize(
    ("hint", "wrong"),
    [
        (Loop, "Loop contains itself"),
        (tuple[Left, ...], "(Left|Right) contains itself"),
        (Absent, "Absent has no readable type"),
        (Untyped, "Untyped has no readable type"),
        (list[int], "cannot be decoded"),
        (Any, "cannot be decoded"),
        (T, "cannot be decoded"),
        (object, "cannot be decoded"),
        (NDArray[np.float32], "cannot be decoded"),
        (Mapping[int, str], "cannot be the keys"),
        (Mapping[tuple[str, ...], str], "cannot be the keys"),
        (Annotated[int, Most(3)], "cannot be bounded"),
        (Annotated[tuple[int, ...] | None, Most(3)], "cannot be bounded"),
        (Annotated[str, Most], "cannot be bounded"),
        (Annotated[str, "words"], "cannot be bounded"),
        (Literal["a", 1], "one plain type"),
        (Literal[0, False], "one plain type"),
        (Literal[Colour.RED], "one plain type"),
        (Literal["a"] | str, "have the tag"),
        (tuple[int, ...] | tuple[str, ...], "have the tag"),
        (NDArray[np.uint8] | NDArray[np.int64], "have the tag"),
        (Alike | AlsoAlike, "the same fields in a contract"),
        (Alike | Namesake, "have the same name"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_read_is_the_error_of_its_author(hint, wrong):
    cls = message_of(hint, "test: declared")
    body = bytes([len(cls.kind)]) + cls.kind.encode() + bytes(4)
    with pytest.raises(TypeError, match=wrong):
        decode(body, "p", Expect(cls))


class Alias:
    """Stands for a type, as a `type` statement does from Python 3.12 on, and numpy's NDArray."""

    def __init__(self, value):
        self.__value__ = value

    def __getitem__(self, item):
        return types.GenericAlias(self, item)


def test_an_alias_is_read_as_the_type_for_which_it_stands():
    arrays = Alias(np.ndarray[Any, np.dtype[T]])
    nested = Alias(tuple[Alias(float), ...])
    for hint, fits, other in (
        (arrays[np.uint32], np.zeros(2, np.uint32), np.zeros(2)),
        (Alias(arrays[np.int64]), np.zeros(2, np.int64), np.zeros(2, np.uint32)),
        (tuple[nested, ...], ((1, 0.5),), ((True,),)),
    ):
        cls = message_of(hint, "test: aliases")
        found = decode(encode(cls(fits)), "p", Expect(cls)).value
        assert np.array_equal(found, fits) and encode(cls(found)) == encode(cls(fits))
        with pytest.raises(MalformedMessageError, match="value is no valid value"):
            decode(encode(cls(other)), "p", Expect(cls))


# ---- fields that stay ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inner:
    """The second field stays where it is; the last one is computed."""

    name: str
    kept: tuple[int, ...] = field(default=(), metadata=wire.LOCAL)
    share: float = 0.5
    free: int = field(default=0, metadata=wire.FREE)
    length: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "length", len(self.name))


@dataclass(frozen=True, slots=True)
class Outer(Message):
    kind: ClassVar[str] = "test: outer"
    number: int = field(metadata=wire.FREE)
    inner: Inner
    by_name: str = field(kw_only=True)
    last: tuple[Inner, ...]
    secret: tuple[int, ...] = field(default=(), kw_only=True, metadata=wire.LOCAL)


OUTER = Outer(
    7, Inner("a", (1, 2), 1, 3), (Inner("bc", (4,), 0.25, 5),), by_name="n", secret=(6, 7, 8)
)


def test_local_and_computed_fields_do_not_travel():
    body = encode(OUTER)
    found = decode(body, "p", Expect(Outer))
    assert found == Outer(7, Inner("a", (), 1.0, 3), (Inner("bc", (), 0.25, 5),), by_name="n")
    assert found.inner.length == 1 and found.secret == () and encode(found) == body


@dataclass(frozen=True)
class ByName:
    first: int = field(kw_only=True)
    second: int


def test_fields_that_are_given_by_name_come_out_as_they_went_in():
    cls = message_of(ByName, "test: by name")
    made = cls(ByName(2, first=1))
    assert decode(encode(made), "p", Expect(cls)) == made


def test_the_numbers_of_a_prediction_do_not_travel():
    assert "numbers" not in parts_of(Predict) and {"odds", "rows"} < set(parts_of(Predict))


# ---- constructors --------------------------------------------------------------------------------

BUILT = []


@dataclass(frozen=True, slots=True)
class Guarded:
    value: int

    def __post_init__(self):
        errors = [ValueError, TypeError, ZeroDivisionError, KeyError, AttributeError, OSError]
        if self.value < len(errors):
            raise errors[self.value]("x" * 2000 + "\x1b")
        BUILT.append(self)


@dataclass(frozen=True, slots=True)
class Guards(Message):
    kind: ClassVar[str] = "test: guards"
    values: tuple[tuple[Guarded, ...], ...]

    def __post_init__(self):
        if not self.values:
            raise ValueError("no values")
        BUILT.append(self)


@pytest.mark.parametrize("refused", range(6))
def test_what_a_constructor_refuses_is_not_built_and_names_the_sender(refused):
    body = encode(forged(Guards(((Guarded(7),),)), values=((forged(Guarded(7), value=refused),),)))
    BUILT.clear()
    with pytest.raises(
        MalformedMessageError, match=r"values is no valid value: Guarded: "
    ) as caught:
        decode(body, "liar", Expect(Guards))
    assert caught.value.party == "liar" and not BUILT
    assert len(caught.value.reason) < 600 and caught.value.reason.isprintable()


def test_a_message_that_its_constructor_refuses_is_malformed():
    with pytest.raises(MalformedMessageError, match="Guards: no values"):
        decode(encode(forged(Guards(((),)), values=())), "liar", Expect(Guards))


# ---- what a contract has -------------------------------------------------------------------------


def test_a_contract_has_no_free_and_no_local_fields_at_any_depth():
    inner = {"name": "a", "share": 1.0}
    last = [{"name": "bc", "share": 0.25}]
    assert declared_of(OUTER) == {"inner": inner, "by_name": "n", "last": last}


@dataclass(frozen=True)
class Numbers:
    one: float
    perhaps: float | None
    row: tuple[float, ...]
    pair: tuple[float, int]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    mapping: Mapping[str, float]
    bounded: Annotated[tuple[float, ...], Most(2)]
    either: float | int


WHOLE = Numbers(1, 1, (1, 2), (1, 1), (("a", (3,)),), {"a": 4}, (5,), 1)
REAL = Numbers(1.0, 1.0, (1.0, 2.0), (1.0, 1), (("a", (3.0,)),), {"a": 4.0}, (5.0,), 1)


def test_equal_objects_have_equal_bytes_and_an_equal_digest():
    cls = message_of(Numbers, "test: numbers")
    assert WHOLE == REAL and encode(cls(WHOLE)) == encode(cls(REAL))
    assert canonical_json(declared_of(WHOLE)) == canonical_json(declared_of(REAL))
    assert difference(declared_of(WHOLE), declared_of(REAL)) is None
    found = decode(encode(cls(WHOLE)), "p", Expect(cls)).value
    kinds = found.one, found.perhaps, *found.row, *found.pair, found.mapping["a"], found.either
    assert list(map(type, kinds)) == [float, float, float, float, float, int, float, int]


def test_values_are_json_in_one_form():
    arrays = np.array([1, 2], np.int64), np.array([1.0, 2.0]), np.array([np.nan])
    declared = [["<i8", [1, 2]], ["<f8", [1.0, 2.0]], ["<f8", ["nan"]]]
    assert declared_of(arrays) == declared
    assert declared_of((b"\x0f", None, True, float("-inf"))) == ["0f", None, True, "-inf"]
    assert declared_of({"b": Rows(1), "a": 2}) == [
        ["b", {"seed": 1, "first": 0, "last": None}],
        ["a", 2],
    ]
    canonical_json(declared_of(OUTER))


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"a": {"b": 1, "c": [1, 2]}, "d": None}, None),
        ({"a": {"b": 2, "c": [1, 2]}, "d": None}, "a.b"),
        ({"a": {"b": 1.0, "c": [1, 2]}, "d": None}, "a.b"),
        ({"a": {"b": True, "c": [1, 2]}, "d": None}, "a.b"),
        ({"a": {"b": 1, "c": [2, 1]}, "d": None}, "a.c"),
        ({"a": {"b": 1}, "d": None}, "a.c"),
        ({"a": {"b": 1, "c": [1, 2], "e": 0}, "d": None}, "a.e"),
        ({"a": None, "d": None}, "a"),
        ({"a": {"b": 1, "c": [1, 2]}, "d": 0}, "d"),
        ({"a": {"b": 2, "c": [1, 2]}, "d": 0}, "a.b"),
        ({"a": {"b": 1, "c": [1, 2]}}, "d"),
    ],
)
def test_a_difference_is_named_by_its_path(asked, name):
    assert difference({"a": {"b": 1, "c": [1, 2]}, "d": None}, asked) == name


def test_a_difference_of_queries_is_named():
    changed = Outer(9, Inner("a", (), 0.75, 4), OUTER.last, by_name="n")
    assert difference(declared_of(OUTER), declared_of(changed)) == "inner.share"
    assert declared_of(Variable("a", ("x",))) != declared_of(Variable("a", ("x",), missing=True))
