"""A site's process inside a task of another platform: what it refuses, and what it reports."""

import json
import re
from dataclasses import asdict

import pytest

from tests.e2e.studies import learn_study, run_in_one_process
from tests.protocols.deployment.parties import RECORDS, SITES, change, deployment, records
from vertibayes.cli import hosted
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.hosted import host_analyst, host_dealer, host_site, log_path, report_of
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes_protocols.deployment.files import StudyFile


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all", address="127.0.0.1:1", free=False)


def approved(folder):
    """Approve the study at all sites; return its digest."""
    path = folder / "analyst" / "study.toml"
    file = StudyFile.read(path)
    approve_for_practice(file, party_files(path, file), quiet=True)
    return contract_of(file).digest.hex()


def assert_refused(file, study, reason, minutes=1.0):
    report = host_site(file, study, minutes)
    assert report.state == "refused" and reason in report.reason
    assert not log_path(file).exists(), "no process was started"


def test_a_study_that_the_owner_has_not_approved_is_not_started(folder):
    file = folder / "north" / "site.toml"
    assert_refused(file, "ab" * 32, "the study is not approved here")
    digest = approved(folder)
    assert report_of(file, digest).state == "not running"
    (folder / "north" / "memory" / "approved" / f"{digest}.json").unlink()
    assert_refused(file, digest, "the study is not approved here")


@pytest.mark.parametrize("study", ["", "../../approved", "/etc/passwd", "ab" * 31, "g" * 64, 7])
def test_a_task_names_a_study_by_its_digest_and_by_nothing_else(folder, study):
    assert_refused(folder / "north" / "site.toml", study, "64 hexadecimal digits")


@pytest.mark.parametrize("minutes", [0, -1, 20_000, float("inf"), float("nan"), "9", True])
def test_a_time_that_is_not_between_a_moment_and_a_week_is_refused(folder, minutes):
    digest = approved(folder)
    assert_refused(folder / "north" / "site.toml", digest, "minutes must be", minutes)


def test_a_file_that_is_not_valid_is_not_quoted(folder):
    digest, file = approved(folder), folder / "north" / "site.toml"
    change(file, "[policy]", "[secret-4711]")
    assert_refused(file, digest, "site.toml is not valid: run `vertibayes check site.toml`")
    assert "4711" not in str(host_site(file, digest, 1.0))


def test_a_dealer_whose_file_is_not_valid_has_no_name_in_the_report(folder):
    digest, file = approved(folder), folder / "dealer" / "dealer.toml"
    change(file, "[dealer]", "[secret-4711]")
    report = host_dealer(file, digest, 1.0, lambda: False, None)
    assert (report.party, report.state) == ("", hosted.REFUSED) and "4711" not in report.reason


def test_a_process_that_ends_by_itself_leaves_its_reason_at_the_site(folder):
    """The log is the site's own: it names records."""
    digest, file = approved(folder), folder / "north" / "site.toml"
    path = folder / "north" / "records.csv"
    path.write_text(path.read_text().replace(records()[0][0], records()[0][1]))
    report = host_site(file, digest, 1.0)
    assert report.state == "failed" and "site.log at the site" in report.reason
    assert re.search(r"records \d+ and \d+ have the same", log_path(file).read_text())
    assert not re.search(r"\d", report.reason)
    assert log_path(file).stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_a_link_is_not_written_and_its_target_not_named(folder):
    digest, file = approved(folder), folder / "north" / "site.toml"
    log_path(file).symlink_to(folder / "elsewhere-4711")
    report = host_site(file, digest, 1.0)
    assert (report.state, "4711" in report.reason) == ("refused", False)
    assert "site.log cannot be written" in report.reason


def test_the_process_ends_when_the_platform_stops_it_or_the_time_is_over(folder, monkeypatch):
    monkeypatch.setattr(hosted, "child_command", lambda *_: ["sleep", "60"])
    digest, file = approved(folder), folder / "north" / "site.toml"
    assert host_site(file, digest, 1.0, lambda: True).state == "stopped"
    assert host_site(file, digest, 1e-4).state == "time over"


def test_a_report_counts_what_the_ledger_lists_and_shows_none_of_it(
    folder, tmp_path, monkeypatch, capsys
):
    run_in_one_process(monkeypatch, folder)
    digest = approved(folder)
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    for site in SITES:
        report = report_of(folder / site / "site.toml", f" {digest[:4]} {digest[4:].upper()}")
        assert (report.party, report.study, report.runs) == (site, digest, 1)
        assert report.tables == 5 and report.cells > 10 and report.refusals == 0
        shown = json.dumps(report.as_json()).replace(digest, "")  # whose digits are any
        assert not any(word in shown for word in ("patient-", "outcome", "acme", str(RECORDS)))
    assert set(asdict(report).values()) == set(report.as_json().values())
    assert_refused(folder / "north" / "site.toml", digest, "all runs of the study are used up")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('algorithm = "k2"', 'algorithm = "hybrid"', "names another study than study.toml"),
        ("[study]", "[secret-4711]", "study.toml is not valid: run `vertibayes check study.toml`"),
    ],
)
def test_an_analyst_learns_no_other_study_than_a_task_names(folder, tmp_path, old, new, reason):
    digest, file = approved(folder), folder / "analyst" / "study.toml"
    change(file, old, new)
    report = host_analyst(file, digest, 1.0, tmp_path / "out", lambda: False, None)
    assert report.state == "refused" and reason in report.reason
    assert not log_path(file).exists(), "no process was started"
