"""What a refusal says to the analyst, and what to the owner of the site alone."""

import re
from itertools import combinations
from types import SimpleNamespace

import pytest

from tests.protocols.small import committed, data_of, memories, study_of
from tests.protocols.test_contract import CONTRACT
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.ledger import Purpose, RevealedTable
from vertibayes_protocols.parties import Watch, serve, study_now
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import KINDS, Commit
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.session import Answer
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.ledger_entries import Refusal, SessionNote, read_ledger
from vertibayes_protocols.storage.ledger_file import MOST_REFUSALS, LedgerFile
from vertibayes_protocols.variables import Family, Rows

SECRET = "income"  # a column that the policy hides


def with_hidden(changed=()):
    """Return the data of two sites, of which a has a hidden column too."""
    data = data_of(a="xyh", b="z")
    names = dict(zip("xyh", ("x", "y", SECRET), strict=True))
    site = data["a"]
    codes = {new: site.codes[old].copy() for old, new in names.items()}
    for name in changed:
        codes[name][:3] = (codes[name][:3] + 1) % 3
    variables = {new: type(v)(new, v.states) for new, v in zip(
        names.values(), site.variables.values(), strict=True)}  # fmt: skip
    return {**data, "a": SiteData(variables, codes)}


POLICY = Policy(variables=("x", "y", "z"), free_tables=True)


def shown_study(data, name):
    study = study_of(data, name)
    kept = {n: v for n, v in study.variables.items() if n != SECRET}
    holders = {n: study.holders[n] for n in kept}
    return study_of(data, name, variables=kept, holders=holders)


def refused_tables(data, kept, name, rows=Rows()):
    """Return why site a refuses a table of a study."""
    federation, _ = committed(data, shown_study(data, name), memories=kept, policy=POLICY)
    query, _ = ask_tables(federation.session.role.joined, [Family("x", ("z",))], False, rows)
    role = federation.roles["a"]
    try:
        consider(role, query)
    except QueryRefusedError as error:
        return error
    federation.session.ask(query)
    return None


def test_a_hidden_column_that_changed_is_named_to_the_owner_alone():
    """Before: "the column 'income' has changed since the site answered for its records"."""
    kept = memories("a", "b")
    assert refused_tables(with_hidden(), kept, b"first") is None
    error = refused_tables(with_hidden(changed=[SECRET]), kept, b"second")
    assert SECRET not in error.reason and "its data have changed" in error.reason
    assert error.detail == f"the column {SECRET!r} has changed"


def test_few_changed_records_are_counted_for_the_owner_alone():
    kept = memories("a", "b")
    ids = with_hidden()["a"]
    first, second = with_hidden(), with_hidden(changed=["x"])
    del ids
    values = {}
    for name, data in (("first", first), ("second", second)):
        digests = kept["a"].digests(data_of(a="xy")["a"])
        values[name] = kept["a"].snapshot(data["a"], ["x", "y"], digests)
    kept["a"].changes.keep(values["first"])
    with pytest.raises(ValueError, match="fewer than 10 records have changed") as caught:
        kept["a"].changes.check(values["second"], 10)
    assert not re.search(r"\bx\b|\b3\b", str(caught.value))
    assert caught.value.detail == "changed records: x 3"


@pytest.mark.parametrize("changes", [{"records": 39}, {"dealer": "zoe"}])
def test_a_study_that_does_not_fit_reveals_neither_records_nor_parties(changes):
    data = data_of(a="xy", b="z", c="w")
    federation, _ = committed(data)
    query = Commit.of(study_of(data, b"other", **changes))
    with pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["a"], query)
    assert "40" not in caught.value.reason and "b, c" not in caught.value.reason
    assert "40" in caught.value.detail or "b, c" in caught.value.detail


@pytest.mark.parametrize("name", [SECRET, "no such column"])
def test_a_hidden_column_is_refused_as_one_that_does_not_exist(name):
    data = with_hidden()
    role = committed(data, shown_study(data, b"s"), policy=POLICY)[0].roles["a"]
    study = shown_study(data, b"t")
    variable = type(study.variables["x"])(name, ("no", "yes", "maybe"))
    variables, holders = {**study.variables, name: variable}, {**study.holders, name: ("a",)}
    query = Commit.of(study_of(data, b"t", variables=variables, holders=holders))
    with pytest.raises(QueryRefusedError) as caught:
        consider(role, query)
    assert caught.value.reason == f"it shows no variable {name!r} with these states"
    with pytest.raises(ValueError, match=f"^it does not show {re.escape(name)}$"):
        role.policy.check_shown([name])


# ---- the ledger ----------------------------------------------------------------------------------


class Considered(Watch):
    """Keeps what a party's own log has of each answer."""

    def __init__(self, noted):
        self.noted = noted

    def considered(self, *parts):
        self.noted.append(parts)


def served(role, query, noted):
    """Let a party consider a query, and end the session."""
    program = serve(role, "analyst", KINDS, Considered(noted))
    next(program)
    answer = program.send({"analyst": query}).outbox["analyst"]
    program.close()
    return answer


def test_a_refusal_is_in_the_ledger_with_its_detail_and_the_analyst_gets_the_reason(tmp_path):
    data, noted = data_of(a="xyzw"), []  # one site, which meets nobody
    federation, _ = committed(data)
    role = federation.roles["a"]
    role.ledger = ledger = LedgerFile(tmp_path / "ledger")
    query = Commit.of(study_of(data, b"other", records=39))
    answer = served(role, query, noted)
    ledger.close()
    assert (
        isinstance(answer, Answer)
        and answer.reason == "it does not hold 39 records, as the study has"
    )
    assert noted == [(query, answer, "it holds 40 records")]
    begun, refusal, ended = read_ledger(tmp_path / "ledger").entries
    assert begun.noted == SessionNote("begun") and ended.noted == SessionNote("ended", refusals=1)
    assert refusal.noted == Refusal("commit", answer.reason, "it holds 40 records")
    assert {entry.purpose.analyst for entry in (begun, refusal, ended)} == {"analyst"}
    assert role.ledger is ledger, "the next session begins with the site's own ledger"


def test_an_entry_has_the_study_and_who_approved_it(tmp_path):
    site = SimpleNamespace(run=None, joined=None)
    with_study = LedgerFile(tmp_path / "ledger").begin("analyst", lambda: study_now(site))
    site.run = SimpleNamespace(approved=Approved(CONTRACT, "A. Owner", "2026-11-01", None))
    with_study.note("a fact", "a", ("b",))
    with_study.close()
    begun, fact = read_ledger(tmp_path / "ledger").entries
    assert begun.purpose == Purpose("analyst")
    assert fact.purpose == Purpose("analyst", CONTRACT.digest.hex(), "A. Owner on 2026-11-01")


def test_refused_queries_do_not_grow_the_ledger_without_limit(tmp_path):
    ledger = LedgerFile(tmp_path / "ledger").begin("analyst", lambda: ("", ""))
    for number in range(5000):
        ledger.refuse("tables", "the same" if number % 2 else f"number {number}")
    ledger.end()
    ledger.close()
    entries = read_ledger(tmp_path / "ledger").entries
    assert len(entries) == MOST_REFUSALS + 2 and entries[-1].noted.refusals == 5000


def test_the_same_tables_again_do_not_grow_the_ledger(tmp_path):
    """Two queries of 300,000 times one table made a ledger of 43 MB."""

    table = RevealedTable(("x", "z"), 9, "analyst", Rows())
    ledger = LedgerFile(tmp_path / "ledger").begin("analyst", lambda: ("ab", ""))
    for _ in range(300):
        ledger.open([table] * 1000)
    noisy = table._replace(rule="laplace with epsilon 1")
    ledger.open([noisy])
    ledger.open([noisy])
    ledger.end()
    ledger.close()
    entries = read_ledger(tmp_path / "ledger").entries
    assert (tmp_path / "ledger").stat().st_size < 1000
    kinds = [entry.noted for entry in entries]
    assert [noted.tables for noted in kinds[1:-1]] == [(table,), (noisy,), (noisy,)]
    assert kinds[-1].again == 299_999 and kinds[-1].cells_again == 9 * 299_999


def test_a_table_of_another_study_or_analyst_is_listed_again(tmp_path):

    table = RevealedTable(("x",), 3, "analyst", Rows())
    shared = LedgerFile(tmp_path / "ledger")
    for analyst, study in (("ann", "ab"), ("ann", "cd"), ("bob", "ab"), ("ann", "ab")):
        shared.begin(analyst, lambda study=study: (study, "")).open([table])
    shared.close()
    notes = [e.noted for e in read_ledger(tmp_path / "ledger").entries][1::2]
    assert [len(noted.tables) for noted in notes] == [1, 1, 1, 0]


def test_many_tables_take_few_bytes_and_all_of_them_can_be_read(tmp_path):
    """45,189 tables took 4.4 MB; an officer reads them by `vertibayes ledger --all`."""

    names = [f"variable {place}" for place in range(60)]
    tables = [RevealedTable(three, 27, "analyst", Rows()) for three in combinations(names, 3)]
    ledger = LedgerFile(tmp_path / "ledger").begin("analyst", lambda: ("ab", ""))
    ledger.open(tables)
    ledger.close()
    assert (tmp_path / "ledger").stat().st_size / len(tables) < 18, "was 104 bytes per table"
    assert read_ledger(tmp_path / "ledger").entries[-1].noted.tables == tuple(tables)
