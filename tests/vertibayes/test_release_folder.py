"""The folder `release/`: what each file says, and that ACRO's tools can read it."""

import csv
import hashlib
import json

import numpy as np
import pytest

from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.release import assess, write_release
from vertibayes.report.release.texts import readme
from vertibayes_mpc.lookups import rounded
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Rows, Variable

VARIABLES = {
    "a": Variable("a", ("no", "yes")),
    "b": Variable("b", ("low", "mid, or so", "high")),
}
STRUCTURE = Structure({"a": (), "b": ("a",)})
COUNTS = [np.array([60, 40]), np.array([[30, 0], [27, 12], [3, 28]])]
LEDGER = Ledger(tables=[RevealedTable(("b", "a"), 6, "analyst", Rows())])
APPROVALS = [{"site": "clinic", "by": "A. Owner", "on": "2026-01-31"}]
STUDY = {"digest": "ab12", "keys": {"clinic": "k1"}, "approvals": APPROVALS}
LEDGER.note("record count", "hospital", ("clinic", "analyst"))


def released(rule, tables=COUNTS):
    """Return a counter of released tables, and the network learned from them."""
    if rule.kind == "cut":
        tables = [np.where(table < rule.fewest, 0, table) for table in tables]
    if rule.kind == "rounded":
        tables = list(map(rounded(rule.fewest, 100), tables))
    request = FamilyTables(STRUCTURE.families, missing=False, rule=rule)
    counter = ReleasedCounter(VARIABLES, 100, request, tables)
    return counter, fit_cpts(counter, STRUCTURE)


def rows_of(path):
    """Read a CSV file."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_an_exact_table_fails_with_a_small_count_and_is_reviewed_for_zeros():
    assessment = assess(*released(Rule("exact")))
    root, child = assessment.verdicts
    assert (root.status, root.smallest, root.below, root.zeros) == ("pass", 40, 0, 0)
    assert (child.status, child.smallest, child.below, child.zeros) == ("fail", 3, 1, 1)
    assert [cell[:2] for cell in assessment.small] == [(("a", "b"), (0, 2))]
    without = [COUNTS[0], np.array([[30, 0], [15, 12], [15, 28]])]
    assert assess(*released(Rule("exact"), without)).verdicts[1].status == "review"


def test_no_check_objects_to_a_rounded_table():
    assessment = assess(*released(Rule("rounded", fewest=8)))
    assert [v.status for v in assessment.verdicts] == ["pass", "pass"]
    assert not assessment.small and not assessment.differences  # 8 + 8 + ... is not 100
    assert assessment.verdicts[1].reasons[2] == (
        "differencing does not apply: each count is rounded"
    )
    assert "as the nearest multiple of 8" in readme(assessment)


def test_a_cut_table_is_reviewed_if_sums_tell_what_it_hides():
    assessment = assess(*released(Rule("cut", fewest=10)))
    root, child = assessment.verdicts
    assert (root.status, child.status, child.smallest) == ("pass", "review", 12)
    listed = [
        (d.variables, d.codes, d.larger, d.smaller, d.counted) for d in assessment.differences
    ]
    assert ((), (), None, 1, 3) in listed and (("a",), (0,), 0, 1, 3) in listed
    assert assess(*released(Rule("cut", fewest=3))).verdicts[1].status == "pass"


def test_a_release_that_breaks_its_rule_fails():
    counter, network = released(Rule("cut", fewest=10))
    counter.released[0] = COUNTS[0] - [57, 0]
    assert assess(counter, network).verdicts[0].status == "fail"


def test_noise_is_left_to_a_person_and_its_differences_are_not_counts():
    assessment = assess(*released(Rule("laplace", epsilon=0.5), [COUNTS[0] - 2, COUNTS[1] - 5]))
    assert [verdict.status for verdict in assessment.verdicts] == ["review", "review"]
    assert assessment.differences == assessment.small == ()
    assert "epsilon 0.5" in assessment.verdicts[0].reasons[-1]


def test_noise_that_bounds_nothing_is_said_to_be_too_weak():
    bounds = [assess(*released(Rule("laplace", epsilon=e))).traced()[1] for e in (0.5, 8)]
    assert bounds[0].endswith("at most 8.2% are recognized.")
    assert bounds[1].endswith("It is too weak to bound what the tables alone tell.")


def test_the_summary_has_the_number_of_differences():
    summary = assess(*released(Rule("cut"))).as_json()
    assert summary["differences"] == len(assess(*released(Rule("cut"))).differences) == 3
    assert summary["verdicts"] == {"pass": 1, "review": 1}
    assert json.loads(json.dumps(summary)) == summary


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write the release of an exact study."""
    folder = tmp_path_factory.mktemp("run") / "release"
    write_release(folder, *released(Rule("exact")), ledger=LEDGER, study=STUDY)
    return folder


def test_each_table_is_laid_out_as_acro_does(folder):
    assert rows_of(folder / "output_0_count_table.csv") == [
        ["a", "records"],
        ["no", "60"],
        ["yes", "40"],
    ]
    assert rows_of(folder / "output_1_count_table.csv") == [
        ["a", "low", "mid, or so", "high"],
        ["no", "30", "27", "3"],
        ["yes", "0", "12", "28"],
    ]
    assert rows_of(folder / "output_1_cpt.csv")[1][0] == "no"


def test_evidence_lists_the_tables_as_acro_does_in_federated_mode(folder):
    evidence = json.loads((folder / "evidence.json").read_text())
    assert set(evidence) == {"version", "tool", "outputs"}
    entry = evidence["outputs"]["output_1"]
    assert entry["analysis_names"] == ["FrequencyTable"]
    assert entry["variable_types"] == {"dependent": "unknown", "independent": ["a", "b"]}
    assert entry["interim_tables"] == {"count_table": "output_1_count_table.csv"}


def test_results_point_at_the_cells_that_fail(folder):
    results = json.loads((folder / "results.json").read_text())["results"]
    (table, cpt) = results["output_1"]["files"]
    assert table["sdc"]["cells"] == {
        "MinimumThresholdCheck": [[0, 2]],
        "PresenceOfZeroCheck": [[1, 0]],
    }
    assert (cpt["name"], results["output_1"]["status"]) == ("output_1_cpt.csv", "fail")


def test_the_viewer_finds_one_file_of_results_and_valid_checksums(folder):
    contents = {path: json.loads(path.read_text()) for path in folder.glob("*.json")}
    (results,) = [c for c in contents.values() if {"version", "results"} <= set(c)]
    files = [file["name"] for result in results["results"].values() for file in result["files"]]
    assert len(files) == 4
    for name in files:
        digest = (folder / "checksums" / f"{name}.txt").read_text()
        assert digest == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_the_readme_describes_each_file(folder):
    text = (folder / "README.txt").read_text()
    for path in folder.iterdir():
        name = path.name.replace("_0_", "_N_").replace("_1_", "_N_")
        assert name in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_ledger_says_what_was_revealed_to_whom_under_which_approval(folder):
    text = (folder / "ledger.txt").read_text()
    assert "- record count (about hospital) to clinic, analyst" in text
    assert "1 table with 6 cells to analyst:\n- b, a: 6 cells" in text
    assert "- digest: ab12\n- keys:\n  - clinic: k1\n" in text
    assert "- approvals: site clinic by A. Owner on 2026-01-31" in text
    assert "The rule protects nothing" in text


def test_missing_values_are_a_state_of_released_tables(tmp_path):
    variables = {"a": Variable("a", ("no", "yes"), missing=True)}
    request = FamilyTables((Family("a"),), missing=True, rule=Rule("cut"))
    counter = ReleasedCounter(variables, 90, request, [np.array([50, 20, 20])])
    network = fit_cpts(counter, Structure({"a": ()}))
    write_release(tmp_path / "release", counter, network, ledger=Ledger())
    table = rows_of(tmp_path / "release" / "output_0_count_table.csv")
    assert table[-1] == ["(missing)", "20"]
