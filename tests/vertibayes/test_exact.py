import numpy as np
import pytest

from tests.structure_worlds import (
    all_structures,
    binary,
    random_constraints,
    random_data,
    with_gaps,
)
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.exact import exact_widest
from vertibayes.structure.learners import learn_structure, search_of
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.variables import Family


def bic_of(source, structures, **parameters):
    """The BIC of structures over that of no edges, from the candidates of choices."""
    search = search_of(source, "exact", **parameters)
    families = sorted({f for s in structures for f in s.families if f.parents})
    gains = tuple(bic_gain(search, [f], [Family(f.child)]) for f in families)
    choices = Choices((gains,), search.missing, search.rows, score="likelihood")
    known = dict(zip(families, TableChooser(source).scores_of(choices)[0], strict=True))
    return [sum(known[f] for f in s.families if f.parents) for s in structures]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_no_structure_of_four_nodes_has_a_higher_bic(seed, gaps):
    data = random_data(seed, 4, 300, density=0.7, concentration=1.0)
    source = PlainCounter(with_gaps(data) if gaps else data)
    structures = list(all_structures(sorted(data.variables)))
    totals = bic_of(source, structures)
    learned = learn_structure(source, "exact")
    assert learned.edges
    assert bic_of(source, [learned])[0] == pytest.approx(max(totals), abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_no_structure_that_keeps_the_constraints_has_a_higher_bic(seed):
    data = random_data(seed, 4, 100, density=0.7, concentration=1.0)
    source, names = PlainCounter(data), sorted(data.variables)
    constraints = random_constraints(np.random.default_rng(seed), names)
    most = 1 + max(len(constraints.required_parents(name)) for name in names)
    kept = [
        structure
        for structure in all_structures(names)
        if not constraints.violations(structure)
        and max(map(len, structure.parents.values())) <= most
    ]
    learned = learn_structure(source, "exact", constraints=constraints, max_parents=most)
    assert learned in [Structure({n: tuple(sorted(s.parents[n])) for n in names}) for s in kept]
    if any(structure.edges for structure in kept):
        assert bic_of(source, [learned])[0] == pytest.approx(max(bic_of(source, kept)), abs=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_its_bic_is_not_below_that_of_other_learners(seed):
    data = random_data(seed, 8, 1000, concentration=1.0)
    source = PlainCounter(data)
    names = ("exact", "k2", "chow_liu", "pc", "hill_climbing", "hybrid")
    learned = [learn_structure(source, name, max_parents=3) for name in names]
    exact, *others = bic_of(source, learned)
    assert exact >= max(others) - 1e-5


def test_more_than_fifteen_variables_are_refused(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:16]))
    with pytest.raises(ValueError, match="exact takes at most 15 variables, got 16: choose fewer"):
        learn_structure(source, "exact")


def test_a_chooser_has_no_tables_for_it():
    with pytest.raises(ValueError, match="exact needs tables"):
        learn_structure(TableChooser(PlainCounter(random_data(0, 3, 50))), "exact")


def test_fifteen_variables_with_four_parents_have_4943_tables(alarm_data):
    source = PlainCounter(alarm_data.take(list(alarm_data.variables)[:15]))
    assert len(exact_widest(search_of(source, "exact"))) == 4943


def test_equal_structures_are_decided_by_name():
    counter = PlainCounter(binary(dict.fromkeys("cba", np.array([0, 1] * 20, np.uint8))))
    assert learn_structure(counter, "exact").parents == {"a": ("b",), "b": ("c",), "c": ()}


def test_required_parents_with_too_large_a_table_are_refused(monkeypatch):
    source = PlainCounter(random_data(0, 3, 50))
    monkeypatch.setattr("vertibayes.choosing.chooser.MOST_CELLS", 5)
    constraints = Constraints(required=(("n0", "n1"),))
    with pytest.raises(ValueError, match="n1 and its required parents is too large"):
        learn_structure(source, "exact", constraints=constraints)
