"""``vertibayes calibrate``, as a user types it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.e2e.command import FILES as LEARNED
from tests.e2e.command import read_rows, run, write
from vertibayes.calibration.models import to_naive_bayes
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes.cli.inputs import read_pooled
from vertibayes.cli.source import Source
from vertibayes.naive_bayes.model_file import read_naive_bayes
from vertibayes.network import read_model
from vertibayes_protocols.calibration.classifier import naive_bayes
from vertibayes_protocols.schema import Schema

RECORDS = 300
FILES = LEARNED - {"ledger.json", "counts.json"} | {
    "calibration.json", "calibration.svg", "network.json", "network.svg",
}  # fmt: skip
NO_HELP = (
    "RC on pooled records has its lowest loss at its start, which is maximum likelihood: "
    "calibration does not help on these records"
)
FEW = ("--target", "y", "--rounds", 6)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    draw = np.random.default_rng(8)
    y = draw.integers(0, 2, RECORDS)
    age = np.clip(draw.normal(40 + 15 * y, 10), 0, 100).round(2)
    a, b = ((y + (draw.random(RECORDS) < share)) % 2 for share in (0.2, 0.35))
    z = (a + draw.integers(0, 2, RECORDS)) % 3
    columns = np.array(["no", "yes"])[y], age, np.array(["f", "m"])[a], np.array(["u", "v"])[b], z
    folder = tmp_path_factory.mktemp("calibrate")
    return write(folder / "all.csv", ["y", "age", "a", "b", "z"], zip(*columns, strict=True))


def calibrate(capsys, out, *arguments):
    """Run calibrate; return (exit status, standard output, standard error)."""
    return run(capsys, "calibrate", "--out", out, *arguments)


def read(out, name):
    return json.loads((out / f"{name}.json").read_text())


def pooled_classifier(path):
    """Plain reading of the file, without numbers."""
    (data,) = read_pooled(Source((str(path),), exclude=("age",))).data.values()
    features = {n: v for n, v in data.variables.items() if n != "y"}
    schema = Schema(data.variables["y"], features)
    classifier = naive_bayes(schema, {})
    return schema, classifier, classifier.examples(data.local)


def test_all_files_are_written_and_agree(data, tmp_path, capsys):
    out = tmp_path / "out"
    code, shown, error = calibrate(
        capsys, out, "--data", data, *FEW, "--nodes", 5, "--exclude", "age", "--test", data
    )
    assert (code, error) == (0, f"warning: {NO_HELP}\n")  # naive Bayes is the truth
    assert {path.name for path in out.iterdir()} == FILES
    trace, summary = read(out, "calibration"), read(out, "summary")
    _, classifier, examples = pooled_classifier(data)
    rc = risk_based_calibration(classifier, examples, 6)
    pooled = trace["pooled"]["risk_based_calibration"]
    assert pooled["training_error"] == (rc.errors / RECORDS).tolist()
    assert pooled["best_iteration"] == rc.best and pooled["error"] == rc.errors[rc.best] / RECORDS
    last = trace["rounds"][-1]
    errors = [node["error"] for node in trace["nodes"].values()]
    assert last["error"]["mean"] == pytest.approx(np.mean(errors))
    assert (last["round"], last["present"]) == (6, 5)
    assert sum(node["records"] for node in trace["nodes"].values()) == RECORDS
    assert summary["gap"] == pytest.approx(np.mean(errors) - pooled["error"])
    assert f"gap to RC: {summary['gap']:+.4f}" in shown and "relay, start data" in shown
    assert (summary["data"], summary["seed"]) == (str(data), 0)
    assert summary["message"] == {"numbers": 33} and "a message has 33 numbers" in shown
    assert f"error on {RECORDS} test records" in shown
    picture = (out / "calibration.svg").read_text()
    assert all(text in picture for text in ("RC, pooled", "maximum likelihood", "nodes, mean"))
    assert (out / "network.svg").read_text().count("node-") >= 5


def test_the_model_is_that_of_one_node_that_has_all_records(data, tmp_path, capsys):
    out = tmp_path / "out"
    code, *_ = calibrate(
        capsys, out, "--data", data, *FEW, "--nodes", 3, "--exclude", "age", "--quiet",
        "--mixing", "metropolis", "--network", "complete", "--start", "uniform",
    )  # fmt: skip
    assert code == 0
    schema, classifier, examples = pooled_classifier(data)
    uniform = classifier.uniform(RECORDS / 0.05 / 3)
    # Theorem 1 of Pérez et al.: on a complete network, CRC is RC with the rate 1 / n.
    rc = risk_based_calibration(classifier, examples, 6, rate=1 / 3, start=uniform)
    model = to_naive_bayes(classifier, schema, rc.last)
    cpts = read_model(out / "model.bif").cpts
    for name, cpt in model.to_network().cpts.items():
        assert cpts[name] == pytest.approx(cpt, abs=1e-9)


@pytest.mark.parametrize("which", [["--numbers", "all"], ["--bounds", "age=0,100"]])
def test_numbers_stay_numbers(data, tmp_path, capsys, which):
    out = tmp_path / "out"
    code, shown, warned = calibrate(
        capsys, out, "--data", data, *FEW, "--nodes", 4, *which, "--holdout", 0.25, "--drift", "y"
    )
    assert code == 0 and "model of the nodes' mean statistics: naive_bayes.json" in shown
    assert ("come from the pooled records: age=" in warned) == (which[0] == "--numbers")
    model = read_naive_bayes(out / "naive_bayes.json")
    assert set(model.schema.numerics) == ({"age", "z"} if which[1] == "all" else {"age"})
    new = tmp_path / "new.csv"
    write(new, ["age", "a", "b", "z"], [[20, "f", "u", 0], [75, "m", "v", 1]])
    code, _, error = run(capsys, "predict", "--model", out / "naive_bayes.json", "--data", new,
                         "--target", "y", "--out", tmp_path / "new.out.csv")  # fmt: skip
    assert code == 0, error
    assert [row[0] for row in read_rows(tmp_path / "new.out.csv")[1:]] == ["no", "yes"]


def test_numbers_with_covariances_are_quadratic_discriminant_analysis(data, tmp_path, capsys):
    out, options = tmp_path / "out", ("--covariance", "full", "--nodes", 4)
    code, _, error = calibrate(
        capsys, out, "--data", data, *FEW, "--numbers", "all", *options, "--network", "ring"
    )
    assert code == 0, error
    model = read_naive_bayes(out / "naive_bayes.json")
    assert model.cov_.shape == (2, 2, 2) and (model.cov_[:, 0, 1] != 0).all()
    code, _, error = calibrate(
        capsys, tmp_path / "one", "--data", data, *FEW, "--bounds", "age=0,100", *options
    )
    assert code != 0 and "--covariance full needs two or more columns that stay numbers" in error
    (structure := tmp_path / "structure.json").write_text(json.dumps({"nodes": ["y"], "edges": []}))
    code, _, error = calibrate(
        capsys, tmp_path / "two", "--data", data, *FEW, "--structure", structure, *options
    )
    assert code != 0 and "--covariance full excludes --structure" in error


def test_a_network_of_states_is_calibrated_on_a_network_of_a_file(data, tmp_path, capsys):
    structure, network = tmp_path / "structure.json", tmp_path / "network.json"
    edges = [["y", "a"], ["a", "b"], ["y", "b"], ["z", "y"]]
    structure.write_text(json.dumps({"nodes": ["y", "a", "b", "z"], "edges": edges}))
    network.write_text(json.dumps({"nodes": ["n", "o", "p"], "edges": [["n", "o"], ["p", "o"]]}))
    out = tmp_path / "out"
    code, _, warned = calibrate(
        capsys, out, "--data", data, *FEW, "--network", network, "--structure", structure
    )
    assert code == 0 and "not in --structure, and therefore not used: age\n" in warned
    model = read_model(out / "model.bif")
    assert model.structure.parents == {"y": ("z",), "a": ("y",), "b": ("a", "y"), "z": ()}
    assert read(out, "network") == {"nodes": ["n", "o", "p"], "edges": [["n", "o"], ["o", "p"]]}
    error = read(out, "summary")["error"]["nodes"]["mean"]
    rows = read_rows(data)[1:]
    run(capsys, "predict", "--model", out / "model.json", "--data", data, "--target", "y",
        "--out", tmp_path / "p.csv")  # fmt: skip
    predicted = [row[0] for row in read_rows(tmp_path / "p.csv")[1:]]
    wrong = np.mean([p != row[0] for p, row in zip(predicted, rows, strict=True)])
    assert wrong == pytest.approx(error, abs=0.02)  # of the nodes' mean statistics


@pytest.mark.parametrize(
    ("options", "mixing", "present"),
    [
        (("--changes", 2, "--network", "tree"), "mean", {6}),
        (("--leaving", 0.4), "mean", {2, 3, 4, 5, 6}),
        (("--leaving", 0.4, "--mixing", "relay"), "relay", {2, 3, 4, 5, 6}),
        (("--asleep", 0.5, "--network", "ring"), "mean", {1, 2, 3, 4, 5}),
        (("--network", "erdos-renyi", "--extra-edges", 1), "relay", {6}),
    ],
)
def test_networks_that_change_and_nodes_that_leave(
    data, tmp_path, capsys, options, mixing, present
):
    out = tmp_path / "out"
    code, shown, error = calibrate(capsys, out, "--data", data, *FEW, "--nodes", 6, *options)
    assert code == 0, error
    assert f"{mixing}, start data" in shown
    counts = {row["present"] for row in read(out, "calibration")["rounds"]}
    assert counts <= present | {6} and (len(counts) > 1 or present == {6})


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (
            ("--rate", 1, "--exclude", "age"),
            "the loss of RC on pooled records rises in its first iterations with",
        ),
        (("--start", "uniform"), "a relay with --start uniform converges slowly, and its errors"),
        (("--drift", "y", "--start", "uniform", "--mixing", "mean"), "the nodes have an error of"),
        (("--size", 1, "--start", "uniform", "--mixing", "mean"), "in the last round the nodes'"),
    ],
)
def test_results_that_disappoint_have_a_warning_that_says_why(
    data, tmp_path, capsys, options, warning
):
    code, _, error = calibrate(
        capsys, tmp_path / "out", "--data", data, *FEW, "--nodes", 6, *options
    )
    assert code == 0 and f"warning: {warning}" in error
    assert NO_HELP not in error
    summary = read(tmp_path / "out", "summary")["error"]
    nodes, likelihood = summary["nodes"]["mean"], summary["maximum_likelihood"]
    both = f"an error of {nodes:.4f} after the last round, maximum likelihood of the records of all"
    assert (nodes > likelihood + 0.005) == (f"{both} nodes {likelihood:.4f} (on 300" in error)


def test_records_without_a_class_are_counted_and_left_out(tmp_path, capsys):
    rows = [["ab"[i % 2], "" if i < 3 else "uv"[i % 2]] for i in range(40)]
    path = write(tmp_path / "gaps.csv", ["x", "y"], rows)
    code, shown, warned = calibrate(
        capsys, tmp_path / "out", "--data", path, *FEW, "--nodes", 37, "--network", "star"
    )
    assert code == 0 and shown.startswith("37 records")
    assert "warning: 3 records have no y: they are not learned from\n" in warned
    assert read(tmp_path / "out", "summary")["error"]["nodes"]["mean"] == 0


def test_equal_seeds_give_equal_files(data, tmp_path, capsys):
    for name in "ab":
        calibrate(capsys, tmp_path / name, "--data", data, *FEW, "--nodes", 7, "--seed", 3,
                  "--numbers", "age", "--leaving", 0.2)  # fmt: skip
    for path in sorted((tmp_path / "a").iterdir()):
        if path.name not in ("summary.json", "report.html"):  # which have the seconds
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


MISTAKES = [
    (("--target", "age"), "--target age: its column has numbers, and a class has states; --cut"),
    (("--target", "q"), "--target q: no such column; there are y, age, a, b, z"),
    (("--nodes", 301), "--nodes must be at most 300 (the number of records to learn from), got"),
    (("--nodes", 1), "--nodes must be a whole number, at least 2, got 1"),
    (("--rate", 0), "--rate must be a number, above 0 and at most 1, got 0"),
    (
        ("--network", "grid"),
        "--network must be tree, erdos-renyi, small-world, chain, ring, star, ",
    ),
    (("--network", "no.json"), "no.json: no such file"),
    (("--network", "small-world"), "--network small-world needs --nodes 5 or more"),
    (("--extra-edges", 9), "--network tree: --extra-edges must be between 0 and 3"),
    (("--network", "chain", "--changes", 3), "and each chain is the same: use --network tree or"),
    (("--mixing", "relay", "--changes", 3), "--mixing relay needs a network that stays as it is"),
    (("--mixing", "relay", "--asleep", 0.1), "--asleep has an effect with --mixing mean or metro"),
    (("--size", 9), "--size has an effect with --mixing mean or metropolis alone, got relay"),
    (("--mixing", "sum"), "--mixing must be mean, metropolis or relay, got sum"),
    (("--drift", "both"), "--drift must be none, x, y or xy, got both"),
    (("--numbers", "q"), "--numbers q: no such column; there are y, age, a, b, z"),
    (("--numbers", "y"), "--numbers y: the column is the target, and a class has states; leave it"),
    (
        ("--mixing", "mean", "--start", "uniform", "--size", 1e-3),
        "times is expected; specify a larger size, or a lower rate",
    ),
    (("--numbers", "a"), "--numbers a: the column has '"),
    (("--holdout", 0.5, "--test", __file__), "--test and --holdout both say what to test on"),
    (("--holdout", 0.001), "--holdout 0.001 of 300 records: none is left to test on"),
    (("x.csv",), "unexpected argument 'x.csv'"),
]


@pytest.mark.parametrize(("options", "reason"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_refused_in_one_sentence(data, tmp_path, capsys, options, reason):
    given = [*FEW, "--nodes", 4]
    for option in options[::2]:
        if option in given:
            place = given.index(option)
            given[place : place + 2] = []
    code, shown, error = calibrate(capsys, tmp_path / "out", "--data", data, *given, *options)
    assert (code, shown) == (2, "")
    assert error.startswith("vertibayes: ") and error.count("\n") == 1
    assert reason in error and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("nodes", "edges", "reason"),
    [
        ("yab", [], "--structure has no edge from or to 'y', the target"),
        ("ab", ["ab"], "--structure has no node 'y', the target"),
        ("yaq", ["yq"], "--structure: 'q': no such column"),
        ("ya", ["ya", "ay"], "the structure must not have a cycle"),
    ],
)
def test_structures_that_do_not_fit_are_refused(data, tmp_path, capsys, nodes, edges, reason):
    path = tmp_path / "structure.json"
    path.write_text(json.dumps({"nodes": list(nodes), "edges": list(map(list, edges))}))
    code, _, error = calibrate(
        capsys, tmp_path / "out", "--data", data, *FEW, "--nodes", 4, "--structure", path
    )
    assert code == 2 and reason in error and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("edges", "more", "reason"),
    [
        (["no"], (), "no path between n and p"),
        ([], (), "--network {path}: it must have at least 2 nodes, got 1"),
        (["no", "op"], ("--nodes", 4), "--nodes 4: {path} has 3 nodes; leave out --nodes"),
        (["no", "op"], ("--extra-edges", 1), "--extra-edges adds to a network that is drawn"),
        (["no", "op"], ("--changes", 1), "--changes draws a network again"),
    ],
)
def test_networks_of_files_that_do_not_fit_are_refused(data, tmp_path, capsys, edges, more, reason):
    path = tmp_path / "network.json"
    path.write_text(
        json.dumps({"nodes": list("nop" if edges else "n"), "edges": list(map(list, edges))})
    )
    code, _, error = calibrate(
        capsys, tmp_path / "out", "--data", data, *FEW, "--network", path, *more
    )
    assert code == 2 and reason.format(path=path) in error and not (tmp_path / "out").exists()
