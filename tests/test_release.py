"""One release is named in one place, and a tag that names another one is detected."""

import json
import re
import subprocess
import tomllib
import zipfile

import pytest

from releasing.audit import verdict
from releasing.check import (
    INTEGRATIONS,
    ROOT,
    VERSIONED,
    complaints,
    git,
    other_versions,
    release_of,
)
from releasing.wheel import check_names, in_history
from vertibayes import __version__
from vertibayes_protocols import RELEASE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_release_is_that_of_the_wheel_and_of_the_parties():
    assert __version__ == RELEASE == release_of(ROOT)
    assert "version" not in PROJECT["project"] and PROJECT["project"]["dynamic"] == ["version"]
    built = PROJECT["tool"]["hatch"]["version"]
    assert re.search(built["pattern"], (ROOT / built["path"]).read_text())["version"] == RELEASE


def test_the_integrations_belong_to_this_release():
    assert list(other_versions(ROOT, RELEASE)) == []


def test_a_tag_of_this_commit_names_the_release():
    try:
        tags = git(ROOT, "tag", "--points-at", "HEAD", "--list", "v*").split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no history here")
    assert tags in ([], [f"v{RELEASE}"])


@pytest.fixture
def released(tmp_path):
    """Return a small project that is a release."""
    files = {
        VERSIONED: 'RELEASE = "0.3.1"\n',
        "CHANGELOG.md": "# Changelog\n\n## [0.3.1] - 2026-12-01\n",
    }
    for name in INTEGRATIONS:
        dependency = "vertibayes>=0.3.1.dev0,<0.4"
        files[f"integrations/{name}/pyproject.toml"] = (
            f'[project]\nversion = "0.3.1"\ndependencies = ["{dependency}"]\n'
        )
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    git(tmp_path, "tag", "v0.3.1")
    return tmp_path


def commit(root):
    git(root, "add", "--all")
    author = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    git(root, *author, "commit", "-q", "--no-verify", "-m", "change")


def test_a_release_passes(released):
    assert list(complaints(released)) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        (VERSIONED, "0.3.1", "0.3.1.dev0", "a release has three numbers"),
        (VERSIONED, "0.3.1", "0.3.2", r"the commit has the tags \[\]"),
        ("CHANGELOG.md", " - 2026-12-01", "", "no section 0.3.1 with a date"),
        ("integrations/nvflare/pyproject.toml", 'version = "0.3.1"', 'version = "0.3.0"', "0.3.0;"),
        ("integrations/vantage6/pyproject.toml", "<0.4", "<0.5", "does not depend on"),
    ],
)
def test_what_keeps_a_commit_from_being_a_release_is_said(released, file, before, after, said):
    path = released / file
    path.write_text(path.read_text().replace(before, after))
    assert "files differ from the commit: commit or remove them" in list(complaints(released))
    commit(released)
    with pytest.raises(AssertionError, match=said):
        assert not list(complaints(released))


FOUND = {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
SAFE = {"name": "b", "version": "1", "vulns": []}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "said", "status"),
    [
        ([SAFE, UNKNOWN], "1 of 2 packages audited; vulnerabilities: 0", 0),
        ([FOUND, SAFE], "a 1: CVE-1; fixed in 2\n2 of 2 packages audited; vulnerabilities: 1", 1),
        ([UNKNOWN], "skipped: the service knows none of the 1 packages", 0),
    ],
)
def test_an_audit_fails_for_a_vulnerability_and_says_what_was_not_audited(packages, said, status):
    assert verdict(json.dumps({"dependencies": packages}), "") == (said, status)


def test_an_audit_without_its_service_is_skipped_and_a_broken_lock_is_not():
    refused = "Traceback ...\nrequests.exceptions.ConnectionError: refused"
    assert verdict("", refused)[0].startswith("skipped: ") and verdict("", refused)[1] == 0
    said, status = verdict("", "ERROR: invalid requirements input: no.lock")
    assert status == 2 and said == "pip-audit failed: ERROR: invalid requirements input: no.lock"


@pytest.mark.parametrize(
    ("more", "less", "said"),
    [
        ([], [], None),
        (["mpc/__init__.py"], [], "top-level names"),
        (["vertibayes/planted.py"], [], "not in the history: .*planted"),
        ([], ["vertibayes/py.typed"], "does not have .*py.typed"),
    ],
)
def test_a_wheel_has_the_files_of_the_packages_and_no_others(tmp_path, more, less, said):
    try:
        tracked = in_history()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no history here")
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as wheel:
        for name in {*tracked, *more, "vertibayes-1.dist-info/RECORD"} - set(less):
            wheel.writestr(name, "")
    if said is None:
        check_names(tmp_path / "some.whl")
        return
    with pytest.raises(ValueError, match=said):
        check_names(tmp_path / "some.whl")
