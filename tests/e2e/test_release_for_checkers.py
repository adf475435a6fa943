"""What an output checker has of an approved study: verdicts, the crate, and the site's ledger."""

import json

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    return deployment(tmp_path / "all", free=False)


def test_a_study_is_judged_described_and_compared_with_the_sites_other_releases(
    capsys, folder, tmp_path
):
    study = folder / "analyst" / "study.toml"
    change(study, "runs = 1 ", "runs = 2 ")
    for site in SITES:
        own = ("--site", folder / site / "site.toml", "--yes", "--by", "A. Owner")
        assert run(capsys, "approve", study, *own)[0] == 0
    limits = tmp_path / "appetite.yaml"
    limits.write_text("safe_threshold: 1000000\nsafe_nk_n: 2\n")
    code, shown, error = learn_study(capsys, folder, tmp_path / "1", "--risk-appetite", limits)
    assert code == 0 and " 0 pass, 0 review," in shown, error
    config = json.loads((tmp_path / "1" / "release" / "config.json").read_text())
    assert config["safe_threshold"] == 1000000
    assert list(config["risk_appetite"]["not_applicable"])[:1] == ["safe_nk_n"]
    text = (tmp_path / "1" / "release" / "ro-crate-metadata.json").read_text()
    crate = {each["@id"]: each for each in json.loads(text)["@graph"]}
    summary = json.loads((tmp_path / "1" / "summary.json").read_text())
    assert crate["#contract"]["value"] == summary["study"]["contract"]
    names = [crate[each["@id"]]["name"] for each in crate["#study"]["member"]]
    assert sorted(names) == sorted(SITES)
    assert crate["#analyst"]["name"] == "analyst" and f"#sign-off-{len(SITES) - 1}" in crate
    assert learn_study(capsys, folder, tmp_path / "2")[0] == 0
    out = tmp_path / "verdicts.json"
    assert run(capsys, "ledger", folder / SITES[0], "--verdicts", out)[0] == 0
    found = json.loads(out.read_text())
    tables = [len(release["tables"]) for release in found["releases"]]
    assert tables == [summary["release"]["tables"]] * 2
    assert {pair["verdict"] for pair in found["pairs"]} == {"review"}
    assert len(found["pairs"]) >= tables[0], "each table meets itself in the other run"


def test_an_appetite_beside_a_study_without_release_is_refused(capsys, tmp_path):
    folder = deployment(tmp_path / "all")
    (limits := tmp_path / "limits.yaml").write_text("safe_threshold: 10")
    code, _, error = learn_study(capsys, folder, tmp_path / "1", "--risk-appetite", limits)
    assert code == 2 and "--risk-appetite needs --release, or [release]" in " ".join(error.split())
