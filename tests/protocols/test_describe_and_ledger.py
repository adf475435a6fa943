import pytest

from tests.protocols.small import (
    committed,
    count,
    data_of,
    packets,
    sealed,
    seeded,
)
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Describe, Description
from vertibayes_protocols.variables import Rows

DATA = data_of(a="xy", b="z", c="w")


def test_describe_shows_the_policys_variables_alone():
    federation = seeded(DATA, policy=Policy(variables=["y", "z"], free_tables=True))
    found = federation.session.ask(Describe(("a", "b", "c")))
    assert {site: list(described.named()) for site, described in found.items()} == {
        "a": ["y"],
        "b": ["z"],
        "c": [],
    }
    assert found["a"].named()["y"] == DATA["a"].variables["y"]
    assert {described.records for described in found.values()} == {40}


@pytest.mark.parametrize(
    "variables",
    [(("x", ("a", "b"), False),) * 2, (("x", ("a", "a"), False),)],
)
def test_a_description_that_contradicts_itself_names_its_site(monkeypatch, variables):
    def lie(sent, packet):
        lies = isinstance(sent.message, Description)
        return sealed(packet, Description(40, 8, 1 << 20, variables)) if lies else packet

    with packets(monkeypatch, lie):
        federation = seeded(DATA)
    with pytest.raises(MalformedMessageError, match="twice") as caught:
        federation.session.ask(Describe(("b",)))
    assert caught.value.party == "b"


def test_what_was_revealed_is_noted_by_analyst_and_sites():
    federation, study = committed(DATA)
    federation.session.ask(Describe(("a",)))
    count(federation, study, "xz", "z", rows=Rows(1, 0, 20))
    count(federation, study, "xw")
    names, asked = "record count, names and states of variables", "which tables are asked"
    xz = RevealedTable(("x", "z"), 9, "analyst", Rows(1, 0, 20))
    z = RevealedTable(("z",), 3, "analyst", Rows(1, 0, 20))
    xw = RevealedTable(("x", "w"), 9, "analyst", Rows())
    analyst = federation.session.role.ledger
    ledgers = {site: role.ledger for site, role in federation.roles.items()}
    assert analyst.tables == ledgers["a"].tables == [xz, z, xw] and analyst.cells == 21
    assert (ledgers["b"].tables, ledgers["c"].tables) == ([xz, z], [xw])
    assert ledgers["a"].facts == [
        Fact(names, "a", ("b", "c", "dealer")),
        Fact(names, "a", ("analyst",)),
    ]
    assert {fact.about for fact in analyst.facts if fact.what == names} == {"a", "b", "c"}
    told = {to for fact in analyst.facts if fact.what.startswith(asked) for to in fact.to}
    assert told == {"a", "b", "c", "dealer"}
    assert analyst.as_json()["tables"][0] == {
        "variables": ["x", "z"],
        "cells": 9,
        "to": "analyst",
        "rows": {"seed": 1, "first": 0, "last": 20},
    }
    assert "rows" not in analyst.as_json()["tables"][2]


def test_a_fact_is_noted_once():
    federation = seeded(DATA)
    for _ in range(2):
        federation.session.ask(Describe(("a",)))
    for ledger in (federation.session.role.ledger, federation.roles["a"].ledger):
        assert len(ledger.facts) == len(ledger.as_json()["revealed"]) == 1
