"""What a site remembers across sessions: commitments it has made, record sets it has answered for.

Two runs over record sets that differ by one person would open that person's whole row, and two
different columns under one mask would open their difference. A site that remembers refuses both.
Digests are under a local key and never leave the site: a plain digest of a rare column is guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc.errors import DealReusedError
from mpc.randomness import KEY_BYTES, Randomness, SystemRandomness
from protocols.site.data import SiteData
from protocols.variables import Rows

ID_BYTES = 16

Digests: TypeAlias = NDArray[np.uint64]


@dataclass
class SiteMemory:
    """A site's memory, in a file if one is named.

    Parameters
    ----------
    path : Path, optional
        Written anew, whole, before each promise that it records.
    randomness : Randomness, optional
        Draws the local key and the commitments' ids.

    Raises
    ------
    ValueError
        If the file is not a site's memory.
    """

    path: Path | None = None
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False)

    def __post_init__(self) -> None:
        self._key = self.randomness.bytes(KEY_BYTES)
        self._committed: dict[str, dict[str, list[str]]] = {}  # study -> column -> [id, digest]
        self._row_sets: dict[str, list[list[int | None]]] = {}  # study -> choices of rows
        self._answered: list[Digests] = []
        if self.path is not None and self.path.exists():
            self._load(self.path)

    # ---- commitments -----------------------------------------------------------------------------

    def commit(
        self, study: bytes, codes: Mapping[str, NDArray[np.unsignedinteger]]
    ) -> dict[str, bytes]:
        """Return the ids under which columns are committed in a study: new ones the first time.

        Raises
        ------
        DealReusedError
            If a column was committed in this study with other data: its mask would be used twice.
        """
        known = self._committed.setdefault(study.hex(), {})
        for name, column in codes.items():
            digest = self._digest(name, column)
            if name not in known:
                known[name] = [self.randomness.bytes(ID_BYTES).hex(), digest]
            elif not hmac.compare_digest(known[name][1], digest):
                raise DealReusedError(
                    f"the column {name!r} has changed since it was committed in this study; the "
                    "same mask would hide two columns: start a new study"
                )
        self._save()
        return {name: bytes.fromhex(known[name][0]) for name in codes}

    def _digest(self, name: str, column: NDArray[np.unsignedinteger]) -> str:
        code = hmac.new(self._key, name.encode() + b"\0", hashlib.sha256)
        code.update(np.ascontiguousarray(column, "<u2").tobytes())
        return code.hexdigest()

    # ---- record sets -----------------------------------------------------------------------------

    def digests(self, data: SiteData) -> Digests:
        """Return a keyed digest of each record: of its identifier, or else of its codes.

        The codes' digests are sums of products with secret odd 64-bit numbers, modulo 2^64
        (multilinear hashing, Carter and Wegman 1979).
        """
        if data.ids is not None:
            texts = [self._text_digest(text) for text in data.ids.texts]
            return np.asarray(np.array(texts, np.uint64)[data.ids.places])
        seed = hmac.digest(self._key, b"records", "sha256")
        total = np.zeros(data.records, np.uint64)
        for name in sorted(data.codes):
            secret = hmac.digest(seed, name.encode(), "sha256")[:8]
            factor = np.uint64(int.from_bytes(secret, "little") | 1)
            total += (data.codes[name].astype(np.uint64) + np.uint64(1)) * factor
        return total

    def _text_digest(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode(), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def differs_by(self, records: Digests, fewest: int) -> int | None:
        """Return in how many records a set differs from one answered for, if in 1 .. fewest - 1."""
        chosen = np.sort(records)
        for earlier in self._answered:
            difference = _difference(earlier, chosen)
            if 0 < difference < fewest:
                return difference
        return None

    def answer(self, study: bytes, rows: Rows, records: Digests) -> None:
        """Remember a record set before it is answered for."""
        chosen = np.sort(records)
        sets = self._row_sets.setdefault(study.hex(), [])
        new_rows = list(rows) not in sets
        new_records = not any(np.array_equal(earlier, chosen) for earlier in self._answered)
        if new_rows:
            sets.append(list(rows))
        if new_records:
            self._answered.append(chosen)
        if new_rows or new_records:
            self._save()

    def row_sets(self, study: bytes) -> list[Rows]:
        """Return the choices of rows that were answered for in a study."""
        return [Rows(*rows) for rows in self._row_sets.get(study.hex(), [])]  # type: ignore[arg-type]

    # ---- the file --------------------------------------------------------------------------------

    def _save(self) -> None:
        if self.path is None:
            return
        notes = {
            "key": self._key.hex(), "committed": self._committed, "row_sets": self._row_sets
        }  # fmt: skip
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {f"set{i}": s for i, s in enumerate(self._answered)}
        np.savez(buffer, notes=np.frombuffer(json.dumps(notes).encode(), np.uint8), **arrays)
        part = self.path.with_name(self.path.name + ".part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)

    def _load(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as file:
                notes = json.loads(file["notes"].tobytes())
                self._answered = [file[f"set{i}"] for i in range(len(file.files) - 1)]
            self._key = bytes.fromhex(notes["key"])
            self._committed, self._row_sets = notes["committed"], notes["row_sets"]
        except (ValueError, KeyError, OSError) as error:
            raise ValueError(f"{path} is no memory of a site: {error}") from None


def _difference(a: Digests, b: Digests) -> int:
    """Return the size of the symmetric difference of two sorted multisets."""
    values, counts = np.unique(a, return_counts=True)
    others, other_counts = np.unique(b, return_counts=True)
    both = np.concatenate([values, others])
    signed = np.concatenate([counts, -other_counts])
    _, inverse = np.unique(both, return_inverse=True)
    return int(np.abs(np.bincount(inverse, signed)).sum())
