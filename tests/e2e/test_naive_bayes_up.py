"""``vertibayes up`` of naive Bayes: each party a process, with a file, numbers and a budget."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.e2e.processes import free_address
from tests.e2e.test_naive_bayes_study import NUMBERS, with_ages
from tests.e2e.test_up import processes_of, pytestmark, up
from vertibayes.naive_bayes.model_file import read_naive_bayes
from vertibayes_protocols.deployment.files import SiteFile

__all__ = ["pytestmark"]  # the same needs

EPSILON = 30
METHODS = {
    "federated": ('method = "federated"', 'via = "masked"'),
    "gossip": ('method = "gossip"', "iterations = 6"),
}


@pytest.mark.parametrize("name", METHODS)
def test_sites_with_numbers_learn_with_noise_and_charge_their_budgets(tmp_path, name):
    learning = NUMBERS.replace('noise = "none"', f"epsilon = {EPSILON}")
    method, settings = METHODS[name]
    learning = learning.replace('method = "hdpnb"', method).replace('via = "masked"', settings)
    study, ages = with_ages(tmp_path / "all", learning, address=free_address())
    code, said = up(study.parent.parent, tmp_path / "out")
    assert code == 0, said
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["promise"]["eps"] == pytest.approx(EPSILON)
    assert summary["promise"]["sentence"] in said
    model = read_naive_bayes(tmp_path / "out" / "naive_bayes.json")
    assert model.theta_["age"] == pytest.approx([np.nanmean(ages.clip(20, 80))] * 2, abs=15)
    sites = [study.parent.parent / site / "site.toml" for site in ("one", "two", "three")]
    for path in sites:
        ledger = SiteFile.read(path).ledger.read_text()
        assert f"so far cost epsilon {EPSILON}" in ledger
    assert not any(f"p{place:03}" in said for place in range(120)), "no identifier is in a log"
    if name == "gossip":
        code, said = up(study.parent.parent, tmp_path / "again", "--quiet")
        assert code == 2 and f"epsilon {EPSILON}: 20 is left of most_epsilon = 50" in said
        assert not (tmp_path / "again").exists()
    assert processes_of(study.parent.parent) == []
