"""Queries that an analyst makes by hand: what no owner approved, and what would stop a party.

A dealer has no owner's gate: whatever a pinned analyst sends is read, planned and considered there.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import committed, costing, data_of, received, refusal, seeded, study_of
from vertibayes_mpc.commitments import Operand
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.calibration.agreed import Calibration, ClassifierSpec
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.local_reports import ReportPlan
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import (
    Align,
    Begin,
    Commit,
    Consensus,
    Describe,
    Meet,
    Report,
    Scores,
)
from vertibayes_protocols.queries.calibration import consensus
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.declared_run import declare
from vertibayes_protocols.queries.tables.tables import Tables, ask_tables
from vertibayes_protocols.query import At
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import REASON_BYTES
from vertibayes_protocols.site import hidden_rows
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows, Variable

DATA = data_of(a="x", b="y", c="z")
AT_DEALER = At(DEALER, ANALYST, DEALER, None, 1)


# ---- what no owner approved ----------------------------------------------------------------------


def test_a_party_that_is_not_asked_charges_and_notes_nothing():
    """Its ledger would list tables of which it shows no column, and a record set would be used."""
    federation, _ = committed(DATA)
    query, _ = ask_tables(federation.session.role.joined, [Family("x", ("y",))], False, Rows())
    consider(federation.roles["a"], query)
    with pytest.raises(QueryRefusedError, match="does not ask this party"):
        consider(federation.roles["c"], query)


def test_the_analyst_notes_tables_of_a_query_that_broke(monkeypatch):
    """It may have read some of them: whoever reads the ledger must see that they were asked."""

    def breaks(query, analyst, plan):
        raise ProtocolError("b", "its answer is malformed")
        yield

    federation, _ = committed(DATA)
    query, _ = ask_tables(federation.session.role.joined, [Family("x", ("y",))], False, Rows())
    before = federation.session.role.ledger.cells
    monkeypatch.setattr(Tables, "run_analyst", breaks)
    with pytest.raises(ProtocolError, match="malformed"):
        federation.session.ask(query)
    assert federation.session.role.ledger.cells > before


@pytest.mark.parametrize("free", [True, False])
def test_a_contract_that_declares_tables_opens_none_that_have_no_rule(free):
    """`vertibayes approve` has no words for them: an owner would approve what is not printed."""
    federation = seeded(DATA, policy=replace(ALLOW_ALL, free_tables=free))
    role, study = federation.session.role, study_of(DATA)
    tables = Tables(
        (*"abc", DEALER), b"", 1, tuple("xyz"), (np.array([0, 1], np.uint32),),
        (np.array([2], np.uint32),), False, Rows(),
    )  # fmt: skip
    opening = Meet.of(role, federation.sites, DEALER), Describe(federation.sites), Commit.of(study)
    contract = Contract(
        sites=tuple((site, role.public_keys[site]) for site in federation.sites),
        dealer=(DEALER, role.public_keys[DEALER]),
        analyst=(ANALYST, role.keys.public),
        variables=tuple("xyz"),
        learner="tables",
        options={},
        rule=None,
        queries=tuple(map(declare, (*opening, tables))),
    )
    for site in federation.roles.values():
        site.approvals = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", None)}.get
    federation.session.ask(Begin.of(contract))
    joined = open_study(federation.session, federation.sites, DEALER).joined
    query = replace(tables, study=joined.study.id)
    if free:
        assert federation.session.ask(query)[0].sum() == 40
    else:
        reason = "exact tables without a rule are not allowed: its policy sets no free_tables"
        assert refusal(federation, query) == reason


def test_a_run_that_ends_without_any_cost_is_used_up_on_disk(tmp_path):
    memory = SiteMemory(tmp_path / "memory")
    memory.apply(costing(), b"contract", ends_run=True)
    memory.close()
    assert SiteMemory.read(tmp_path / "memory").runs.count(b"contract") == (0, 1)


# ---- what would stop a party ---------------------------------------------------------------------


def wide_tables(study, names, prefix):
    """Return a query for a group of tables of `prefix` variables and one more each."""
    places = np.arange(len(names), dtype=np.uint32)
    asks = *study.sites, DEALER
    return Tables(
        asks, study.id, 1, names, (places[:prefix],), (places[prefix:],), False, Rows()
    )  # fmt: skip


def test_tables_of_many_variables_are_refused_before_they_are_listed():
    """Each of the tables has the names of all others: a frame of 1 MB would take 20 GB."""
    names = [f"v{number}" for number in range(2000)]
    variables = {name: Variable(name, ("no", "yes")) for name in names}
    held = dict.fromkeys(names, ("a", "b"))
    study = Study(b"study", variables, held, 40, DEALER, 16, 1 << 20)
    federation, _ = committed(DATA)
    role = federation.roles["a"]
    role.joined = replace(role.joined, study=study)
    query = received(wide_tables(study, tuple(names), 1000))
    tracemalloc.start()
    try:
        with pytest.raises(QueryRefusedError, match="a table of 1001 variables, at most"):
            consider(role, query)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000  # 8 MB of names otherwise
    finally:
        tracemalloc.stop()


def test_a_variable_is_named_once():
    """Otherwise a group has more members than the study has variables."""
    federation, _ = committed(DATA)
    study = federation.session.role.joined.study
    with pytest.raises(ValueError, match="names a variable twice"):
        wide_tables(study, ("x",) * 10, 5)


def test_the_columns_of_an_alignment_are_listed_once(monkeypatch):
    """They were listed once for each column: a frame of 1 MB took hours of a dealer."""
    made = []
    monkeypatch.setattr(hidden_rows, "Operand", lambda *args: made.append(args) or Operand(*args))
    names = [f"v{number}" for number in range(100)]
    variables = {name: Variable(name, ("no", "yes")) for name in names}
    carried = CarriedColumns(variables, dict.fromkeys(names, "a"), 7, 40)
    alignment = Alignment(2, ("exact",), (("a", 40), ("b", 40)), ("a", "b"))
    asks = "a", "b", DEALER
    query = Align(asks, b"study", bytes(16), DEALER, (bytes(32),) * 3, alignment, carried)
    effects = query.effects(query.plan(AT_DEALER), AT_DEALER)
    assert all(planned.stored for planned in [*effects.takes]) and [*effects.takes]
    assert len(made) == len(names)


def test_products_of_long_numbers_are_refused_before_they_are_multiplied():
    """A few thousand sites and features gave a number of billions of bits."""
    names, sites = [f"v{number}" for number in range(12_000)], 3000
    features = {name: Variable(name, ("no", "yes")) for name in names}
    held = {f"s{place:04}": (names[place],) for place in range(sites - 1)}
    held["t"] = tuple(names[sites - 1 :])
    split = Split(Variable("class", ("no", "yes")), features, held, (2**62, 2**62))
    totals = dict.fromkeys(names, (1, 1))
    query = Scores((*split.sites, DEALER), b"study", split, "product", 2048, totals, 0, 1)
    with pytest.raises(ValueError, match="counts from 1 to 2\\*\\*567063 or more must be at most"):
        query.plan(AT_DEALER)


def test_who_sees_what_of_a_calibration_is_found_out_when_it_is_noted(monkeypatch):
    """It takes the third power of the nodes: a policy that forbids exact sums comes first."""

    def found(*_):
        raise AssertionError

    monkeypatch.setattr(consensus, "facts_of_site", found)
    spec = ClassifierSpec("x", {n: Variable(n, ("no", "yes")) for n in "xy"}, {})
    network = Graph.of("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    federation = seeded(DATA, policy=replace(ALLOW_ALL, exact_sums=False))
    number, key = federation.session.role.next_number(), federation.session.role.keys.public
    agreed = Calibration(spec, network, 40)
    query = Consensus(tuple("abc"), number, key, number, agreed, None, (), (), 1, 1, 0, True)
    with pytest.raises(QueryRefusedError, match="sums without noise are not allowed"):
        consider(federation.roles["a"], query)


def test_bins_of_all_numbers_together_are_few_enough_to_be_named():
    numbers = {f"v{number}": Numeric(f"v{number}", 0.0, 1.0) for number in range(20)}
    schema = Schema(Variable("class", ("no", "yes")), numbers)
    Report(("a", "b"), ReportPlan(schema=schema, eps=1.0, bins=50_000), 10)
    with pytest.raises(ValueError, match="have 1,200,000 bins, at most 1,000,000 are allowed"):
        Report(("a", "b"), ReportPlan(schema=schema, eps=1.0, bins=60_000), 10)


def test_the_ledger_has_as_much_of_a_refusal_as_the_analyst_reads(monkeypatch):
    """A name of megabytes that is not in the study was written to the site's disk at each query."""
    federation, _ = committed(DATA)
    noted: list[str] = []
    monkeypatch.setattr(Ledger, "refuse", lambda _, kind, reason, detail: noted.append(reason))
    query, _ = ask_tables(federation.session.role.joined, [Family("x", ("y",))], False, Rows())
    reason = refusal(federation, replace(query, variables=("x", "y" * 1_000_000)))
    assert len(reason) == REASON_BYTES and {*noted} == {reason}
