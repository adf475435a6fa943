import numpy as np
import pytest

from tests.vertibayes.test_em_tables import with_gaps
from tests.vertibayes.test_junction_tree import joint_of
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.network import Network
from vertibayes.parameters.cpt import fit_cpts, network_from
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.sampling import sample
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

BITS = ("0", "1")


def small_network(seed=0):
    generator = np.random.default_rng(seed)
    structure = Structure({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")})
    variables = {n: Variable(n, BITS if n != "b" else ("0", "1", "2")) for n in "abcd"}
    shapes = [[len(variables[m].states) for m in f.members] for f in structure.families]
    return network_from(structure, variables, [generator.random(shape) for shape in shapes])


def one_iteration_by_enumeration(network, data):
    """The CPTs of the expected counts, from the joint distribution of each record."""
    counts = []
    names, joint = joint_of(network, data.codes)
    joint = joint / joint.reshape(len(joint), -1).sum(axis=1).reshape(-1, *(1,) * (joint.ndim - 1))
    for family in network.structure.families:
        others = tuple(1 + i for i, n in enumerate(names) if n not in family.members)
        kept = [n for n in names if n in family.members]
        table = joint.sum(axis=(0, *others))
        counts.append(table.transpose([kept.index(n) for n in family.members]))
    return network_from(network.structure, network.variables, counts)


def test_iterations_equal_those_by_enumeration():
    truth = small_network()
    data = with_gaps(sample(truth, 300, seed=1), 0.3)
    wanted = start = small_network(seed=9)
    for _ in range(5):
        wanted = one_iteration_by_enumeration(wanted, data)
    stop = {"most_iterations": 5, "tolerance": 1e-300}
    got = fit_em(data, truth.structure, pseudo_count=0, start=start, **stop).network
    assert all(got.cpts[n] == pytest.approx(wanted.cpts[n], abs=1e-12) for n in "abcd")


@pytest.mark.laws
@pytest.mark.parametrize("pseudo_count", [0, 0.5])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_trace_never_falls(alarm_network, share, pseudo_count):
    data = with_gaps(sample(alarm_network, 500, seed=2), share)
    fit = fit_em(data, alarm_network.structure, pseudo_count=pseudo_count, restarts=1)
    assert fit.converged and len(fit.traces) == 2
    for trace in fit.traces:
        assert (np.diff(trace) > -1e-9 * abs(trace[0])).all()
    assert fit.trace[-1] == max(trace[-1] for trace in fit.traces)


def test_without_missing_values_it_is_maximum_likelihood(alarm_network, alarm_data):
    fit = fit_em(alarm_data, alarm_network.structure)
    wanted = fit_cpts(PlainCounter(alarm_data), alarm_network.structure)
    for node, cpt in wanted.cpts.items():
        assert fit.network.cpts[node] == pytest.approx(cpt, abs=1e-12)


@pytest.mark.laws
def test_no_farther_from_the_truth_than_tables_alone(alarm_network):
    data = with_gaps(sample(alarm_network, 10_000, seed=5), 0.3)
    structure = alarm_network.structure
    exact = fit_em(data, structure, pseudo_count=0.5).network
    tables = fit_em_from_tables(PlainCounter(data), structure, pseudo_count=0.5).network
    distances = divergence(alarm_network, exact), divergence(alarm_network, tables)
    assert distances[0] < distances[1] < 1.35 * distances[0]


def test_a_missing_parent_that_depends_on_its_child():
    """Missing at random: exact EM is right where the node's own table misleads."""
    generator = np.random.default_rng(0)
    a = generator.integers(0, 2, 40_000)
    b = np.where(generator.random(40_000) < 0.9, a, 1 - a)
    lost = (b == 1) & (generator.random(40_000) < 0.8)
    variables = {"a": Variable("a", BITS, missing=True), "b": Variable("b", BITS)}
    data = SiteData(
        variables, {"a": np.where(lost, 2, a).astype(np.uint8), "b": b.astype(np.uint8)}
    )
    network: Network = fit_em(data, Structure({"a": (), "b": ("a",)}), tolerance=1e-13).network
    assert network.cpts["a"][1] == pytest.approx(0.5, abs=0.03)
    assert network.cpts["b"][1] == pytest.approx([0.1, 0.9], abs=0.03)


def test_a_variable_without_values_is_named():
    data = SiteData({"b": Variable("b", BITS, missing=True)}, {"b": np.full(9, 2, np.uint8)})
    with pytest.raises(ValueError, match="b has no value in any record"):
        fit_em(data, Structure({"b": ()}))
    with pytest.raises(ValueError, match="no variable 'c'"):
        fit_em(data, Structure({"c": ()}))


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"restarts": -1}, {"most_iterations": 0}])
def test_impossible_options(alarm_data, options):
    with pytest.raises(ValueError, match="must be above 0"):
        fit_em(alarm_data, Structure({"CVP": ()}), **options)
