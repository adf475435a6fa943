"""The federation against pooled learning, and both against references of others."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts, scores
from vertibayes.parameters.em import fit_em
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

# An independent reference: at most 3 parents, file order. arcs, K2 score in nats.
REFERENCE = {
    "asia/asia.csv.gz": (8, -22476.311472500),
    "alarm/alarm.csv.gz": (75, -110835.764389671),
    "diabetes/diabetes_binned.csv": (4, -12237.158655200),
    "iris/iris_binned.csv": (4, -1089.726504789),
}
ARCS = {
    "diabetes/diabetes_binned.csv": {
        ("SkinThickness", "Insulin"), ("SkinThickness", "BMI"), ("Pregnancies", "Age"),
        ("Glucose", "Outcome"),
    },
}  # fmt: skip


def read(path):
    columns = read_columns(path)
    columns.pop("record_id")
    return SiteData.from_text("pooled", columns, Encoding())


def assert_identical(data, sites, seed, **options):
    """Structures, counts and CPTs over sites are those of pooled data, to the last bit."""
    plain = PlainCounter(data)
    wanted = k2(plain, **options)
    with federate(split_columns(data, sites, seed)) as federation:
        secure = SecureCounter.of(federation, order=list(data.variables))
        structure = k2(secure, **options)
        assert structure == wanted
        missing = options.get("missing", False)
        network = fit_cpts(secure, structure, missing=missing)
        unsmoothed = fit_cpts(secure, structure, missing=missing, pseudo_count=0)
        tables = secure.tables(structure.families, missing=missing)
    assert all(map(np.array_equal, tables, plain.tables(wanted.families, missing=missing)))
    for found, options in ((network, {}), (unsmoothed, {"pseudo_count": 0})):
        pooled = fit_cpts(plain, wanted, missing=missing, **options)
        assert all(np.array_equal(found.cpts[n], pooled.cpts[n]) for n in structure.nodes)
    return wanted


@pytest.mark.parametrize("sites", [1, 2, 3, 5, 8])
def test_alarm_over_sites(alarm_data, sites):
    data = alarm_data.take(list(alarm_data.variables)[:16])
    assert assert_identical(data, sites, sites).edges


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("sites", [2, 4])
def test_missing_cells_over_sites(gaps, sites, missing):
    assert assert_identical(gaps, sites, sites, missing=missing).edges


def pyagrum_k2(data, max_parents):
    """Return pyAgrum's K2 structure: {child: parents}."""
    import pandas as pd
    import pyagrum as gum

    names = list(data.variables)
    frame = pd.DataFrame({n: np.array(data.variables[n].states)[data.codes[n]] for n in names})
    learner = gum.BNLearner(frame)
    learner.useScoreK2()
    learner.useK2([learner.idFromName(name) for name in names])
    learner.setMaxIndegree(max_parents)
    learned = learner.learnBN()
    parents = {n: {learned.variable(p).name() for p in learned.parents(n)} for n in names}
    return {child: found for child, found in parents.items() if found}


def parents_of(structure):
    return {child: set(found) for child, found in structure.parents.items() if found}


def test_alarm_equals_pyagrum(alarm_data):
    observed = [
        n
        for n, c in alarm_data.codes.items()
        if len(set(c.tolist())) == len(alarm_data.variables[n].states)
    ]
    data = alarm_data.take(observed)
    for max_parents in (1, 2, 3):
        structure = k2(PlainCounter(data), max_parents=max_parents)
        assert parents_of(structure) == pyagrum_k2(data, max_parents)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_over_sites(data_folder, name):
    data = read(data_folder / name)
    arcs, score = REFERENCE[name]
    for sites in (2, 3, 5, 8):
        sites = min(sites, len(data.variables))
        structure = assert_identical(data, sites, seed=sites)
    assert len(structure.edges) == arcs
    assert scores(PlainCounter(data), structure).k2 == pytest.approx(score, abs=1e-6)
    assert parents_of(structure) == pyagrum_k2(data, 3)
    assert set(structure.edges) == ARCS.get(name, set(structure.edges))


def test_asia_is_the_true_network(data_folder):
    data = read(data_folder / "asia/asia.csv.gz")
    true = json.loads((data_folder / "asia/structure.json").read_text())["edges"]
    assert set(k2(PlainCounter(data)).edges) == {tuple(edge) for edge in true}


@pytest.mark.parametrize(
    ("name", "arcs"),
    [
        ("asia/asia_missing05.csv.gz", 8),
        ("asia/asia_missing10.csv.gz", 8),
        ("asia/asia_missing30.csv.gz", 8),
        ("alarm/alarm_missing05.csv.gz", 76),
        ("alarm/alarm_missing10.csv.gz", 74),
        ("alarm/alarm_missing30.csv.gz", 73),
    ],
)
def test_gains_over_the_same_records(data_folder, name, arcs):
    data = read(data_folder / name)
    assert len(assert_identical(data, 3, seed=1).edges) == arcs


@pytest.mark.laws
def test_em_equals_pyagrums(data_folder, tmp_path):
    """Asia, 10 % of the cells missing: the CPTs agree to 1e-6."""
    import pyagrum as gum

    columns = read_columns(data_folder / "asia/asia_missing10.csv.gz")
    columns.pop("record_id")
    data = SiteData.from_text("asia", columns)
    edges = json.loads((data_folder / "asia/structure.json").read_text())["edges"]
    structure = Structure.of(list(data.variables), edges)
    ours = fit_em(data, structure, pseudo_count=0, tolerance=1e-12).network
    texts = [np.array([*v.states, "?"])[data.codes[n]] for n, v in data.variables.items()]
    alike = Counter(zip(*texts, strict=True))  # pyAgrum takes weights
    lines = [",".join(row) for row in (data.variables, *alike)]
    (tmp_path / "asia.csv").write_text("\n".join(lines) + "\n")
    network = gum.BayesNet()
    for name, variable in data.variables.items():
        network.add(gum.LabelizedVariable(name, name, list(variable.states)))
    for parent, child in structure.edges:
        network.addArc(parent, child)
    learner = gum.BNLearner(str(tmp_path / "asia.csv"), network, ["?"])
    for place, records in enumerate(alike.values()):
        learner.setRecordWeight(place, float(records))
    learner.useEM(1e-8, 0.1)
    theirs = learner.learnParameters(network.dag())
    for name, parents in structure.parents.items():
        wanted = theirs.cpt(name).reorganize([name, *parents]).toarray()
        got = ours.cpts[name].transpose(range(len(parents), -1, -1))
        assert got == pytest.approx(wanted, abs=1e-6)
