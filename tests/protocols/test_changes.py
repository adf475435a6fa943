"""A study over data of which a few records changed since an earlier study is refused."""

from __future__ import annotations

from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.small import committed, costing, count, data_of, study_of
from tests.randomness import SeededRandomness
from vertibayes_protocols.budget import Released
from vertibayes_protocols.effects import ByRule, Freely, Winners
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage import changes as module
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Variable

STATES = ("no", "yes", "maybe")
COLUMNS = "abc"


def memory(path=None, seed=b"memory"):
    return SiteMemory(path, SeededRandomness(seed))


def table_of(rows, names=COLUMNS, states=STATES, missing=False):
    """Return data of (identifier, values) pairs; None as the first identifier: no identifiers."""
    codes = {
        name: np.array([values[COLUMNS.index(name)] for _, values in rows], np.uint8)
        for name in names
    }
    ids = TextColumn.of([person for person, _ in rows]) if rows and rows[0][0] is not None else None
    return SiteData({name: Variable(name, states, missing) for name in names}, codes, ids)


def snapshot(remembered, rows, names=COLUMNS):
    data = table_of(rows, names)
    return remembered.snapshot(data, names, remembered.digests(data))


def refuses(remembered, rows, fewest=10, names=COLUMNS):
    """Whether a study is refused; if it is not, it is remembered."""
    new = snapshot(remembered, rows, names)
    try:
        remembered.changes.check(new, fewest)
    except ValueError:
        return True
    remembered.keep_values(new)
    return False


# ---- the count of changes ------------------------------------------------------------------------


def changed(earlier, later, names):
    """Return the numbers of changed people, over all sets of columns, and of exchanged rows."""

    def rows_of(rows, chosen):
        people = {}
        for person, values in rows:
            people.setdefault(person, []).append(tuple(values[COLUMNS.index(n)] for n in chosen))
        return people

    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            before, after = rows_of(earlier, chosen), rows_of(later, chosen)
            yield sum(before[p] != after[p] for p in before.keys() & after.keys())
    before, after = rows_of(earlier, names), rows_of(later, names)
    if names:  # the people whom only one of them has
        one = Counter(str(row) for person, row in before.items() if person not in after)
        other = Counter(str(row) for person, row in after.items() if person not in before)
        yield max((one - other).total(), (other - one).total())


people = st.sampled_from("pqrstuvw")
values = st.tuples(*[st.integers(0, 1)] * 3)
columns = st.sets(st.sampled_from(COLUMNS), min_size=1).map(sorted).map("".join)
studies = st.tuples(st.lists(st.tuples(people, values), min_size=1, max_size=10), columns)


@settings(max_examples=60)
@given(st.lists(studies, min_size=2, max_size=4), st.integers(1, 4))
def test_a_study_is_refused_if_some_table_would_show_few_changes(asked, fewest):
    """Also with people who have several records, and tables of any columns that both have."""
    remembered, answered = memory(), []
    for rows, names in asked:
        few = any(
            0 < number < fewest
            for before, had in answered
            for number in changed(before, rows, [n for n in names if n in had])
        )
        assert refuses(remembered, rows, fewest, names) == few
        if not few:
            answered.append((rows, names))


ROWS = [(f"p{k}", (k % 2, k % 3, 0)) for k in range(60)]


def corrected(rows, number, column=2, to=1):
    """Change one column of the first records."""

    def change(values):
        return tuple(to if place == column else value for place, value in enumerate(values))

    return [(person, change(v) if k < number else v) for k, (person, v) in enumerate(rows)]


@pytest.mark.parametrize(("number", "refused"), [(0, False), (1, True), (9, True), (10, False)])
def test_corrections(number, refused):
    remembered = memory()
    assert not refuses(remembered, ROWS)
    assert refuses(remembered, corrected(ROWS, number)) == refused


def test_ten_changes_of_one_column_do_not_hide_one_change_of_another():
    """A table without the first column would differ by one record."""
    remembered = memory()
    assert not refuses(remembered, ROWS)
    assert refuses(remembered, corrected(corrected(ROWS, 10), 1, column=1, to=2))


def test_a_change_that_is_taken_back_in_part_is_compared_with_all_earlier_studies():
    remembered = memory()
    twelve = corrected(ROWS, 12)
    assert not refuses(remembered, ROWS) and not refuses(remembered, twelve)
    assert not refuses(remembered, ROWS)  # the first study's values are remembered
    assert refuses(remembered, corrected(twelve, 3, to=0))
    assert refuses(remembered, corrected(ROWS, 3))


def test_a_column_that_no_earlier_study_had_may_have_any_values():
    remembered = memory()
    assert not refuses(remembered, ROWS, names="ab")
    assert not refuses(remembered, corrected(ROWS, 1), names="abc")  # only c is changed
    assert refuses(remembered, ROWS, names="c")
    assert not refuses(remembered, ROWS, names="ab")


def test_a_missing_value_that_is_filled_in_is_a_change():
    remembered = memory()
    for place, (rows, missing) in enumerate([(corrected(ROWS, 1, to=3), True), (ROWS, False)]):
        data = table_of(rows, missing=missing)
        new = remembered.snapshot(data, COLUMNS, remembered.digests(data))
        if place:
            with pytest.raises(
                ValueError,
                match=r"10 records have changed.*wait until.*keep the earlier snapshot",
            ):
                remembered.changes.check(new, 10)
        remembered.keep_values(new)


def test_states_in_another_order_and_records_in_another_order_change_nothing():
    remembered = memory()
    assert not refuses(remembered, ROWS)
    turned = {0: 2, 1: 1, 2: 0}
    rows = [(person, tuple(turned[v] for v in row)) for person, row in reversed(ROWS)]
    data = table_of(rows, states=STATES[::-1])
    new = remembered.snapshot(data, COLUMNS, remembered.digests(data))
    remembered.changes.check(new, 10)
    before = remembered.changes.snapshots
    remembered.keep_values(new)
    assert remembered.changes.snapshots is before


@pytest.mark.parametrize(("number", "refused"), [(0, False), (1, True), (9, True), (10, False)])
def test_with_new_pseudonyms_the_rows_are_compared(number, refused):
    rng = np.random.default_rng(3)
    rows = [(f"p{k}", tuple(rng.integers(0, 3, 3))) for k in range(60)]
    remembered = memory()
    assert not refuses(remembered, rows)
    marked = [(p, (*v[:2], 5) if k < number else v) for k, (p, v) in enumerate(rows)]
    marked = [(f"new {p}", (*v[:2], min(v[2], 3))) for p, v in marked]
    data = table_of(marked, missing=True)  # code 3: no earlier record has it
    new = remembered.snapshot(data, COLUMNS, remembered.digests(data))
    try:
        remembered.changes.check(new, 10)
    except ValueError:
        assert refused
    else:
        assert not refused


def test_identifiers_that_are_left_out_or_added_later_are_new_pseudonyms():
    without = [(None, values) for _, values in ROWS]
    one_changed = corrected(without, 1)
    remembered = memory()
    assert not refuses(remembered, ROWS)
    assert not refuses(remembered, without)
    remembered = memory()
    assert not refuses(remembered, ROWS)
    assert refuses(remembered, one_changed)


def test_a_person_whose_two_records_exchange_values_has_changed():
    remembered = memory()
    rows = [("p", (0, 1, 0)), ("p", (1, 0, 0)), *ROWS]
    assert not refuses(remembered, rows)
    assert refuses(remembered, [("p", (0, 0, 0)), ("p", (1, 1, 0)), *ROWS])


@pytest.mark.parametrize(
    ("earlier", "later", "refused"),
    [("cut 10", "rounded 10", True), ("rounded 10", "rounded 7", True), ("cut 10", "cut 10", False),
     ("exact", "cut 10", False), ("gaussian", "cut 10", False), ("", "cut 10", False)],
)  # fmt: skip
def test_two_rules_show_what_each_hides(earlier, later, refused, tmp_path):
    with closing(memory(tmp_path / "memory")) as remembered:
        remembered.keep_values(replace(snapshot(remembered, ROWS), rule=earlier))
    with closing(memory(tmp_path / "memory")) as remembered:
        new = replace(snapshot(remembered, ROWS), rule=later)
        with pytest.raises(ValueError, match="noise of both") if refused else nullcontext():
            remembered.changes.check_counts(new)


# ---- the file ------------------------------------------------------------------------------------


def test_values_are_remembered_by_another_process(tmp_path):
    for rows, refused in ((ROWS, False), (corrected(ROWS, 3), True), (ROWS, False)):
        with closing(memory(tmp_path / "memory", b"another seed")) as remembered:
            assert refuses(remembered, rows) == refused
    assert (tmp_path / "memory.values").stat().st_mode & 0o777 == 0o600


def test_snapshots_share_what_is_equal_also_after_they_are_read(tmp_path):
    with closing(memory(tmp_path / "memory")) as remembered:
        assert not refuses(remembered, ROWS) and not refuses(remembered, corrected(ROWS, 30))
    with closing(memory(tmp_path / "memory")) as remembered:
        first, second = remembered.changes.snapshots
    assert first.people is second.people and first.columns["a"] is second.columns["a"]
    assert first.columns["c"] is not second.columns["c"]


def test_values_without_their_file_are_refused_and_the_memory_is_unlocked(tmp_path):
    with closing(memory(tmp_path / "memory")) as remembered:
        assert not refuses(remembered, ROWS)
    kept = (tmp_path / "memory.values").read_bytes()
    for damage in (lambda file: file.unlink(), lambda file: file.write_bytes(kept[:-50])):
        damage(tmp_path / "memory.values")
        with pytest.raises(ValueError, match=r"memory\.values"):
            memory(tmp_path / "memory")
    (tmp_path / "memory.values").write_bytes(kept)
    memory(tmp_path / "memory").close()


def test_the_values_of_a_lost_memory_are_not_read(tmp_path):
    with closing(memory(tmp_path / "memory")) as remembered:
        assert not refuses(remembered, ROWS)
    (tmp_path / "memory").unlink()
    with closing(memory(tmp_path / "memory", b"another key")) as remembered:
        assert not remembered.changes.snapshots
        assert not refuses(remembered, corrected(ROWS, 1))


def test_a_value_that_could_not_be_written_is_written_before_the_next_answer(tmp_path, monkeypatch):
    def fails(_):
        raise OSError("the disk is gone")

    with closing(memory(tmp_path / "memory")) as remembered:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", fails)
            with pytest.raises(OSError, match="disk is gone"):
                remembered.keep_values(snapshot(remembered, ROWS))
        remembered.keep_values(snapshot(remembered, ROWS))
    with closing(memory(tmp_path / "memory")) as remembered:
        assert refuses(remembered, corrected(ROWS, 1))


def test_the_space_is_bounded(monkeypatch):
    remembered = memory()
    assert not refuses(remembered, ROWS)
    monkeypatch.setattr(module, "MOST_BYTES", 60 * 8 + 3 * (60 + 24) + 50)
    with pytest.raises(ValueError, match="take more than 782 bytes"):
        remembered.changes.check(snapshot(remembered, corrected(ROWS, 30)), 10)
    remembered.changes.check(snapshot(remembered, ROWS), 10)


def test_a_memory_without_values_is_read(tmp_path, monkeypatch):
    """As older versions wrote it: then there is nothing to compare."""
    with closing(memory(tmp_path / "memory")) as remembered:
        remembered.seed(b"1")
    with np.load(tmp_path / "memory") as file:
        old = {name: file[name] for name in file}
    notes = bytes(old["notes"]).replace(b', "values": false', b"")
    assert len(notes) < len(old["notes"])
    with (tmp_path / "memory").open("wb") as file:
        np.savez(file, **{**old, "notes": np.frombuffer(notes, np.uint8)})
    with closing(memory(tmp_path / "memory")) as remembered:
        assert not refuses(remembered, ROWS)


# ---- sites ---------------------------------------------------------------------------------------


def ask(data, kept, fewest=10, name=b"one study"):
    """Run a study of one table."""
    policy = Policy(free_tables=True, fewest_records=fewest)
    federation, study = committed(data, study_of(data, name), memories=kept, policy=policy)
    with federation:
        return count(federation, study, ("x", "z"))[0]


@pytest.mark.parametrize("corrections", [1, 12])
def test_a_site_refuses_a_study_over_few_corrections_before_it_sends_anything(corrections):
    kept = {site: memory(seed=site.encode()) for site in "ab"}
    ids = TextColumn.of(range(40))
    before = {
        site: SiteData(columns.variables, columns.codes, ids)
        for site, columns in data_of(a="xy", b="z").items()
    }
    ask(before, kept)
    x = before["a"].codes["x"].copy()
    x[:corrections] = (x[:corrections] + 1) % 3
    codes = {**before["a"].codes, "x": x}
    after = {**before, "a": SiteData(before["a"].variables, codes, ids)}
    if corrections == 1:
        with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records have chang"):
            ask(after, kept, name=b"another")
        assert ask(after, kept, fewest=1, name=b"the site does not mind").sum() == 40
    else:
        assert ask(after, kept, name=b"another").sum() == 40


def test_released_tables_are_counted_over_all_studies(tmp_path):
    with closing(memory(tmp_path / "memory")) as remembered:
        remembered.apply(costing(leaves=ByRule(Released(3, 40), None, None)))
        remembered.apply(costing(leaves=ByRule(Released(2, 9), None, None)))
        remembered.apply(costing(leaves=Freely(Released(100, 5000))))
        remembered.apply(costing(leaves=Winners(7)), b"a contract")
        remembered.apply(costing(leaves=Winners(9)))  # of choices outside approved studies
    with closing(memory(tmp_path / "memory")) as remembered:
        assert remembered.released == (5, 49) and remembered.released_freely == (100, 5000)
        assert remembered.chosen == 7
    policy = Policy(most_released_tables=6, most_released_cells=60)
    policy.check_released(remembered.released, 1, 11)
    with pytest.raises(ValueError, match=r"released 7 tables.*most_released_tables = 6"):
        policy.check_released(remembered.released, 2, 4)
    with pytest.raises(ValueError, match=r"released 61 cells.*most_released_cells = 60"):
        policy.check_released(remembered.released, 1, 12)


def test_free_tables_are_counted_and_not_limited():
    kept = {site: memory(seed=site.encode()) for site in "ab"}
    ask(data_of(a="xy", b="z"), kept)
    assert kept["a"].released_freely == (1, 9) and kept["a"].released == (0, 0)
