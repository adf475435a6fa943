import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.network import Network
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.validation.measures import auc
from vertibayes.validation.methods import Without, public, scv, svdg
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable

TARGET = "HYPOVOLEMIA"


def test_auc_equals_scikit_learns():
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet([1, 1, 1], 200).round(1)  # with ties
    classes = generator.integers(0, 3, 200)
    areas = [roc_auc_score(classes == k, probabilities[:, k]) for k in range(3)]
    found = auc(classes, probabilities, "xyz")
    assert list(found.by_class.values()) == pytest.approx(areas)
    assert found.auc == pytest.approx(np.average(areas, weights=np.bincount(classes)))
    assert (found.scored, found.left_out) == (200, 0)


def test_records_without_a_class_are_left_out_and_counted():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    found = auc(np.array([0, 1, 2]), probabilities, ("a", "b"))
    assert found.auc == 1.0 and (found.scored, found.left_out) == (2, 1)


@pytest.mark.parametrize("classes", [[0, 0, 0], [2, 2, 2], []])
def test_one_class_or_none_has_no_area(classes):
    found = auc(np.array(classes, int), np.full((len(classes), 2), 0.5), ("a", "b"))
    assert found.auc is None and not found.by_class


def test_a_class_absent_gives_no_wrong_number():
    probabilities = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    found = auc(np.array([0, 2]), probabilities, "abc")
    assert set(found.by_class) == {"a", "c"} and found.auc == 1.0


def test_probabilities_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"must have the shape \(2, 2\)"):
        auc(np.array([0, 1]), np.ones((2, 3)), "ab")


@pytest.fixture(scope="module")
def records(alarm_network):
    return with_gaps(sample(alarm_network, 3000, seed=2), 0.1)


def test_the_three_ways_agree_where_the_structure_is_true(alarm_network, records):
    counter, structure = PlainCounter(records), alarm_network.structure
    fresh = with_gaps(sample(alarm_network, 3000, seed=3), 0.1)
    wanted = public(alarm_network, fresh, TARGET).overall
    assert wanted.left_out == (fresh.codes[TARGET] == 2).sum() > 0
    for validate in (scv, svdg):
        found = validate(counter, structure, TARGET, folds=3)
        assert found.overall.auc == pytest.approx(wanted.auc, abs=0.05)
        assert len(found.by_fold) == 3
        assert sum(fold.scored for fold in found.by_fold) == found.overall.scored


def test_a_difference_of_counters_is_the_counter_of_the_others(records):
    counter = PlainCounter(records)
    rows, family = Rows(0, 500, 900), Family(TARGET, ("CVP",))
    rest = Without(counter, rows)
    (got,) = rest.tables([family], missing=True)
    parts = [
        counter.tables([family], missing=True, rows=Rows(0, *p))[0] for p in ((0, 500), (900, None))
    ]
    assert np.array_equal(got, sum(parts)) and rest.records == 2600
    with pytest.raises(ValueError, match="rows cannot be chosen"):
        rest.tables([family], rows=rows)


def test_over_sites(alarm_network, records):
    names = ["HISTORY", "LVFAILURE", "HYPOVOLEMIA", "LVEDVOLUME", "CVP"]

    structure = Structure.of(names, [("LVFAILURE", "HISTORY"), ("LVFAILURE", "LVEDVOLUME"),
                                     (TARGET, "LVEDVOLUME"), ("LVEDVOLUME", "CVP")])  # fmt: skip
    data = records.take(names)
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation, order=names)
        found = svdg(counter, structure, TARGET, folds=5)
        tables = {table.rows for table in counter.ledger.tables}
    assert len(tables) == 6, "all records, and each fold's"
    pooled = svdg(PlainCounter(data), structure, TARGET, folds=5)
    assert found.overall.auc == pytest.approx(pooled.overall.auc, abs=0.05)


def test_what_cannot_be_validated(alarm_network, records):
    counter, structure = PlainCounter(records), alarm_network.structure
    with pytest.raises(ValueError, match="no node 'x'"):
        scv(counter, structure, "x")
    with pytest.raises(ValueError, match="folds must be between 2"):
        svdg(counter, structure, TARGET, folds=1)
    other = SiteData({TARGET: Variable(TARGET, ("a", "b"))}, {TARGET: np.zeros(3, np.uint8)})
    with pytest.raises(ValueError, match="other states"):
        public(alarm_network, other, TARGET)
    with pytest.raises(ValueError, match="no variable"):
        public(alarm_network, records.take(["CVP"]), TARGET)


def test_divergence_by_hand():
    variables = {"a": Variable("a", ("x", "y"))}
    one, other = (
        Network(Structure({"a": ()}), variables, {"a": np.array(cpt)})
        for cpt in ([0.5, 0.5], [0.9, 0.1])
    )
    assert divergence(one, other) == pytest.approx(0.5 * np.log(5 / 9) + 0.5 * np.log(5))
    assert divergence(one, one) == 0
    sure = Network(Structure({"a": ()}), variables, {"a": np.array([1.0, 0.0])})
    assert divergence(one, sure) == np.inf
    with pytest.raises(ValueError, match="the same structure"):
        divergence(one, Network(Structure({"b": ()}), {"b": variables["a"]}, {"b": np.ones(2) / 2}))


def test_folds_are_not_ranked_together():
    """Nothing to learn: each fold's prior moves against its classes, and the mean is a half."""
    generator = np.random.default_rng(3)
    data = SiteData(
        {"t": Variable("t", ("0", "1"))}, {"t": generator.integers(0, 2, 300).astype(np.uint8)}
    )
    found = svdg(PlainCounter(data), Structure({"t": ()}), "t", folds=5)
    assert found.overall.auc == 0.5 and all(fold.auc == 0.5 for fold in found.by_fold)


def test_equal_probabilities_are_not_ranked_by_their_rounding():
    """The target depends on nothing; the posterior's last digits depend on the evidence."""
    generator = np.random.default_rng(4)
    names = [f"x{i}" for i in range(6)]
    structure = Structure({"t": (), "x0": (), **dict.fromkeys(names[1:], ("x0",))})
    variables = {n: Variable(n, ("0", "1")) for n in structure.nodes}
    cpts = {n: generator.dirichlet([1, 1], 2).T for n in names[1:]}
    network = Network(
        structure, variables, {"t": np.array([0.3, 0.7]), "x0": np.array([0.6, 0.4]), **cpts}
    )
    codes = {n: generator.integers(0, 2, 400).astype(np.uint8) for n in names}
    data = SiteData(variables, {"t": codes["x3"], **codes})
    assert public(network, data, "t").overall.auc == 0.5


def test_a_fold_that_cannot_be_learned_has_no_area():
    """The one value of u lies in one fold: without it u cannot be learned."""
    u = np.full(60, 2, np.uint8)
    u[7] = 1
    data = SiteData(
        {"t": Variable("t", ("0", "1")), "u": Variable("u", ("0", "1"), missing=True)},
        {"t": np.arange(60, dtype=np.uint8) % 2, "u": u},
    )
    found = svdg(PlainCounter(data), Structure({"t": (), "u": ("t",)}), "t", folds=3)
    assert [fold.scored for fold in found.by_fold].count(0) == 1
    assert found.overall.scored == 40


def test_scv_over_sites_is_that_over_pooled_data(alarm_network, records):
    names = ["HISTORY", "LVFAILURE", "HYPOVOLEMIA", "LVEDVOLUME", "CVP"]
    data = records.take(names)
    edges = [("LVFAILURE", "HISTORY"), (TARGET, "LVEDVOLUME"), ("LVEDVOLUME", "CVP")]
    structure = Structure.of(names, edges)
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation, order=names)
        assert (
            scv(counter, structure, TARGET).overall
            == scv(PlainCounter(data), structure, TARGET).overall
        )


@pytest.mark.parametrize("method", [scv, svdg])
def test_a_spread_is_the_standard_deviation_of_draws(records, method):
    names = ["LVFAILURE", TARGET, "LVEDVOLUME"]
    structure = Structure.of(names, [("LVFAILURE", "LVEDVOLUME"), (TARGET, "LVEDVOLUME")])
    counter = PlainCounter(records.take(names))
    done = []

    def progress(now, most):
        done.append((now, most))

    found = method(counter, structure, TARGET, folds=4, draws=3, progress=progress)
    once = method(counter, structure, TARGET, folds=4)
    assert found.overall == once.overall and once.spread is None
    assert 0 < found.spread < 0.05 and done == [(now, 12) for now in range(12)]
    if method is scv:
        areas = [scv(counter, structure, TARGET, folds=4, seed=k).overall.auc for k in range(3)]
        assert found.spread == pytest.approx(np.std(areas, ddof=1))
