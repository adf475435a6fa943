"""``vertibayes nb``, as a user types it: VDPNB."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.e2e.command import FILES, outputs, predict, read_rows, write
from vertibayes.cli import main
from vertibayes.cli.inputs import read_pooled
from vertibayes.cli.source import Source
from vertibayes.counting import PlainCounter
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import read_model
from vertibayes_mpc.noise import copies
from vertibayes_protocols.schema import Schema

NAMES = ["HISTORY", "LVFAILURE", "CVP", "PCWP", "LVEDVOLUME", "HYPOVOLEMIA"]
VDPNB = ("--method", "vdpnb", "--target", "LVFAILURE")


def nb(capsys, out, *arguments):
    """Run nb; return (exit status, standard output, standard error)."""
    try:
        main(["nb", "--out", str(out), *map(str, arguments)])
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    found = capsys.readouterr()
    return code, found.out, found.err


def assert_refused(capsys, tmp_path, reason, *arguments):
    before = sorted(tmp_path.rglob("*"))
    code, told, error = nb(capsys, tmp_path / "results", *arguments)
    assert code == 2 and told == ""
    assert error.startswith("vertibayes: ") and error.count("\n") == 1  # and no warning before it
    assert reason in " ".join(error.replace("│", " ").split())
    assert sorted(tmp_path.rglob("*")) == before


def pooled_model(path):
    """Plain learning on the file."""
    (data,) = read_pooled(Source((str(path),))).data.values()
    features = {n: v for n, v in data.variables.items() if n != "LVFAILURE"}
    schema = Schema(data.variables["LVFAILURE"], features)
    return NaiveBayes(schema).fit_counter(PlainCounter(data)), data


def test_without_noise_it_is_pooled_learning(folder, tmp_path, capsys):
    code, told, warned = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *VDPNB, "--parties", 3,
        "--noise", "none", "--test", folder / "all.csv",
    )  # fmt: skip
    assert code == 0 and {p.name for p in (tmp_path / "out").iterdir()} == FILES
    structure, summary, ledger = outputs(tmp_path / "out")
    model, data = pooled_model(folder / "all.csv")
    assert structure["edges"] == [["LVFAILURE", n] for n in NAMES if n != "LVFAILURE"]
    found, wanted = read_model(tmp_path / "out" / "model.bif"), model.to_network()
    for name in NAMES:
        assert found.cpts[name] == pytest.approx(wanted.cpts[name], abs=1e-12)
    assert summary["test"]["accuracy"] == pytest.approx(model.score(data), abs=1e-12)
    assert summary["test"]["predicted_by"].startswith("sums of logarithms")
    assert summary["test"]["records"] == 2000 and summary["promise"] is None
    assert summary["opened"]["cells"] == sum(table["cells"] for table in ledger["tables"])
    assert summary["bytes"]["total"] == sum(summary["bytes"]["sent_by"].values())
    assert [s for s, held in summary["sites"].items() if "LVFAILURE" in held] == ["site-1"]
    told_of = " ".join(fact["what"] for fact in ledger["revealed"])
    assert "of 2000 records, for each class" in told_of and "to predict with" in told_of
    assert "accuracy 0." in told and "--epsilon does not cover" not in warned
    assert "<svg" in (tmp_path / "out" / "structure.svg").read_text()


def fixed_noise(monkeypatch, values):
    """OpenDP's draws, replaced."""
    drawn = []

    def draw(kind, rate):
        def sample(zeros):
            drawn.append((rate, len(zeros)))
            return np.resize(np.array(values), len(zeros)).tolist()

        return sample

    monkeypatch.setattr(copies, "measurement", draw)
    return drawn


def test_with_noise(folder, tmp_path, capsys, monkeypatch):
    drawn = fixed_noise(monkeypatch, [5, -3, 0])
    code, _, warned = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *VDPNB, "--parties", 2,
        "--epsilon", 0.5, "--holdout", 0.01, "--seed", 3, "--quiet",
    )  # fmt: skip
    assert code == 0 and "--epsilon does not cover them" in warned
    _, summary, ledger = outputs(tmp_path / "out")
    assert {rate for rate, _ in drawn} == {10.0}, "eps = .5 over five features"
    promise = summary["promise"]
    assert promise["eps"] == pytest.approx(0.5) == promise["cost"]["eps"]
    assert (promise["delta"], promise["protects"]) == (0, "attributes")
    assert "standard deviation 14.14" in promise["sentence"], "eps = .1 a count"
    assert summary["records"] == 1980 and summary["test"]["records"] == 20
    assert sum(n for _, n in drawn) == summary["opened"]["cells"]
    exact = tmp_path / "exact"
    nb(capsys, exact, "--data", folder / "all.csv", *VDPNB, "--parties", 2, "--noise", "none",
       "--holdout", 0.01, "--seed", 3)  # fmt: skip
    noisy, plain = (read_model(p / "model.bif") for p in (tmp_path / "out", exact))
    assert all(not np.allclose(noisy.cpts[n], plain.cpts[n]) for n in NAMES if n != "LVFAILURE")
    assert noisy.cpts["LVFAILURE"] == pytest.approx(plain.cpts["LVFAILURE"], abs=1e-12)
    whats = [fact["what"] for fact in ledger["revealed"]]
    assert any("eps = 0.1 a count" in what for what in whats)
    assert any("which all sites know" in what for what in whats)


def test_the_accounting_of_the_paper(folder, tmp_path, capsys, monkeypatch):
    drawn = fixed_noise(monkeypatch, [0])
    code, *_ = nb(
        capsys, tmp_path / "out", "--data", folder / "all.csv", *VDPNB, "--parties", 2,
        "--epsilon", 0.5, "--accounting", "count",
    )  # fmt: skip
    _, summary, _ = outputs(tmp_path / "out")
    assert code == 0 and {rate for rate, _ in drawn} == {2.0} and summary["test"] is None
    assert summary["promise"]["eps"] == pytest.approx(2.5)


def test_products_classify_as_sums_do(folder, tmp_path, capsys, monkeypatch):
    fixed_noise(monkeypatch, [1, -2])
    found = []
    for via in ("product", "additive"):
        code, *_ = nb(
            capsys, tmp_path / via, "--data", folder / "all.csv", *VDPNB, "--parties", 2,
            "--epsilon", 1, "--holdout", 0.01, "--via", via,
        )  # fmt: skip
        assert code == 0
        found.append(outputs(tmp_path / via)[1]["test"])
    assert found[0]["accuracy"] == found[1]["accuracy"] and found[0]["auc"] == found[1]["auc"]
    assert found[0]["predicted_by"].startswith("products of counts")


def test_its_model_predicts(folder, tmp_path, capsys):
    nb(capsys, tmp_path / "m", "--data", folder / "ids.csv.gz", *VDPNB, "--parties", 2,
       "--noise", "none", "--id-column", "id", "--exclude", "CVP")  # fmt: skip
    code, _ = predict(
        capsys, "--model", tmp_path / "m" / "model.bif", "--data", folder / "all.csv",
        "--target", "LVFAILURE", "--out", tmp_path / "p.csv",
    )  # fmt: skip
    rows = read_rows(tmp_path / "p.csv")
    assert code == 0 and len(rows) == 2001 and rows[0][0] == "LVFAILURE"
    assert all(0 <= float(p) <= 1 for row in rows[1:] for p in row[1:-1])
    assert "CVP" not in json.loads((tmp_path / "m" / "structure.json").read_text())["nodes"]


def test_bins_and_gaps(tmp_path, capsys, monkeypatch):
    """Bins cut from the data are told of; records without a class teach nothing."""
    fixed_noise(monkeypatch, [-1000])
    generator = np.random.default_rng(1)
    x = generator.normal(size=300).round(2)
    rows = [[v, int(v > 0), "" if i < 7 else "ab"[i % 2]] for i, v in enumerate(x)]
    path = write(tmp_path / "n.csv", ["x", "z", "y"], rows)
    code, _, warned = nb(
        capsys, tmp_path / "out", "--data", path, "--method", "vdpnb", "--target", "y",
        "--parties", 2, "--epsilon", 0.1, "--holdout", 0.1,
    )  # fmt: skip
    assert code == 0 and "the bins of x are cut from it: --epsilon does not cover" in warned
    assert "records have no y: they are not learned from" in warned
    network = read_model(tmp_path / "out" / "model.bif")
    assert (network.cpts["z"] == 0.5).all(), "noise that drowns all counts leaves alpha"
    assert np.isfinite(outputs(tmp_path / "out")[1]["test"]["accuracy"])


def bad():
    epsilon = ["--epsilon", "1"]
    yield ["--epsilon", "0"], "--epsilon must be a number, at least 1e-06 and at most 100, got 0"
    yield ["--epsilon", "-1"], "--epsilon must be a number, at least 1e-06 and at most 100, got -1"
    yield ["--epsilon", "nan"], "at most 100, got nan"
    yield [], "specify --epsilon E, or --noise none"
    yield [*epsilon, "--noise", "none"], "specify --epsilon E, or --noise none"
    yield [*epsilon, "--noise", "polya"], "--noise polya: vdpnb has laplace or none"
    yield [*epsilon, "--via", "masked"], "--via masked: vdpnb has additive or product"
    yield [*epsilon, "--protect", "party"], "--protect party: vdpnb has record"
    yield [*epsilon, "--accounting", "x"], "--accounting must be whole or count, got x"
    yield [*epsilon, "--gamma", "0.5"], "polya or diluted alone, got laplace"
    yield [*epsilon, "--method", "snb"], "federated, gossip or ldp, got snb"
    yield [*epsilon, "--method", "hdpnb", "--noise", "laplace"], "hdpnb has polya or diluted"
    yield [*epsilon, "--parties", "1"], "--parties must be between 2 and 2"
    yield [*epsilon, "--parties", "3"], "each site holds at least one"
    yield [*epsilon, "--target", "q"], "--target q: no such column; there are a, b, c"
    yield [*epsilon, "--alpha", "0"], "alpha = 0.0: it must be a finite number above 0"
    yield [*epsilon, "--alpha", "nan"], "--alpha must be a number, at least 0, got nan"
    yield [*epsilon, "--holdout", "1"], "--holdout must be a number, above 0 and below 1, got 1"
    yield [*epsilon, "--holdout", "0.001"], "--holdout 0.001 of 40 records: none is left"
    yield [*epsilon, "--holdout", "0.1", "--test", "g.csv"], "--test and --holdout both"
    yield [*epsilon, "--test", "none.csv"], "none.csv: no such file"
    yield (
        [*epsilon, "--test", "bad.csv"],
        "has no value that the model knows: a has 'novel'",
    )
    yield [*epsilon, "--test", "notarget.csv"], "no column 'c', the target"
    yield [*epsilon, "--test", "noclass.csv"], "no record to test on has a c"
    yield [*epsilon, "--exclude", "z"], "--exclude z: no such column"
    yield [*epsilon, "--holdout", ".1", "--via", "product", "--alpha", ".5"], "whole numbers"
    yield (
        [*epsilon, "--data", "one.csv"],
        "--target c: the column is left out: one value, 'x', in all 18 records",
    )
    yield [*epsilon, "--data", "gone.csv"], "c has records of one class"
    yield ["--epsilon", "1e-15"], "at least 1e-06 and at most 100, got 1e-15"


@pytest.mark.parametrize(("options", "reason"), list(bad()))
def test_what_is_refused(tmp_path, capsys, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    records = "".join(f"{i % 2},{i // 2 % 3},{'xy'[i % 5 > 2]}\n" for i in range(40))
    (tmp_path / "g.csv").write_text("a,b,c\n" + records)
    (tmp_path / "bad.csv").write_text("a,b,c\nnovel,novel,novel\n")
    (tmp_path / "notarget.csv").write_text("a,b\n0,1\n")
    (tmp_path / "noclass.csv").write_text("a,b,c\n0,1,\n")
    (tmp_path / "one.csv").write_text("a,b,c\n" + "0,0,x\n1,1,x\n" * 9)
    (tmp_path / "gone.csv").write_text("a,b,c\n" + "0,0,x\n1,1,x\n" * 9 + "1,0,y\n")
    given = ["--data", "g.csv", "--method", "vdpnb", "--target", "c", "--parties", "2", *options]
    if "gone.csv" in given:  # the one record of class y is held out
        seed = next(s for s in range(99) if np.random.default_rng(s).permutation(19)[0] == 18)
        given += ["--holdout", "0.06", "--seed", str(seed)]
    assert_refused(capsys, tmp_path, reason, *given)


def test_products_that_do_not_fit(tmp_path, capsys, monkeypatch):
    """They are refused before anything is counted."""
    monkeypatch.setattr("vertibayes_protocols.queries.columns.publish.count_tables", pytest.fail)
    generator = np.random.default_rng(1)
    names = [f"x{i}" for i in range(250)]
    path = write(tmp_path / "w.csv", [*names, "y"], generator.integers(0, 2, (1000, 251)).tolist())
    assert_refused(
        capsys, tmp_path, "at most (p - 1) / 2 of 2048 bits", "--data", path, "--method", "vdpnb",
        "--target", "y", "--parties", 250, "--epsilon", 1, "--via", "product", "--holdout", 0.1,
    )  # fmt: skip


def test_noise_without_opendp(tmp_path, capsys, monkeypatch):
    (tmp_path / "g.csv").write_text("a,b,c\n" + "0,1,x\n1,0,y\n" * 9)
    monkeypatch.setattr("vertibayes.cli.naive_bayes_learning.find_spec", lambda name: None)
    assert_refused(
        capsys, tmp_path, "pip install 'vertibayes[noise]'", "--data", tmp_path / "g.csv",
        "--method", "vdpnb", "--target", "c", "--parties", 2, "--epsilon", 1,
    )  # fmt: skip


def test_what_all_sites_know_of_the_class_is_noted_before_tables_are_published(
    folder, tmp_path, capsys, monkeypatch
):
    def fail(*_):
        raise ValueError("no table left a site")

    monkeypatch.setattr("vertibayes.cli.naive_bayes.publish", fail)
    given = ["--data", folder / "all.csv", *VDPNB, "--parties", 3, "--epsilon", 1]
    assert nb(capsys, tmp_path / "out", *given)[0] == 2
    facts = json.loads((tmp_path / "out" / "ledger.json").read_text())["revealed"]
    assert [fact["what"] for fact in facts] == [
        "the LVFAILURE of every record, which all sites know beforehand",
        "the counts of each LVFAILURE",
    ]
