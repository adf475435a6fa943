import os
import re
import stat
from collections import Counter
from contextlib import closing
from contextlib import nullcontext as nothing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.small import costing, noisy
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KEY_BYTES
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.effects import Noise, Number, RecordStatistics, Scored
from vertibayes_protocols.errors import ChangedDataError, DataError
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage import memory as module
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Variable

COLUMN = np.array([0, 1, 2, 1], np.uint8)
OTHER = np.array([0, 1, 2, 2], np.uint8)


def memory(path=None, seed=b"memory"):
    return SiteMemory(path, SeededRandomness(seed))


def codes_only(**codes):
    columns = {name: np.array(column, np.uint8) for name, column in codes.items()}
    return SiteData({name: Variable(name, ("a", "b", "c")) for name in codes}, columns)


def with_ids(*ids):
    data = codes_only(x=[0] * len(ids))
    return SiteData(data.variables, data.codes, TextColumn.of(ids))


# ---- commitments ---------------------------------------------------------------------------------


def test_the_same_data_of_a_column_are_committed_again_and_others_in_another_study():
    remembered = memory()
    remembered.commit(b"1", {"x": COLUMN, "y": COLUMN})
    remembered.commit(b"1", {"y": COLUMN})
    remembered.commit(b"1", {"x": COLUMN.astype(np.uint16)})
    remembered.commit(b"2", {"x": OTHER})


@pytest.mark.parametrize("changed", [OTHER, COLUMN[:3], np.append(COLUMN, 0).astype(np.uint8)])
def test_other_data_of_a_column_are_refused_in_the_same_study(changed):
    remembered = memory()
    remembered.commit(b"1", {"x": COLUMN})
    with pytest.raises(DataError, match="'x' has changed"):
        remembered.commit(b"1", {"x": changed})


def test_a_study_has_one_seed():
    remembered = memory()
    assert remembered.seed(b"1") == remembered.seed(b"1") != remembered.seed(b"2")
    assert len(remembered.seed(b"1")) == KEY_BYTES


def test_of_many_studies_the_latest_used_are_kept_and_the_others_begin_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_STUDIES", 3)
    with closing(memory(tmp_path / "memory")) as remembered:
        seeds = {}
        for study in (b"1", b"2", b"3", b"1", b"4"):  # the first is used again
            remembered.commit(study, {"x": COLUMN})
            seeds[study] = remembered.seed(study)
    with closing(memory(tmp_path / "memory", b"later")) as remembered:
        for study in (b"1", b"3"):
            assert remembered.seed(study) == seeds[study]
            with pytest.raises(DataError):
                remembered.commit(study, {"x": OTHER})
        remembered.commit(b"2", {"x": OTHER})
        assert remembered.seed(b"2") != seeds[b"2"]


# ---- record sets ---------------------------------------------------------------------------------


def test_identifiers_tell_records_apart_under_the_key():
    data = with_ids("p1", "p2", "p3", "p1")
    digests = memory().digests(data)
    assert digests[0] == digests[3] and len(set(digests.tolist())) == 3
    assert np.array_equal(digests, memory().digests(data))
    assert not np.any(digests == memory(seed=b"another").digests(data))
    turned = memory().digests(with_ids("p3", "p2"))
    assert turned.tolist() == digests[[2, 1]].tolist()


def test_without_identifiers_places_tell_records_apart_while_the_data_stay():
    remembered = memory()
    whole = codes_only(x=[0, 1, 2], y=[1, 1, 0])
    assert len(set(remembered.digests(whole).tolist())) == 3
    remembered.answer(whole, remembered.digests(whole))
    more = codes_only(x=[0, 1, 2], z=[2, 2, 2])
    assert np.array_equal(remembered.digests(more), remembered.digests(whole))
    remembered.answer(more, remembered.digests(more))
    for changed in (codes_only(x=[0, 1, 1]), codes_only(x=[0, 1]), codes_only(z=[2, 2, 1])):
        with pytest.raises(ChangedDataError, match="its data have changed") as caught:
            remembered.digests(changed)
        assert not set("xyz") & set(re.findall(r"\b[xyz]\b", str(caught.value)))
        assert re.search("the column .[xz]. has changed", caught.value.detail)


def smallest_nonempty_part(sets):
    """Return the fewest records that are in exactly the same of the sets, by brute force."""
    found = Counter(tuple(record in records for records in sets) for record in range(12))
    return min(count for part, count in found.items() if any(part))


@given(st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=5))
def test_the_smallest_atom_is_what_sums_and_differences_single_out(sets):
    remembered = memory()
    for place, records in enumerate(sets):
        array = np.array(list(records), np.uint64)
        assert remembered.sets.smallest_atom(array) == smallest_nonempty_part(sets[: place + 1])
        remembered.answer(with_ids("p"), array)


def test_sets_are_known_in_any_order_and_counted_once():
    remembered = memory()
    first, second = np.arange(5, dtype=np.uint64), np.arange(9, dtype=np.uint64)
    for records in (first, first[::-1], second, first):
        remembered.answer(with_ids("p"), records)
    assert len(remembered.sets) == 2
    assert second[::-1] in remembered.sets and second[1:] not in remembered.sets


def test_an_empty_set_singles_out_none():
    assert memory().sets.smallest_atom(np.zeros(0, np.uint64)) == 0


# ---- the file ------------------------------------------------------------------------------------


def test_a_memory_is_the_same_after_it_was_read_again(tmp_path):
    data = codes_only(x=range(3))
    with closing(memory(tmp_path / "memory")) as first:
        first.commit(b"1", {"x": COLUMN})
        seed = first.seed(b"1")
        first.answer(data, first.digests(data))
        named = first.digests(with_ids("p", "q"))
        first.apply(
            costing(
                number=Number(7, b"key"),
                leaves=RecordStatistics(Noise(Cost.of(0.5, 1e-9), ""), None),
            )
        )
        first.apply(noisy(Cost(0.25, 0.0, 0.5)))
        first.apply(costing(leaves=Scored(40, "scores")))
    with closing(memory(tmp_path / "memory", b"another seed, and yet the same key")) as again:
        assert again.seed(b"1") == seed
        with pytest.raises(DataError):
            again.commit(b"1", {"x": OTHER})
        assert len(again.sets) == 1 and again.digests(data) in again.sets
        assert again.sets.smallest_atom(np.arange(2, dtype=np.uint64)) == 1
        with pytest.raises(ValueError, match="have changed"):
            again.digests(codes_only(x=[0, 1, 1]))
        assert np.array_equal(again.digests(with_ids("p", "q")), named)
        assert (again.last_sum(b"key"), again.last_sum(b"another")) == (7, -1)
        assert (again.spent, again.scored) == ((0.75, 1e-9, 0.625, 1e-9), 40)
        with pytest.raises(ValueError, match="must be above 7, got 7"):
            again.apply(
                costing(
                    number=Number(7, b"key"), leaves=RecordStatistics(Noise(Cost.of(1.0), ""), None)
                )
            )
        assert again.spent == (0.75, 1e-9, 0.625, 1e-9)


def test_the_file_is_its_owners_alone_and_no_part_of_it_lies_beside_it(tmp_path):
    before = os.umask(0)
    try:
        with closing(memory(tmp_path / "memory")) as remembered:
            remembered.commit(b"1", {"x": COLUMN})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "memory").stat().st_mode) == 0o600
    assert {file.name for file in tmp_path.iterdir()} == {"memory", "memory.lock"}


def test_the_file_is_written_anew_and_whole(tmp_path, monkeypatch):
    def fails(_):
        raise OSError("the disk is gone")

    with closing(memory(tmp_path / "memory")) as remembered:
        remembered.commit(b"1", {"x": COLUMN})
        before = (tmp_path / "memory").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", fails)
            with pytest.raises(OSError, match="disk is gone"):
                remembered.commit(b"2", {"x": COLUMN})
        assert (tmp_path / "memory").read_bytes() == before
        ids = remembered.commit(b"2", {"x": COLUMN})
    with closing(memory(tmp_path / "memory")) as again:
        assert again.commit(b"2", {"x": COLUMN}) == ids


def test_two_memories_do_not_share_a_file(tmp_path):
    with closing(memory(tmp_path / "memory")):
        with pytest.raises(ValueError, match="in use by another process"):
            memory(tmp_path / "memory")
    memory(tmp_path / "memory").close()


def test_a_memory_without_a_path_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory().commit(b"1", {"x": COLUMN})
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "write",
    [
        lambda file: file.write(b"hello"),
        lambda file: file.write(b""),
        lambda file: file.write(b"PK\3\4 cut short"),
        lambda file: np.save(file, np.zeros(3)),
        lambda file: np.savez(file, a=1),
        lambda file: np.savez(file, notes=np.frombuffer(b"[1]", np.uint8), records=1, atoms=1),
        lambda file: np.savez(file, notes=np.frombuffer(b"{", np.uint8), records=1, atoms=1),
    ],
)
def test_a_file_that_is_no_memory_is_refused_and_let_go(tmp_path, write):
    with (tmp_path / "memory").open("wb") as file:
        write(file)
    for _ in range(2):
        with pytest.raises(ValueError, match="memory is not a valid memory of a site"):
            memory(tmp_path / "memory")


def test_nothing_secret_in_a_repr():
    assert repr(memory()) == "SiteMemory(path=None)"


def test_a_column_that_came_later_is_remembered_too(tmp_path):
    """Though the record set was known already; and what is refused is not remembered."""
    path, x, changed = tmp_path / "memory", codes_only(x=[0, 1]), codes_only(x=[0, 1], y=[1, 1])
    both = codes_only(x=[0, 1], y=[0, 0])
    for data in (x, both):
        with closing(memory(path)) as remembered:
            with pytest.raises(ValueError, match="have changed") if data is both else nothing():
                remembered.digests(codes_only(y=[2, 2], x=[1, 1] if data is both else [0, 1]))
            remembered.answer(data, remembered.digests(data))
    with closing(memory(path)) as remembered, pytest.raises(ValueError, match="data have changed"):
        remembered.digests(changed)


def test_an_old_part_does_not_open_the_file_to_others(tmp_path):
    part = tmp_path / "memory.part"
    part.write_bytes(b"")
    part.chmod(0o644)
    with closing(memory(tmp_path / "memory")) as remembered:
        remembered.seed(b"1")
    assert stat.S_IMODE((tmp_path / "memory").stat().st_mode) == 0o600


def test_a_person_with_two_records_is_one():
    """Else a set with one of them, and one with both, would pass for sets of other sizes."""
    remembered, data = memory(), with_ids("p")
    twice = np.array([1, 2, 2, 3], np.uint64)
    remembered.answer(data, twice)
    assert np.array([3, 2, 1], np.uint64) in remembered.sets and len(remembered.sets) == 1
    assert remembered.sets.smallest_atom(np.array([1, 1, 2], np.uint64)) == 1
    assert remembered.sets.smallest_atom(np.array([3, 3, 2, 1], np.uint64)) == 3
