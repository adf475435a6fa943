"""Effects: equal to statsmodels on pooled records, to the truth, and to pgmpy's criterion."""

from itertools import combinations

import networkx
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings

from tests.vertibayes.test_junction_tree import joint_of, networks
from vertibayes.counting import PlainCounter
from vertibayes.counting.released import ReleasedCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.adjustment import adjustment_sets, is_adjustment_set, why_not_valid
from vertibayes.inference.effects import effect_in, standardized
from vertibayes.inference.intervals import wilson
from vertibayes.network import Network
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

DAGS = {
    "confounders": Structure.of(
        "abxy", [("a", "b"), ("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("x", "y")]
    ),
    "m-bias": Structure.of("abmxy", [("a", "m"), ("b", "m"), ("a", "x"), ("b", "y"), ("x", "y")]),
    "front door": Structure.of("umxy", [("u", "x"), ("u", "y"), ("x", "m"), ("m", "y")]),
}
SETS = {"confounders": (("a", "b"),), "m-bias": ((),), "front door": (("u",),)}


def network_of(structure):
    """Binary variables: each parent that is "yes" makes "yes" more probable, up to .9."""
    variables = {name: Variable(name, ("no", "yes")) for name in structure.nodes}
    cpts = {}
    for child, parents in structure.families:
        share = sum(np.indices([2] * len(parents))) / len(parents) if parents else np.array(0.6)
        yes = 0.05 + 0.85 * share**2
        cpts[child] = np.array([1 - yes, yes])
    return Network(structure, variables, cpts)


def by_regression(data, names):
    """The g-formula by statsmodels: a saturated logistic regression, predicted for all records."""
    columns = {name: codes.astype(float) for name, codes in data.codes.items()}

    def design(x):
        terms = [np.ones(data.records)]
        for name in names:
            terms += [term * columns[name] for term in terms]
        return np.column_stack([*terms, *(term * x for term in terms)])

    model = sm.GLM(columns["y"], design(columns["x"]), family=sm.families.Binomial())
    fitted = model.fit(tol=1e-13, maxiter=100)
    return [fitted.predict(design(np.full(data.records, x))).mean() for x in (0.0, 1.0)]


def by_weights(data, names):
    """The g-formula by statsmodels: means weighted by the inverse share of the exposure."""
    stratum = sum(data.codes[name].astype(int) << i for i, name in enumerate(names))
    stratum = stratum + np.zeros(data.records, int)
    risks = []
    for x in (0, 1):
        chosen = data.codes["x"] == x
        weight = np.bincount(stratum)[stratum] / np.maximum(
            np.bincount(stratum[chosen], minlength=stratum.max() + 1)[stratum], 1
        )
        risks.append(
            sm.stats.DescrStatsW(data.codes["y"][chosen].astype(float), weight[chosen]).mean
        )
    return risks


@pytest.mark.parametrize("name", DAGS)
def test_standardized_risks_equal_statsmodels_on_pooled_records(name):
    network = network_of(DAGS[name])
    data = sample(network, 4000, seed=1)
    (names,) = adjustment_sets(network.structure, "x", "y")
    assert (names,) == SETS[name]
    effect = standardized(PlainCounter(data), "x", "y", names)
    assert effect.risks[:, 1] == pytest.approx(by_regression(data, names), abs=1e-9)
    assert effect.risks[:, 1] == pytest.approx(by_weights(data, names), abs=1e-12)
    truth = effect_in(network, "x", "y")
    assert effect.difference("yes", "yes", "no") == pytest.approx(
        truth.difference("yes", "yes", "no"), abs=0.05
    )


@pytest.mark.parametrize(
    ("name", "wrong"), [("confounders", ["a"]), ("m-bias", ["m"]), ("front door", [])]
)
def test_a_set_that_is_not_valid_gives_another_effect(name, wrong):
    """The negative control: adjusting for too little, for a collider, for nothing."""
    network = network_of(DAGS[name])
    data = sample(network, 200_000, seed=1)
    assert why_not_valid(network.structure, "x", "y", wrong)
    truth = effect_in(network, "x", "y").difference("yes", "yes", "no")
    effects = [
        standardized(PlainCounter(data), "x", "y", names) for names in (wrong, SETS[name][0])
    ]
    wrong_by, right_by = (abs(e.difference("yes", "yes", "no") - truth) for e in effects)
    assert wrong_by > 0.05 and right_by < 0.01


def test_without_the_confounder_the_front_door_has_no_adjustment_set():
    structure = DAGS["front door"]
    assert adjustment_sets(structure, "x", "y", excluded=["u"]) == ()
    assert why_not_valid(structure, "x", "y", ["m"]) == "x is a cause of m"
    assert "back-door path" in why_not_valid(structure, "x", "y", [])


def test_an_outcome_that_causes_the_exposure_has_no_adjustment_set():
    structure = Structure.of("axy", [("y", "x"), ("a", "x")])
    assert adjustment_sets(structure, "x", "y") == ()


def test_all_minimal_sets_are_listed_the_smallest_first():
    edges = [("a", "x"), ("b", "a"), ("b", "y"), ("x", "y"), ("c", "x"), ("c", "y")]
    structure = Structure.of("abcxy", edges)
    assert adjustment_sets(structure, "x", "y") == (("a", "c"), ("b", "c"))
    assert adjustment_sets(structure, "x", "y", most=1) in ((("a", "c"),), (("b", "c"),))
    assert adjustment_sets(structure, "x", "y", excluded=["a"]) == (("b", "c"),)


@settings(max_examples=30, deadline=None)
@given(networks())
def test_adjustment_sets_are_pgmpys_valid_sets_that_have_no_valid_subset(drawn):
    from pgmpy.inference import CausalInference

    structure = drawn[0].structure
    assume(len(structure.nodes) > 1)
    x, y = sorted(structure.nodes)[:2]
    judge = CausalInference(drawn[0].to_pgmpy())
    graph = structure.to_networkx()
    others = sorted(set(structure.nodes) - networkx.descendants(graph, x) - {x, y})
    valid = []
    for size in range(len(others) + 1):
        for names in combinations(others, size):
            expected = judge.is_valid_backdoor_adjustment_set(x, y, list(names))
            assert is_adjustment_set(structure, x, y, names) == expected
            if expected and not any(set(smaller) <= set(names) for smaller in valid):
                valid.append(names)
    assert adjustment_sets(structure, x, y, most=100) == tuple(
        sorted(valid, key=lambda n: (len(n), n))
    )


@settings(max_examples=25, deadline=None)
@given(networks())
def test_the_g_formula_on_the_joint_distribution_is_the_intervention(drawn):
    network = drawn[0]
    assume(len(network.structure.nodes) > 1)
    x, y = list(network.structure.nodes)[:2]
    names, joint = joint_of(network, {})
    counts = np.round(joint[0] * 1e12).astype(np.int64)
    for adjust in adjustment_sets(network.structure, x, y):
        members = (y, x, *adjust)
        table = np.einsum(counts, list(range(len(names))), [names.index(n) for n in members])
        request = FamilyTables((Family(y, (x, *adjust)),), missing=False, rule=Rule("exact"))
        counter = ReleasedCounter(network.variables, int(counts.sum()), request, [table])
        try:
            effect = standardized(counter, x, y, adjust)
        except ValueError:
            continue  # no stratum has every exposure
        if effect.used == 1:
            known = ~np.isnan(effect.risks)
            expected = effect_in(network, x, y).risks
            assert effect.risks[known] == pytest.approx(expected[known], abs=1e-6)


@pytest.mark.parametrize("sites", [2, 3])
def test_the_federation_gives_the_effect_of_pooled_records_from_one_table(sites):
    data = sample(network_of(DAGS["confounders"]), 500, seed=2)
    pooled = standardized(PlainCounter(data), "x", "y", ["a", "b"])
    with federate(split_columns(data, sites, 0)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        effect = standardized(counter, "x", "y", ["a", "b"])
        tables = counter.ledger.tables
    assert np.array_equal(effect.risks, pooled.risks) and effect.never == pooled.never
    assert [(t.variables, t.cells) for t in tables] == [(("y", "x", "a", "b"), 16)]


def test_a_released_table_gives_the_effects_of_its_margins():
    data = sample(network_of(DAGS["confounders"]), 500, seed=2)
    plain = PlainCounter(data)
    request = FamilyTables((Family("y", ("x", "b", "a")),), missing=False, rule=Rule("exact"))
    counter = ReleasedCounter(plain.variables, 500, request, plain.tables(request.families))
    for names in (["a"], ["a", "b"], []):
        expected = standardized(plain, "x", "y", names)
        assert standardized(counter, "x", "y", names).risks == pytest.approx(expected.risks)


def counter_of(*rows, missing=()):
    """Columns y, x, z of digits; 9 is a missing cell."""
    columns = dict(zip("yxz", np.array(rows).T, strict=True))
    variables = {n: Variable(n, ("0", "1"), bool((c == 9).any())) for n, c in columns.items()}
    codes = {n: np.where(c == 9, 2, c).astype(np.uint8) for n, c in columns.items()}
    return PlainCounter(SiteData(variables, codes))


def test_strata_without_an_exposure_are_left_out_for_all_and_named():
    both = [(1, 1, 0), (0, 1, 0), (0, 0, 0), (0, 0, 0), (1, 0, 0), (1, 0, 0)]
    effect = standardized(counter_of(*both, (1, 0, 1), (1, 0, 1)), "x", "y", ["z"])
    assert effect.risk("1", "1") == 0.5 and effect.risk("1", "0") == 0.5
    assert effect.never == {"0": 0, "1": 0.25} and effect.used == 0.75 and effect.records == 8
    assert "never occurs: 25.0% for 1; the risks are of 75.0% of the records" in effect.basis


def test_records_with_missing_cells_in_the_table_are_left_out():
    rows = [(1, 1, 0), (0, 1, 0), (0, 0, 0), (1, 0, 1), (1, 1, 1)]
    whole = standardized(counter_of(*rows), "x", "y", ["z"])
    more = standardized(counter_of(*rows, (9, 1, 0), (1, 9, 1), (0, 1, 9)), "x", "y", ["z"])
    assert np.array_equal(whole.risks, more.risks) and more.records == 5


def test_an_exposure_that_no_record_has_gets_no_risk():
    effect = standardized(counter_of((1, 0, 0), (0, 0, 1)), "x", "y")
    assert effect.risk("1", "0") == 0.5 and np.isnan(effect.risk("1", "1"))
    assert np.isnan(effect.ratio("1", "1", "0"))


def test_a_ratio_to_a_risk_of_zero_is_infinite():
    effect = standardized(counter_of((0, 0, 0), (1, 1, 0)), "x", "y")
    assert effect.ratio("1", "1", "0") == np.inf and np.isnan(
        standardized(counter_of((0, 0, 0), (0, 1, 0)), "x", "y").ratio("1", "1", "0")
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("x", "x"), "exposure and outcome must be two variables, got x for both"),
        (("x", "y", ["x"]), "x is the exposure or the outcome: it cannot be adjusted for"),
        (("x", "w"), "no variable 'w'"),
        (("x", "y", ["z"]), "no stratum of z has every state of x"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        standardized(counter_of((0, 0, 0), (1, 1, 1)), *arguments)


def test_without_a_complete_record_there_is_no_effect():
    with pytest.raises(ValueError, match="no record is complete in y, x"):
        standardized(counter_of((9, 0, 0), (1, 9, 1)), "x", "y")


def test_an_intervention_cuts_the_edges_into_the_variable_and_no_others():
    network = network_of(DAGS["confounders"])
    cut = network.do(x="yes")
    assert cut.structure.parents == {**network.structure.parents, "x": ()}
    assert cut.cpts["x"].tolist() == [0, 1] and cut.cpts["y"] is network.cpts["y"]
    assert network.do({"x": "yes"}, a="no").cpts["a"].tolist() == [1, 0]
    assert network.do().structure == network.structure
    for wrong, reason in (({"q": "yes"}, "no variable 'q'"), ({"x": "maybe"}, "no state 'maybe'")):
        with pytest.raises(ValueError, match=reason):
            network.do(wrong)


def test_an_intervention_is_not_an_observation():
    """Simpson's reversal: who is treated is more ill."""
    structure = Structure.of("axy", [("a", "x"), ("a", "y"), ("x", "y")])
    variables = {name: Variable(name, ("no", "yes")) for name in "axy"}
    yes = np.array([[0.3, 0.2], [0.9, 0.8]])  # P(y | a, x): x helps in both strata
    x = np.array([0.1, 0.9])
    cpts = {"a": np.array([0.5, 0.5]), "x": np.array([1 - x, x]), "y": np.array([1 - yes, yes])}
    network = Network(structure, variables, cpts)
    assert effect_in(network, "x", "y").difference("yes", "yes", "no") == pytest.approx(-0.1)
    joint = joint_of(network, {})[1][0]
    seen = joint.sum(axis=0)[:, 1] / joint.sum(axis=(0, 2))
    assert seen[1] > seen[0]


def by_bootstrap(table, rule, draws=40_000):
    """Risks of resampled tables, an axis for draws."""
    generator = np.random.default_rng(0)
    shape = table.shape
    tables = generator.multinomial(table.sum(), (table / table.sum()).ravel(), draws)
    tables = tables.reshape(draws, *shape) + rule(generator, (draws, *shape))
    cells = tables.reshape(draws, *shape[:2], -1)
    exposed = cells.sum(axis=1, keepdims=True)
    weights = exposed.sum(axis=2, keepdims=True) / exposed.sum(axis=(2, 3), keepdims=True)
    return (cells / exposed * weights).sum(axis=3)


TABLE = np.array([[[300, 150], [90, 160]], [[60, 70], [40, 130]]])  # y, x, z
NAMES = {name: Variable(name, ("0", "1")) for name in "yxz"}


def released(table, rule):
    request = FamilyTables((Family("y", ("x", "z")),), missing=False, rule=rule)
    return ReleasedCounter(NAMES, int(table.sum()), request, [table])


@pytest.mark.parametrize("deviation", [0, 6])
def test_the_variances_are_those_of_a_bootstrap_of_the_table(deviation):
    rule = Rule("gaussian") if deviation else Rule("exact")
    effect = standardized(released(TABLE, rule), "x", "y", ["z"], deviation=deviation)
    risks = by_bootstrap(TABLE, lambda draw, shape: draw.normal(0, deviation, shape))[:, 1]
    ours = effect.spread.covariances[1]
    assert ours == pytest.approx(np.cov(risks.T), rel=0.03, abs=1e-5)
    low, high = effect.difference_interval("1", "1", "0")
    assert (low, high) == pytest.approx(
        np.quantile(risks[:, 1] - risks[:, 0], [0.025, 0.975]), abs=0.008
    )
    low, high = effect.ratio_interval("1", "1", "0")
    assert (low, high) == pytest.approx(
        np.quantile(risks[:, 1] / risks[:, 0], [0.025, 0.975]), rel=0.04
    )
    assert effect.risk_interval("1", "1") == pytest.approx(
        np.quantile(risks[:, 1], [0.025, 0.975]), abs=0.005
    )
    assert effect.difference_interval("1", "1", "1") == (0, 0)


def test_one_stratum_has_the_intervals_of_statsmodels():
    from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

    table = np.array([[700, 500], [300, 500]])
    request = FamilyTables((Family("y", ("x",)),), missing=False, rule=Rule("exact"))
    effect = standardized(ReleasedCounter(NAMES, 2000, request, [table]), "x", "y")
    expected = proportion_confint(300, 1000, method="wilson")
    assert effect.risk_interval("1", "0") == pytest.approx(expected, abs=1e-4)
    pair = 500, 1000, 300, 1000
    newcombe = confint_proportions_2indep(*pair, method="newcomb", compare="diff")
    assert effect.difference_interval("1", "1", "0") == pytest.approx(newcombe, abs=1e-4)
    ratio = confint_proportions_2indep(*pair, method="log", compare="ratio")
    assert effect.ratio_interval("1", "1", "0") == pytest.approx(ratio, abs=3e-3)


def test_a_stratum_of_few_records_widens_the_interval():
    """Where one record stands for many, the quantile is Student's and no share is certain."""
    from scipy.stats import t

    alone = standardized(counter_of(*[(1, 0, 0)] * 3, *[(0, 0, 0)] * 7, (1, 1, 0)), "x", "y")
    assert alone.risk_interval("1", "0") == pytest.approx(wilson(0.3, 10, t.ppf(0.975, 10)))
    few = np.array([[[400, 400], [2, 200]], [[100, 100], [0, 100]]])
    many = np.array([[[400, 400], [200, 200]], [[100, 100], [0, 100]]])
    widths = []
    for table in (few, many):
        effect = standardized(released(table, Rule("exact")), "x", "y", ["z"])
        low, high = effect.risk_interval("1", "1")
        widths.append(high - low)
    assert widths[0] > 0.3 and widths[1] < 0.1


def test_a_risk_of_0_has_an_interval_and_a_ratio_to_it_has_no_upper_limit():
    effect = standardized(counter_of(*[(0, 0, 0)] * 50, *[(1, 1, 0), (0, 1, 0)] * 25), "x", "y")
    low, high = effect.risk_interval("1", "0")
    assert low == 0 and 0.05 < high < 0.15
    low, high = effect.ratio_interval("1", "1", "0")
    assert 3 < low < 10 and high == np.inf
    low, high = effect.ratio_interval("1", "0", "1")
    assert low == 0 and 0.1 < high < 0.4
    assert effect_in(network_of(DAGS["m-bias"]), "x", "y").risk_interval("yes", "no") is None


@pytest.mark.parametrize(
    ("rule", "cell", "deviation", "reason"),
    [
        (Rule("cut", fewest=10), 0, None, "the rule cut released small counts as 0"),
        (Rule("rounded", fewest=10), 0, None, "the rule rounded released small counts as 0"),
        (Rule("laplace"), 20, None, "the deviation of the noise is not given"),
        (Rule("laplace"), 20, 30.0, "a group of about 150 records is too small for the noise"),
        (Rule("cut", fewest=10), 20, None, ""),
        (Rule("rounded", fewest=10), 20, None, ""),
        (Rule("laplace"), 20, 5.0, ""),
    ],
)
def test_a_released_table_has_an_interval_if_the_error_of_its_rule_is_known(
    rule, cell, deviation, reason
):
    table = TABLE.copy()
    table[1, 1, 0] = cell
    if cell == 20:
        table[:, 1, 0] = 130, 20
    effect = standardized(released(table, rule), "x", "y", ["z"], deviation=deviation)
    assert effect.unsure.startswith(reason) and bool(effect.unsure) == bool(reason)
    assert (effect.risk_interval("1", "1") is None) == bool(reason)


def test_errors_of_released_cells_add_up_in_a_margin_and_widen_the_interval():
    widths = []
    for rule, deviation in ((Rule("exact"), None), (Rule("rounded", fewest=10), None)):
        low, high = standardized(
            released(TABLE * 3, rule), "x", "y", deviation=deviation
        ).difference_interval("1", "1", "0")
        widths.append(high - low)
    error = released(TABLE * 3, Rule("rounded", fewest=10)).with_noise(Family("y", ("x",)))
    assert widths[0] < widths[1] and error[1] == 2  # cells of z
    with_missing = {**NAMES, "z": Variable("z", ("0", "1"), missing=True)}
    request = FamilyTables((Family("y", ("x", "z")),), missing=True, rule=Rule("laplace"))
    table = np.concatenate([TABLE, TABLE[..., :1]], axis=2)
    counter = ReleasedCounter(with_missing, int(table.sum()), request, [table])
    assert counter.with_noise(Family("y", ("x",)))[1] == 3
    assert counter.with_noise(Family("y", ("x", "z")))[1] == 1
