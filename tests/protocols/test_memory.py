import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.errors import DealReusedError
from protocols.site.data import SiteData
from protocols.site.memory import ID_BYTES, SiteMemory
from protocols.site.text import TextColumn
from protocols.variables import Rows, Variable
from tests.protocols.small import data_of
from tests.randomness import SeededRandomness

COLUMN = np.array([0, 1, 2, 1], np.uint8)
OTHER = np.array([0, 1, 2, 2], np.uint8)
SETS = st.lists(st.integers(0, 6), max_size=8).map(lambda values: np.array(values, np.uint64))


def memory(path=None, seed=b"memory"):
    return SiteMemory(path, SeededRandomness(seed))


def codes_only(**codes):
    columns = {name: np.array(column, np.uint8) for name, column in codes.items()}
    return SiteData({name: Variable(name, ("a", "b", "c")) for name in codes}, columns)


def with_ids(*ids):
    data = codes_only(x=[0] * len(ids))
    return SiteData(data.variables, data.codes, TextColumn.of(ids))


# ---- commitments ---------------------------------------------------------------------------------


def test_a_column_keeps_its_id_within_a_study_and_has_another_in_another():
    remembered = memory()
    ids = remembered.commit(b"1", {"x": COLUMN, "y": COLUMN})
    assert {len(found) for found in ids.values()} == {ID_BYTES} and ids["x"] != ids["y"]
    assert remembered.commit(b"1", {"y": COLUMN}) == {"y": ids["y"]}
    assert remembered.commit(b"1", {"x": COLUMN.astype(np.uint16)}) == {"x": ids["x"]}
    assert remembered.commit(b"2", {"x": OTHER})["x"] != ids["x"]


@pytest.mark.parametrize("changed", [OTHER, COLUMN[:3], np.append(COLUMN, 0).astype(np.uint8)])
def test_other_data_of_a_column_are_refused_in_the_same_study(changed):
    remembered = memory()
    remembered.commit(b"1", {"x": COLUMN})
    with pytest.raises(DealReusedError, match="'x' has changed"):
        remembered.commit(b"1", {"x": changed})


# ---- record sets ---------------------------------------------------------------------------------


def test_digests_depend_on_the_key_on_names_and_on_every_column():
    data = data_of(30, a="xy")["a"]
    digests = memory().digests(data)
    assert np.array_equal(digests, memory().digests(data))
    assert not np.any(digests == memory(seed=b"another").digests(data))
    other = codes_only(x=data.codes["x"], z=data.codes["y"])
    assert not np.any(digests == memory().digests(other))


def test_equal_digests_are_those_of_equal_records():
    digests = memory().digests(codes_only(x=[0, 0, 1, 2, 0], y=[1, 1, 0, 0, 2]))
    assert digests[0] == digests[1] and len(set(digests.tolist())) == 4


def test_identifiers_tell_records_apart_where_codes_do_not():
    digests = memory().digests(with_ids("p1", "p2", "p3", "p1"))
    assert digests[0] == digests[3] and len(set(digests.tolist())) == 3
    assert not np.any(digests == memory(seed=b"another").digests(with_ids("p1", "p2", "p3", "p1")))


@given(SETS, SETS, st.integers(1, 9))
def test_sets_differ_by_the_records_that_are_in_one_of_them(a, b, fewest):
    remembered = memory()
    remembered.answer(b"1", Rows(), a)
    counts = [np.bincount(records.astype(int), minlength=7) for records in (a, b)]
    difference = int(np.abs(counts[0] - counts[1]).sum())
    assert remembered.differs_by(b, fewest) == (difference if 0 < difference < fewest else None)


def test_a_set_is_held_against_every_earlier_one():
    remembered = memory()
    for first in (0, 100, 200):
        remembered.answer(b"%d" % first, Rows(), np.arange(first, first + 20, dtype=np.uint64))
    assert remembered.differs_by(np.arange(101, 120, dtype=np.uint64), 10) == 1
    assert remembered.differs_by(np.arange(110, 120, dtype=np.uint64), 10) is None


def test_choices_of_rows_are_kept_by_study_once():
    remembered = memory()
    for study, rows in [
        (b"1", Rows(1, 0, 5)),
        (b"1", Rows(1, 0, 5)),
        (b"2", Rows()),
        (b"1", Rows()),
    ]:
        remembered.answer(study, rows, np.arange(5, dtype=np.uint64))
    assert remembered.row_sets(b"1") == [Rows(1, 0, 5), Rows()]
    assert remembered.row_sets(b"2") == [Rows()]
    assert remembered.row_sets(b"3") == []


# ---- the file ------------------------------------------------------------------------------------


def test_a_memory_is_the_same_after_it_was_read_again(tmp_path):
    first = memory(tmp_path / "memory")
    ids = first.commit(b"1", {"x": COLUMN})
    first.answer(b"1", Rows(2, 0, 12), np.arange(12, dtype=np.uint64))
    again = memory(tmp_path / "memory", b"another seed, and yet the same key")
    assert again.commit(b"1", {"x": COLUMN}) == ids
    with pytest.raises(DealReusedError):
        again.commit(b"1", {"x": OTHER})
    assert again.row_sets(b"1") == [Rows(2, 0, 12)]
    assert again.differs_by(np.arange(11, dtype=np.uint64), 10) == 1
    data = data_of(20, a="x")["a"]
    assert np.array_equal(again.digests(data), first.digests(data))


def test_the_file_is_its_owners_alone_and_nothing_lies_beside_it(tmp_path):
    before = os.umask(0)
    try:
        memory(tmp_path / "memory").commit(b"1", {"x": COLUMN})
    finally:
        os.umask(before)
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_is_written_anew_and_whole(tmp_path, monkeypatch):
    path = tmp_path / "memory"
    remembered = memory(path)
    remembered.commit(b"1", {"x": COLUMN})
    before = path.read_bytes()

    def fails(_):
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="disk is gone"):
            remembered.commit(b"2", {"x": COLUMN})
    assert path.read_bytes() == before
    remembered.commit(b"2", {"x": COLUMN})
    assert memory(path).commit(b"2", {"x": COLUMN}) == remembered.commit(b"2", {"x": COLUMN})


def test_a_memory_without_a_path_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory().commit(b"1", {"x": COLUMN})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "write", [lambda file: file.write(b"hello"), lambda file: np.savez(file, a=1)]
)
def test_a_file_that_is_no_memory_is_refused(tmp_path, write):
    with (tmp_path / "memory").open("wb") as file:
        write(file)
    with pytest.raises(ValueError, match="memory is no memory of a site"):
        memory(tmp_path / "memory")


def test_nothing_secret_in_a_repr():
    assert repr(memory()) == "SiteMemory(path=None)"
