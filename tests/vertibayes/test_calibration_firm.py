"""What calibration refuses, and what it warns of: the node is named, and nan is never silent."""

import warnings

import numpy as np
import pytest

from tests.vertibayes.rc_worlds import chain, complete, world
from vertibayes.calibration.crc import collaborative_rc
from vertibayes.calibration.models import predict_proba, scales_of
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes_protocols.calibration.checks import check_statistics
from vertibayes_protocols.calibration.classifier import Examples, Scale, naive_bayes
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.statistics import LocalData

MIXINGS = ("mean", "metropolis", "relay")


def small(**options):
    w = world(30, 1, **options)
    return w, w.nodes([10, 12, 8])


def run(w, nodes, network=None, rounds=3, **options):
    return list(collaborative_rc(w.classifier, nodes, network or chain("abc"), rounds, **options))


def test_a_disconnected_network_is_refused():
    with pytest.raises(ValueError, match="no path between a and c"):
        run(*small(), Graph.of("abc", ["ab"]))


def test_a_node_of_the_network_without_examples_is_refused():
    with pytest.raises(DataError, match="the node d of the network has no examples"):
        run(*small(), chain("abcd"))


def test_examples_of_a_node_outside_the_network_are_refused():
    with pytest.raises(DataError, match="the node c has examples, but is not in the network"):
        run(*small(), chain("ab"))


def test_a_changing_network_of_other_nodes_is_refused_in_its_round():
    w, nodes = small()
    rounds = collaborative_rc(
        w.classifier, nodes, lambda number: chain("abc" if number < 3 else "abcd"), 3
    )
    assert next(rounds).number == 1 and next(rounds).number == 2
    with pytest.raises(DataError, match="the node d of the network has no examples"):
        next(rounds)


def test_an_unknown_absent_node_is_refused():
    with pytest.raises(ValueError, match="the absent node x in round 1 is not a node"):
        run(*small(), absent=lambda number: ["x"])


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("start", ["uniform", "data"])
def test_a_node_without_records_is_named_and_passes_on(mixing, start):
    w = world(30, 1)
    nodes = w.nodes([10, 0, 20])
    with pytest.warns(UserWarning, match="nodes without records.*: b$"):
        rounds = run(w, nodes, chain("abc"), 4, mixing=mixing, start=start)
    assert np.isfinite(rounds[-1].statistics).all()
    with pytest.warns(UserWarning, match="nodes without records"):
        other = run(w, dict(nodes, c=nodes["a"]), chain("abc"), 4, mixing=mixing, start=start)
    assert (rounds[-1].statistics[0] != other[-1].statistics[0]).any()


def test_records_at_no_node_are_refused():
    w, nodes = small()
    nothing = Examples(w.examples.columns[:0], w.examples.classes[:0])
    with pytest.raises(DataError, match="no node has a record"):
        run(w, dict.fromkeys(nodes, nothing))
    with pytest.raises(DataError, match="at least one record of a known class, got 0"):
        risk_based_calibration(w.classifier, nothing, 3)
    with pytest.raises(DataError, match="examples must have at least one node, got 0"):
        run(w, {})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused_by_the_name_of_its_node(value):
    w, nodes = small()
    nodes["b"].columns[4, 2] = value
    with pytest.raises(DataError, match="the node b: record 4 has a value that is not finite"):
        run(w, nodes)
    with pytest.raises(DataError, match="the records: record 14 has a value that is not finite"):
        risk_based_calibration(w.classifier, w.examples, 3)


def test_examples_of_another_classifier_are_refused_by_the_name_of_their_node():
    w, nodes = small()
    other = world(30, numbers=1).nodes([10, 12, 8])
    with pytest.raises(DataError, match=r"the node c: examples of shape \(8, 10\).*expected 13"):
        run(w, dict(nodes, c=other["c"]))
    beyond = Examples(nodes["c"].columns, nodes["c"].classes + 1)
    with pytest.raises(DataError, match="the node c: classes must be between 0 and 2"):
        run(w, dict(nodes, c=beyond))


@pytest.mark.parametrize("mixing", ["mean", "metropolis"])  # a relay lowers the rate
@pytest.mark.parametrize("rate", [1e6, 1e300])
def test_a_rate_that_diverges_is_refused_by_the_name_of_a_node(mixing, rate):
    w, nodes = small()
    with pytest.raises(ValueError, match=r"the node [abc]: the statistics diverge in round 1: "):
        run(w, nodes, rate=rate, mixing=mixing)
    with pytest.raises(ValueError, match="the records: the statistics diverge in iteration 1: "):
        risk_based_calibration(w.classifier, w.examples, 3, rate=rate)


def test_statistics_that_are_not_finite_are_refused():
    w, _ = small()
    for value in (np.nan, np.inf, -np.inf):
        statistics = w.classifier.uniform(1.0)
        statistics[1, 3] = value
        with pytest.raises(ValueError, match="a: the statistics diverge in round 7: they are inf"):
            check_statistics("a", statistics, "round 7")


@pytest.mark.parametrize("rate", [0.01, 0.5, 5.0])
def test_statistics_far_from_valid_have_finite_losses(rate):
    w, nodes = small(missing=0.3)
    for mixing in MIXINGS:
        rounds = run(w, nodes, rounds=20, rate=rate, mixing=mixing, start="data")
        assert all(np.isfinite(r.soft).all() and (r.soft >= 0).all() for r in rounds)
        assert all(np.isfinite(w.classifier.weights(r.statistics).values).all() for r in rounds)


def test_repairs_of_the_means_are_counted_in_each_round():
    w, nodes = small()
    assert not sum(r.repairs.sum() for r in run(w, nodes, rate=1e-3))
    rounds = run(w, nodes, complete("abc"), rounds=20, rate=5.0)
    means = [w.classifier.weights(r.statistics.mean(axis=0)).repairs for r in rounds]
    assert [r.repairs.tolist() for r in rounds[1:]] == [[n] * 3 for n in means[:-1]]
    assert sum(means) > 0


def test_one_class_in_all_the_data_is_warned_of():
    w, nodes = small()
    one = {n: Examples(part.columns, 0 * part.classes + 1) for n, part in nodes.items()}
    with pytest.warns(UserWarning, match="all records have the class 's1'"):
        rounds = run(w, one, start="data")
    assert np.isfinite(rounds[-1].soft).all() and not rounds[-1].errors.any()
    with pytest.warns(UserWarning, match="all records have the class 's1'"):
        risk_based_calibration(w.classifier, one["a"], 3)


@pytest.mark.parametrize("values", [np.full(30, 7.0), np.full(30, np.nan)])
def test_a_constant_column_is_warned_of_by_name_and_says_nothing_of_the_class(values):
    w, _ = small()
    data = LocalData(
        w.data.variables, w.data.codes, w.data.numerics, dict(w.data.numbers, z1=values)
    )
    with pytest.warns(UserWarning, match="the column z1 (is constant|has no numbers)"):
        scales = scales_of(data)
    assert scales["z1"].spread == 1.0
    classifier = naive_bayes(w.schema, scales)
    made = risk_based_calibration(classifier, classifier.examples(data), 10)
    other = dict(data.numbers, z1=np.full(30, np.nan))
    without = LocalData(data.variables, data.codes, data.numerics, other)
    ours = predict_proba(classifier, made.last, data)
    assert ours == pytest.approx(predict_proba(classifier, made.last, without), abs=1e-9)


def test_a_constant_column_away_from_its_centre_stays_finite():
    w, _ = small()
    numbers = dict(w.data.numbers, z1=np.full(30, 7.1))
    data = LocalData(w.data.variables, w.data.codes, w.data.numerics, numbers)
    classifier = naive_bayes(w.schema, dict.fromkeys(("z0", "z1"), Scale(0.3, 0.7)))
    made = risk_based_calibration(classifier, classifier.examples(data), 10)
    assert np.isfinite(made.soft).all()
    assert np.isfinite(classifier.weights(made.last).values).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "the learning rate must be a positive number, got 0"),
        ({"rate": np.nan}, "the learning rate must be a positive number, got nan"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"iterations": 0}, "iterations must be at least 1, got 0"),
        ({"mixing": "server"}, "mixing must be one of mean, metropolis, relay, got 'server'"),
        ({"start": "half"}, "start must be one of uniform, data, got 'half'"),
        ({"size": -1.0}, "the equivalent sample size must be a positive number, got -1"),
        ({"size": 9.0, "mixing": "relay"}, "a relay has no equivalent sample size"),
        ({"asleep": 1.0}, "asleep must be at least 0 and below 1, got 1"),
        ({"asleep": 0.5}, "asleep needs a generator"),
        ({"asleep": 0.5, "mixing": "relay"}, "sleeping nodes need averaging"),
        ({"network": lambda _: chain("abc"), "mixing": "relay"}, "a relay needs a fixed network"),
    ],
)
def test_options_out_of_range_are_refused_before_the_first_round(options, message):
    w, nodes = small()
    given = {"network": chain("abc"), "rounds": 3} | options
    with pytest.raises(ValueError, match=message):
        collaborative_rc(w.classifier, nodes, **given)


def test_a_start_of_another_shape_is_refused():
    w, _ = small()
    with pytest.raises(ValueError, match=r"the start must have the shape \(3, 13\), got \(2, 2\)"):
        risk_based_calibration(w.classifier, w.examples, 3, start=np.ones((2, 2)))


def test_valid_records_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(*small())
