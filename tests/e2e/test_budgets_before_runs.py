"""A study that needs more than is left of a site's budgets ends nothing: it does not begin."""

from dataclasses import replace

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, run_in_one_process
from tests.protocols.deployment.parties import SITES, change, deployment
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.effects import Winners, saying
from vertibayes_protocols.queries.opening import begin
from vertibayes_protocols.storage.memory import SiteMemory

LEFT = "needs at most 200 bits of winners of choices: 40 are left of most_choice_bits = 2,700"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of 200 bits, approved; then another study uses all but 40 bits at one site."""
    run_in_one_process(monkeypatch, tmp_path)
    found = deployment(tmp_path, free=False)
    study = found / "analyst" / "study.toml"
    change(study, 'algorithm = "k2"', 'algorithm = "hybrid"\nmost_bits = 200')
    for site in SITES:
        change(found / site / "site.toml", "most_choice_bits = ", "most_choice_bits = 2_700 # ")
    return found


def approve(capsys, folder, site):
    own = folder / site / "site.toml"
    return run(capsys, "approve", folder / "analyst/study.toml", "--site", own, "--yes")


def use(folder, site, bits):
    """Have earlier studies use so many bits of winners at a site."""
    memory = SiteMemory(SiteFile.read(folder / site / "site.toml").memory)
    memory.apply(replace(saying((), ()), leaves=Winners(bits)), contract=bytes(32))
    memory.close()


def chosen(folder):
    files = [SiteFile.read(folder / site / "site.toml") for site in SITES]
    return [SiteMemory.read(own.memory).chosen for own in files if own.memory.exists()]


def begin_with_less_than_it_needs(capsys, folder, out):
    for site in SITES:
        assert approve(capsys, folder, site)[0] == 0
    use(folder, "south", 2_660)
    return learn_study(capsys, folder, out, "--quiet")


def test_a_study_that_needs_more_bits_than_are_left_does_not_begin(capsys, folder, tmp_path):
    code, _, error = begin_with_less_than_it_needs(capsys, folder, tmp_path / "out")
    assert code == 2 and "south" in error and LEFT in error
    assert sorted(chosen(folder)) in ([2_660], [0, 0, 2_660])
    code, shown, _ = run(capsys, "check", folder / "analyst" / "study.toml", "--meet")
    assert code != 0 and LEFT in shown
    code, _, error = approve(capsys, folder, "south")
    assert code == 2 and LEFT in error and "learning.max_parents: south refuses" in error
    shown = approve(capsys, folder, "north")[1]
    line = "at most 200; 0 used, 2,700 left of most_choice_bits = 2,700"
    assert line in shown and "tables of approved studies: 5; 0 used, 1,000 left" in shown


def test_control_of_sites_that_do_not_compare_a_run_shows_bits_and_fails(
    capsys, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(begin, "needs_of", lambda *_, **__: [])
    code, _, error = begin_with_less_than_it_needs(capsys, folder, tmp_path / "out")
    assert code == 2 and "would have shown winners of" in error
    north, south, east = chosen(folder)
    assert 0 < north == east == south - 2_660
