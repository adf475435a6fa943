"""Races: the winners are those of all records, and most candidates are not counted on them."""

from functools import partial

import numpy as np
import pytest

from vertibayes.choosing import TableChooser, chooser_of, racing
from vertibayes.choosing.racing import RacingChooser, sample_of
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2, learn_structure
from vertibayes_protocols.choices import Choices, Constant, Score
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable

MANY, FEW = 100_000, 20_000


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Races from a thousand records on, so that tests are quick."""
    monkeypatch.setattr(racing, "FEWEST", 1000)
    monkeypatch.setattr(racing, "sample_of", lambda records: records // 5)


@pytest.fixture(scope="module")
def alarm(alarm_network):
    return sample(alarm_network, MANY, seed=11)


class Counted(PlainCounter):
    """Counts, and notes over how many records it has counted each table."""

    def __init__(self, data, **options):
        super().__init__(data, **options)
        self.asked = []

    def tables(self, families, *, missing=False, rows=Rows()):
        self.asked += [(rows.count(self.records), family) for family in families]
        return super().tables(families, missing=missing, rows=rows)

    def number(self, records):
        """How many tables of candidates were counted over so many records."""
        return sum(counted == records and bool(f.parents) for counted, f in self.asked)


def data_of(**columns):
    variables = {n: Variable(n, tuple(map(str, range(c.max() + 1)))) for n, c in columns.items()}
    return SiteData(variables, {n: c.astype(np.uint8) for n, c in columns.items()})


def part_of(data, columns, records=MANY):
    """The first columns and records."""
    names = list(data.variables)[:columns]
    codes = {n: data.codes[n][:records] for n in names}
    return SiteData({n: data.variables[n] for n in names}, codes)


@pytest.mark.parametrize("algorithm", ["k2", "pc", "tan"])
def test_a_race_learns_the_structure_of_all_records(alarm, algorithm):
    data = part_of(alarm, 20) if algorithm == "pc" else alarm
    full, race = Counted(data), Counted(data)
    target = {"class_variable": "HR"} if algorithm == "tan" else {}
    expected = learn_structure(TableChooser(full), algorithm, **target)
    assert learn_structure(RacingChooser(race), algorithm, **target) == expected
    assert 0 < race.number(MANY) < full.number(MANY)
    assert race.number(FEW) > 0


def test_pairs_do_not_race(alarm):
    counter = Counted(alarm)
    learn_structure(RacingChooser(counter), "chow_liu")
    assert counter.number(FEW) == 0


def test_near_ties_are_left_to_all_records():
    """One candidate is right in 20 of 100,000 records more: a sample may prefer the other."""
    generator = np.random.default_rng(1)
    child = generator.integers(0, 2, MANY)
    better = np.where(generator.random(MANY) < 0.8, child, 1 - child)
    worse = better.copy()
    worse[np.flatnonzero(better == child)[:515]] ^= 1
    worse[np.flatnonzero(better != child)[:495]] ^= 1
    flip, few = generator.random(MANY) < 0.5, generator.integers(0, 2, MANY)
    weak = np.where(generator.random(MANY) < 0.1, child, few)
    data = data_of(worse=worse, better=better, weak=weak, given=flip, child=child)
    before, names = Family("child", ("given",)), ("worse", "better", "weak")
    families = [Family("child", ("given", name)) for name in names]
    one = ((), *((Score(f), Score(before, within=f.parents[1:], sign=-1)) for f in families))
    preferred = set()
    for seed in range(20):
        counter = Counted(data, seed=seed)
        assert RacingChooser(counter).choose(Choices((one,))) == (2,)
        assert [f.parents[1] for n, f in counter.asked if n == MANY and f.parents] == list(
            names[:2]
        )
        preferred.add(TableChooser(counter).choose(Choices((one,), rows=Rows(last=FEW))))
    assert preferred == {(1,), (2,)}


def test_a_winner_that_the_sample_shows_is_not_counted_again():
    generator = np.random.default_rng(2)
    child = generator.integers(0, 2, MANY)
    given, noise = generator.integers(0, 2, MANY), generator.integers(0, 2, MANY)
    counter = Counted(data_of(copy=child, noise=noise, given=given, child=child))
    alone, family = Family("child", ("given",)), Family("child", ("given", "copy"))
    test = ((Score(alone, ("copy",)), Constant(10**7)), (Score(family),))
    gains = tuple(
        (Score(Family("child", (n, "given"))), Score(alone, sign=-1)) for n in ("noise", "copy")
    )
    choices = Choices((test, gains), score="likelihood")
    assert RacingChooser(counter).choose(choices) == (1, 1)
    assert counter.number(MANY) == 0
    chooser = RacingChooser(counter)
    chooser.choose(choices)
    asked = len(counter.asked)
    assert chooser.choose(choices) == (1, 1) and len(counter.asked) == asked  # it remembers


def test_constants_count_in_a_race():
    """A penalty decides for all that the sample shows, and is not lost."""
    generator = np.random.default_rng(3)
    child = generator.integers(0, 2, MANY)
    counter = Counted(data_of(copy=child, given=generator.integers(0, 3, MANY), child=child))
    alone, both = Family("child", ("given",)), Family("child", ("given", "copy"))
    of_copy = Score(both), Score(alone, sign=-1)
    for penalty, winner in ((10**9, 1), (10**11, 0)):
        one = ((), (*of_copy, Constant(-penalty)))
        assert RacingChooser(counter).choose(Choices((one,), score="likelihood")) == (winner,)
    assert counter.number(MANY) == 0


@pytest.mark.parametrize("terms", ["within", "two families", "one score"])
def test_sets_of_other_scores_are_counted_on_all_records(terms):
    generator = np.random.default_rng(4)
    a, b, d = (generator.integers(0, k, MANY) for k in (2, 3, 2))
    counter = Counted(data_of(a=a, b=b, d=d, c=a))
    by_a, by_b = Score(Family("c", ("d", "a"))), Score(Family("c", ("d", "b")))
    other = {
        "within": (by_b._replace(within=("a",)), Score(Family("c"), ("a", "b", "d"), -1)),
        "two families": (by_a, by_b),
        "one score": (by_b,),
    }[terms]
    one = ((by_a, Score(Family("c", ("d",)), sign=-1)), other)
    expected = TableChooser(PlainCounter(counter._data)).choose(Choices((one,)))
    assert RacingChooser(counter).choose(Choices((one,))) == expected
    assert counter.number(FEW) == 0


def test_no_race_of_few_records_of_some_records_or_with_gaps(alarm, monkeypatch):
    part = part_of(alarm, 6)
    gaps = SiteData({n: Variable(n, v.states, True) for n, v in part.variables.items()}, part.codes)
    for data, options, races in (
        (part, {}, True),
        (gaps, {"missing": True}, True),
        (gaps, {}, False),
        (part, {"rows": Rows(last=60_000)}, False),
    ):
        counter = Counted(data)
        k2(counter, **options)
        assert (counter.number(FEW) > 0) == races
    monkeypatch.setattr(racing, "FEWEST", MANY + 1)
    counter = Counted(part)
    k2(counter)
    assert counter.number(FEW) == 0


def test_sites_show_the_sample_in_the_ledger_or_refuse_it_and_all_is_counted(alarm):
    part = part_of(alarm, 9, 4000)
    learn = partial(learn_structure, algorithm="tan", class_variable=next(iter(part.variables)))
    expected = learn(TableChooser(PlainCounter(part)))
    for sets in (50, 1):  # TAN's first call races
        policy = Policy(free_tables=True, most_row_sets=sets)
        with federate(split_columns(part, 3), policy=policy) as federation:
            counter = SecureCounter.of(federation, order=list(part.variables))
            assert learn(counter) == expected
            rows = {table.rows for table in counter.ledger.tables}
        assert rows == ({Rows(), Rows(last=800)} if sets > 1 else {Rows()})


def test_the_sample_grows_with_the_records_and_a_counter_races(alarm):
    assert sample_of(1_000_000) == 200_000 and sample_of(500_000) == 141_400
    assert sample_of(10) == 10
    assert isinstance(chooser_of(PlainCounter(alarm)), RacingChooser)
