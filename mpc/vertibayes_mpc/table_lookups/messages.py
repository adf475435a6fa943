"""The messages of table lookups: masked indices, and shares of unit vectors, packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.labelled import Labelled


@dataclass(frozen=True, slots=True)
class MaskedIndices(Labelled):
    """A site's parts of the indices of all records, under masks."""

    kind: ClassVar[str] = "masked indices"


@dataclass(frozen=True, slots=True)
class UnitVectors(Labelled):
    """From the dealer: the first holder's shares of unit vectors, of one part of the records."""

    kind: ClassVar[str] = "unit vectors"
