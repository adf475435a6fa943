from itertools import pairwise

import numpy as np
import pytest

from tests.vertibayes.test_em_tables import with_gaps
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.network import Network
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.widening import Widening, gain, widen
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.variables import Variable

BINARY = ("0", "1")


def chain(copy):
    """a -> b -> c and a -> d: c tells b with probability `copy`, d tells nothing of a."""
    variables = {name: Variable(name, BINARY) for name in "abcd"}
    right = np.array([[copy, 1 - copy], [1 - copy, copy]])
    cpts = {
        "a": np.array([0.5, 0.5]),
        "b": np.array([[0.9, 0.3], [0.1, 0.7]]),
        "c": right,
        "d": np.full((2, 2), 0.5),
    }
    structure = Structure({"a": (), "b": ("a",), "c": ("b",), "d": ("a",)})
    return Network(structure, variables, cpts)


def widened(network, missing, cells, **options):
    variables = {n: Variable(n, v.states, missing[n] > 0) for n, v in network.variables.items()}
    return widen(network, variables, missing, cells, **options)


def test_the_neighbour_that_tells_comes_first():
    steps = widened(chain(0.99), {"a": 0.0, "b": 0.3, "c": 0.0, "d": 0.0}, 100)
    assert steps[0] == Widening("b", "c", 2 * 3 * 2)
    assert "d" not in {step.neighbour for step in steps}, "what tells nothing is not opened"


def test_gain_by_hand():
    """b is missing in a share q: c, which is b, brings all that is unknown of it."""
    joint = np.diag([0.5, 0.5])
    assert gain(joint, [0.25], 1) == pytest.approx(1 * 0.25 * 1.0)


def test_gain_of_two_that_may_be_missing():
    """A child of three states and a parent of two, and w, a copy of the parent.

    Of the parent alone w tells all; of both it tells all of the parent, nothing of the child
    given it; of the child alone, the parent being known, nothing.
    """
    parent = np.array([0.25, 0.75])
    child = np.array([[0.5, 0.2], [0.3, 0.2], [0.2, 0.6]])
    joint = np.einsum("cp,p,pw->cpw", child, parent, np.eye(2))
    entropy = lambda p: float(-(p * np.log(p)).sum())  # noqa: E731
    both = entropy(child * parent)
    wanted = 0.1 * (1 - 0.4) * 0 + (1 - 0.1) * 0.4 * 1 + 0.1 * 0.4 * entropy(parent) / both
    assert gain(joint, [0.1, 0.4], 2) == pytest.approx((3 - 1) * 2 * wanted)


def test_nothing_missing_nothing_opened():
    assert widened(chain(0.99), dict.fromkeys("abcd", 0.0), 1000) == ()


@pytest.mark.parametrize("cells", [0, 5, 12, 40, 200])
def test_the_cells_are_never_exceeded(cells):
    steps = widened(chain(0.9), dict.fromkeys("abcd", 0.2), cells)
    assert sum(step.cells for step in steps) <= cells
    assert bool(steps), "a widened by b costs nothing"


def test_a_sites_policy_bounds_the_variables_of_a_table():
    everywhere = dict.fromkeys("abcd", 0.2)
    assert len(widened(chain(0.9), everywhere, 1000, most_variables=2)) < len(
        widened(chain(0.9), everywhere, 1000, most_variables=3)
    )
    steps = widened(chain(0.9), everywhere, 1000, most_variables=3)
    assert max(sum(s.child == c for s in steps) + (c != "a") for c in "abcd") <= 2


@pytest.mark.laws
def test_wider_tables_come_closer_to_exact_em(alarm_network):
    """A share of 30 % missing: the distance from the truth falls towards that of pooled EM."""
    data = with_gaps(sample(alarm_network, 10_000, seed=5), 0.3)
    counter, structure = PlainCounter(data), alarm_network.structure
    fits = [
        fit_em_from_tables(counter, structure, pseudo_count=0.5, wider_cells=cells)
        for cells in (0, 10_000, 30_000)
    ]
    distances = [divergence(alarm_network, fit.network) for fit in fits]
    exact = divergence(alarm_network, fit_em(data, structure, pseudo_count=0.5).network)
    assert all(later < earlier for earlier, later in pairwise(distances))
    assert exact < distances[-1] < 1.25 * exact
    assert all(fit.converged for fit in fits)


def test_over_sites_as_over_pooled_data_and_as_many_cells_as_it_says(gaps):
    structure = Structure.of(
        list(gaps.variables), [(a, b) for a, b in pairwise(list(gaps.variables)[:6])]
    )
    wanted = fit_em_from_tables(PlainCounter(gaps), structure, wider_cells=400)
    with federate(split_columns(gaps, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(gaps.variables))
        fit_em_from_tables(counter, structure)
        before = counter.ledger.cells
        fit = fit_em_from_tables(counter, structure, wider_cells=400)
        opened = counter.ledger.cells - before
    assert fit.widenings == wanted.widenings and fit.trace == wanted.trace
    assert all(np.array_equal(fit.network.cpts[n], wanted.network.cpts[n]) for n in structure.nodes)
    assert 0 < opened == sum(step.cells for step in fit.widenings) <= 400


def test_a_table_that_is_open_costs_nothing():
    """The family of b is open: a widened by b has the same members."""
    steps = widened(chain(0.9), {"a": 0.2, "b": 0.2, "c": 0.0, "d": 0.0}, 40)
    assert Widening("a", "b", 0) in steps


def test_a_policy_is_asked_before(gaps):
    structure = Structure.of(list(gaps.variables), list(pairwise(list(gaps.variables)[:6])))
    policy = Policy(most_variables=2, free_tables=True)
    with federate(split_columns(gaps, 2), policy=policy) as federation:
        counter = SecureCounter.of(federation)
        fit = fit_em_from_tables(counter, structure, wider_cells=10_000)
    own = {f.child: len(f.members) for f in structure.families}
    widened = [own[s.child] for s in fit.widenings]
    assert widened and max(widened) == 1


def test_fewer_than_no_cells(gaps):
    structure = Structure.of(list(gaps.variables), [])
    with pytest.raises(ValueError, match="wider_cells at least 0"):
        fit_em_from_tables(PlainCounter(gaps), structure, wider_cells=-1)
