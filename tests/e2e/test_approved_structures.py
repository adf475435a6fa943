"""Approved studies whose structure is learned without an ordering."""

import json

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from vertibayes import PlainCounter
from vertibayes.choosing import TableChooser
from vertibayes.structure.learners import learn_structure


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    return deployment(tmp_path / "all", free=False)


def state(folder, *lines):
    """Add lines to the learning of the study."""
    path = folder / "analyst" / "study.toml"
    kept = [line for line in path.read_text().splitlines() if not line.startswith("algorithm = ")]
    path.write_text("\n".join((*kept, "")))
    change(path, "\n[learning]\n", "\n".join(("\n[learning]", *lines, "")))
    return path


def approve(capsys, study, folder):
    outcomes = [
        run(capsys, "approve", study, "--site", folder / site / "site.toml", "--yes", "--by", "O")
        for site in SITES
    ]
    return outcomes[0]


@pytest.mark.parametrize("algorithm", ["hybrid", "hill_climbing"])
def test_an_approved_study_learns_the_structure_of_pooled_records(
    capsys, folder, tmp_path, algorithm
):
    study = state(folder, f'algorithm = "{algorithm}"')
    code, shown, _ = approve(capsys, study, folder)
    assert code == 0 and "depends on the winners: the dealer sees both" in shown
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    learned = json.loads((tmp_path / "out" / "structure.json").read_text())
    chooser = TableChooser(PlainCounter(pooled(folder)))
    plain = learn_structure(chooser, algorithm, max_parents=3)
    assert sorted(map(tuple, learned["edges"])) == sorted(plain.edges) and plain.edges


def test_a_study_ends_at_the_bits_that_it_states(capsys, folder, tmp_path):
    study = state(folder, 'algorithm = "hybrid"', "most_bits = 30")
    code, shown, _ = approve(capsys, study, folder)
    assert code == 0 and "at most 30 bits and 60 steps in each run" in " ".join(shown.split())
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert 0 <= summary["choices"]["bits_at_most"] <= 30


def test_a_site_refuses_more_bits_than_its_policy_allows(capsys, folder):
    study = state(folder, 'algorithm = "hybrid"')
    own = folder / SITES[0] / "site.toml"
    text = own.read_text()
    line = next(line for line in text.splitlines() if line.startswith("most_choice_bits"))
    own.write_text(text.replace(line, "most_choice_bits = 500"))
    code, _, error = run(capsys, "approve", study, "--site", own, "--yes", "--by", "O")
    assert code == 2 and "500 are left of most_choice_bits = 500" in error
    assert "as most_bits" in error
    change(study, 'algorithm = "hybrid"', 'algorithm = "hybrid"\nmost_bits = 500')
    assert run(capsys, "approve", study, "--site", own, "--yes", "--by", "O")[0] == 0


def test_most_bits_needs_a_search_that_ends_early(capsys, folder):
    study = state(folder, "most_bits = 500", 'algorithm = "k2"')
    own = folder / SITES[0] / "site.toml"
    code, _, error = run(capsys, "approve", study, "--site", own, "--yes", "--by", "O")
    assert code == 2 and "use algorithm hybrid or hill_climbing" in error
