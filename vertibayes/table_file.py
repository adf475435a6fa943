"""The tables that a study has revealed, in a file of the analyst: a crashed run can be resumed.

    file    = magic, with the format's number, then records; the first is the study,
              each other one a table
    record  = length of the head, length of the array: 8 bytes each; head (JSON), array (int64),
              SHA-256 of head and array

The file only grows, and a record is on disk before a learner sees its table. A record that cannot
be written is cut off. A crash can cut the last record short: it is dropped, and its table is asked
for again. The file has exact counts, and only its owner can read it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.open_study import Revealed
from vertibayes_protocols.storage.whole_file import GrowingFile, check_format, lock_study
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows

FORMAT = 1
MAGIC = b"VBT%d" % FORMAT
LENGTHS = struct.Struct("<QQ")
DIGEST_BYTES = 32
SEED = "seed of the sites"


class TableFile:
    """A study's tables on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study: bytes | None = None
        self.tables: list[Revealed] = []
        self._head: dict[str, Any] | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock_study(descriptor, path)
            content = path.read_bytes()
            whole = self._load(memoryview(content))
            self.cut = len(content) - whole
            self._file = GrowingFile(descriptor, path, whole, b"" if whole else MAGIC)
            self._file.cut()
        except BaseException:
            os.close(descriptor)
            raise

    def join(self, study: Study, mark: bytes) -> None:
        """Begin a study, or resume it."""
        head = _head_of(study, mark)
        if self._head is None:
            self._add([(head, b"")])
            self.study, self._head = study.id, head
            return
        different = [name for name in head if head[name] != self._head[name]]
        if different:
            raise ValueError(f"{self.path} {_difference(different)}")

    def add(self, tables: Sequence[Revealed]) -> None:
        """Write tables; they are on disk when this returns."""
        self._add([(_table_head(new), _bytes_of(new.table)) for new in tables])
        self.tables += tables

    def recovered(self) -> list[str]:
        """Return a sentence about what was not whole when the file was read, if there was any."""
        what = f"{self.path}: an unfinished table at its end was removed; it is asked for again"
        return [what] if self.cut else []

    def close(self) -> None:
        """Let another process use the file."""
        self._file.close()

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, records: Iterable[tuple[Mapping[str, Any], bytes]]) -> None:
        pieces: list[bytes] = []
        for head, array in records:
            encoded = json.dumps(head).encode()
            digest = hashlib.sha256(encoded + array).digest()
            pieces += [LENGTHS.pack(len(encoded), len(array)), encoded, array, digest]
        self._file.append(b"".join(pieces))

    def _load(self, content: memoryview) -> int:
        """Take the records that are whole; return where the last one ends."""
        magic = bytes(content[: len(MAGIC)])
        if not MAGIC.startswith(magic):
            if magic[:-1] == MAGIC[:-1] and magic[-1:].isdigit():
                check_format(self.path, int(magic[-1:]), FORMAT)
            raise ValueError(f"{self.path} is not a file of revealed tables")
        whole = len(MAGIC) if len(content) >= len(MAGIC) else 0
        for head, array, end in self._records(content, whole):
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
        SEED: mark.hex(),
    }


def _table_head(revealed: Revealed) -> dict[str, Any]:
    return {
        "members": list(revealed.family.members),
        "shape": list(revealed.table.shape),
        "missing": revealed.missing,
        "rows": list(revealed.rows),
    }


def _bytes_of(table: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(table, "<i8").tobytes()
