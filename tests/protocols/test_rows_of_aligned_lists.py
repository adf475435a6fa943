"""Lists of different people are aligned: their columns are learned from as if they were pooled."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.listed import DIGITS, Listed, counted, opened
from tests.protocols.small import seeded
from vertibayes_mpc.commitments import BLOCK_ROWS
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family

RULE = Rule("cut", fewest=3)


def test_sites_that_have_the_same_columns_of_different_people_are_pooled():
    lists = {"a": range(1, 41), "b": range(41, 71), "c": range(71, 121)}
    listed = Listed(dict.fromkeys("abc", "xy"), lists)
    study = opened(listed.federate())
    assert study.study.records == 120 and study.study.holders["x"] == ("a", "b", "c")
    assert np.array_equal(counted(study, "x", "y"), listed.table("x", "y", people=range(1, 121)))


def test_a_site_with_too_few_people_of_its_own_refuses():
    """A table of both sites less the rows of the other would be of its twenty people."""
    listed = Listed({"a": "xy", "b": "xy"}, {"a": range(1, 51), "b": range(51, 71)})
    federation = listed.federate(policy=replace(FREE, fewest_records=21))
    study = opened(federation, replace(DIGITS, fewest=21))
    with pytest.raises(QueryRefusedError, match=r"b refuses: .* fewer than 21"):
        counted(study, "x", "y")


def steps(study):
    """Choose a parent of y and of z, then release the three families."""
    sets = tuple(
        ((), (Score(Family(child, (parent,))), Score(Family(child), (parent,), -1)))
        for child, parent in (("y", "x"), ("z", "y"))
    )
    y, z = yield Choices(sets)
    families = Family("x"), Family("y", ("x",)[:y]), Family("z", ("y",)[:z])
    yield FamilyTables(families, False, RULE)


def test_an_approved_study_runs_over_rows_of_several_sites():
    """Everybody at a; x and y of some of them at b, of others at c, of ten at neither."""
    lists = {"a": range(1, 101), "b": range(1, 41), "c": range(41, 91)}
    listed = Listed({"a": "z", "b": "xy", "c": "xy"}, lists, everybody=100)
    federation = seeded(listed.data, policy=Policy())
    keys = federation.session.role.public_keys
    sizes = tuple((site, len(list(own))) for site, own in lists.items())
    contract = Contract(
        sites=tuple((site, keys[site]) for site in federation.sites),
        dealer=(DEALER, keys[DEALER]),
        analyst=(ANALYST, federation.session.role.keys.public),
        variables=("x", "y", "z"),
        learner="a test",
        options={},
        rule=RULE,
        memory=1 << 24,
        alignment=Alignment(1, ("digits",), sizes, ("a",), (("b", "c"),)),
    )
    approved = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", steps)}
    for role in federation.roles.values():
        role.approvals = approved.get
    study = open_approved(federation.session, contract, bytes(16))
    assert study.study.block_rows == BLOCK_ROWS
    learner = steps(study.study)
    tables = study.release(families := learner.send(study.choose(next(learner))))
    for family, table in zip(families.families, tables, strict=True):
        people = range(1, 101) if family.members == ("z",) else range(1, 91)
        true = listed.table(*family.members, people=people)
        assert np.array_equal(table, np.where(true < RULE.fewest, 0, true))
