"""What parties refuse, charge and note for a query of each kind is what the golden record has.

The names of what is broken are in `tests/protocols/golden/breaks.py`, the queries in
`tests/protocols/golden/queries.py`. `python -m tests.protocols.golden.make` writes the record.
"""

import sys
from contextlib import ExitStack
from dataclasses import fields, replace
from unittest.mock import patch

import pytest

from tests import shown
from tests.protocols.golden.breaks import OF_POLICY
from tests.protocols.golden.make import CASES, recorded, write
from vertibayes_protocols import engine, record_checks
from vertibayes_protocols.effects import (
    ByRule,
    Effects,
    Freely,
    Later,
    RecordStatistics,
    Scored,
    Winners,
)
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.storage.memory import SiteMemory

RECORDED = recorded()


@pytest.mark.parametrize("case", CASES)
def test_parties_refuse_charge_and_note_what_is_recorded(case):
    assert CASES[case]() == RECORDED[case]


def test_the_record_has_every_case_every_kind_and_every_rule():
    assert set(RECORDED) == set(CASES)
    kinds = {kind.kind for kind in KINDS}
    assert {kind for kind in kinds if f"first look: {kind}" not in CASES} == set()
    rules = {rule.name for rule in fields(Policy)} - {"most_sessions"}
    assert rules <= set(OF_POLICY)
    said = {name for case in RECORDED for name in words_of(case)}
    assert rules <= said


def words_of(case):
    """Return the names of what parties refuse in a case, at the first look."""
    return {name for order in orders_of(case) for name in order.split(" > ")}


OF_DATA = {
    "most_row_sets", "other records", "more records than the terms", "another state in the data",
    "a column that nobody has", "other counts of classes",
}  # fmt: skip
EITHER = "fewest_records with an earlier set"  # of some records the policy refuses it, else memory
AFTER_DATA = {  # rules that are about the data themselves, or about a column as it is declared
    "commit": {"variables"},
    "consensus": {"most_memory", "fewest_records"},
    "meet": {"most_failed_meets"},
}


def data_before_policy(case, order):
    """Return which reasons that tell of data are named before a rule of the policy."""
    names, kind = order.split(" > "), case.partition(": ")[2].partition(" ")[0].strip(",")
    rules = set(OF_POLICY) - OF_DATA - {EITHER} - AFTER_DATA.get(kind, set())
    last = max((place for place, name in enumerate(names) if name in rules), default=0)
    return OF_DATA & set(names[:last])


def orders_of(case):
    entry = RECORDED[case]
    for look in (entry, entry.get("first look")) if isinstance(entry, dict) else ():
        yield from look.get("order", {}).values() if isinstance(look, dict) else ()


def test_no_reason_tells_of_data_before_policy():
    looks = [case for case in RECORDED if case.startswith("first look")]  # in runs: of contracts
    orders = [(case, order) for case in looks for order in orders_of(case)]
    assert len(orders) > 40
    assert [o for o in orders if data_before_policy(*o)] == []
    assert data_before_policy("first look: sums", "another state in the data > exact_sums")


# ---- negative controls ---------------------------------------------------------------------------


def differs(case):
    return CASES[case]() != RECORDED[case]


IGNORED = {
    "check_shown": "first look: sums",
    "check_tables": "first look: tables",
    "check_planned": "first look: tables",
    "check_stored": "first look: commit",
    "check_freely": "in a run: exact tables",
    "check_released": "first look: score table",
    "check_chosen": "side by side: choose in runs of two contracts",
    "check_scores": "first look: predict",
    "check_exact": "first look: sums",
    "check_neighbours": "first look: consensus",
    "check_exposed": "first look: consensus",
    "check_budget": "first look: report",
    "check_dishonest": "first look: sums",
    "check_records": "first look: choose",
    "check_alone": "first look: predict",
    "check_way": "first look: commit",
    "check_study_epsilon": "in a run: report",
}


def test_each_check_of_the_policy_is_ignored_once():
    assert set(IGNORED) == {name for name in vars(Policy) if name.startswith("check_")}


@pytest.mark.parametrize(("check", "case"), IGNORED.items())
def test_parties_that_ignore_a_rule_are_found(check, case):
    with patch.object(Policy, check, lambda *_, **__: None):
        assert differs(case)


def no(way):
    """Return what an engine has that ignores one way in which results leave."""
    return lambda effects: {"leaves": None} if isinstance(effects.leaves, way) else {}


def no_dishonest(effects):
    has = isinstance(effects.leaves, ByRule | RecordStatistics)
    return {"leaves": effects.leaves._replace(dishonest=None)} if has else {}


def nothing_stored(effects):
    return {"takes": Later(lambda: [planned._replace(stored=0) for planned in effects.takes])}


# Of each effect: what an engine has that ignores it, and a case in which this is seen.
UNSAID = {
    "columns": (lambda effects: {"columns": ()}, "first look: sums"),
    "tables": (lambda effects: {"tables": ()}, "first look: tables"),
    "counts": (lambda effects: {"counts": None}, "first look: choose"),
    "takes": (lambda effects: {"takes": ()}, "first look: tables"),
    "takes, stored": (nothing_stored, "first look: commit"),
    "number": (lambda effects: {"number": None}, "first look: sums"),
    "leaves, by a rule": (no(ByRule), "first look: score table"),
    "leaves, freely": (no(Freely), "answered: tables"),
    "leaves, scored": (no(Scored), "first look: predict"),
    "leaves, winners": (no(Winners), "in a run: choose"),
    "leaves, statistics": (no(RecordStatistics), "first look: report"),
    "leaves, dishonest": (no_dishonest, "first look: sums, shares of noise"),
    "leaves, exact": (no(RecordStatistics), "first look: sums"),
    "says": (lambda effects: {"says": ()}, "answered: predict"),
    "opens": (lambda effects: {"opens": ()}, "answered: tables"),
}


def test_each_effect_is_ignored_once():
    named = {"asks", *(effect.partition(",")[0] for effect in UNSAID)}
    assert named == {field.name for field in fields(Effects)}


@pytest.mark.parametrize("effect", ["asks", *UNSAID])
def test_an_engine_that_ignores_an_effect_is_found(effect):
    ignoring, case = UNSAID.get(effect, (None, "first look: tables"))
    with ExitStack() as stack:
        stack.enter_context(shown.ignored())  # it would find these too
        for kind in KINDS:
            stack.enter_context(patch.object(kind, "effects", without(kind.effects, ignoring)))
        assert differs(case)


def without(effects, ignoring):
    """Return the method `effects` without one of them; a query then asks whom it asks."""

    def fewer(query, plan, at):
        real = effects(query, plan, at)
        return replace(real, **(ignoring(real) if ignoring else {"asks": query.parties}))

    return fewer


IGNORED_BY_THE_ENGINE = {
    "_check_sizes": "first look: tables",
    "_check_budgets": "first look: report",
    "check_number": "first look: sums",
    "check_records": "first look: choose",
    "check_values": "people: values changed",
    "remember_records": "answered: tables",
    "note": "answered: predict",
}
IGNORED_OF_RECORDS = {
    "_check_size": "people: fewer after unknown people",
    "_check_set": "first look: choose",
}


@pytest.mark.parametrize(
    ("module", "check", "case"),
    [
        *((engine, check, case) for check, case in IGNORED_BY_THE_ENGINE.items()),
        *((record_checks, check, case) for check, case in IGNORED_OF_RECORDS.items()),
    ],
)
def test_an_engine_that_leaves_out_a_check_is_found(module, check, case):
    with patch.object(module, check, lambda *_: None):
        assert differs(case)


def test_an_engine_that_forgets_other_sessions_before_it_gives_is_found():
    real = engine._check_budgets

    def at_first_alone(site, effects):
        if sys._getframe(1).f_code.co_name == "consider":
            real(site, effects)

    with patch.object(engine, "_check_budgets", at_first_alone):
        assert differs("side by side, late: most_epsilon, release, laplace")


CHARGES = {
    "number": "answered: updates",
    "leaves, by a rule": "answered: score table",
    "leaves, freely": "answered: tables",
    "leaves, scored": "answered: predict",
    "leaves, winners": "in a run: choose",
    "leaves, statistics": "answered: report",
}


@pytest.mark.parametrize(("effect", "case"), CHARGES.items())
def test_a_memory_that_forgets_what_is_charged_is_found(effect, case):
    real, (ignoring, _) = SiteMemory.apply, UNSAID[effect]

    def forgetful(memory, effects, *contract, **ends):
        real(memory, replace(effects, **ignoring(effects)), *contract, **ends)

    with patch.object(SiteMemory, "apply", forgetful):
        assert differs(case)


def test_a_memory_that_forgets_that_a_run_ended_is_found():
    real = SiteMemory.apply
    with patch.object(SiteMemory, "apply", lambda *args, ends_run: real(*args, ends_run=False)):
        assert differs("in a run: release")


FORGOTTEN = {
    "answer": "answered: tables",
    "keep_values": "people: values changed",
    "hide": "people: fewer after unknown people",
    "note_size": "answered: tables",
}


@pytest.mark.parametrize(("method", "case"), FORGOTTEN.items())
def test_a_memory_that_forgets_records_is_found(method, case):
    with patch.object(SiteMemory, method, lambda *_: None):
        assert differs(case)


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
