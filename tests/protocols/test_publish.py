"""Tables that sites publish with noise: what sites refuse, what they charge, who is blamed."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import noisy, packets, received, refusal, sealed
from tests.vertibayes.test_vdpnb import sites_of, world
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, federate
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Publish
from vertibayes_protocols.queries.columns.publish import PublishedTables, RecordNoise
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Rows, Variable

SPLIT, POOLED = world(n=40)  # site-0: x0, of 3 states; site-1: x1 of 2 and x2 of 4; 3 classes
QUERY = Publish.of(SPLIT, RecordNoise(0.6))  # 0.2 a count


def sites(data=None, **policy):
    return federate(data or sites_of(SPLIT, POOLED, "y"), policy=replace(ALLOW_ALL, **policy))


ELSEWHERE = {"site-0": ("x0", "x1"), "other": ("x2",)}
RENAMED = {"x0": SPLIT.features["x0"], "x1": SPLIT.features["x1"], "q": Variable("q", ("a", "b"))}
OTHER_STATES = {**SPLIT.features, "x1": Variable("x1", ("a", "b"))}
REFUSED = {
    "it holds none of the features": {"holders": ELSEWHERE},
    "other counts of classes than the public": {"class_counts": (9, 9, 22)},
    "no 'y' in the declared states": {"target": Variable("y", ("s0", "s1", "sx"))},
    "no 'x1' in the declared states": {"features": OTHER_STATES},
    "no 'q' in the declared states": {
        "features": RENAMED, "holders": {"site-0": ("x0",), "site-1": ("x1", "q")},
    },
}  # fmt: skip


def refused(query):
    with sites() as federation, pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["site-1"], query)
    assert caught.value.site == "site-1"
    return caught.value.reason


@pytest.mark.parametrize(("reason", "changes"), REFUSED.items())
def test_a_split_that_is_not_that_of_the_site_is_refused(reason, changes):
    assert reason in refused(replace(QUERY, split=replace(SPLIT, **changes)))


@pytest.mark.parametrize("eps", [0.0, -1.0, np.nan, np.inf])
def test_an_eps_that_cannot_be_is_refused(eps):
    reason = f"eps must be a finite number above 0, got {eps}"
    assert reason in refused(replace(QUERY, eps=eps))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"holders": {"site-1": ("x0", "x1", "x2")}}, "1 sites: there must be at least two"),
        ({"holders": {"site-0": ("x0", "x1"), "site-1": ("x1", "x2")}}, "x1 is at two sites"),
        ({"holders": {"site-0": ("x0",), "site-1": ("x1", "x1", "x2")}}, "x1 is at two sites"),
        ({"class_counts": SPLIT.class_counts[:2]}, "a count of each class of y"),
        ({"features": {**SPLIT.features, "x1": Variable("x2", ("a",))}}, "x1 is named 'x2'"),
        ({"target": Variable("x0", ("a", "b"))}, "the target x0 is a feature too"),
    ],
)
def test_what_is_not_a_split_makes_no_query(changes, reason):
    with pytest.raises(ValueError, match=reason):
        replace(SPLIT, **changes)


def test_a_query_is_read_back_and_a_hostile_one_is_not():
    read = received(QUERY)
    assert read == QUERY and read.split.schema == SPLIT.schema
    forged = replace(QUERY, split=replace(SPLIT))
    object.__setattr__(forged.split, "class_counts", (1, 1))
    with pytest.raises(MalformedMessageError, match="a count of each class of y"):
        received(forged)


def test_without_opendp_there_is_no_noise(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.engine.find_spec", lambda name: None)
    with sites() as federation:
        assert "laplace noise needs OpenDP, which is not installed" in refusal(federation, QUERY)


def test_records_that_are_not_compared_with_the_other_sites_are_refused():
    ids = TextColumn.of([str(i) for i in range(40)])
    data = {site: replace(held, ids=ids) for site, held in sites_of(SPLIT, POOLED, "y").items()}
    with sites(data) as federation:
        reason = refusal(federation, QUERY)
        assert "its records are not compared with those of site-1 in this session" in reason
        for site in federation.roles.values():
            site.met = frozenset(data)
        assert len(federation.session.ask(QUERY)) == 3


def test_the_budget_is_one_for_all_releases_and_outlives_the_process(tmp_path):
    with sites(most_epsilon=1.0) as federation:
        site = federation.roles["site-1"]
        with closing(SiteMemory(tmp_path / "memory")) as site.memory:
            site.memory.apply(noisy(Cost.of(0.1)))
            federation.session.ask(QUERY)
            federation.session.ask(QUERY)
            assert "costs epsilon 0.4: 0.1 is left" in refusal(federation, QUERY)
        with closing(SiteMemory(tmp_path / "memory")) as site.memory:
            assert "costs epsilon 0.4: 0.1 is left" in refusal(federation, QUERY)
            assert site.memory.spent[:2] == (pytest.approx(0.9), 0.0)
        spent = federation.roles["site-0"].memory.spent
        assert spent[:2] == (pytest.approx(0.4), 0.0), "it holds one feature"


def test_the_ledgers_have_what_was_published():
    with sites() as federation:
        federation.session.ask(Publish.of(SPLIT, RecordNoise(300.0)))
        ledgers = federation.session.role.ledger, federation.roles["site-1"].ledger
    rule = "discrete Laplace noise, eps = 100 a count"
    opened = [
        RevealedTable((f"x{i}", "y"), cells, ANALYST, Rows(), rule)
        for i, cells in enumerate((9, 6, 12))
    ]
    assert ledgers[0].tables == opened and ledgers[1].tables == opened[1:]
    (what, about, to), budget = ledgers[1].facts
    assert what == f"counts of x1, x2 by y, with {rule}"
    assert (about, to) == ("site-1", (ANALYST,))
    spent = "all releases with noise so far cost epsilon 200 and delta 0"
    assert budget == (spent, "the records of site-1", ())


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (np.zeros(8, np.int64), "tables of 9 counts"),
        (np.zeros((3, 3), np.int64), "tables of 9 counts"),
        (np.zeros(9, np.float64), "an array of float64, expected int64"),
        (np.full(9, -1, np.int64), "a count of x0 beyond"),
        (np.full(9, 1000, np.int64), "a count of x0 beyond"),
        (np.zeros(900, np.int64), "site-0"),
    ],
)
def test_forged_tables_name_their_site(monkeypatch, forged, reason):
    def change(sent, packet):
        is_forged = isinstance(sent.message, PublishedTables) and sent.sender == "site-0"
        return sealed(packet, PublishedTables(forged)) if is_forged else packet

    with packets(monkeypatch, change), sites() as federation:
        with pytest.raises(MalformedMessageError, match=reason) as error:
            federation.session.ask(QUERY)
        assert error.value.party == "site-0"
