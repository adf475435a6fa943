import hmac
import json
import stat
from contextlib import closing

import pytest

from tests.protocols.small import committed, count, data_of, packets
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.storage.chain import Chain
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.variables import Rows

TABLES = [
    RevealedTable(("x", "z"), 9, "analyst", Rows()),
    RevealedTable(("x",), 3, "analyst", Rows(1, 0, 20)),
    RevealedTable(("x",), 3, "analyst", Rows(1, 20)),
]


def test_a_ledger_is_the_same_after_it_was_read_again(tmp_path):
    with closing(LedgerFile(tmp_path / "ledger")) as ledger:
        ledger.note("a count", "a", ("b", "analyst"))
        ledger.open(TABLES[:2])
        ledger.open(iter(TABLES[2:]))
        ledger.open([])
    with closing(LedgerFile(tmp_path / "ledger")) as again:
        assert (again.facts, again.tables) == (ledger.facts, TABLES)
        again.note("a count", "a", ("b", "analyst"))
        again.note("another", "a", ())
    lines = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    first = lines.pop(0)
    assert first.keys() == {"format", "chain"} and first["format"] == 2
    assert len(lines) == 5, "what is revealed again is dated again"
    assert len(again.facts) == 2 and all(line["at"].endswith("+00:00") for line in lines)
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o600


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path):
    path = tmp_path / "ledger"
    with closing(LedgerFile(path)) as ledger:
        ledger.note("first", "a", ())
        ledger.open(TABLES)
    content = path.read_bytes()
    first = content.index(b"\n", content.index(b"\n") + 1) + 1
    for end in range(first, len(content)):
        path.write_bytes(content[:end])
        with closing(LedgerFile(path)) as ledger:
            assert len(ledger.facts) == 1 and not ledger.tables
            ledger.note("second", "a", ())
        with closing(LedgerFile(path)) as ledger:
            assert [fact.what for fact in ledger.facts] == ["first", "second"]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"tables": [{}]}', '{"tables": [{"variables": [], "rows": ["a"]}]}']
)
def test_what_is_no_ledger_is_named_with_its_line(tmp_path, line):
    good = json.dumps({"at": "", "what": "w", "about": "a", "to": []})
    (tmp_path / "ledger").write_text(f"{good}\n{line}\n")
    with pytest.raises(ValueError, match="ledger, line 2: not a valid entry of a ledger"):
        LedgerFile(tmp_path / "ledger")


def released(line):
    return sum(len(group["tables"]) for group in line.get("released", ()))


def test_what_is_opened_is_on_disk_before_the_first_byte_leaves(tmp_path, monkeypatch):
    """At the first message of the site after the query, its file already has the tables."""
    path = tmp_path / "ledger"
    noted = []

    def change(sent, packet):
        if sent.sender == "a" and opening:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            noted.append((sent.message.kind, sum(map(released, lines))))
        return packet

    opening = []
    data = data_of(a="xy", b="z", c="w")
    with packets(monkeypatch, change), closing(LedgerFile(path)) as ledger:
        federation, study = committed(data)
        federation.roles["a"].ledger = ledger
        opening.append(True)
        count(federation, study, "xz", "y")
        federation.session.close()
    assert noted[0] == ("answer", 0) and len(noted) > 1
    assert {tables for kind, tables in noted[1:]} == {2}


def test_a_ledger_that_cannot_be_written_keeps_the_tables_closed(tmp_path, monkeypatch):
    def fails(_):
        raise OSError("the disk is full")

    data = data_of(a="xy", b="z", c="w")
    with packets(monkeypatch) as seen, closing(LedgerFile(tmp_path / "ledger")) as ledger:
        federation, study = committed(data)
        federation.roles["a"].ledger = ledger
        before = len(seen)
        monkeypatch.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="disk is full"):
            count(federation, study, "xz")
    kinds = [sent.message.kind for sent, _ in seen[before:] if sent.sender == "a"]
    assert kinds == ["answer"]


def test_a_head_depends_on_all_lines_before_it_and_on_the_key():
    key, heads = bytes(range(32)), set()
    first = hmac.digest(key, b"one", "sha256")
    for begins, secret in ((b"one", key), (b"two", key), (b"one", bytes(32))):
        chain = Chain(secret)
        chain.add(begins)
        chain.add(b"next")
        heads.add(chain.head)
        if (begins, secret) == (b"one", key):
            assert chain.line_of(first) == 1
            assert chain.head == hmac.digest(key, first + b"next", "sha256")
    assert len(heads) == 3
    with pytest.raises(ValueError, match="the key of a chain must have 32 bytes"):
        Chain(b"short")
