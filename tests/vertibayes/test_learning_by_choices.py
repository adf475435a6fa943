"""Hill climbing and the hybrid by choices, against tables, and what they promise of themselves."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.structure_worlds import example
from vertibayes.choosing import TableChooser, follow
from vertibayes.choosing.secret import SecretChooser
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.splitting import split_columns
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import learn_structure, search_of
from vertibayes.structure.limited_choices import LimitedChoices, LimitReachedError, bits_of
from vertibayes.structure.search import Search
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

BY_CHOICES = ["hybrid", "hill_climbing"]


def drawn(variables, records, seed, *, missing=False):
    """Records of variables with two or three states, most of which depend on earlier ones."""
    generator = np.random.default_rng(seed)
    codes, states = {}, {}
    for i in range(variables):
        name, length = f"v{i:02}", int(generator.integers(2, 4))
        values = generator.integers(0, length, records)
        for other in list(codes)[max(0, i - 3) :]:
            copied = generator.random(records) < generator.choice([0.0, 0.3, 0.5])
            values = np.where(copied, codes[other] % length, values)
        codes[name], states[name] = values.astype(np.uint8), tuple("abc"[:length])
    known = {name: Variable(name, states[name], missing=missing) for name in codes}
    if missing:
        for name, values in codes.items():
            values[generator.random(records) < 0.1] = len(states[name])
    return PlainCounter(SiteData(known, codes))


class Noted(TableChooser):
    """Keeps what it was asked."""

    def __init__(self, counter):
        super().__init__(counter)
        self.asked = []

    def choose(self, choices):
        self.asked.append(choices)
        return super().choose(choices)

    @property
    def bits(self):
        return sum(1 + log2(len(one)) for choices in self.asked for one in choices.sets)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10**6), st.integers(0, 3), st.booleans())
def test_hill_climbing_takes_the_path_of_hill_climbing_by_tables(
    variables, seed, max_parents, missing
):
    counter = drawn(variables, 300, seed, missing=missing)
    options = {"max_parents": max_parents}
    tables = learn_structure(counter, "hill_climbing", **options)
    assert learn_structure(TableChooser(counter), "hill_climbing", **options) == tables


def test_hill_climbing_takes_the_path_by_tables_on_alarm(alarm_data):
    counter = PlainCounter(alarm_data.take(list(alarm_data.variables)[:16]))
    chooser = Noted(counter)
    structure = learn_structure(chooser, "hill_climbing")
    assert structure == learn_structure(counter, "hill_climbing")
    assert len(chooser.asked) <= len(structure.edges) + 10, "about one call for each move"


@pytest.mark.parametrize("algorithm", BY_CHOICES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_constraints_are_never_violated(algorithm, data):
    variables = data.draw(st.integers(3, 10))
    counter = drawn(variables, 200, data.draw(st.integers(0, 10**6)))
    order = data.draw(st.permutations(sorted(counter.variables)))
    forward = [(p, c) for i, c in enumerate(order) for p in order[:i]]
    required = data.draw(st.lists(st.sampled_from(forward), max_size=3, unique=True))
    required = [edge for edge in required if sum(c == edge[1] for _, c in required) <= 2]
    others = [(c, p) for p, c in forward] + [edge for edge in forward if edge not in required]
    forbidden = data.draw(st.lists(st.sampled_from(others), max_size=8, unique=True))
    cut = data.draw(st.integers(0, len(order)))
    tiers = data.draw(st.sampled_from([(), (tuple(order[:cut]), tuple(order[cut:]))]))
    constraints = Constraints(tuple(required), tuple(forbidden), tiers)
    structure = learn_structure(
        TableChooser(counter), algorithm, constraints=constraints, max_parents=3
    )
    assert constraints.violations(structure) == []
    assert max(map(len, structure.parents.values())) <= 3


@pytest.mark.parametrize("algorithm", BY_CHOICES)
def test_the_steps_follow_from_the_winners_alone(algorithm):
    """A party without data takes the same steps, given the winners."""
    counter = drawn(10, 400, 1)
    search = search_of(counter, algorithm)
    chooser, asked, won = TableChooser(counter), [], []

    def answer(choices):
        asked.append(choices)
        won.append(chooser.choose(choices))
        return won[-1]

    structure = follow(ALGORITHMS[algorithm].steps(search), answer)
    winners = iter(won)
    again = []
    assert structure == follow(
        ALGORITHMS[algorithm].steps(search), lambda c: (again.append(c), next(winners))[1]
    )
    assert again == asked


@pytest.mark.parametrize("algorithm", BY_CHOICES)
def test_the_order_of_columns_makes_no_difference(algorithm):
    counter = drawn(11, 500, 2)
    data = counter._data
    names = sorted(data.variables, reverse=True)
    one, other = (
        learn_structure(TableChooser(PlainCounter(data.take(order))), algorithm)
        for order in (sorted(names), names[3:] + names[:3])
    )
    assert set(one.edges) == set(other.edges) and one.edges


@pytest.mark.parametrize("algorithm", BY_CHOICES)
@pytest.mark.parametrize("variables", [1, 2, 9, 14])
def test_bits_and_calls_stay_within_their_bounds(algorithm, variables):
    how = ALGORITHMS[algorithm]
    chooser = Noted(drawn(variables, 2_000, 3))
    learn_structure(chooser, algorithm)
    assert chooser.bits <= how.bits(variables, 4)
    assert len(chooser.asked) <= how.calls(variables, 4)


@pytest.mark.parametrize("algorithm", BY_CHOICES)
@pytest.mark.parametrize("most_bits", [1, 40, 100, 200, 300])
def test_a_search_ends_at_the_bits_that_are_stated(algorithm, most_bits):
    counter = drawn(12, 500, 4)
    required = (("v03", "v01"), ("v09", "v03"))
    constraints = Constraints(required)
    search = search_of(counter, algorithm, constraints=constraints)
    object.__setattr__(search, "most_bits", most_bits)
    chooser = Noted(counter)
    structure = follow(ALGORITHMS[algorithm].steps(search), chooser.choose)
    assert chooser.bits <= most_bits and constraints.violations(structure) == []
    if most_bits == 1:
        assert set(structure.edges) == set(required)


def test_more_bits_give_no_worse_structure():
    """With the bits of one call less than all, the search ends earlier."""
    counter = drawn(12, 500, 4)
    asked = []
    for most_bits in (200, 400, None):
        search = search_of(counter, "hybrid")
        object.__setattr__(search, "most_bits", most_bits)
        chooser = Noted(counter)
        follow(ALGORITHMS["hybrid"].steps(search), chooser.choose)
        asked.append(len(chooser.asked))
    assert asked == sorted(asked) and asked[0] < asked[2]


@pytest.mark.parametrize("algorithm", BY_CHOICES)
def test_missing_cells_do_not_add_edges_between_independent_variables(algorithm):
    generator = np.random.default_rng(5)
    variables = {f"v{i}": Variable(f"v{i}", ("0", "1"), missing=True) for i in range(10)}
    codes = {name: generator.integers(0, 3, 1_000).astype(np.uint8) for name in variables}
    chooser = TableChooser(PlainCounter(SiteData(variables, codes)))
    assert len(learn_structure(chooser, algorithm).edges) <= 1


@pytest.mark.parametrize("algorithm", BY_CHOICES)
@pytest.mark.parametrize("records", [0, 1, 50])
@pytest.mark.parametrize("variables", [1, 2, 10])
def test_few_variables_or_records_and_constant_columns(algorithm, variables, records):
    states = {f"v{i}": ("only",) if i == 1 else ("0", "1") for i in range(variables)}
    known = {name: Variable(name, of) for name, of in states.items()}
    codes = {name: (np.arange(records) % len(of)).astype(np.uint8) for name, of in states.items()}
    structure = learn_structure(TableChooser(PlainCounter(SiteData(known, codes))), algorithm)
    assert sorted(structure.nodes) == sorted(known)
    assert not any("v1" in edge for edge in structure.edges)


@pytest.mark.parametrize("algorithm", BY_CHOICES)
def test_no_parents_need_no_choice(algorithm):
    chooser = Noted(drawn(10, 100, 6))
    assert learn_structure(chooser, algorithm, max_parents=0).edges == ()
    assert chooser.asked == []


def test_families_that_do_not_fit_are_no_candidates(monkeypatch):
    chooser = Noted(drawn(10, 1_000, 7))
    monkeypatch.setattr(chooser, "fits", lambda family, missing=False: len(family.members) < 3)
    for algorithm in BY_CHOICES:
        structure = learn_structure(chooser, algorithm)
        assert max(map(len, structure.parents.values())) == 1


def searching(algorithm, variables):
    """The search of an algorithm for few parents, over variables of two states."""
    names = [f"v{i}" for i in range(variables)]
    of_class = names[0] if algorithm == "tan" else None
    return Search(
        {name: Variable(name, ("a", "b")) for name in names},
        records=1_000,
        fits=lambda family: True,
        max_parents=min(ALGORITHMS[algorithm].max_parents, 2),
        ordering=tuple(names),
        class_variable=of_class,
    )


WINNERS = {  # no scores have them: sites can lie
    "the first": lambda generator, size: 0,
    "the last": lambda generator, size: size - 1,
    "any": lambda generator, size: int(generator.integers(size)),
    "any except the first": lambda generator, size: int(generator.integers(1, size)),
    "the first or the last": lambda generator, size: int(generator.choice([0, size - 1])),
}


@pytest.mark.parametrize("winners", WINNERS)
@pytest.mark.parametrize("algorithm", sorted(n for n, how in ALGORITHMS.items() if how.steps))
def test_winners_that_contradict_each_other_end_in_a_structure_within_the_bounds(
    algorithm, winners
):
    how, search = ALGORITHMS[algorithm], searching(algorithm, 9)
    generator, sizes = np.random.default_rng(0), []

    def answer(choices):
        sizes.append([len(one) for one in choices.sets])
        return tuple(WINNERS[winners](generator, size) for size in sizes[-1])

    structure = follow(how.steps(search), answer)
    assert max(map(len, structure.parents.values())) <= 2
    assert sum(1 + log2(size) for call in sizes for size in call) <= how.bits(9, 2)
    assert len(sizes) <= how.calls(9, 2)


def test_moves_that_undo_each_other_end():
    """Each variable always prefers its last move: it adds an arc, and then removes it."""
    search, asked = searching("hill_climbing", 2), []

    def answer(choices):
        asked.append(choices)
        return tuple(len(one) - 1 for one in choices.sets)

    follow(ALGORITHMS["hill_climbing"].steps(search), answer)
    assert len(asked) < 10


def test_records_whose_gain_is_nearly_zero_do_not_let_sites_move_without_end():
    """An arc is worth -7e-9 nats: the rounding adds it, and is the same when it may be removed."""
    place = np.repeat(np.arange(4, dtype=np.uint8), [2436, 1967, 2926, 2671])
    codes = {"x": place // 2, "y": place % 2}
    data = {
        f"site {name}": SiteData({name: Variable(name, ("a", "b"))}, {name: column})
        for name, column in codes.items()
    }
    with federate(data) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer)
        chooser, won = SecretChooser(study), []
        search = search_of(chooser, "hill_climbing")
        steps = ALGORITHMS["hill_climbing"].steps(search)
        follow(steps, lambda choices: (won.append(chooser.choose(choices)), won[-1])[1])
    assert won == [(1, 1), (0,), (0,)]  # each arc wins, y -> x is added, and stays
    assert chooser.undecided == 4  # none of them is certain


def answered(steps, winners):
    """Follow steps by given winners; return what was asked."""
    asked = []
    follow(steps, lambda choices: (asked.append(choices.sets), next(winners))[1])
    return asked


def test_a_candidate_that_has_lost_is_not_asked_again():
    counter = drawn(4, 50, 8)
    search = search_of(counter, "k2")
    a, b, c, d = (bic_gain(search, [f]) for f in Structure.of(search.names, []).families)
    limited, places = LimitedChoices(search, 1_000, 10), []

    def steps():
        for sets in ([[a, b, c]], [[b, c, d]], [[a, b], [b, a]], [[b, a, d]]):
            places.append((yield from limited.best(sets)))

    # b wins against a, which comes before it, and against c, which comes after it
    assert answered(steps(), iter([(1,), (0,)])) == [((a, b, c),), ((b, d),)]
    assert places == [[1], [0], [1, 0], [0]]


def test_of_equals_the_first_may_win_again():
    """A candidate that lost to one before it is not left out where it comes first itself."""
    search = search_of(drawn(2, 50, 8), "k2")
    a, b = (bic_gain(search, [f]) for f in Structure.of(search.names, []).families)
    limited = LimitedChoices(search, 1_000, 10)

    def steps():
        yield from limited.best([[a, b]])
        yield from limited.best([[b, a]])

    assert answered(steps(), iter([(0,), (0,)])) == [((a, b),), ((b, a),)]


def test_of_candidates_that_have_all_lost_the_first_remains():
    """Nearly equal scores have other errors in each call, so that each can lose once."""
    search = search_of(drawn(3, 50, 8), "k2")
    a, b, c = (bic_gain(search, [f]) for f in Structure.of(search.names, []).families)
    limited, places = LimitedChoices(search, 1_000, 10), []

    def steps():
        for sets in ([[a, b], [b, c], [a, c]], [[a, b, c]]):
            places.append((yield from limited.best(sets)))

    answered(steps(), iter([(0, 0, 1)]))  # a beats b, which beats c, which beats a
    assert places == [[0, 0, 1], [0]]


def test_a_call_that_would_exceed_the_bits_is_not_asked():
    search = search_of(drawn(4, 50, 8), "k2")
    candidates = [bic_gain(search, [f]) for f in Structure.of(search.names, []).families]
    assert bits_of([4]) == 3 and bits_of([]) == 0
    for bits, calls in ((2, 1), (3, 0)):
        with pytest.raises(LimitReachedError):
            answered(LimitedChoices(search, bits, calls).best([candidates]), iter([(0,)]))
    assert answered(LimitedChoices(search, 3, 1).best([candidates]), iter([(0,)]))


@pytest.mark.parametrize("algorithm", BY_CHOICES)
@pytest.mark.parametrize("sites", [2, 3])
def test_sites_choose_the_structure_of_pooled_records(algorithm, sites):
    counter = drawn(6, 300, 9)
    with federate(split_columns(counter._data, sites)) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer, choices=True)
        learned = learn_structure(SecretChooser(study), algorithm)
    pooled = learn_structure(TableChooser(counter), algorithm)
    assert set(learned.edges) == set(pooled.edges) and pooled.edges


@pytest.mark.laws
@pytest.mark.parametrize("algorithm", BY_CHOICES)
@pytest.mark.parametrize("sites", [2, 3])
@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_sites_choose_the_structure_of_pooled_records_of_a_known_network(name, sites, algorithm):
    """ASIA, whose order search considers all pairs, and 12 variables of ALARM."""
    _, whole = example(name, 2_000)
    data = whole.take(list(whole.variables)[:12])
    with federate(split_columns(data, sites)) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer, choices=True)
        learned = learn_structure(SecretChooser(study), algorithm)
    pooled = learn_structure(TableChooser(PlainCounter(data)), algorithm)
    assert set(learned.edges) == set(pooled.edges) and len(pooled.edges) > 5
