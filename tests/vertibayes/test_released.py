"""Learning by choices and one release: the network follows from the released tables alone."""

import numpy as np
import pytest

from tests.vertibayes.released_worlds import PooledStudy, by_rule
from vertibayes.counting import PlainCounter
from vertibayes.counting.hidden_counts import with_estimates
from vertibayes.dag import Structure
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes.parameters.cpt import fit_cpts, network_from
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import fit_three_steps
from vertibayes.released import (
    check_options,
    check_validations,
    learn_released,
    steps_of,
)
from vertibayes.report.rule_cost import cut_cost, noise_cost
from vertibayes.settings import rule_of
from vertibayes.validation.methods import scv
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.release import FamilyTables, Rule

DEFAULT, EXACT = Options(algorithm="k2"), Rule("exact")
VALUES = {"rule": None, "fewest": 10, "epsilon": 1.0, "delta": 1e-6, "dishonest": 1.0}


def some(data, number=10):
    return data.take(list(data.variables)[:number])


def released(data, options=DEFAULT, rule=EXACT):
    study = PooledStudy(PlainCounter(data))
    return learn_released(study, study.release, options, rule), study.steps


def same(network, other):
    return network.structure == other.structure and all(
        np.array_equal(network.cpts[node], other.cpts[node]) for node in network.structure.nodes
    )


@pytest.mark.parametrize("missing", [None, "em", "synthetic", "available", "state"])
def test_exact_tables_give_the_network_of_pooled_records(gaps, missing):
    data, options = some(gaps), Options(algorithm="k2", missing=missing)
    ours, _ = released(data, options)
    pooled = learn(PlainCounter(data), options)
    assert same(ours.learned.network, pooled.network) and ours.learned.network.structure.edges
    assert ours.learned.scores == pooled.scores


def test_nothing_but_choices_and_one_release_is_asked(alarm_data):
    ours, steps = released(some(alarm_data), rule=Rule("cut"))
    *choices, release = steps
    families = ours.learned.network.structure.families
    assert release == FamilyTables(families, False, Rule("cut"))
    assert choices and all(isinstance(step, Choices) for step in choices)
    assert ours.calls == len(steps) and ours.resolution == ours.too_large == 0
    assert ours.decisions == sum(len(step.sets) for step in choices)
    assert 0 < ours.bits <= ours.candidates


def test_a_given_structure_is_released_without_choices(alarm_data):
    a, b, c = list(alarm_data.variables)[:3]
    structure = Structure.of([a, b, c], [(a, b)])
    ours, steps = released(some(alarm_data, 3), Options(structure=structure))
    assert [type(step) for step in steps] == [FamilyTables] and ours.decisions == 0
    plain = PlainCounter(some(alarm_data, 3))
    assert same(ours.learned.network, fit_cpts(plain, structure))


@pytest.mark.parametrize(
    "rule", [Rule("cut"), Rule("cut", fewest=200), Rule("rounded"), Rule("laplace")]
)
def test_cpts_are_those_of_the_released_tables(alarm_data, rule):
    data = some(alarm_data)
    ours, _ = released(data, rule=rule)
    structure = ours.learned.network.structure
    tables = by_rule(PlainCounter(data).tables(structure.families), rule)
    assert all(map(np.array_equal, ours.counter.released, tables))
    tables = with_estimates(ours.counter).released  # of the counts that a cut hides
    for family, table in zip(structure.families, tables, strict=True):
        counts = np.maximum(table, 0) + 0.5
        assert np.array_equal(ours.learned.network.cpts[family.child], counts / counts.sum(axis=0))
    assert not same(ours.learned.network, fit_cpts(PlainCounter(data), structure))


def test_missing_values_are_a_state_of_released_tables_where_the_fit_needs_them(gaps):
    data = some(gaps)
    for options, expected in (
        (DEFAULT, True),
        (Options(algorithm="k2", missing="synthetic"), True),
        (Options(algorithm="k2", missing="state"), True),
        (Options(algorithm="k2", missing="available"), False),
        (Options(algorithm="k2", missing="available", write_synthetic=True), True),
    ):
        _, steps = released(data, options)
        assert steps[-1].missing is expected
        assert all(step.missing is (options.missing == "state") for step in steps[:-1])


def test_em_and_the_three_steps_use_the_cut_tables(gaps):
    data, rule = some(gaps, 6), Rule("cut", fewest=5)
    for missing, fit in (
        ("em", lambda *given: fit_em_from_tables(*given).network),
        ("synthetic", lambda *given: fit_three_steps(*given)[0].network),
    ):
        ours, _ = released(data, Options(algorithm="k2", missing=missing), rule)
        structure = ours.learned.network.structure
        assert same(ours.learned.network, fit(with_estimates(ours.counter), structure))
        assert not same(ours.learned.network, fit(PlainCounter(data), structure))


def test_scv_runs_on_released_tables(alarm_data):
    ours, _ = released(some(alarm_data), rule=Rule("cut"))
    target = ours.learned.network.structure.edges[0][1]
    validation = scv(ours.counter, ours.learned.network.structure, target, folds=2)
    assert validation.synthetic and validation.overall.auc > 0.5


def test_a_sample_of_the_records_chooses_and_all_are_released(alarm_data):
    ours, steps = released(some(alarm_data), Options(algorithm="k2", structure_records=500))
    assert all(step.rows.count(2000) == 500 for step in steps[:-1])
    assert all(table.sum() == 2000 for table in ours.counter.released)


def test_a_family_that_does_not_fit_is_no_candidate_and_is_counted(alarm_data):
    class Narrow(PooledStudy):
        def fits(self, family, *, missing=False):
            return len(family.parents) < 2 and super().fits(family, missing=missing)

    study = Narrow(PlainCounter(some(alarm_data)))
    ours = learn_released(study, study.release, DEFAULT, Rule("exact"))
    parents = ours.learned.network.structure.parents.values()
    assert max(map(len, parents)) == 1 and ours.too_large > 0
    assert len(study.steps) == 2


def test_options_that_need_other_tables_are_refused_before_anything_is_asked(alarm_data):
    with pytest.raises(ValueError, match="`wider_cells` needs tables that are not released"):
        released(alarm_data, Options(algorithm="k2", wider_cells=9))
    with pytest.raises(ValueError, match="`validate` svdg needs the tables of each fold"):
        check_options(DEFAULT, ["svdg"])
    steps = steps_of(
        alarm_data.variables,
        10,
        Options(algorithm="k2", wider_cells=9),
        Rule("exact"),
        lambda _: True,
    )
    with pytest.raises(ValueError, match="`wider_cells`"):
        next(steps)
    study = PooledStudy(PlainCounter(alarm_data))
    for options, reason in (
        (Options(algorithm="k2", max_parents=20), "max_parents must be between 0 and 5"),
        (Options(algorithm="k2", structure_records=9999), "structure_records must be between"),
    ):
        study.most_variables = 6
        with pytest.raises(ValueError, match=reason):
            learn_released(study, study.release, options, Rule("exact"))
    assert study.steps == []


def test_scv_needs_missing_values_as_a_state(gaps, alarm_data):
    available = Options(algorithm="k2", missing="available")
    with pytest.raises(ValueError, match=r"`validate` scv needs .* `write_synthetic`"):
        check_validations(gaps.variables, available, ["scv"])
    check_validations(gaps.variables, DEFAULT, ["scv"])
    check_validations(alarm_data.variables, available, ["scv"])
    check_validations(
        gaps.variables, Options(algorithm="k2", missing="available", write_synthetic=True), ["scv"]
    )


def test_a_rule_that_leaves_nothing_is_an_error_that_says_so(gaps):
    with pytest.raises(ValueError, match=r"the rule cut leaves too little: .* another rule"):
        released(some(gaps, 3), Options(algorithm="k2", max_parents=0), Rule("cut", fewest=2000))


def test_a_threshold_above_the_number_of_records_is_refused_before_anything_is_asked(alarm_data):
    with pytest.raises(ValueError, match=r"`fewest` must be at most 2000 .*, got 2001"):
        released(some(alarm_data), rule=Rule("cut", fewest=2001))


def test_rules_are_made_of_settings():
    assert rule_of(VALUES) is None
    assert rule_of({**VALUES, "rule": "cut", "fewest": 5}) == Rule("cut", fewest=5)
    for wrong, reason in (
        ({"fewest": 5}, "`fewest` needs `rule` cut or rounded, got no rule"),
        ({"rule": "laplace", "delta": 0.1}, "`delta` needs `rule` gaussian, got laplace"),
        ({"rule": "cut", "epsilon": 2.0}, "`epsilon` needs `rule` laplace or gaussian, got cut"),
        ({"rule": "cut", "dishonest": 0.5}, "`dishonest` needs `rule` laplace or gaussian"),
        ({"rule": "round"}, "must be one of exact, cut, rounded, laplace, gaussian, got 'round'"),
        ({"rule": "cut", "fewest": 0}, "`fewest` must be at least 1, got 0"),
        ({"rule": "rounded", "fewest": 1}, "`fewest` 1 with the rule rounded hides nothing"),
        ({"rule": "cut", "fewest": 10**20}, "`fewest` must be at most 4294967296, got 1000"),
    ):
        with pytest.raises(ValueError, match=reason):
            rule_of({**VALUES, **wrong})


def loss(data, network):
    """The mean log-likelihood of the records under the exact CPTs, less that under these."""
    plain = PlainCounter(data)
    families = network.structure.families
    exact = fit_cpts(plain, network.structure).cpts
    tables = zip(plain.tables(families), families, strict=True)
    terms = (t * np.log(exact[f.child] / network.cpts[f.child]) for t, f in tables)
    return sum(term.sum() for term in terms) / plain.records


@pytest.mark.parametrize("fewest", [5, 10])
def test_what_a_cut_costs_is_near_the_printed_estimate(alarm_data, fewest):
    ours, _ = released(alarm_data, rule=Rule("cut", fewest=fewest))
    cost = cut_cost(ours.counter, ours.learned.network, 0.5)
    assert cost.nats_about == pytest.approx(loss(alarm_data, ours.learned.network), rel=0.5)
    tables = PlainCounter(alarm_data).tables(ours.learned.network.structure.families)
    shares = [table[table < fewest].sum() / 2000 for table in tables]
    assert cost.share == pytest.approx(np.mean(shares)) and cost.most == pytest.approx(max(shares))
    assert cut_cost(ours.counter, ours.learned.network, 0.0).nats_about is None


def test_estimates_of_the_counts_that_were_cut_bring_the_model_closer(alarm_data):
    ours, _ = released(alarm_data, rule=Rule("cut", fewest=10))
    structure = ours.learned.network.structure
    as_zeros = network_from(structure, alarm_data.variables, ours.counter.released, 0.5)
    assert loss(alarm_data, ours.learned.network) < 0.8 * loss(alarm_data, as_zeros)


def test_a_cut_of_complete_records_does_not_tell_what_it_costs(gaps):
    ours, _ = released(some(gaps), Options(algorithm="k2", missing="available"), Rule("cut"))
    assert cut_cost(ours.counter, ours.learned.network, 0.5) is None
    ours, _ = released(some(gaps), DEFAULT, Rule("cut"))
    assert cut_cost(ours.counter, ours.learned.network, 0.5).nats_about is None


@pytest.mark.parametrize("epsilon", [2.0, 10.0])
def test_what_noise_costs_is_near_the_printed_estimate(alarm_data, epsilon):
    ours, _ = released(alarm_data, rule=Rule("laplace", epsilon=epsilon))
    deviation = np.sqrt(2) * len(ours.counter.released) / epsilon
    estimate = noise_cost(ours.learned.network, 2000, deviation, 0.5)
    assert estimate == pytest.approx(loss(alarm_data, ours.learned.network), rel=0.5)
    assert noise_cost(ours.learned.network, 2000, deviation / 4, 0.5) < estimate
