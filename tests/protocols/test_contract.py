"""Contracts: one digest for one content, and strict reading."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import pytest

from vertibayes_mpc.rounds import Expect, Message
from vertibayes_protocols import wire
from vertibayes_protocols.contract import MOST_RUNS, Contract, grouped_digest
from vertibayes_protocols.release import Rule


def key(number):
    return bytes([number]) * 32


CONTRACT = Contract(
    sites=(("clinic", key(1)), ("hospital", key(2))),
    dealer=("dealer", key(3)),
    analyst=("analyst", key(4)),
    variables=("age", "blood préssure"),
    learner="bayesian_network",
    options={"learning": {"max_parents": 3, "pseudo_count": 0.5, "ordering": None}},
    rule=Rule("cut", fewest=10, dishonest=0.0),
)


def test_the_digest_is_of_canonical_json():
    text = CONTRACT.canonical.decode("ascii")
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert CONTRACT.digest.hex() == (
        "78fcaa17e2a379eb89481451dbff33731c2b23cadfb48780d037d7ce16a3bb7d"
    ), "another digest of the same content would void all approvals: raise FORMAT"
    assert grouped_digest(CONTRACT.digest).split()[:2] == ["78fc", "aa17"]


def test_a_contract_is_read_as_it_was_written():
    again = Contract.from_json(json.loads(CONTRACT.canonical))
    assert again == CONTRACT and again.digest == CONTRACT.digest
    plain = replace(CONTRACT, rule=None, runs=3)
    assert Contract.from_json(json.loads(plain.canonical)) == plain


@pytest.mark.parametrize(
    "changes",
    [
        {"sites": CONTRACT.sites[::-1]},
        {"sites": (("clinic", key(1)), ("hospital", key(9)))},
        {"dealer": ("other", key(3))},
        {"analyst": ("analyst", key(5))},
        {"variables": CONTRACT.variables[::-1]},
        {"learner": "naive_bayes"},
        {"options": {"learning": {"max_parents": 2, "pseudo_count": 0.5, "ordering": None}}},
        {"rule": Rule("cut", fewest=9)},
        {"rule": Rule("exact")},
        {"runs": 2},
        {"memory": 1},
    ],
)
def test_every_part_is_in_the_digest(changes):
    assert replace(CONTRACT, **changes).digest != CONTRACT.digest


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sites": ()}, "no sites"),
        ({"sites": (("dealer", key(1)),)}, "two parties"),
        ({"sites": (("clinic", key(3)),)}, "two keys"),
        ({"variables": ()}, "1 to 65000 variables"),
        ({"variables": ("a", "a")}, "two variables"),
        ({"variables": ("",)}, "1 to 1000 characters"),
        ({"runs": 0}, "`runs` must be"),
        ({"runs": MOST_RUNS + 1}, "`runs` must be"),
        ({"memory": 0}, "`memory` must be"),
    ],
)
def test_values_out_of_their_bounds_are_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        replace(CONTRACT, **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 2}, "the format of the contract is 2"),
        ({"format": True}, "must be a whole number, got True"),
        ({"more": 1}, "'more' of a contract is unknown"),
        ({"runs": "1"}, "must be a whole number, got '1'"),
        ({"runs": True}, "must be a whole number, got True"),
        ({"variables": [1]}, "must be texts"),
        ({"rule": {"kind": "cut"}}, "'delta' of a rule is missing"),
        ({"sites": [{"name": "a"}]}, "'public_key' of a .* is missing"),
        ({"dealer": {"name": "dealer", "public_key": "vb1:"}}, "typing error"),
        ({"options": []}, "must be an object, got"),
    ],
)
def test_other_json_is_refused(changes, reason):
    content = {**json.loads(CONTRACT.canonical), **changes}
    with pytest.raises(ValueError, match=reason):
        Contract.from_json(content)
    with pytest.raises(ValueError, match="must be a JSON object"):
        Contract.from_json([content])
    with pytest.raises(ValueError, match="'analyst' of a contract is missing"):
        Contract.from_json({})


class Plain(NamedTuple):
    columns: tuple[str, ...]


class Other(NamedTuple):
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Either(Message):
    kind: ClassVar[str] = "either of two"
    of: Plain | Other


def test_no_field_has_two_types_that_a_contract_could_not_tell_apart():
    """Their JSON has fields and no names of types."""
    body = wire.encode(Either(Plain(("z",))))
    with pytest.raises(TypeError, match="the same fields in a contract"):
        wire.decode(body, "analyst", Expect(Either))
