"""``--count-by``: validations, effects and naive Bayes are the same by each way of counting."""

from __future__ import annotations

import json

import pytest

from tests.e2e.command import run, write
from tests.paillier_worlds import small_keys
from vertibayes_protocols.queries.tables.ways import WAYS

ROWS = [(i % 2, (i * i) % 3, (i // 3) % 2, (i + i // 2) % 3 % 2) for i in range(90)]
COMMANDS = {
    "svdg": ("learn", "--sites", 3, "--validate", "svdg", "--target", "d", "--folds", 2),
    "nb": ("nb", "--method", "vdpnb", "--noise", "none", "--parties", 3, "--target", "d"),
    "effect": ("effect", "--sites", 3, "--exposure", "a", "--outcome", "d", "--adjust", "b,c"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_results_are_the_same_by_each_way(name, tmp_path, capsys):
    command, *options = COMMANDS[name]
    path = write(tmp_path / "data.csv", "abcd", ROWS)
    said, models = [], []
    for way in WAYS:
        out = [] if name == "effect" else ["--out", tmp_path / way, "--quiet"]
        with small_keys():
            code, output, error = run(
                capsys, command, "--data", path, *options, "--count-by", way, *out
            )
        assert code == 0, error
        said.append(output.split("revealed")[0])
        if out:
            summary = json.loads((tmp_path / way / "summary.json").read_text())
            assert summary["count_by"] == way
            models.append(((tmp_path / way / "model.bif").read_text(), summary.get("auc")))
    assert len(set(said)) == 1 and all(model == models[0] for model in models)
    assert said[0] or models[0][0]
