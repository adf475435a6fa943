"""The files for contributors and hosts: what they name exists, and hosts can read them."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from tests.documents import ROOT, scripts
from vertibayes_protocols import RELEASE

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PAGES = ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/pull_request_template.md")
VERSIONS = ["3.11", "3.12", "3.13", "3.14"]
# The keys of CFF 1.2.0 that software uses, and those without which a file is not valid.
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license",
    "license-url", "preferred-citation", "references", "repository", "repository-artifact",
    "repository-code", "type", "url", "version",
}  # fmt: skip
ENTITY = {"name", "address", "alias", "city", "country", "email", "website", "orcid"}


def targets() -> set[str]:
    """Return the targets of the Makefile that people call."""
    declared = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(" ".join(declared).split())


def called(text: str) -> set[str]:
    """Return the targets that a text calls: `make X`, `make PYTHON=... X`."""
    text = re.sub(r"\${{.*?}}", "", text)  # an expression of the workflow
    return set(re.findall(r"\bmake(?: [A-Z]+=\S*)* ([a-z][a-z-]*)", text))


def paths_in(text: str) -> set[str]:
    """Return the paths of a page: the targets of links, and code that has a slash or a suffix."""
    linked = re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", text)
    coded = re.findall(r"(?<=`)[\w./-]+(?:/|\.md|\.py|\.toml)(?=`)", text)
    return {*linked, *coded}


def copied(text: str) -> set[str]:
    """Return the paths that an image copies from the project."""
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    return set(" ".join(lines).split())


@pytest.mark.parametrize("file", ["Containerfile", "integrations/vantage6/Containerfile"])
def test_an_image_copies_what_exists_and_all_that_the_wheel_needs(file):
    paths = copied((ROOT / file).read_text())
    assert not [path for path in paths if not (ROOT / path).exists()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["project"]["readme"], *project["project"]["license-files"]}
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed |= {package.partition("/")[0] for package in packages}
    assert paths >= needed | {"pyproject.toml"}


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load(WORKFLOW.read_text())


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_workflow_runs_targets_and_paths_that_exist(workflow):
    ran = [step["run"] for step in steps(workflow) if "run" in step]
    options = [job.get("env", {}).get("PYTEST_ADDOPTS", "") for job in workflow["jobs"].values()]
    assert set().union(*map(called, ran)) <= targets()
    for path in re.findall(r"tests/[\w/]+", " ".join([*ran, *options])):
        assert (ROOT / path).exists(), path


def test_the_workflow_has_each_job_and_every_python(workflow):
    jobs = {"lint", "unit", "privacy", "machines", "wheel", "imports", "docs", "audit"}
    assert set(workflow["jobs"]) == jobs
    assert workflow["jobs"]["unit"]["strategy"]["matrix"]["python"] == VERSIONS
    assert workflow["jobs"]["imports"]["strategy"]["matrix"]["system"] == [
        "macos-latest",
        "windows-latest",
    ]
    assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


def test_the_workflow_may_only_read_and_uses_releases_of_actions(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert "pull_request_target" not in WORKFLOW.read_text()
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used), used


def test_classifiers_name_versions_that_the_tests_run_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if "Python :: 3." in c]
    assert named == VERSIONS[: len(named)]
    assert project["requires-python"] == f">={VERSIONS[0]}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_files_and_targets_that_exist(page):
    text = (ROOT / page).read_text()
    assert called(" ".join(re.findall(r"`[^`]+`", text))) <= targets()
    missing = [path for path in paths_in(text) if not (ROOT / path).exists()]
    assert not missing


def test_the_guide_for_contributors_fits_on_a_screen():
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 20


def test_paths_and_targets_are_found_in_texts():
    """The control of the tests above."""
    assert paths_in("[a](docs/no.md#part) `tests/no.py` [b](http://x) `no/`") == {
        "docs/no.md", "tests/no.py", "no/",
    }  # fmt: skip
    assert called("make PYTHON=python3.11 LINT= test; `make no-target`") == {"test", "no-target"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_for_issues_is_one_that_a_host_reads(form):
    content = yaml.safe_load(form.read_text())
    if form.stem == "config":
        assert set(content) == {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= set(content)
    ids = [field["id"] for field in content["body"] if field["type"] != "markdown"]
    assert ids and len(set(ids)) == len(ids)
    for field in content["body"]:
        assert field["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert ("value" if field["type"] == "markdown" else "label") in field["attributes"]
        assert field["type"] != "dropdown" or field["attributes"]["options"]


def test_the_changelog_has_releases_newest_first_and_kinds_of_changes():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    forms = [re.fullmatch(r"(\d+\.\d+\.\d+)( - \d{4}-\d\d-\d\d|, unreleased)", h) for h in headings]
    assert forms and all(forms), headings
    numbers = [tuple(map(int, form[1].split("."))) for form in forms]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)
    assert [form[2] for form in forms[1:]].count(", unreleased") == 0
    assert RELEASE.partition(".dev")[0] == forms[0][1]
    kinds = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for part in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]:
        here = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert here and len(set(here)) == len(here)


def test_the_citation_has_the_keys_of_its_format():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert set(citation) >= REQUIRED and set(citation) <= ALLOWED
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert all("name" in author and set(author) <= ENTITY for author in citation["authors"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["license"] == project["license"]
    assert all(isinstance(value, str) for value in citation["keywords"])


def test_each_mutant_changes_a_file_that_exists_and_names_such_tests():
    with scripts(ROOT / "benchmarks", "mutants", "mutations") as (mutants, mutations):
        for mutant in mutants.MUTANTS:
            mutations.changed((ROOT / mutant.file).read_text(), mutant)  # else a ValueError
            for file, _, function in (test.partition("::") for test in mutant.tests):
                assert f"def {function}" in (ROOT / file).read_text(), mutant.name
