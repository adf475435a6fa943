"""What parties refuse, charge and note for a query of each kind is what the golden record has.

The names of what is broken are in `tests/protocols/golden/breaks.py`, the queries in
`tests/protocols/golden/queries.py`. `python -m tests.protocols.golden.make` writes the record.
"""

from dataclasses import fields
from unittest.mock import patch

import pytest

from tests.protocols.golden.breaks import OF_POLICY
from tests.protocols.golden.make import CASES, recorded, write
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import CONVERSATIONS
from vertibayes_protocols.storage.memory import SiteMemory

RECORDED = recorded()


@pytest.mark.parametrize("case", CASES)
def test_parties_refuse_charge_and_note_what_is_recorded(case):
    assert CASES[case]() == RECORDED[case]


def test_the_record_has_every_case_every_kind_and_every_rule():
    assert set(RECORDED) == set(CASES)
    kinds = {kind.kind for kind in CONVERSATIONS}
    assert {kind for kind in kinds if f"first look: {kind}" not in CASES} == set()
    rules = {rule.name for rule in fields(Policy)} - {"most_sessions"}
    assert rules <= set(OF_POLICY)
    said = {name for case in RECORDED for name in words_of(case)}
    assert rules <= said


def words_of(case):
    """Return the names of what parties refuse in a case, at the first look."""
    entry = RECORDED[case]
    looks = [entry, entry.get("first look")] if isinstance(entry, dict) else []
    looks = [each for each in looks if isinstance(each, dict)]
    orders = [order for look in looks for order in look.get("order", {}).values()]
    return {name for order in orders for name in order.split(" > ")}


# ---- negative controls ---------------------------------------------------------------------------

IGNORED = {
    "check_shown": "sums",
    "check_tables": "tables",
    "check_planned": "tables",
    "check_stored": "commit",
    "check_released": "score table",
    "check_exact": "sums",
    "check_neighbours": "consensus",
    "check_exposed": "consensus",
    "check_budget": "report",
    "check_dishonest": "sums",
    "check_records": "choose",
}


@pytest.mark.parametrize(("check", "query"), IGNORED.items())
def test_parties_that_ignore_a_rule_are_found(check, query):
    with patch.object(Policy, check, lambda *_: None):
        assert CASES[f"first look: {query}"]() != RECORDED[f"first look: {query}"]


CHARGES = {
    "charge": "report",
    "sum": "updates",
    "score": "predict",
    "give": "score table",
    "release": "tables",
    "answer": "tables",
}


@pytest.mark.parametrize(("method", "query"), CHARGES.items())
def test_a_memory_that_forgets_what_was_charged_is_found(method, query):
    with patch.object(SiteMemory, method, lambda *_, **__: None):
        assert CASES[f"answered: {query}"]() != RECORDED[f"answered: {query}"]


# ---- the file ------------------------------------------------------------------------------------


def test_entries_are_added_and_are_changed_only_on_purpose(tmp_path):
    path = tmp_path / "record.json"
    write({"a": 1}, path)
    write({"a": 1, "b": 2}, path)
    for other in ({"a": 1, "b": 3}, {"a": 1}):
        with pytest.raises(ValueError, match="other than recorded: b"):
            write(other, path)
    write({"a": 1, "b": 3}, path, replace=True)
    assert recorded(path) == {"a": 1, "b": 3}
