import numpy as np
import pytest

from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.inference.marginals import divergence
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import fit_three_steps
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import federate


def test_synthetic_records_have_the_same_gaps(alarm_network):
    data = with_gaps(sample(alarm_network, 5000, seed=1), 0.2)
    fit, synthetic = fit_three_steps(PlainCounter(data), alarm_network.structure, seed=3)
    assert synthetic.records == 5000 and dict(synthetic.variables) == {
        name: data.variables[name] for name in alarm_network.structure.nodes
    }
    for name, variable in data.variables.items():
        share = [(d.codes[name] == len(variable.states)).mean() for d in (data, synthetic)]
        assert share[1] == pytest.approx(share[0], abs=0.04)
    assert fit.converged


@pytest.mark.laws
def test_they_lose_what_em_from_tables_keeps(alarm_network):
    """The same tables, opened from the same records: farther from the truth."""
    data = with_gaps(sample(alarm_network, 10_000, seed=5), 0.3)
    counter, structure = PlainCounter(data), alarm_network.structure
    steps, _ = fit_three_steps(counter, structure, pseudo_count=0.5)
    tables = fit_em_from_tables(counter, structure, pseudo_count=0.5)
    distances = [divergence(alarm_network, fit.network) for fit in (steps, tables)]
    assert distances[0] > 2 * distances[1]


def test_over_sites_as_over_pooled_data(gaps):
    structure = k2(PlainCounter(gaps))
    wanted, _ = fit_three_steps(PlainCounter(gaps), structure, seed=1)
    with federate(split_columns(gaps, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(gaps.variables))
        fit, _ = fit_three_steps(counter, structure, seed=1)
        assert counter.calls == 1
    for node, cpt in wanted.network.cpts.items():
        assert np.array_equal(fit.network.cpts[node], cpt)


def test_as_many_records_as_wanted(gaps):
    structure = k2(PlainCounter(gaps))
    assert fit_three_steps(PlainCounter(gaps), structure, records=300)[1].records == 300
