"""pgmpy's own searches and estimators learn from a federation what they learn from its records."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pgmpy.base import DAG
from pgmpy.causal_discovery import GES, PC, ExpertInLoop, ExpertKnowledge, HillClimbSearch
from pgmpy.ci_tests import ChiSquare
from pgmpy.estimators import TreeSearch
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator, DiscreteEM, DiscreteMLE
from pgmpy.structure_score import AIC, BIC, K2, BDeu, BDs, LogLikelihood

from tests.structure_worlds import known_network
from vertibayes import Options, PlainCounter, SecureCounter, SiteData, federate, split_columns
from vertibayes.learning import learn
from vertibayes.pgmpy import CountedScore, CountedTest, fit
from vertibayes.sampling import sample
from vertibayes_protocols.policy import Policy

QUIET = {"show_progress": False}
DAG_OF_ASIA = [("smoke", "lung"), ("asia", "tub"), ("lung", "either"), ("tub", "either")]


def frame_of(data):
    """Return records as a data frame of texts; `None` where a value is missing."""
    columns = {}
    for name, variable in data.variables.items():
        states = np.array([*variable.states, None], object)
        columns[name] = states[data.codes[name]]
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def asia():
    return frame_of(sample(known_network("asia"), 2000, seed=3))


@pytest.fixture(scope="module")
def part(asia):
    return asia[["smoke", "lung", "bronc", "dysp", "either"]]


@pytest.fixture(scope="module")
def mushroom(data_folder):
    """Columns of up to twelve states."""
    path = data_folder / "uci" / "mushroom.csv.gz"
    return pd.read_csv(path, dtype=str).iloc[:, [0, 2, 5, 8, 11, 19]]


@pytest.fixture(scope="module")
def counter(asia):
    with federate(split_columns(asia, 3)) as federation:
        yield SecureCounter.of(federation, order=list(asia.columns))


class Noting(BIC):
    """A score of pooled records that notes what it is asked."""

    def __init__(self, data):
        super().__init__(data)
        self.asked = set()

    def local_score(self, variable, parents):
        self.asked.add(frozenset((variable, *parents)))
        return super().local_score(variable, parents)


def assert_same(make, data, pooled=None):
    """Fit an estimator to pooled records and to a federation: the same graph."""
    pooled = (pooled or make()).fit(data)
    with federate(split_columns(data, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(data.columns))
        found = fit(make(), counter)
        assert set(found.causal_graph_.edges) == set(pooled.causal_graph_.edges)
        assert found.adjacency_matrix_.equals(pooled.adjacency_matrix_)
    assert pooled.causal_graph_.edges
    return counter


@pytest.mark.parametrize("score", ["k2", "bds", partial(BDeu, equivalent_sample_size=1)])
def test_hill_climbing_by_any_score_is_that_of_pooled_records(part, score):
    make = partial(HillClimbSearch, return_type="dag", **QUIET)
    own = score(part) if callable(score) else score  # pgmpy takes a score with its records
    assert_same(partial(make, score), part, make(own))


def test_hill_climbing_is_that_of_pooled_records_of_a_real_table(mushroom):
    make = partial(HillClimbSearch, "bic-d", return_type="dag", max_indegree=3, **QUIET)
    counter = assert_same(make, mushroom)
    assert counter.calls < 20


def test_hill_climbing_follows_what_experts_know(part):
    knowledge = ExpertKnowledge(
        required_edges=[("smoke", "dysp")], forbidden_edges=[("lung", "either")]
    )
    start = DAG([("bronc", "dysp"), ("either", "lung")])
    start.add_nodes_from(part.columns)
    make = partial(HillClimbSearch, start_dag=start, expert_knowledge=knowledge, **QUIET)
    assert_same(make, part)


def test_a_step_asks_in_one_call_for_what_pgmpy_asks_and_for_nothing_else(asia):
    noting = Noting(asia)
    pooled = HillClimbSearch(noting, return_type="dag", **QUIET)
    counter = assert_same(
        partial(HillClimbSearch, "bic-d", return_type="dag", **QUIET), asia, pooled
    )
    revealed = [frozenset(names) for names, _, _ in counter.revealed]
    assert len(revealed) == len(set(revealed)) and set(revealed) <= noting.asked
    assert counter.calls <= len(pooled.causal_graph_.edges) + 4  # a call for each step


def by_name(one, other, **_):
    return min(one, other), max(one, other)


@pytest.mark.parametrize("test", [None, "g_sq"])
def test_an_expert_in_the_loop_is_asked_the_same(part, test):
    make = partial(ExpertInLoop, ci_test=test, orientation_fn=by_name, **QUIET)
    counter = assert_same(make, part)
    assert counter.calls < len(list(counter.revealed))


@pytest.mark.parametrize("make", [partial(GES, "bic-d"), partial(PC, ci_test="g_sq", **QUIET)])
def test_other_searches_of_pgmpy_learn_too(part, make):
    assert_same(make, part)


@pytest.mark.parametrize("scoring", [AIC, BIC, K2, BDeu, BDs, LogLikelihood])
def test_scores_with_missing_values_are_those_of_pgmpy(asia, scoring):
    holes = asia.mask(np.random.default_rng(0).random(asia.shape) < 0.1)
    model = DAG(DAG_OF_ASIA)
    with federate(split_columns(holes, 3)) as federation:
        counter = SecureCounter.of(federation)
        score = CountedScore(counter, scoring)
        assert score.score(model) == pytest.approx(scoring(holes).score(model), rel=1e-12)
        assert counter.calls == 1
        with pytest.raises(ValueError, match=r"take no missing values, which .*tub.* have"):
            fit(HillClimbSearch(scoring, **QUIET), counter)


ESTIMATORS = [
    DiscreteMLE,
    partial(DiscreteBayesianEstimator, equivalent_sample_size={"either": 3}),
    partial(
        DiscreteBayesianEstimator,
        prior_type="dirichlet",
        pseudo_counts={"smoke": [[1], [2]], "lung": [[1, 2], [3, 4]]},
    ),
]


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize("model", [DAG, DiscreteBayesianNetwork])
def test_cpts_are_those_of_pooled_records(asia, make, model):
    model = model(DAG_OF_ASIA)
    names = {name: ["yes", "no"] for name in asia}
    pooled = {cpd.variable: cpd for cpd in make(state_names=names).fit(model, asia).parameters_}
    with federate(split_columns(asia, 2)) as federation:
        counter = SecureCounter.of(federation)
        estimator = fit(make(state_names=names), counter, model)
        assert counter.calls == 1
        own = fit(make(), counter, model)
    assert {cpd.variable for cpd in estimator.parameters_} == set(model.nodes)
    for cpd in estimator.parameters_:
        assert cpd.variables == pooled[cpd.variable].variables
        np.testing.assert_array_equal(cpd.values, pooled[cpd.variable].values)
    assert own.state_names_["lung"] == list(counter.variables["lung"].states)


class Reads:
    """A search that takes a score and reads records all the same."""

    def __init__(self, scoring_method=None):
        self.scoring_method = scoring_method

    def fit(self, data):
        self.score = BIC(data)


def known_dag(counter):
    model = DAG(DAG_OF_ASIA)
    model.add_nodes_from(counter.variables)
    return model


MISTAKES = [
    (lambda c: fit(DiscreteMLE(), c), "DiscreteMLE needs a `model`"),
    (lambda c: fit(DiscreteMLE(), c, DAG([("x", "lung")])), "nodes that nobody observes: x"),
    (lambda c: fit(DiscreteMLE(), c, DAG([("tub", "lung")], latents={"tub"})), "observes: tub"),
    (lambda c: fit(DiscreteMLE(), c, "lung"), "a structure must be a directed graph, got str"),
    (lambda c: fit(DiscreteEM(), c, DAG()), "DiscreteEM cannot learn from counts"),
    (lambda c: fit(TreeSearch(pd.DataFrame({"a": [1]})), c), "TreeSearch cannot learn from counts"),
    (lambda c: fit(3, c), "int cannot learn from counts"),
    (lambda c: fit(HillClimbSearch(), c, DAG()), "HillClimbSearch learns the structure"),
    (lambda c: fit(HillClimbSearch("bic"), c), "Unknown scoring method: 'bic'"),
    (lambda c: fit(HillClimbSearch("bic-g"), c), "for discrete variables expected, got BICGauss"),
    (lambda c: fit(HillClimbSearch(K2(pd.DataFrame({"a": "x"}, [0]))), c), "of its data, got K2"),
    (lambda c: fit(HillClimbSearch(5), c), "`scoring_method` must be a name, .*, got int"),
    (
        lambda c: fit(HillClimbSearch(lambda *_, **__: 5), c),
        "a score of pgmpy .* expected, got int",
    ),
    (lambda c: fit(HillClimbSearch(start_dag=DAG([("a", "b")]), **QUIET), c), "the same variables"),
    (lambda c: fit(ExpertInLoop(ci_test="pearsonr"), c), "a test of pgmpy .* got Pearsonr"),
    (lambda c: fit(ExpertInLoop(ci_test="chi"), c), "Unknown CI test: 'chi'"),
    *(
        (lambda c, wrong=wrong: fit(HillClimbSearch("bic-d", **wrong, **QUIET), c), reason)
        for wrong, reason in (
            ({"return_type": "nonsense"}, "return_type must be one of"),
            ({"epsilon": "a"}, "'<' not supported"),
            ({"max_iter": "a"}, "invalid literal"),
        )
    ),
    *(
        (lambda c, wrong=wrong: fit(wrong, c, known_dag(c)), reason)
        for wrong, reason in (
            (DiscreteBayesianEstimator(prior_type="nonsense"), "prior_type"),
            (
                DiscreteBayesianEstimator(prior_type="dirichlet", pseudo_counts={"lung": [[1]]}),
                "pseudo_counts",
            ),
            (DiscreteMLE(state_names={"smoke": ["yes"]}), "state"),
        )
    ),
    (lambda c: fit(HillClimbSearch(), pd.DataFrame()), "a Counter expected, .*got DataFrame"),
    (lambda c: fit(Reads(), c), "reads records, which a counter does not have"),
    (lambda c: CountedScore(c).score(DAG([("a", "tub")])), "no variable 'a'"),
    (lambda c: CountedTest(c, ChiSquare)("tub", "tub"), "a variable appears twice"),
    (lambda c: learn(c, Options(structure=DAG([("a", "b")]))), "nodes that are no variables: a, b"),
    (lambda c: Options(structure={"a": []}), "must be a directed graph, got dict"),
]


@pytest.mark.parametrize(("mistake", "reason"), MISTAKES)
def test_a_mistake_is_named_and_nothing_is_asked(counter, mistake, reason):
    with pytest.raises((TypeError, ValueError), match=reason):
        mistake(counter)
    assert counter.calls == 0


def test_an_estimator_keeps_its_parameters_also_if_it_fails(asia, counter):
    estimator = Reads("bic-d")
    with pytest.raises(TypeError):
        fit(estimator, counter)
    assert vars(estimator) == {"scoring_method": "bic-d"}
    search = HillClimbSearch("bic-d", **QUIET)
    before = search.get_params()
    assert fit(search, PlainCounter(SiteData.from_frame(asia.iloc[:, :3]))).get_params() == before
    assert "_legal_operations_dag" not in vars(search)


def test_a_search_is_refused_whose_tables_the_sites_may_refuse(part):
    with federate(
        split_columns(part, 2), policy=Policy(most_variables=3, free_tables=True)
    ) as federation:
        counter = SecureCounter.of(federation)
        with pytest.raises(ValueError, match=r"`max_indegree` must be at most 2 .*, got None"):
            fit(HillClimbSearch(**QUIET), counter)
        assert fit(HillClimbSearch(max_indegree=2, **QUIET), counter).causal_graph_.edges


@pytest.mark.parametrize("kind", [DAG, DiscreteBayesianNetwork])
def test_a_graph_of_pgmpy_is_a_structure(asia, kind):
    graph = kind(DAG_OF_ASIA)
    graph.add_nodes_from(asia.columns)
    learned = learn(PlainCounter(SiteData.from_frame(asia)), Options(structure=graph))
    assert set(learned.network.structure.edges) == set(DAG_OF_ASIA)


def test_edges_without_a_direction_are_named(asia):
    search = HillClimbSearch("bic-d", **QUIET).fit(asia)
    with pytest.raises(ValueError, match=r"edges without a direction: \w+ - \w+; use its `to_dag"):
        Options(structure=search.causal_graph_)
