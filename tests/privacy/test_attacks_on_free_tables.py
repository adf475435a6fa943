"""Exact tables, asked freely, are the records: three attacks, and what an approved study leaves.

In each attack the sites follow the protocol and no query breaks the policy. The first half of each
pair is the control: the attack succeeds where a site allows `free_tables`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.randomness import SeededRandomness
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes_protocols.choices import Choices, Constant, Score
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Rows, Variable

RECORDS = 200
VARIABLES = 12
STATES = ("no", "yes", "maybe", "unknown")
DIGITS = 15  # RECORDS <= DIGITS * DIGITS


def site_data(columns, place):
    """Return half of the columns: those of the first or the second site."""
    mine = dict([*columns.items()][6 * place : 6 * place + 6])
    return SiteData({name: Variable(name, STATES) for name in mine}, mine)


def asked(data, study=b"one", **options):
    """Return a counter over a study of a federation whose tables anybody may ask for."""
    return SecureCounter.of(federate(data, randomness=SeededRandomness(study), **options))


# ---- slices of a permutation ---------------------------------------------------------------------


def read_by_slices(counter, names, width=10):
    """Read records from tables over slices of `width` records: an analyst alone.

    Two tables of eight variables share four. A record that is alone in its slice in these four is
    in one cell of each table: both together are the whole record.
    """
    halves = names[:8], names[4:]
    families = [Family(child, tuple(parents)) for child, *parents in halves]
    slices = range(0, counter.records, width)
    return [
        (*left, *right[4:])
        for first in slices
        for left, right in alone(*counter.tables(families, rows=Rows(0, first, first + width)))
    ]


def alone(left, right):
    """Return the cells of two tables of records that are alone in the variables of both tables."""
    lefts, rights = (np.argwhere(table == 1).tolist() for table in (left, right))
    shared = left.sum(axis=tuple(range(4)))
    for a in lefts:
        if shared[tuple(a[4:])] == 1:
            yield from ((a, b) for b in rights if b[:4] == a[4:])


def dependent_columns():
    """Draw twelve variables, each of which copies the one before for a third of the records."""
    rng = np.random.default_rng(4)
    drawn = rng.integers(0, 4, (VARIABLES, RECORDS)).astype(np.uint8)
    for before, column in pairwise(drawn):
        column[:] = np.where(rng.random(RECORDS) < 0.3, before, column)
    return {f"v{k:02}": column for k, column in enumerate(drawn)}


def test_under_free_tables_an_analyst_alone_reads_whole_records():
    columns = dependent_columns()
    counter = asked({site: site_data(columns, place) for place, site in enumerate("ab")})
    read = read_by_slices(counter, [*columns])
    records = Counter(zip(*(c.tolist() for c in columns.values()), strict=True))
    assert not Counter(read) - records  # none is wrong
    assert len(read) > 0.8 * RECORDS


# ---- scores between constants --------------------------------------------------------------------


def read_score(choose, score, least, sets=200):
    """Return a score from which of many constants it exceeds, in two calls: to `least` / sets^2."""
    most = 0
    for _ in range(2):
        constants = np.linspace(least, most, sets + 1).astype(int).tolist()
        asked = tuple(((score,), (Constant(number),)) for number in constants)
        below = choose(Choices(asked, score="likelihood")).count(0)
        least, most = constants[below - 1], constants[min(below, sets)]
    return (least + most) / 2e6


def test_under_free_tables_choices_with_constants_read_a_score():
    """Choices are no protection there: a site answers tables, and choices by the same policy."""
    columns = dependent_columns()
    data = {"a": site_data(columns, 0), "b": site_data(columns, 1)}
    score = Score(Family("v06", ("v05",)))
    with federate(data, randomness=SeededRandomness(b"one")) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer)
        read = read_score(study.choose, score, -300 * 10**6)
    variables = {name: Variable(name, STATES) for name in columns}
    exact = TableChooser(PlainCounter(SiteData(variables, columns)))
    ((expected,),) = exact.scores_of(Choices((((score,),),), score="likelihood"))
    assert abs(read - expected) < 0.01


# ---- a site whose columns are the digits of each person's place ----------------------------------


def digits_and_victim():
    """Return the honest columns of an accomplice, and another site's column."""
    people = TextColumn.of(f"person {k}" for k in range(RECORDS))
    place = np.arange(RECORDS)
    digits = {"tens": place // DIGITS, "ones": place % DIGITS}
    states = tuple(map(str, range(DIGITS)))
    accomplice = SiteData(
        {name: Variable(name, states) for name in digits},
        {name: column.astype(np.uint8) for name, column in digits.items()},
        people,
    )
    illness = np.random.default_rng(6).integers(0, 3, RECORDS).astype(np.uint8)
    victim = SiteData({"illness": Variable("illness", STATES[:3])}, {"illness": illness}, people)
    return {"accomplice": accomplice, "victim": victim}


ILLNESS = Family("illness", ("tens", "ones"))


def read_by_place(table):
    """Return each person's value from a table of the value and two digits; -1: not read."""
    values = table.reshape(len(table), -1)[:, :RECORDS]
    return np.where((values == 1).sum(axis=0) == 1, (values == 1).argmax(axis=0), -1)


def test_under_free_tables_the_digits_of_places_read_a_column_by_name():
    data = digits_and_victim()
    (table,) = asked(data).tables([ILLNESS])  # one query, in the default policy
    assert read_by_place(table).tolist() == data["victim"].codes["illness"].tolist()


# ---- one value corrected between two studies -----------------------------------------------------


def corrected(data, person):
    """Return the sites' data with another value of one person, at the first site."""
    site, name = next(iter(data)), next(iter(data[next(iter(data))].codes))
    codes = {n: column.copy() for n, column in data[site].codes.items()}
    codes[name][person] = (codes[name][person] + 1) % 4
    return {**data, site: replace(data[site], codes=codes)}


def named_columns():
    """Return the twelve variables at two sites, whose records have identifiers."""
    columns, people = dependent_columns(), TextColumn.of(f"person {k}" for k in range(RECORDS))
    return {site: replace(site_data(columns, place), ids=people) for place, site in enumerate("ab")}


def read_by_difference(before, after, memories, policy):
    """Return the row of the person of whom a value of v00 changed between two studies."""
    tables = []
    for data, study in ((before, b"one"), (after, b"another")):
        counter = asked(data, study, memories=memories, policy=policy)
        others = [name for name in counter.variables if name != "v00"]
        tables.append(counter.tables([Family(name, ("v00",)) for name in others]))
    differences = {n: a - b for n, b, a in zip(others, *tables, strict=True)}
    row = {name: int(np.argwhere(d == 1)[0, 0]) for name, d in differences.items()}
    return {"v00": int(np.argwhere(differences["v01"] == 1)[0, 1]), **row}


def new_memories():
    return {site: SiteMemory(randomness=SeededRandomness(site.encode())) for site in "ab"}


def test_under_free_tables_a_correction_reads_the_row_of_the_person():
    """If the sites let few records change: most of the row is at sites that changed nothing."""
    data = named_columns()
    after = corrected(data, 17)
    row = read_by_difference(data, after, new_memories(), replace(FREE, fewest_records=1))
    codes = {name: column for site in after.values() for name, column in site.codes.items()}
    assert row == {name: int(column[17]) for name, column in codes.items()}


def test_a_site_whose_data_had_few_corrections_refuses_the_second_study():
    data = named_columns()
    with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records have changed"):
        read_by_difference(data, corrected(data, 17), new_memories(), FREE)


def test_new_pseudonyms_do_not_hide_a_correction():
    data = named_columns()
    renamed = TextColumn.of(f"pseudonym {k}" for k in range(RECORDS))
    after = {site: replace(d, ids=renamed) for site, d in corrected(data, 17).items()}
    with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records have changed"):
        read_by_difference(data, after, new_memories(), FREE)


def test_a_correction_that_noise_answers_is_remembered_as_the_study_s_data():
    """Otherwise one study would release, under noise, each person's row with and without it."""
    memories = new_memories()

    def release(data, study):
        policy = replace(FREE, fewest_records=10, most_epsilon=100.0)
        noisy = FamilyTables((Family("v01", ("v00",)),), False, Rule("laplace", epsilon=0.5))
        with federate(data, memories=memories, policy=policy) as federation:
            study = open_study(federation.session, federation.sites, DEALER, study=study)
            return study.release(noisy)

    data, study = named_columns(), bytes(16)
    release(data, b"an earlier study")
    correction = corrected(data, 17)
    release(correction, study)
    for other in (corrected(correction, 18), data):
        with pytest.raises(QueryRefusedError, match="has changed since it was committed"):
            release(other, study)
    release(correction, study)
