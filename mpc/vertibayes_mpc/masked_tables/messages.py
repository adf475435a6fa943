"""The messages between sites, and from the dealer: elements for one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.labelled import Labelled


@dataclass(frozen=True, slots=True)
class Masked(Labelled):
    """Complete terms under their masks."""

    kind: ClassVar[str] = "masked"


@dataclass(frozen=True, slots=True)
class Part(Labelled):
    """A holder's or the dealer's part of terms that another site adds up."""

    kind: ClassVar[str] = "part"


@dataclass(frozen=True, slots=True)
class Correction(Labelled):
    """The dealer's part of the correction of products."""

    kind: ClassVar[str] = "correction"
