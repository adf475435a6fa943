"""A contract can declare a prediction: its numbers by their digest, once, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.protocols.small import refusal, seeded, study_of
from tests.protocols.test_predict import DATA, odds, predict, values
from tests.protocols.test_predict import opened as opened_freely
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Begin, Commit, Describe, Meet, Predict
from vertibayes_protocols.queries.declared_run import declare, declare_opening
from vertibayes_protocols.variables import Rows

APPROVED = odds("xz", "w")


def contract_of(federation):
    """Return the contract of one prediction over all records."""
    role = federation.session.role
    _, free = opened_freely()
    queries = (
        Meet.of(role, federation.sites, DEALER),
        Describe(federation.sites),
        Commit.of(study_of(DATA)),
        Predict.of(free.joined, APPROVED, Rows()),
    )
    keys = role.public_keys
    return Contract(
        sites=tuple((site, keys[site]) for site in federation.sites),
        dealer=(DEALER, keys[DEALER]),
        analyst=(ANALYST, role.keys.public),
        variables=tuple("xyzw"),
        learner="prediction",
        options={},
        rule=None,
        queries=tuple(map(declare, queries)),
    )


def begun():
    """Begin a run at sites whose owners have approved one prediction."""
    federation = seeded(DATA, policy=replace(ALLOW_ALL, free_tables=False, most_scores=100))
    contract = contract_of(federation)
    for role in federation.roles.values():
        role.approvals = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", None)}.get
    federation.session.ask(Begin.of(contract))
    return federation, contract


@pytest.fixture
def approved():
    """Return a study of sites whose owners have approved one prediction."""
    federation, contract = begun()
    return federation, open_study(federation.session, federation.sites, DEALER), contract


def test_an_approved_prediction_runs_once(approved):
    federation, study, contract = approved
    expected = values(*"xz") + values("w")
    assert predict(study, APPROVED)[:, 0].tolist() == expected.tolist()
    query = Predict.of(study.joined, APPROVED, Rows())
    assert "no further query of the kind 'predict'" in refusal(federation, query)
    assert federation.roles["a"].memory.runs.count(contract.digest) == (1, 1)
    assert federation.roles["a"].memory.scored == 40


@pytest.mark.parametrize(
    ("changed", "rows", "field"),
    [
        (odds("xz", "y"), Rows(), "tables"),
        (odds("xz", "w", target="s"), Rows(), "target"),
        (odds("xz", "w", bits=1), Rows(), "fraction_bits"),
        (APPROVED, Rows(0, 0, 20), "last"),
        (replace(odds("xz", "w"), tables=odds("xz", "w").tables[::-1]), Rows(), "tables"),
    ],
)
def test_another_prediction_is_refused(approved, changed, rows, field):
    federation, study, _ = approved
    reason = refusal(federation, Predict.of(study.joined, changed, rows))
    assert f"{field} of 'predict' is not that of the contract" in reason


def test_the_alignment_of_a_contract_is_not_passed_over():
    federation = seeded(DATA, policy=replace(ALLOW_ALL, free_tables=False, most_scores=100))
    sizes = tuple((site, 40) for site in federation.sites)
    alignment = Alignment(2, ("exact",), sizes, federation.sites)
    opening = declare_opening(DEALER, alignment)
    contract = contract_of(federation)
    contract = replace(contract, alignment=alignment, queries=(*opening, contract.queries[-1]))
    for role in federation.roles.values():
        role.approvals = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", None)}.get
    federation.session.ask(Begin.of(contract))
    query = Meet.of(federation.session.role, federation.sites, DEALER)
    assert "the contract has an alignment before 'meet'" in refusal(federation, query)
    query = Commit.of(study_of(DATA))
    assert "the contract has an alignment before 'commit'" in refusal(federation, query)


def test_a_contract_that_does_not_declare_its_alignment_as_a_query_needs_it():
    federation = seeded(DATA, policy=replace(ALLOW_ALL, free_tables=False, most_scores=100))
    sizes = tuple((site, 40) for site in federation.sites)
    contract = contract_of(federation)
    contract = replace(contract, alignment=Alignment(2, ("exact",), sizes, federation.sites))
    for role in federation.roles.values():
        role.approvals = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", None)}.get
    federation.session.ask(Begin.of(contract))
    query = Commit.of(study_of(DATA))
    assert "are not aligned: align them first" in refusal(federation, query)
    query = Predict.of(opened_freely()[1].joined, APPROVED, Rows())  # and every later query
    assert "are not aligned: align them first" in refusal(federation, query)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"most_indicators": 127}, "most_indicators of 'commit' is not that of the contract"),
        ({"dealer": "zoe"}, "dealer of 'commit' is not that of the contract"),
        ({"variables": "v", "holders": "v"}, "names variables that the contract does not have"),
    ],
)
def test_another_study_than_the_contracts_is_not_committed(changes, reason):
    federation, _ = begun()
    study = study_of(DATA)
    if "variables" in changes:
        variables = {**study.variables, "v": replace(study.variables["x"], name="v")}
        changes = {"variables": variables, "holders": {**study.holders, "v": study.holders["x"]}}
    query = replace(Commit.of(study), study=replace(study, **changes))
    assert reason in refusal(federation, query)


def test_other_numbers_are_refused(approved):
    federation, study, _ = approved
    query = Predict.of(study.joined, APPROVED, Rows())
    query = replace(query, odds=replace(query.odds, digest=bytes(32)))
    assert "digest of 'predict' is not that of the contract" in refusal(federation, query)
