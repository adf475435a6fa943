"""One release is named in one place, and a tag that names another one is detected."""

import subprocess
import tomllib

import pytest

from releasing.check import INTEGRATIONS, ROOT, complaints, git, other_versions, release_of
from vertibayes import __version__
from vertibayes_protocols import RELEASE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_release_is_that_of_the_wheel_and_of_the_parties():
    assert __version__ == RELEASE == release_of(ROOT)
    assert "version" not in PROJECT["project"] and PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {
        "version": {"attr": "vertibayes_protocols.RELEASE"}
    }


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
        "vertibayes_protocols/__init__.py": 'RELEASE = "0.3.1"\n',
        "CHANGELOG.md": "# Changelog\n\n## [0.3.1] - 2026-12-01\n",
    }
    for name in INTEGRATIONS:
        dependency = "vertibayes[nvflare]>=0.3.1.dev0,<0.4"
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
        ("vertibayes_protocols/__init__.py", "0.3.1", "0.3.1.dev0", "a release has three numbers"),
        ("vertibayes_protocols/__init__.py", "0.3.1", "0.3.2", r"the commit has the tags \[\]"),
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
