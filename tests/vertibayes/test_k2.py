import numpy as np
import pytest

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import k2
from vertibayes.table_scores import k2_scores
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable

BITS = ("0", "1")


def binary(**columns):
    codes = {name: np.array(values, np.uint8) for name, values in columns.items()}
    return PlainCounter(SiteData({name: Variable(name, BITS) for name in codes}, codes))


class Counting:
    """Counts the calls to a counter."""

    def __init__(self, counter):
        self.counter, self.asked = counter, []
        self.variables, self.records = counter.variables, counter.records
        self.most_variables = None

    def check(self, families, **options):
        self.counter.check(families, **options)

    def tables(self, families, **options):
        self.asked.append(list(families))
        return self.counter.tables(families, **options)


def test_one_call_a_step_whatever_the_number_of_nodes(alarm_data):
    for nodes in (5, 15, 37):
        counter = Counting(PlainCounter(alarm_data.take(list(alarm_data.variables)[:nodes])))
        k2(counter, max_parents=3)
        assert 2 <= len(counter.asked) <= 3


def test_greedy_search_equals_that_by_scores(alarm_data):
    """K2 as printed: the score of each candidate parent set, one by one."""
    counter = PlainCounter(alarm_data.take(list(alarm_data.variables)[:14]))
    score = lambda family: k2_scores(counter.tables([family]))[0]  # noqa: E731
    order, found = list(counter.variables), {}
    for i, child in enumerate(order):
        parents, best = (), score(Family(child))
        while len(parents) < 2:
            rest = [p for p in order[:i] if p not in parents]
            scores = [score(Family(child, (*parents, p))) for p in rest]
            if not rest or max(scores) <= best:
                break
            best = max(scores)
            parents += (rest[scores.index(best)],)
        found[child] = parents
    assert k2(counter, max_parents=2) == Structure(found)


def test_ties_go_to_the_earliest():
    copy = [0, 1] * 20
    counter = binary(a=copy, b=[1, 0] * 20, c=copy)
    assert k2(counter).parents["c"] == ("a",)
    assert k2(counter, ordering=["b", "a", "c"]).parents["c"] == ("b",)


def test_no_gain_no_parent():
    counter = binary(a=[0, 0, 1, 1] * 10, b=[0, 1, 0, 1] * 10)
    assert k2(counter).edges == ()


def test_two_parents_where_neither_alone_says_much():
    """XOR with a little of one parent: the second is worth it once the first is there."""
    a, b = np.tile([0, 0, 1, 1], 25), np.tile([0, 1, 0, 1], 25)
    c = a ^ b
    c[:40] = a[:40]
    structure = k2(binary(a=a, b=b, c=c))
    assert set(structure.parents["c"]) == {"a", "b"}
    assert k2(binary(a=a, b=b, c=c), max_parents=0).edges == ()


def test_required_and_forbidden_edges():
    a = [0, 1] * 20
    counter = binary(a=a, b=a, c=a)
    assert k2(counter, constraints=Constraints(forbidden=(("a", "c"),))).parents["c"] == ("b",)
    assert k2(counter, constraints=Constraints(required=(("b", "c"),))).parents["c"][0] == "b"
    required = Constraints(required=(("b", "c"),))
    assert k2(counter, constraints=required, max_parents=1).parents["c"] == ("b",)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ordering": ["a", "b"]}, "does not have the variables: c"),
        ({"ordering": ["a", "b", "c", "x"]}, "has unknown variables: x"),
        ({"ordering": ["a", "b", "c", "a"]}, "twice: a"),
        ({"max_parents": -1}, "max_parents must be between 0 and 20, got -1"),
        ({"max_parents": 21}, "max_parents must be between 0 and 20, got 21"),
        ({"constraints": Constraints(required=(("c", "a"),))}, "c -> a contradicts the ordering"),
        ({"constraints": Constraints(required=(("a", "x"),))}, "name unknown variables: x"),
        (
            {"constraints": Constraints(required=(("a", "c"), ("b", "c"))), "max_parents": 1},
            "c has 2 required parents",
        ),
    ],
)
def test_impossible_options(options, reason):
    with pytest.raises(ValueError, match=reason):
        k2(binary(a=[0, 1], b=[0, 1], c=[0, 1]), **options)


def test_missing_cells_are_compared_over_the_same_records(gaps):
    """A parent that is seldom known gains no more than the records where it is known say."""
    structure = k2(PlainCounter(gaps))
    complete = k2(PlainCounter(gaps), missing=True)
    assert structure.edges and complete.edges
    parent, child = structure.edges[0]
    (table,) = PlainCounter(gaps).tables([Family(child, (parent,))])
    gain = np.subtract(*k2_scores([table, table.sum(axis=1)]))
    assert gain > 0


def test_a_sample_of_the_records(alarm_data):
    counter = Counting(PlainCounter(alarm_data.take(list(alarm_data.variables)[:8])))
    assert k2(counter, rows=Rows(0, 0, 500)) is not None
    assert all(t.sum() == 500 for t in counter.tables([Family("CVP")], rows=Rows(0, 0, 500)))


def test_progress_is_told(alarm_data):
    told = []
    k2(
        PlainCounter(alarm_data.take(list(alarm_data.variables)[:4])),
        progress=lambda *at: told.append(at),
    )
    assert told[0] == ("k2", 0, 0) and told[-1] == ("k2", len(told) - 1, len(told) - 1)


def test_constraints_as_json_gives_them():
    a = [0, 1] * 20
    constraints = Constraints.from_json({"forbidden": [["a", "b"]]})
    assert k2(binary(a=a, b=a), constraints=constraints).edges == ()
    assert Constraints.from_json(constraints.as_json()) == constraints
    with pytest.raises(TypeError, match="must be Constraints, got dict; Constraints"):
        k2(binary(a=a, b=a), constraints=constraints.as_json())


def test_tables_wider_than_the_sites_allow_are_refused_before_the_first():
    counter = Counting(binary(a=[0, 1], b=[0, 1], c=[0, 1]))
    counter.most_variables = 2
    with pytest.raises(ValueError, match=r"between 0 and 1 \(.* of 2 variables\), got 7"):
        k2(counter, max_parents=7)
    assert counter.asked == []
    assert k2(counter, max_parents=1).nodes == ("a", "b", "c")
