"""What all learners of structures without an ordering have in common."""

from itertools import pairwise

import numpy as np
import pytest

from tests.structure_worlds import (
    firm_cases,
    one_state,
    random_constraints,
    random_data,
    shuffled,
    with_gaps,
)
from tests.vertibayes.test_k2 import Counting
from vertibayes.choosing import TableChooser
from vertibayes.choosing.secret import SecretChooser
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.options import Options
from vertibayes.parameters.cpt import scores
from vertibayes.splitting import split_columns
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import learn_structure
from vertibayes.structure.skeleton import skeleton_bits
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study

LEARNERS = ("pc", "chow_liu", "tan", "exact")


def learn(source, algorithm, **parameters):
    if algorithm == "tan":
        parameters["class_variable"] = min(source.variables)
    return learn_structure(source, algorithm, **parameters)


@pytest.mark.parametrize("algorithm", LEARNERS)
@pytest.mark.parametrize(("sites", "gaps"), [(2, False), (3, True), (5, False)])
def test_a_federation_learns_what_pooled_data_give(algorithm, sites, gaps):
    data = random_data(sites, 6, 400, concentration=1.0)
    data = with_gaps(data) if gaps else data
    expected = learn(PlainCounter(data), algorithm)
    assert expected.edges
    with federate(split_columns(data, sites, 0)) as federation:
        secure = SecureCounter.of(federation, order=list(data.variables))
        assert learn(secure, algorithm) == expected


@pytest.mark.parametrize("algorithm", LEARNERS[:3])
@pytest.mark.parametrize("missing", [False, True])
def test_choices_and_tables_give_one_structure(algorithm, missing):
    source = PlainCounter(with_gaps(random_data(1, 8, 600, concentration=1.0)))
    structure = learn(source, algorithm, missing=missing)
    assert structure.edges
    assert learn(TableChooser(source), algorithm, missing=missing) == structure


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("algorithm", LEARNERS[:3])
def test_winners_alone_give_the_structure_of_tables(algorithm, gaps):
    data = random_data(4, 5, 500, concentration=1.0)
    data = with_gaps(data) if gaps else data
    expected = learn(PlainCounter(data), algorithm)
    with federate(split_columns(data, 2, 0)) as federation:
        opened = open_study(federation.session, federation.sites, federation.dealer)
        chooser = SecretChooser(opened)
        assert learn(chooser, algorithm) == expected
    assert expected.edges


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_the_order_of_columns_never_matters(algorithm):
    data = random_data(2, 8, 400, concentration=1.0)
    expected = learn(PlainCounter(data), algorithm)
    for seed in range(3):
        assert learn(PlainCounter(shuffled(data, seed)), algorithm) == expected


@pytest.mark.parametrize("algorithm", ["pc", "exact"])
@pytest.mark.parametrize("seed", range(25))
def test_random_constraints_are_kept(algorithm, seed):
    data = random_data(seed, 6, 300, density=0.6, concentration=1.0)
    constraints = random_constraints(np.random.default_rng(seed), data.variables)
    structure = learn(PlainCounter(data), algorithm, constraints=constraints)
    assert constraints.violations(structure) == []
    most = ALGORITHMS[algorithm].max_parents
    assert max(map(len, structure.parents.values())) <= most


@pytest.mark.parametrize("algorithm", LEARNERS)
@pytest.mark.parametrize("case", [*firm_cases(), "one state"])
def test_small_data_give_a_structure(algorithm, case):
    source = one_state() if case == "one state" else firm_cases()[case]
    structure = learn(source, algorithm)
    assert set(structure.nodes) == set(source.variables)
    if ALGORITHMS[algorithm].steps is not None:
        assert learn(TableChooser(source), algorithm) == structure
    if algorithm in ("pc", "exact") and source.records < 2:
        assert structure.edges == ()


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_constraints_that_forbid_everything_give_no_edges(algorithm):
    data = random_data(0, 5, 300)
    constraints = Constraints(roots=tuple(data.variables))
    assert learn(PlainCounter(data), algorithm, constraints=constraints).edges == ()


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("algorithm", LEARNERS)
def test_no_table_has_more_variables_than_a_node_with_all_its_parents(algorithm, most):
    """Sites limit the variables of a table, and an approved study states them."""
    counter = Counting(PlainCounter(random_data(2, 7, 800, concentration=1.0)))
    learn(counter, algorithm, max_parents=most)
    asked = [family for call in counter.asked for family in call]
    assert max((len(family.members) for family in asked), default=0) <= most + 1


@pytest.mark.parametrize("algorithm", ["pc", "chow_liu", "tan"])
def test_the_winners_have_no_more_bits_than_stated(algorithm):
    data = random_data(3, 8, 500)
    chooser = TableChooser(PlainCounter(data))
    bits, choose = [0.0], chooser.choose

    def counted(choices):
        bits.append(0.0)
        bits[0] += sum(np.log2(len(one)) + 1 for one in choices.sets)
        return choose(choices)

    chooser.choose = counted
    learn(chooser, algorithm)
    how = ALGORITHMS[algorithm]
    assert 0 < bits[0] <= how.bits(8, how.max_parents)
    assert len(bits) - 1 <= how.calls(8, how.max_parents)
    assert skeleton_bits(1, 2) == 0


def other_start(data):
    """Return a chain through all variables, which no data are sampled from."""
    names = sorted(data.variables)
    return Structure.of(names, list(pairwise(names)))


@pytest.mark.parametrize("algorithm", ["hill_climbing", "tabu"])
def test_a_search_starts_from_a_given_structure(algorithm):
    data = random_data(7, 6, 400, concentration=1.0)
    counter = Counting(PlainCounter(data))
    learned = learn_structure(counter, algorithm)
    calls = len(counter.asked)
    assert learn_structure(PlainCounter(data), algorithm, start=learned) == learned
    again = Counting(PlainCounter(data))
    learn_structure(again, "hill_climbing", start=learned.to_networkx())
    assert len(again.asked) < calls, "a local optimum ends at once"


def test_a_given_start_is_left_for_a_better_structure():
    data = random_data(7, 6, 400, concentration=1.0)
    start = other_start(data)
    learned = learn_structure(PlainCounter(data), "hill_climbing", start=start)
    assert learned != learn_structure(PlainCounter(data), "hill_climbing"), "another optimum"
    assert bic_of(data, learned) > bic_of(data, start)
    assert (
        learn_structure(TableChooser(PlainCounter(data)), "hill_climbing", start=start) == learned
    )


def bic_of(data, structure):
    return scores(PlainCounter(data), structure).bic


def test_the_required_edges_belong_to_the_start():
    data = random_data(7, 5, 300)
    names = sorted(data.variables)
    known = Constraints(required=((names[0], names[4]),))
    search = Options(algorithm="tabu", start=other_start(data), constraints=known)
    start = search.search(PlainCounter(data)).start
    assert start.edges == (*pairwise(names), (names[0], names[4]))


BAD_STARTS = [
    ([], ["n0", "n1"], {}, "`start`: the structure lacks variables: n2"),
    ([], ["n0", "n1", "n2", "q"], {}, "`start`: the structure has nodes that are no variables: q"),
    ([("n0", "n1")], None, {"forbidden": (("n0", "n1"),)}, "`start`: n0 -> n1 contradicts"),
    ([("n0", "n1")], None, {"required": (("n1", "n0"),)}, "`start`: the structure must not have a"),
    ([("n0", "n2"), ("n1", "n2")], None, {}, "`start`: n2 has too many parents: n0, n1"),
]


@pytest.mark.parametrize(("edges", "nodes", "known", "reason"), BAD_STARTS)
def test_a_start_that_the_search_may_not_visit_is_refused(edges, nodes, known, reason):
    start = Structure.of(nodes or ["n0", "n1", "n2"], edges)
    counter = Counting(PlainCounter(random_data(0, 3, 50)))
    with pytest.raises(ValueError, match=reason):
        learn_structure(
            counter, "tabu", start=start, max_parents=1, constraints=Constraints(**known)
        )
    assert not counter.asked


def test_a_start_needs_a_search_that_starts_somewhere():
    start = Structure.of(["n0", "n1"], [])
    with pytest.raises(
        ValueError, match="`start` needs `algorithm` hill_climbing or tabu, got hyb"
    ):
        Options(start=start)
    with pytest.raises(ValueError, match="`start` needs `algorithm` hill_climbing or tabu, got k2"):
        learn_structure(PlainCounter(random_data(0, 2, 50)), "k2", start=start)
    with pytest.raises(ValueError, match="`structure` excludes `start`"):
        Options(structure=start, start=start)
