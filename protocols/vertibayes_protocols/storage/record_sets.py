"""Sets of records, by digests, and the atoms into which several sets cut all their records.

Records that are in the same sets form an atom. Sums and differences of tables over several sets are
sums over atoms, and therefore reveal no fewer records than the smallest atom has.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.storage.changes import Digests


@dataclass
class RecordSets:
    """The record sets that a site has answered for."""

    digests: list[str] = field(default_factory=list)  # the digest of each set
    records: Digests = field(default_factory=lambda: np.zeros(0, np.uint32))
    atoms: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    def __len__(self) -> int:
        return len(self.digests)

    def __contains__(self, records: Digests) -> bool:
        return set_digest(distinct(records)) in self.digests

    def smallest_atom(self, records: Digests) -> int:
        """Return the size of the smallest atom of one more set and these sets."""
        _, atoms = refined(self.records, self.atoms, distinct(records))
        return int(np.bincount(atoms).min()) if len(atoms) else 0

    def add(self, records: Digests) -> bool:
        """Add a set; return whether it is new."""
        chosen = distinct(records)
        digest = set_digest(chosen)
        if is_new := digest not in self.digests:
            self.records, self.atoms = refined(self.records, self.atoms, chosen)
            self.digests.append(digest)
        return is_new


def refined(
    records: Digests, atoms: NDArray[np.uint32], chosen: Digests
) -> tuple[Digests, NDArray[np.uint32]]:
    """Return the records of some sets and of one more set, and the atom of each record."""
    if not len(records):
        return chosen, np.zeros(len(chosen), np.uint32)
    everyone: Digests = np.union1d(records, chosen)
    cut = np.zeros(len(everyone), np.uint32)  # 0: in no earlier set
    cut[np.searchsorted(everyone, records)] = atoms + np.uint32(1)
    cut = np.uint32(2) * cut + np.isin(everyone, chosen, assume_unique=True)
    numbers = np.cumsum(np.bincount(cut) > 0) - 1
    return everyone, numbers.astype(np.uint32)[cut]


def distinct(records: Digests) -> Digests:
    """Return digests ascending, each once: a person with two records counts once."""
    ascending = np.sort(records)
    new = np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]
    return np.asarray(ascending[new])


def set_digest(chosen: Digests) -> str:
    """Return the digest of a set, whose records are in ascending order."""
    return hashlib.sha256(np.ascontiguousarray(chosen, "<u8").tobytes()).hexdigest()
