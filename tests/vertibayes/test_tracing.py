"""The bound of tracing attacks, against the likelihood-ratio attacks that it bounds."""

from itertools import combinations

import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.release.tracing import table_parameters, tracing, tracing_power
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

RECORDS, RUNS = 400, 60


def test_without_parameters_an_attack_only_guesses():
    assert tracing_power(0, 1_000) == pytest.approx(0.05)
    assert tracing_power(0, 1_000, false_alarms=0.2) == pytest.approx(0.2)


def test_as_many_parameters_as_records_follow_the_published_formula():
    assert tracing_power(2_705_543, 10**6) == pytest.approx(0.5, abs=1e-4)  # 1.64485^2


def test_tables_show_more_than_cpts_where_parents_are_not_joined():
    structure = Structure({"a": (), "b": (), "c": ("a", "b")})
    lengths = {"a": 2, "b": 3, "c": 2}
    assert table_parameters(structure.families, lengths) == 11  # all cells of one table, less 1
    assert table_parameters([*structure.families[:2]], lengths) == 1 + 2


def chosen_structure(nodes, seed):
    """Return a structure of nodes with two parents each, drawn among the nodes before."""
    generator = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(nodes)]
    parents = [generator.choice(names[:i], min(i, 2), replace=False) for i in range(nodes)]
    return Structure({name: tuple(map(str, p)) for name, p in zip(names, parents, strict=True)})


def released_network(codes, structure):
    """Release exact tables of fair coins, and learn CPTs by maximum likelihood."""
    variables = {name: Variable(name, ("0", "1")) for name in structure.nodes}
    columns = dict(zip(structure.nodes, codes.T.astype(np.uint8), strict=True))
    plain = PlainCounter(SiteData(variables, columns))
    request = FamilyTables(structure.families, False, Rule("exact"))
    counter = ReleasedCounter(variables, len(codes), request, plain.tables(structure.families))
    return fit_cpts(counter, structure, pseudo_count=0)


def of_model(structure, inside, records):
    """Return the log-likelihood ratio of records: released model to the true distribution."""
    network = released_network(inside, structure)
    place = {name: column for column, name in enumerate(structure.nodes)}
    with np.errstate(divide="ignore"):
        logs = {node: np.log(2 * cpt) for node, cpt in network.cpts.items()}
    return sum(
        logs[f.child][tuple(records[:, place[n]] for n in f.members)] for f in structure.families
    )


def of_tables(structure, inside, records):
    """Return the score of records: over all products of coins that the tables show, as +1 and -1.

    The products are the orthonormal sufficient statistics of fair coins.
    """
    place = {name: column for column, name in enumerate(structure.nodes)}
    subsets = {
        tuple(sorted(place[name] for name in term))
        for family in structure.families
        for size in range(1, len(family.members) + 1)
        for term in combinations(family.members, size)
    }
    terms = [list(subset) for subset in subsets]

    def products(codes):
        return np.stack([(1 - 2 * codes[:, term]).prod(axis=1) for term in terms], axis=1)

    return products(records) @ products(inside).mean(axis=0)


def measured_power(attack, structure):
    """Return the share of records inside that exceed 95 % of the records outside."""
    generator = np.random.default_rng(3)
    caught = []
    for _ in range(RUNS):
        inside, outside = generator.integers(0, 2, (2, RECORDS, len(structure.nodes)))
        limit = np.quantile(attack(structure, inside, outside), 0.95)
        caught.append((attack(structure, inside, inside) > limit).mean())
    return np.mean(caught)


@pytest.mark.laws
@pytest.mark.parametrize(("attack", "power"), [(of_model, "model"), (of_tables, "table")])
def test_the_best_attack_on_a_released_network_has_the_power_of_the_bound(attack, power):
    structure = chosen_structure(40, seed=1)
    network = released_network(np.zeros((1, 40), np.int64), structure)
    bound = tracing(network, structure.families, dict.fromkeys(structure.nodes, 2), RECORDS)
    measured = measured_power(attack, structure)
    assert measured == pytest.approx(getattr(bound, f"{power}_power"), abs=0.015)
    fewer = getattr(bound, f"{power}_parameters") // 2  # control: half of the parameters
    assert measured > tracing_power(fewer, RECORDS) + 0.03
    assert bound.table_power > bound.model_power + 0.01
