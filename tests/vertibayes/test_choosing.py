"""Choices by tables: the winners are those of the scores, and K2 asks as it always has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.choosing import Chooser, TableChooser, chooser_of, follow
from vertibayes.choosing.chooser import RESOLUTION
from vertibayes.counting import PlainCounter
from vertibayes.counting.counter import Counter
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.k2 import k2_steps
from vertibayes.structure.learners import k2, search_of
from vertibayes.structure.search import Search
from vertibayes.table_scores import k2_scores
from vertibayes_protocols.choices import Choices, Constant, Score
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable

NAMES = "abcde"


@st.composite
def records(draw):
    """Columns of a few states, some with missing values, some equal, some constant."""
    n, seed = draw(st.integers(1, 80)), draw(st.integers(0, 2**32 - 1))
    rng, variables, codes = np.random.default_rng(seed), {}, {}
    for name in NAMES[: draw(st.integers(1, 5))]:
        states, missing = draw(st.integers(2, 4)), draw(st.booleans())
        copied = codes and draw(st.booleans())
        column = codes[draw(st.sampled_from(sorted(codes)))] if copied else rng.integers(0, 4, n)
        codes[name] = np.minimum(column, states - 1 + missing).astype(np.uint8)
        variables[name] = Variable(name, tuple(map(str, range(states))), missing)
    return SiteData(variables, codes)


def parents_as_published(counter, most, missing):
    """K2 with its gains taken from one table at a time: the score less that of its margin.

    Gains are rounded as scores are: a gain of 4e-16 nats is an error of floating point.
    """
    found = {}
    for place, child in enumerate(counter.variables):
        rest, parents = list(counter.variables)[:place], []
        while rest and len(parents) < most:
            families = [Family(child, (*parents, name)) for name in rest]
            tables = [counter.tables([family], missing=missing)[0] for family in families]
            scores = [k2_scores([t, t.sum(axis=-1)]) for t in tables]
            gains = [round(with_it - without, RESOLUTION) for with_it, without in scores]
            best = gains.index(max(gains))
            if gains[best] <= 0:
                break
            parents.append(rest.pop(best))
        found[child] = tuple(parents)
    return found


@settings(max_examples=60, deadline=None)
@given(records(), st.integers(0, 3), st.booleans())
def test_k2_by_choices_equals_k2_by_gains(data, most, missing):
    counter = PlainCounter(data)
    structure = k2(counter, max_parents=most, missing=missing)
    assert dict(structure.parents) == parents_as_published(counter, most, missing)
    assert k2(TableChooser(counter), max_parents=most, missing=missing) == structure


def test_the_steps_follow_from_the_winners():
    """Whoever drives the search with the same winners is asked the same."""
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, 2, 200).astype(np.uint8) for name in NAMES}
    codes["e"] = codes["a"] ^ codes["b"] & codes["c"]
    data = SiteData({name: Variable(name, ("0", "1")) for name in NAMES}, codes)
    chooser, asked, winners = TableChooser(PlainCounter(data)), [], []
    search = search_of(chooser, "k2")

    def answer(step):
        asked.append(step)
        winners.append(chooser.choose(step))
        return winners[-1]

    structure = follow(k2_steps(search), answer)
    assert structure == k2(PlainCounter(data)) and structure.edges
    replies = iter(winners)
    repeated = []

    def reply(step):
        repeated.append(step)
        return next(replies)

    assert follow(k2_steps(search), reply) == structure
    assert repeated == asked


def test_a_set_has_no_further_parent_first_and_a_gain_for_each_predecessor():
    variables = {name: Variable(name, ("0", "1")) for name in "abc"}
    required = Constraints(required=(("b", "c"),))
    search = Search(variables, 9, lambda _: True, 3, required, rows=Rows(last=9))
    steps = k2_steps(search)
    choices = next(steps)
    assert choices.rows == Rows(last=9) and not choices.missing
    assert choices.sets == (
        ((), (Score(Family("b", ("a",))), Score(Family("b"), ("a",), -1))),
        ((), (Score(Family("c", ("b", "a"))), Score(Family("c", ("b",)), ("a",), -1))),
    )
    with pytest.raises(StopIteration) as stop:
        steps.send((0, 0))
    assert stop.value.value.edges == (("b", "c"),)


def test_a_candidate_may_have_several_scores():
    """Reversing a -> b changes two families: the candidate's value is a sum and difference."""
    rng = np.random.default_rng(2)
    codes = {name: rng.integers(0, 3, 50).astype(np.uint8) for name in "abc"}
    counter = PlainCounter(SiteData({n: Variable(n, tuple("012")) for n in "abc"}, codes))

    def value(*scores):
        tables = counter.tables([family for family, _, _ in scores])
        return sum(sign * v for (_, _, sign), v in zip(scores, k2_scores(tables), strict=True))

    stay = Score(Family("a", ("c",))), Score(Family("b", ("a",)))
    turn = Score(Family("a", ("c", "b"))), Score(Family("b"))
    drop = Score(Family("a", ("c",))), Score(Family("b"))
    less = (*turn, Score(Family("b", ("a",)), sign=-1))
    candidates = stay, turn, drop, less
    values = [value(*candidate) for candidate in candidates]
    assert TableChooser(counter).choose(Choices((candidates,))) == (int(np.argmax(values)),)
    assert TableChooser(counter).choose(Choices((candidates[::-1],))) == (
        int(np.argmax(values[::-1])),
    )


def test_the_first_of_equal_candidates_wins():
    codes = {name: np.array([0, 1, 1, 0], np.uint8) for name in "abc"}
    counter = PlainCounter(SiteData({n: Variable(n, ("0", "1")) for n in "abc"}, codes))
    by_a, by_b = (Score(Family("c", (p,))) for p in "ab")
    empty = ()
    gain = by_a, by_b._replace(sign=-1)
    sets = ((by_a,), (by_b,)), ((by_b,), (by_a,)), (empty, gain), (gain, empty)
    assert TableChooser(counter).choose(Choices(sets)) == (0, 0, 0, 0)


def test_records_that_miss_a_further_variable_are_left_out():
    variables = {"a": Variable("a", ("0", "1"), missing=True), "b": Variable("b", ("0", "1"))}
    codes = {"a": np.array([0, 2, 2, 2], np.uint8), "b": np.array([0, 0, 0, 0], np.uint8)}
    chooser = TableChooser(PlainCounter(SiteData(variables, codes)))
    all_records, known = Score(Family("b")), Score(Family("b"), within=("a",))
    assert chooser.choose(Choices((((all_records,), (known,)),))) == (1,)  # ln 1/2 and ln 1/5
    assert chooser.choose(Choices((((all_records,), (known,)),), missing=True)) == (0,)


def test_a_constant_is_part_of_the_score():
    codes = {name: np.array([0, 1, 1, 0], np.uint8) for name in "ab"}
    counter = PlainCounter(SiteData({n: Variable(n, ("0", "1")) for n in "ab"}, codes))
    gain = 4 * np.log(2)  # of the likelihood: b is a
    for penalty, winner in ((gain - 1e-5, 0), (gain, 0), (gain + 1e-5, 1)):
        with_a = Score(Family("b", ("a",))), Constant(-round(penalty * 1e6))
        choices = Choices(((with_a, (Score(Family("b")),)),), score="likelihood")
        assert TableChooser(counter).choose(choices) == (winner,)


def test_a_counter_is_no_chooser_and_a_chooser_stays_as_it_is():
    data = SiteData({"a": Variable("a", ("0", "1"))}, {"a": np.array([0, 1], np.uint8)})
    counter: Counter = PlainCounter(data)
    assert isinstance(chooser_of(counter), TableChooser) and not isinstance(counter, Chooser)
    chooser = TableChooser(counter)
    assert chooser_of(chooser) is chooser
