"""A study from its files to its released model, with the approvals of all sites, in one process."""

import json
from dataclasses import replace

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, refused, run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from vertibayes import PlainCounter, k2
from vertibayes.cli import contracts
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes.study import connect_study
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.queries import Begin
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    return deployment(tmp_path / "all", free=False)


def approve(capsys, folder, *sites):
    study = folder / "analyst" / "study.toml"
    for site in sites or SITES:
        own = folder / site / "site.toml"
        assert run(capsys, "approve", study, "--site", own, "--yes", "--by", "Owner")[0] == 0


def ledger(folder, site):
    lines = (folder / site / "memory" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_approved_study_learns_the_structure_of_pooled_k2(capsys, folder, tmp_path):
    approve(capsys, folder)
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    order = ["age", "sex", "pulse", "drug", "outcome"]
    plain = k2(PlainCounter(pooled(folder)), ordering=order, max_parents=3)
    learned = json.loads((tmp_path / "out" / "structure.json").read_text())
    assert sorted(map(tuple, learned["edges"])) == sorted(plain.edges)
    digest = contracts.contract_of(StudyFile.read(folder / "analyst" / "study.toml")).digest
    assert summary["study"]["contract"] == digest.hex() and "cut" in str(summary["release"]["rule"])
    for site in SITES:
        entries = ledger(folder, site)
        assert any("approved by Owner on 20" in entry.get("what", "") for entry in entries)
        groups = [group for entry in entries for group in entry.get("released", ())]
        tables = [table for group in groups for table in group["tables"]]
        assert len(tables) == len(order), "one table for each variable, and no other"
    refused(capsys, folder, tmp_path / "again", "its one run is used up")


def test_a_study_that_one_site_has_not_approved_is_refused(capsys, folder, tmp_path):
    refused(capsys, folder, tmp_path / "out", "is not approved here: its owner can approve")
    approve(capsys, folder, "north", "south")
    refused(capsys, folder, tmp_path / "out", "east refuses: the study with the digest")
    approve(capsys, folder, "east")
    assert learn_study(capsys, folder, tmp_path / "out")[0] == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nfewest = 10", "\nfewest = 2"),
        ('"age", "sex"', '"sex", "age"'),
    ],
)
def test_a_changed_study_file_is_not_approved(capsys, folder, tmp_path, old, new):
    approve(capsys, folder)
    change(folder / "analyst" / "study.toml", old, new)
    refused(capsys, folder, tmp_path / "out", "is not approved here")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("max_parents = 3", "max_parents = 1", "is not the next step"),
        ('rule = "cut"', 'rule = "exact" #', "is not the next step"),
        ('"age", "sex"', '"sex", "age"', "the variables, or their order"),
    ],
)
def test_an_analyst_who_begins_one_study_and_runs_another_is_refused(
    capsys, folder, tmp_path, monkeypatch, old, new, reason
):
    approve(capsys, folder)
    study = folder / "analyst" / "study.toml"
    begin = Begin.of(contracts.contract_of(StudyFile.read(study)))
    monkeypatch.setattr(
        "vertibayes_protocols.queries.Begin.of", lambda *_, study: replace(begin, study=study)
    )
    change(study, old, new)
    code, _, error = learn_study(capsys, folder, tmp_path / "out", "--quiet")
    assert code == 2 and reason in error, error


def test_learners_of_an_analyst_need_free_tables(folder):
    """`connect_study` asks for tables of any family: under an approval it gets none."""
    with (
        pytest.raises(QueryRefusedError, match="approved studies alone"),
        connect_study(folder / "analyst" / "study.toml") as counter,
    ):
        counter.tables([Family("age")])


def test_practice_without_certificates_approves_for_all_sites(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    file = StudyFile.read(study)
    approve_for_practice(file, party_files(study, file), quiet=False)
    assert "practice: east approves the study without its owner" in capsys.readouterr().err
    assert learn_study(capsys, folder, tmp_path / "out", "--quiet")[0] == 0
    assert any("approved by practice" in entry.get("what", "") for entry in ledger(folder, "east"))


def test_check_with_meet_begins_no_run(capsys, folder):
    study = folder / "analyst" / "study.toml"
    shown = run(capsys, "check", study, "--meet")[1]
    assert "is not approved here" in shown
    approve(capsys, folder)
    shown = run(capsys, "check", study, "--meet")[1]
    assert "the sites have approved the study" in shown, shown
    assert "the sites hold the same people" in shown
    memory = SiteMemory(SiteFile.read(folder / "north" / "site.toml").memory)
    assert memory.runs.count(contracts.contract_of(StudyFile.read(study)).digest) == (0, 0)
    memory.close()
