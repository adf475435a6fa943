"""What an analyst keeps of a study, so that a crashed run can be resumed: tables, and runs.

The tables that a study has revealed:

    file    = magic, with the format's number, then records; the first is the study,
              each other one a table
    record  = length of the head, length of the array: 8 bytes each; head (JSON), array (int64),
              SHA-256 of head and array

What a run of an approved study has shown:

    first line    {"format": 1, "contract": digest, "study": id}
    each step     {"won": [...], "decided": [...]}
    last line     {"over": true}, when the results are written

The files only grow, and an entry is on disk before a learner sees it. An entry that cannot be
written is cut off. A crash can cut the last entry short: it is dropped, and the sites are asked
again. A file of tables has exact counts, and only its owner can read it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from vertibayes_protocols.open_study import Revealed
from vertibayes_protocols.opening import new_study
from vertibayes_protocols.storage.run_record import Shown
from vertibayes_protocols.storage.whole_file import (
    GrowingFile,
    NewerFormatError,
    check_format,
    lock_study,
)
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows

FORMAT = 1  # of both files
MAGIC = b"VBT%d" % FORMAT
LENGTHS = struct.Struct("<QQ")
DIGEST_BYTES = 32
SEED = "seed of the sites"


class _StudyFile(ABC):
    """A file that only grows, and that one process has open."""

    magic: ClassVar[bytes] = b""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock_study(descriptor, path)
            content = path.read_bytes()
            whole = self._load(content)
            self.cut = len(content) - whole
            self._file = GrowingFile(descriptor, path, whole, b"" if whole else self.magic)
            self._file.cut()
            self._begin()
        except BaseException:
            os.close(descriptor)
            raise

    @abstractmethod
    def _load(self, content: bytes) -> int:
        """Take the entries that are whole; return where the last one ends."""

    def _begin(self) -> None:
        """Write what a new file begins with."""
        return

    def close(self) -> None:
        """Let another process use the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TableFile(_StudyFile):
    """A study's tables on disk."""

    magic = MAGIC

    def __init__(self, path: Path) -> None:
        self.study: bytes | None = None
        self.tables: list[Revealed] = []
        self._head: dict[str, Any] | None = None
        super().__init__(path)

    def join(self, study: Study, mark: bytes) -> None:
        """Begin a study, or resume it."""
        head = _head_of(study, mark)
        if self._head is None:
            self._add([(head, b"")])
            self.study, self._head = study.id, head
            return
        known = self._head
        different = [n for n in {**head, **known} if head.get(n) != known.get(n)]
        if different:
            raise ValueError(f"{self.path} {_difference(different)}")

    def add(self, tables: Sequence[Revealed]) -> None:
        """Write tables; they are on disk when this returns."""
        self._add(
            (
                {
                    "members": list(new.family.members),
                    "shape": list(new.table.shape),
                    "missing": new.missing,
                    "rows": list(new.rows),
                },
                np.ascontiguousarray(new.table, "<i8").tobytes(),
            )
            for new in tables
        )
        self.tables += tables

    def recovered(self) -> list[str]:
        """Return a sentence about what was not whole when the file was read, if there was any."""
        what = f"{self.path}: an unfinished table at its end was removed; it is asked for again"
        return [what] if self.cut else []

    def _add(self, records: Iterable[tuple[Mapping[str, Any], bytes]]) -> None:
        pieces: list[bytes] = []
        for head, array in records:
            encoded = json.dumps(head).encode()
            digest = hashlib.sha256(encoded + array).digest()
            pieces += [LENGTHS.pack(len(encoded), len(array)), encoded, array, digest]
        self._file.append(b"".join(pieces))

    def _load(self, content: bytes) -> int:
        magic = content[: len(MAGIC)]
        if not MAGIC.startswith(magic):
            if magic[:-1] == MAGIC[:-1] and magic[-1:].isdigit():
                check_format(self.path, int(magic[-1:]), FORMAT)
            raise ValueError(f"{self.path} is not a file of revealed tables")
        whole = len(MAGIC) if len(content) >= len(MAGIC) else 0
        for head, array, end in self._records(memoryview(content), whole):
            try:
                self._take(head, array)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ValueError(
                    f"{self.path}, byte {whole}: not a revealed table ({error})"
                ) from None
            whole = end
        return whole

    def _records(
        self, content: memoryview, at: int
    ) -> Iterator[tuple[dict[str, Any], memoryview, int]]:
        """Go through the records that are whole."""
        while at + LENGTHS.size <= len(content):
            head, array = LENGTHS.unpack_from(content, at)
            middle = at + LENGTHS.size + head
            end = middle + array + DIGEST_BYTES
            if end > len(content):
                return
            body = content[at + LENGTHS.size : middle + array]
            if hashlib.sha256(body).digest() != content[end - DIGEST_BYTES : end]:
                raise ValueError(f"{self.path}, byte {at}: damaged")
            yield json.loads(bytes(body[:head])), body[head:], end
            at = end

    def _take(self, head: dict[str, Any], array: memoryview) -> None:
        if self._head is None:
            self._head, self.study = head, bytes.fromhex(head["id"])
            return
        child, *parents = (str(name) for name in head["members"])
        shape = tuple(int(length) for length in head["shape"])
        if math.prod(shape) * 8 != len(array):
            raise ValueError(f"{len(array)} bytes for a table of shape {shape}")
        table = np.frombuffer(array, "<i8").reshape(shape).astype(np.int64)
        rows = Rows(*head["rows"])
        self.tables.append(Revealed(Family(child, tuple(parents)), head["missing"], rows, table))


def _difference(different: Sequence[str]) -> str:
    """Say why a study cannot be resumed; a mark is of all sites, and so the text names no site."""
    instead = 'begin a new study, in another folder ([study] folder = "study2" in study.toml)'
    if different == [SEED]:
        return (
            "is of a study that the sites do not remember as they did: one of them has lost its "
            f"memory, or has an older one; have it restore the newest, or {instead}"
        )
    others = ", ".join(name for name in different if name != SEED)
    return f"is of a study with other {others} than the sites have now: {instead}"


def _head_of(study: Study, mark: bytes) -> dict[str, Any]:
    variables = [
        [v.name, list(v.states), v.missing, list(study.holders[v.name])]
        for v in study.variables.values()
    ]
    return {
        "id": study.id.hex(),
        "variables": sorted(variables),
        "records": study.records,
        "dealer": study.dealer,
        **({} if study.is_masked else {"count_by": study.count_by}),
        SEED: mark.hex(),
    }


class RunFile(_StudyFile):
    """The last run of a contract, on disk."""

    def __init__(self, path: Path, contract: bytes) -> None:
        self.seen: list[Shown] = []
        self.study, self._contract = b"", contract.hex()
        super().__init__(path)

    @classmethod
    def unfinished(cls, path: Path, contract: bytes) -> bytes:
        """Return the study of the run in a file, which stays as it is; empty without such a run."""
        run = cls.__new__(cls)
        run.path, run.study, run._contract = path, b"", contract.hex()
        if path.exists():
            run._load(path.read_bytes())
        return run.study

    def add(self, shown: Shown) -> None:
        """Write what a step has shown; it is on disk when this returns."""
        self._write({"won": list(shown.won), "decided": list(shown.decided)})
        self.seen.append(shown)

    def finish(self) -> None:
        """Note that the results of the run are written: the next run is another one."""
        self._write({"over": True})

    def _begin(self) -> None:
        if not self.study:
            self.study = new_study()
            head = {"format": FORMAT, "contract": self._contract, "study": self.study.hex()}
            self._write(head)

    def _load(self, content: bytes) -> int:
        """Read the run, unless another one must begin."""
        whole = content[: content.rfind(b"\n") + 1]
        try:
            head, *steps = [json.loads(line) for line in whole.splitlines()] or [{"format": FORMAT}]
            check_format(self.path, head["format"], FORMAT)
            is_same = head.get("contract") == self._contract
            if is_same and not (steps and "over" in steps[-1]):
                self.seen = [
                    Shown(tuple(map(int, step["won"])), tuple(map(bool, step["decided"])))
                    for step in steps
                ]
                self.study = bytes.fromhex(head["study"])
                return len(whole)
        except NewerFormatError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.path} is not a file of a run: {error}") from None
        return 0

    def _write(self, line: dict[str, Any]) -> None:
        self._file.append(json.dumps(line).encode() + b"\n")
