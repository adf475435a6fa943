"""The messages of an argmax: elements and packed bits, each for one part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.labelled import Labelled


@dataclass(frozen=True, slots=True)
class OneHots(Labelled):
    """From the dealer: XOR shares of one-hot digits of differences, or of one-hot ranks."""

    kind: ClassVar[str] = "one-hots"


@dataclass(frozen=True, slots=True)
class BitProducts(Labelled):
    """From the dealer: XOR shares of products of bits, packed."""

    kind: ClassVar[str] = "bit products"


@dataclass(frozen=True, slots=True)
class BitNumbers(Labelled):
    """From the dealer: additive shares of bits."""

    kind: ClassVar[str] = "bit numbers"


@dataclass(frozen=True, slots=True)
class MaskedScores(Labelled):
    """A site's shares of the values, plus its masks."""

    kind: ClassVar[str] = "masked scores"


@dataclass(frozen=True, slots=True)
class MaskedBits(Labelled):
    """A site's shares of masked bits, packed."""

    kind: ClassVar[str] = "masked bits"


@dataclass(frozen=True, slots=True)
class MaskedRanks(Labelled):
    """A site's shares of the ranks, plus its masks."""

    kind: ClassVar[str] = "masked ranks"


@dataclass(frozen=True, slots=True)
class Winners(Labelled):
    """A site's XOR shares of the bits of each set's winner, or of a star, packed."""

    kind: ClassVar[str] = "winners"
