"""`vertibayes ledger --verdicts`: which tables of all releases of a site can be compared."""

import json
from contextlib import closing

import pytest

from tests.e2e.command import run
from vertibayes.report.ledger.overlaps import BESIDE_NOISE, HIDING, LIMITS, NOISE, SAME
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.release import Rule
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.variables import Rows

CUT, NOISY = Rule("cut").words, Rule("laplace").words
FIRST, SECOND, THIRD = (digit * 64 for digit in "abc")
OWNER = "A. Owner on 2026-11-01"


def table(*variables, rule="exact"):
    return RevealedTable(variables, 2 ** len(variables), "ann", Rows(), rule)


@pytest.fixture
def verdicts(tmp_path, capsys):
    """Note releases, each (study, approval, tables), and ask for the verdicts."""

    def ask(*releases):
        (tmp_path / "memory").mkdir()
        with closing(LedgerFile(tmp_path / "memory" / "ledger.jsonl")) as ledger:
            for study, approval, tables in releases:
                session = ledger.begin("ann", lambda s=study, a=approval: (s, a))
                session.open(tables)
                session.note("record count", "site", ("ann",))
                session.end()
        before = (tmp_path / "memory" / "ledger.jsonl").read_bytes()
        out = tmp_path / "verdicts.json"
        code, text, error = run(capsys, "ledger", tmp_path, "--verdicts", out)
        assert (code, error) == (0, "")
        assert before == (tmp_path / "memory" / "ledger.jsonl").read_bytes()
        return json.loads(out.read_text()), " ".join(text.split())

    return ask


@pytest.mark.parametrize(
    ("one", "other", "verdict", "reason"),
    [
        ("exact", "exact", "review", SAME),
        ("exact", CUT, "review", HIDING),
        (CUT, CUT, "review", HIDING),
        (CUT, NOISY, "review", BESIDE_NOISE),
        ("exact", NOISY, "review", BESIDE_NOISE),
        (NOISY, NOISY, "pass", NOISE),
    ],
)
def test_a_pair_with_a_common_margin_is_judged_by_its_rules(verdicts, one, other, verdict, reason):
    found, text = verdicts(
        (FIRST, OWNER, [table("b", "a", rule=one), table("x", rule=one)]),
        (SECOND, OWNER, [table("a", "c", "b", rule=other)]),
    )
    (pair,) = found["pairs"]
    assert (pair["releases"], pair["tables"], pair["common"]) == ([0, 1], [0, 0], ["a", "b"])
    assert pair["verdict"] == verdict and reason in pair["reason"]
    of = [[each["verdict"] for each in release["tables"]] for release in found["releases"]]
    assert of == [[verdict, "pass"], [verdict]] and found["limits"] == LIMITS
    for part in (f"{verdict.upper()} 1 and 2: 1 pair", reason, "In common: a, b (1).", LIMITS):
        assert part in text


def test_runs_of_one_study_are_compared_and_its_tables_of_one_run_are_not(verdicts):
    tables = [table("a", "b", rule=CUT), table("b", "c", rule=CUT)]
    found, text = verdicts((FIRST, OWNER, tables), (FIRST, OWNER, tables))
    assert len(found["releases"]) == 2 and len(found["pairs"]) == 4
    assert all(pair["releases"] == [0, 1] for pair in found["pairs"])
    assert "4 review, 0 pass" in text and "In common: b (2); a, b (1); b, c (1)." in text


def test_all_free_queries_of_a_study_are_one_release(verdicts):
    found, text = verdicts(
        (FIRST, "", [table("a", "b", rule="")]),
        (FIRST, "", [table("a", "c", rule="")]),
        (SECOND, OWNER, [table("a", rule=CUT)]),
    )
    assert [len(release["tables"]) for release in found["releases"]] == [2, 1]
    assert [pair["common"] for pair in found["pairs"]] == [["a"], ["a"]]
    assert found["releases"][0]["tables"][0]["rule"] == "exact" and "not approved" in text


def test_nothing_in_common_and_an_empty_ledger_pass(verdicts):
    found, text = verdicts(
        (FIRST, OWNER, [table("a")]), (SECOND, OWNER, [table("b")]), (THIRD, OWNER, [])
    )
    assert found["pairs"] == [] and len(found["releases"]) == 2
    assert "0 pairs of tables" in text


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ledger.json", "{}", "--verdicts compares the releases of a site"),
        ("ledger.jsonl", '{"at": 1}\n', "line 1: not a valid entry"),
        ("other", "", "no ledger"),
    ],
)
def test_a_bad_folder_is_refused_and_nothing_is_written(tmp_path, capsys, name, content, said):
    (tmp_path / name).write_text(content)
    out = tmp_path / "verdicts.json"
    code, _, error = run(capsys, "ledger", tmp_path, "--verdicts", out)
    assert code == 2 and said in " ".join(error.split()) and not out.exists()
