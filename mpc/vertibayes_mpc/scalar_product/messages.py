"""The messages of a scalar product: each names its sub-protocol, and no other accepts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.labelled import Labelled


@dataclass(frozen=True, slots=True)
class MaskedFactor(Labelled):
    """A party's vectors under its masks: shape (q, m)."""

    kind: ClassVar[str] = "masked_factor"


@dataclass(frozen=True, slots=True)
class MaskedMasks(Labelled):
    """Products of masks under new masks, from the dealer: shape (factors, q, m)."""

    kind: ClassVar[str] = "masked_masks"


@dataclass(frozen=True, slots=True)
class ProductCorrection(Labelled):
    """The first party's part of the products of all masks, from the dealer: shape (q,)."""

    kind: ClassVar[str] = "product_correction"
