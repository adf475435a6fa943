"""A site that refuses a correction remembers nothing of it: the study continues without it."""

import json

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment
from vertibayes.cli.contracts import has_contract
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.queries.opening import commit, commit_checks


@pytest.fixture(params=[False, True], ids=["approved", "free"])
def folder(request, tmp_path, monkeypatch):
    """A deployment whose sites have answered a study, and are asked another one."""
    run_in_one_process(monkeypatch, tmp_path)
    found = deployment(tmp_path, free=request.param)
    study = found / "analyst" / "study.toml"
    lines = [line for line in study.read_text().splitlines() if not line.startswith("algorithm")]
    study.write_text("\n".join([*lines, ""]))
    change(study, "max_parents = 3", 'structure = "one.json"')
    nodes = ["age", "sex", "pulse", "drug", "outcome"]
    for name, edges in (("one", [["age", "drug"]]), ("two", [["sex", "drug"]])):
        structure = json.dumps({"nodes": nodes, "edges": edges})
        (study.parent / f"{name}.json").write_text(structure)
    return found


def approve(capsys, folder):
    study = folder / "analyst" / "study.toml"
    if has_contract(StudyFile.read(study)):
        for site in SITES:
            own = folder / site / "site.toml"
            assert run(capsys, "approve", study, "--site", own, "--yes")[0] == 0


def correct(folder):
    """Correct one value of a site's table; return what puts the earlier one back."""
    table = SiteFile.read(folder / "north" / "site.toml").data.place
    text = table.read_text()
    head, first, *rest = text.splitlines()
    place, cells = head.split(",").index("sex"), first.split(",")
    cells[place] = {"f": "m", "m": "f"}[cells[place]]
    table.write_text("\n".join([head, ",".join(cells), *rest, ""]))
    return lambda: table.write_text(text)


def refuse_a_correction(capsys, folder, tmp_path):
    """Answer a study; refuse another with a corrected value, which is then put back."""
    approve(capsys, folder)
    code, _, error = learn_study(capsys, folder, tmp_path / "one")
    assert code == 0, error
    change(folder / "analyst" / "study.toml", 'folder = "study"', 'folder = "study2"')
    change(folder / "analyst" / "study.toml", "one.json", "two.json")
    approve(capsys, folder)
    put_back = correct(folder)
    code, _, error = learn_study(capsys, folder, tmp_path / "two")
    put_back()
    assert code == 2 and "keep the earlier" in error and "approve the study with" in error
    return learn_study(capsys, folder, tmp_path / "two")


def test_a_study_whose_correction_was_refused_continues_with_the_earlier_data(
    capsys, folder, tmp_path
):
    code, _, error = refuse_a_correction(capsys, folder, tmp_path)
    assert code == 0, error


def test_control_of_a_site_that_remembers_before_it_compares(capsys, folder, tmp_path, monkeypatch):
    def remember(site, study):
        site.memory.commit(study.id, {name: site.column(name) for name in site.own(study)})

    monkeypatch.setattr(commit_checks, "compare_values", lambda *_: None)
    monkeypatch.setattr(commit, "remember_columns", remember)
    code, _, error = refuse_a_correction(capsys, folder, tmp_path)
    assert code == 2 and "'sex' has changed since it was committed in this study" in error
