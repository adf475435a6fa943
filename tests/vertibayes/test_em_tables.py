import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable


def with_gaps(data, share, seed=0):
    """Lose a share of the cells, completely at random."""
    generator = np.random.default_rng(seed)
    variables, codes = {}, {}
    for name, variable in data.variables.items():
        lost = generator.random(data.records) < share
        codes[name] = np.where(lost, len(variable.states), data.codes[name]).astype(np.uint8)
        variables[name] = Variable(name, variable.states, bool(lost.any()))
    return SiteData(variables, codes)


def test_without_missing_values_it_is_maximum_likelihood(alarm_network, alarm_data):
    counter = PlainCounter(alarm_data)
    fit = fit_em_from_tables(counter, alarm_network.structure, pseudo_count=0.5)
    wanted = fit_cpts(counter, alarm_network.structure, pseudo_count=0.5)
    assert fit.converged and len(fit.trace) == 1
    assert all(np.array_equal(fit.network.cpts[n], wanted.cpts[n]) for n in wanted.cpts)


def test_by_hand():
    """a is known in all records, b in some: given a, those where it is missing say nothing of b."""
    data = SiteData(
        {"a": Variable("a", ("0", "1")), "b": Variable("b", ("0", "1"), missing=True)},
        {
            "a": np.array([0, 0, 0, 0, 1, 1, 1, 1], np.uint8),
            "b": np.array([0, 0, 1, 2, 1, 1, 2, 2], np.uint8),
        },
    )
    structure = Structure({"a": (), "b": ("a",)})
    counter = PlainCounter(data)
    network = fit_em_from_tables(counter, structure, pseudo_count=0, tolerance=1e-15).network
    assert network.cpts["a"] == pytest.approx([1 / 2, 1 / 2])
    assert network.cpts["b"] == pytest.approx(np.array([[2 / 3, 0], [1 / 3, 1]]), abs=1e-6)


def test_a_missing_parent_is_filled_by_its_child():
    """a = b wherever both are known: where a is missing, b tells it."""
    a = np.array([0] * 20 + [1] * 20 + [2] * 40, np.uint8)
    b = np.array([0] * 20 + [1] * 20 + [0] * 20 + [1] * 20, np.uint8)
    variables = {"a": Variable("a", ("0", "1"), missing=True), "b": Variable("b", ("0", "1"))}
    counter = PlainCounter(SiteData(variables, {"a": a, "b": b}))
    structure = Structure({"a": (), "b": ("a",)})
    fit = fit_em_from_tables(counter, structure, pseudo_count=0, tolerance=1e-14)
    assert fit.network.cpts["b"] == pytest.approx(np.eye(2), abs=0.02)
    assert fit.converged


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_closer_to_the_truth_than_available_cases(alarm_network, share):
    data = with_gaps(sample(alarm_network, 10_000, seed=5), share)
    counter, structure = PlainCounter(data), alarm_network.structure
    fit = fit_em_from_tables(counter, structure, pseudo_count=0.5)
    available = fit_cpts(counter, structure, pseudo_count=0.5)
    assert divergence(alarm_network, fit.network) < 0.95 * divergence(alarm_network, available)
    assert fit.converged and not any(np.isnan(cpt).any() for cpt in fit.network.cpts.values())


@pytest.mark.laws
@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_it_stops_where_nothing_moves(alarm_network, pseudo_count):
    """A hundred iterations more change no CPT."""
    counter = PlainCounter(with_gaps(sample(alarm_network, 3000, seed=6), 0.3))
    structure = alarm_network.structure
    fit, later = (
        fit_em_from_tables(
            counter, structure, pseudo_count=pseudo_count, tolerance=t, most_iterations=m
        )
        for t, m in ((1e-6, 200), (1e-12, 300))
    )
    assert fit.converged and len(later.trace) > len(fit.trace) > 5
    weights = counter.tables(structure.families)
    for node, counts in zip(structure.nodes, weights, strict=True):
        moved = np.abs(fit.network.cpts[node] - later.network.cpts[node])
        often = np.broadcast_to(counts.sum(axis=0) > 100, moved.shape)
        assert moved[often].max(initial=0) < 2e-3


def test_cliques_too_large_are_refused_before_anything_is_opened():
    names = [f"x{i}" for i in range(40)]
    structure = Structure({n: tuple(names[:i][-30:]) for i, n in enumerate(names)})
    variable = {n: Variable(n, ("0", "1"), missing=True) for n in names}
    counter = PlainCounter(SiteData(variable, dict.fromkeys(names, np.zeros(5, np.uint8))))
    with pytest.raises(ValueError, match="learn with fewer parents"):
        fit_em_from_tables(counter, structure)


def test_over_sites_as_over_pooled_data(gaps):
    plain = PlainCounter(gaps)
    structure = k2(plain)
    wanted = fit_em_from_tables(plain, structure)
    with federate(split_columns(gaps, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(gaps.variables))
        fit = fit_em_from_tables(counter, structure)
        assert counter.calls == 1
    assert fit.trace == wanted.trace
    assert all(np.array_equal(fit.network.cpts[n], wanted.network.cpts[n]) for n in structure.nodes)


def test_it_opens_what_missing_as_a_state_opens(gaps):
    structure = k2(PlainCounter(gaps))
    with federate(split_columns(gaps, 2)) as federation:
        counter = SecureCounter.of(federation)
        fit_cpts(counter, structure, missing=True)
        cells = counter.ledger.cells
        fit_em_from_tables(counter, structure)
        assert counter.ledger.cells == cells


def test_a_variable_without_values_is_named():
    variable = Variable("b", ("0", "1"), missing=True)
    data = SiteData({"b": variable}, {"b": np.full(20, 2, np.uint8)})
    with pytest.raises(ValueError, match="b has no value in any record"):
        fit_em_from_tables(PlainCounter(data), Structure({"b": ()}))


@pytest.mark.parametrize(
    "options", [{"tolerance": 0}, {"most_iterations": 0}, {"pseudo_count": -1}], ids=str
)
def test_impossible_options(gaps, options):
    with pytest.raises(ValueError, match=r"must be above 0|pseudo-count must be"):
        fit_em_from_tables(PlainCounter(gaps), Structure.of(list(gaps.variables), []), **options)
