"""Files of release 0.1.0 are read and migrated; files of newer releases are refused by name."""

import io
import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.protocols.small import costing, data_of, study_of
from vertibayes.study_files import TableFile
from vertibayes_protocols.deployment.approvals import read_approval
from vertibayes_protocols.effects import Scored
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.storage.changes import Changes
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.meet_counts import Count, read_forgiven
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import Alarm, Last, accept
from vertibayes_protocols.storage.whole_file import NewerFormatError, check_format
from vertibayes_protocols.variables import Rows

OLD = Path(__file__).parents[1] / "vectors" / "v0_1_0"  # written by the code of that release
DATA = data_of(a="xy", b="z")
OTHERS = {"x": 2 - DATA["a"].codes["x"]}


@pytest.fixture
def old(tmp_path):
    """The files of release 0.1.0, as they can be changed."""
    shutil.copytree(OLD, tmp_path / "old")
    (tmp_path / "old" / "approved").chmod(0o700)
    return tmp_path / "old"


def notes_of(path):
    with np.load(path) as file:
        return json.loads(file["notes"].tobytes())


def with_format(path, number):
    """Write the format into a memory's file."""
    with_notes(path, format=number)


def with_notes(path, **notes):
    """Write notes into a memory's file."""
    with np.load(path) as file:
        arrays = dict(file)
    notes = {**json.loads(arrays["notes"].tobytes()), **notes}
    arrays["notes"] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


# ---- older files ---------------------------------------------------------------------------------


def test_a_memory_of_0_1_0_forgets_nothing_and_gets_a_format_with_its_first_write(old):
    assert "format" not in notes_of(old / "memory")
    for _ in range(2):  # as that release wrote it, and as this one does
        with closing(SiteMemory(old / "memory")) as memory:
            assert len(memory.sets) == 1 and memory.runs.count(bytes(32)) == (1, 1)
            assert memory.meets.known() == {"b": Count(2, 0), "c": Count(1, 0)}
            assert (memory.spent.eps, tuple(memory.released), memory.chosen) == (0.25, (3, 81), 7)
            assert memory.left_plain >= 3  # it does not say which of its tables had noise
            assert memory.together.last("pair") == Last() and memory.known_ledger == (0, b"")
            assert len(memory.changes.snapshots) == 1
            with pytest.raises(DataError, match="'x' has changed"):
                memory.check(study_of(DATA).id, OTHERS)
            memory.apply(costing(leaves=Scored(1, "scores")))
    assert notes_of(old / "memory")["format"] == 3


def test_an_alarm_of_a_memory_of_format_2_goes_on_until_the_owner_accepts(tmp_path):
    """Its tokens are no heads, and it had names of keys in place of names of peers."""
    with closing(SiteMemory(tmp_path / "memory")) as memory:
        memory.save(always=True)
    key, pair = b"k" * 32, (b"o" * 32 + b"k" * 32).hex()
    together = {"sent": {pair: ["ab" * 8]}, "seen": {}, "unknown": {pair: "cd" * 8}}
    with_notes(tmp_path / "memory", format=2, together=together)
    with closing(SiteMemory(tmp_path / "memory")) as memory:
        ((alarm,),) = memory.together.refused({"a": key}).values()
        assert not memory.together.check_own("a", Alarm("", ""), is_known=True)
    accept(tmp_path / "memory.accepted", [alarm.head])
    with closing(SiteMemory(tmp_path / "memory")) as memory:
        assert memory.together.check_own("a", Alarm("", ""), is_known=True)


def test_a_ledger_of_0_1_0_is_continued(old):
    for entries in (2, 3):
        with closing(LedgerFile(old / "ledger.jsonl")) as ledger:
            assert ledger.facts[0] == Fact("a count", "a", ("b", "analyst"))
            assert ledger.tables == [
                RevealedTable(("x", "z"), 9, "analyst", Rows()),
                RevealedTable(("x",), 3, "analyst", Rows(1, 0, 20), "cut below 10"),
            ]
            assert len(ledger.facts) == entries - 1
            ledger.note(f"fact {entries}", "a", ())
    lines = (old / "ledger.jsonl").read_bytes().splitlines()
    assert lines[:2] == (OLD / "ledger.jsonl").read_bytes().splitlines()
    assert json.loads(lines[2])["format"] == 2 and len(lines) == 5


def test_tables_and_approvals_of_0_1_0_are_read(old):
    with closing(TableFile(old / "tables")) as tables:
        tables.join(study_of(DATA), b"mark")
        assert [table.table.tolist() for table in tables.tables] == [[1, 2, 37]]
    (path,) = (old / "approved").iterdir()
    assert read_approval(path).approver == "A. Owner"


# ---- newer files ---------------------------------------------------------------------------------


def newer_memory(old):
    with_format(old / "memory", 4)
    SiteMemory(old / "memory")


def newer_values(old):
    with_format(old / "memory.values", 3)
    Changes(old / "memory.values", b"")


def newer_ledger(old):
    with (old / "ledger.jsonl").open("a") as file:
        file.write('{"format": 3}\n{"what is this": 1}\n')
    LedgerFile(old / "ledger.jsonl")


def newer_tables(old):
    (old / "tables").write_bytes(b"VBT3, whatever follows")
    TableFile(old / "tables")


def newer_approval(old):
    (path,) = (old / "approved").iterdir()
    path.write_text(json.dumps({"format": 3}))
    path.chmod(0o600)
    read_approval(path)


def newer_forgiveness(old):
    path = old / "memory.forgiven"
    path.write_text(json.dumps({"format": 3}))
    path.chmod(0o600)
    read_forgiven(path)


@pytest.mark.parametrize(
    "read",
    [newer_memory, newer_values, newer_ledger, newer_tables, newer_approval, newer_forgiveness],
)
def test_a_file_of_a_newer_release_is_refused_with_what_to_do(old, read):
    old.chmod(0o700)
    for _ in range(2):  # and nothing stays locked
        with pytest.raises(NewerFormatError) as caught:
            read(old)
        text = str(caught.value)
        assert str(old) in text
        assert re.search("format [34], this release reads formats up to [123]", text)
        assert text.endswith("install the newer release again")


@pytest.mark.parametrize("given", [-1, "1", 1.0, True, None])
def test_what_is_not_the_number_of_a_format_is_refused(tmp_path, given):
    with pytest.raises(ValueError, match=r"the format of .* must be a whole number"):
        check_format(tmp_path, given, 1)
