"""What parties refuse, charge and note for a query of each kind is what the golden record has.

The record was made before an engine took over what each kind did by hand. Names of rules are in
`tests/protocols/golden/breaks.py`, the queries in `tests/protocols/golden/queries.py`.
"""

from dataclasses import fields

import pytest

from tests.protocols.golden.breaks import OF_POLICY
from tests.protocols.golden.make import CASES, recorded, write
from tests.protocols.golden.queries import QUERIES
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import CONVERSATIONS

RECORDED = recorded()


@pytest.mark.parametrize("case", CASES)
def test_parties_refuse_charge_and_note_what_is_recorded(case):
    assert CASES[case]() == RECORDED[case]


def test_no_case_is_lost():
    assert set(RECORDED) == set(CASES)


def test_every_kind_and_every_rule_has_cases():
    kinds = {kind.kind for kind in CONVERSATIONS}
    assert kinds == {name for kind in kinds for name in QUERIES if name.startswith(kind)} | {"x"}
