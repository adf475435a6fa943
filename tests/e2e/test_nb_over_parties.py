"""``vertibayes nb``, as a user types it: HDPNB."""

from __future__ import annotations

import numpy as np
import pytest

from tests.e2e.command import FILES, outputs, predict, read_rows, write
from tests.e2e.test_nb import NAMES, assert_refused, nb, pooled_model
from vertibayes.network import read_model
from vertibayes_mpc.noise import PolyaShare

HDPNB = ("--method", "hdpnb", "--target", "LVFAILURE")


@pytest.mark.parametrize("via", ["additive", "masked"])
def test_without_noise_it_is_pooled_learning(folder, tmp_path, capsys, via):
    code, told, _ = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *HDPNB, "--parties", 7,
        "--noise", "none", "--via", via, "--test", folder / "all.csv",
    )  # fmt: skip
    assert code == 0 and {p.name for p in (tmp_path / "out").iterdir()} == FILES
    _, summary, ledger = outputs(tmp_path / "out")
    model, data = pooled_model(folder / "all.csv")
    found, wanted = read_model(tmp_path / "out" / "model.bif"), model.to_network()
    for name in NAMES:
        assert found.cpts[name] == pytest.approx(wanted.cpts[name], abs=1e-12)
    assert summary["test"]["accuracy"] == pytest.approx(model.score(data), abs=1e-12)
    assert summary["promise"] is None and "promise" not in told
    assert set(summary["bytes"]["sent_by"]) == {*(f"party-{i}" for i in range(1, 8)), "analyst"}
    assert summary["rounds"] == {"additive": 4, "masked": 12}[via]
    assert "sums of counts over 7 of 7 parties" in ledger["revealed"][0]["what"]


@pytest.mark.parametrize("accounting", ["whole", "count"])
def test_with_noise_its_promise_is_told(folder, tmp_path, capsys, accounting):
    code, told, warned = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *HDPNB, "--parties", 20,
        "--epsilon", 2, "--accounting", accounting, "--via", "masked", "--holdout", 0.2,
    )  # fmt: skip
    promise = outputs(tmp_path / "out")[1]["promise"]
    assert code == 0 and "--epsilon does not cover" in warned
    assert promise["eps"] == pytest.approx({"whole": 2, "count": 12}[accounting])
    assert promise["eps_of_a_count"] == pytest.approx({"whole": 1 / 3, "count": 2}[accounting])
    assert promise["sentence"] in told and "accuracy 0.9" in told
    nb(
        capsys, tmp_path / "exact", "--data", folder / "all.csv", *HDPNB, "--parties", 20,
        "--noise", "none", "--via", "masked", "--holdout", 0.2,
    )  # fmt: skip
    noisy, exact = (read_model(tmp_path / n / "model.bif") for n in ("out", "exact"))
    assert any(not np.allclose(noisy.cpts[n], exact.cpts[n], atol=1e-6) for n in NAMES)
    _, summary, ledger = outputs(tmp_path / "out")
    assert any("--gamma counts on the noise of all" in told for told in summary["warnings"])
    beside = ["the number of records", "the size of the largest party"]
    assert promise["uncovered"] == beside
    assert f"Not protected: {'; '.join(beside)}." in promise["sentence"]
    said = "\n".join([told, warned])
    assert all(said.count(shown) == 1 for shown in (f"{beside[0]};", beside[1])), "once"
    facts = [fact["what"] for fact in ledger["revealed"]]
    assert sum(promise["sentence"].split(" Not protected")[0] in what for what in facts) == 1
    assert facts[-1] == f"not protected by the noise: {'; '.join(beside)}"


@pytest.mark.parametrize("method", ["hdpnb", "federated", "gossip", "ldp"])
def test_every_method_warns_of_what_its_noise_does_not_cover(folder, tmp_path, capsys, method):
    code, told, warned = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", "--method", method, "--target",
        "LVFAILURE", "--parties", 3, "--epsilon", 9, "--holdout", 0.2,
    )  # fmt: skip
    warnings = outputs(tmp_path / "out")[1]["warnings"]
    assert code == 0 and "accuracy" in told
    for words in ("which of them have missing values", "the scores of tested records"):
        assert warned.count(words) == sum(words in warning for warning in warnings) == 1
    assert ("--gamma counts" in warned) == (method in ("hdpnb", "federated")), "shares of noise"


def test_its_model_predicts(folder, tmp_path, capsys):
    nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *HDPNB, "--parties", 30,
        "--epsilon", 5, "--via", "masked", "--quiet",
    )  # fmt: skip
    code, _ = predict(
        capsys, "--model", tmp_path / "out" / "model.bif", "--data", folder / "all.csv",
        "--target", "LVFAILURE", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    rows = read_rows(tmp_path / "p.csv")[1:]
    assert code == 0 and len(rows) == 2000
    assert all(sum(map(float, row[1:-1])) == pytest.approx(1) for row in rows)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--epsilon", "0"], "must be a number, at least 1e-06 and at most 100, got 0"),
        ([], "specify --epsilon E, or --noise none"),
        (["--noise", "none", "--gamma", "0.5"], "--gamma has an effect with --noise polya or"),
        (["--noise", "none", "--protect", "party"], "--protect has an effect with --noise"),
        (["--epsilon", "1", "--noise", "laplace"], "hdpnb has polya or diluted or none"),
        (
            ["--epsilon", "1", "--gamma", "0.01"],
            "gamma n = 0.01 * 3: it must be at least one honest party",
        ),
        (
            ["--epsilon", "101"],
            "--epsilon must be a number, at least 1e-06 and at most 100, got 101",
        ),
        (
            ["--epsilon", "1", "--parties", "1"],
            "--parties must be between 2 and 2000 (the number of",
        ),
        (
            ["--epsilon", "1", "--parties", "2001"],
            "(the number of records), got 2001",
        ),
    ],
)
def test_what_is_refused(folder, tmp_path, capsys, options, reason):
    parties = [] if "--parties" in options else ["--parties", 3]
    assert_refused(
        capsys, tmp_path, reason, "--data", folder / "all.csv", *HDPNB, *parties, *options
    )


def test_a_release_that_noise_has_swallowed_leaves_its_ledger(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "f.csv", ["a", "y"], [["x", 1], ["x", 1], ["z", 0]])
    monkeypatch.setattr(PolyaShare, "__call__", lambda self, count: np.full(count, -9))
    code, told, error = nb(
        capsys, tmp_path / "out", "--data", path, "--method", "hdpnb", "--target", "y",
        "--parties", 3, "--epsilon", 0.1, "--via", "masked",
    )  # fmt: skip
    assert code == 2 and told == "" and "budget of what was revealed is spent" in error
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["ledger.json"]
    assert "differentially private" in (tmp_path / "out" / "ledger.json").read_text()
