"""The terms of a sum over parties that hold different records, and what a party counts under them.

    Terms        all    what is counted, over how many parties, with which noise: before any data
    CountQuery   P_k    its own counts: classes, and features within classes
    DataPert     P_k    each count plus noise, drawn for each release, never clamped

References
----------
.. [1] M. Huai, L. Huang, W. Yang, L. Li, M. Qi (2015). Privacy-Preserving Naive Bayes
   Classification. Section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme import Packing
from vertibayes_mpc.noise import Noise
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.accounting import Accounting, Privacy, share_of
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Declaration, Schema, check_declared
from vertibayes_protocols.site.statistics import (
    GRID_BITS,
    HALF_BITS,
    Counts,
    LocalData,
    Moments,
    length,
    measure,
)
from vertibayes_protocols.variables import Family

Values: TypeAlias = NDArray[np.int64]

PLAINTEXT_BITS = 2047  # of a packet, where nobody has drawn a longer modulus


@dataclass(frozen=True)
class Terms:
    """What all parties of a sum agree on before any data."""

    schema: Schema | Declaration  # the statistics that are summed, and their variables
    most_parties: int  # how many members there are at most, at any time
    most_records: int  # how many records a party has at most in a release
    privacy: Privacy | None = None  # the noise; None releases exact counts
    dishonest: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        if self.most_parties < 2 or self.most_records < 1:
            given = f"{self.most_parties} and {self.most_records}"
            raise ValueError(
                f"most_parties must be at least 2, most_records at least 1, got {given}"
            )
        gamma = self.privacy.needed if self.privacy else 0.0
        shares = [share_of(s, 1) for s in (gamma, self.dishonest, self.dropouts)]
        if min(shares) < 0 or sum(shares) > 1 or sum(shares[1:]) >= 1:
            raise ValueError(
                f"gamma = {gamma}, dishonest = {self.dishonest}, dropouts = {self.dropouts}: "
                "they must be shares of at least 0 that add up to 1 at most"
            )

    def check(self) -> None:
        """Refuse statistics and noise that cannot be summed."""
        if self.privacy is not None and not self.families:
            raise ValueError("the noise is for counts, and no table is asked for")
        if not self.counts:
            raise ValueError("no statistics are asked for")
        try:
            _ = Packing(self.lowest, self.highest, self.most_parties, PLAINTEXT_BITS).slots
        except ValueError as error:
            noise = "" if self.privacy is None else f" and noise of up to {-self.lowest}"
            raise ValueError(
                f"{self.most_records} records{noise} of each of {self.most_parties} parties: no "
                f"slot holds such sums ({error}); use a larger eps, fewer parties or records"
            ) from None

    @cached_property
    def accounting(self) -> Accounting | None:
        """What the noise is and promises; None for exact sums."""
        if self.privacy is None:
            return None
        return Accounting(self.schema, self.privacy, self.most_records)

    @property
    def families(self) -> tuple[Family, ...]:
        """The tables among the statistics."""
        counts = (s.families for s in self.schema.statistics if isinstance(s, Counts))
        return tuple(chain.from_iterable(counts))

    @cached_property
    def counts(self) -> int:
        """How many sums are released."""
        return length(self.schema.statistics, self.schema.variables)

    @cached_property
    def _reach(self) -> int:
        return self.accounting.reach(self.most_parties, self.counts) if self.accounting else 0

    @property
    def lowest(self) -> int:
        """The lowest value that a party sends, its noise included."""
        least = 1 << HALF_BITS if True in self._centred else 0
        return -self.most_records * least - self._reach

    @property
    def highest(self) -> int:
        """The highest value that a party sends: all its records in one count, and noise."""
        bits = max((HALF_BITS if centred else GRID_BITS for centred in self._centred), default=0)
        return self.most_records * (1 << 2 * bits) + self._reach  # squares are the largest

    @property
    def _centred(self) -> set[bool]:
        """Whether moments are centred, of those that are summed."""
        return {s.centred for s in self.schema.statistics if isinstance(s, Moments)}

    def absent(self, members: int) -> int:
        """Return how many members may be missing in a release."""
        return math.floor(share_of(self.dropouts, members))

    def colluding(self, members: int) -> int:
        """Return how many members may work with the aggregator."""
        return math.floor(share_of(self.dishonest, members))


def check_records(party: Party, terms: Terms, batches: Sequence[LocalData]) -> None:
    """Refuse records of other states than declared, or more than the terms allow."""
    for data in batches:
        check_declared(party, terms.schema, data)
    if sum(data.records for data in batches) > terms.most_records:
        raise DataError(f"{party} has more records than the {terms.most_records} agreed")


def count_query(party: Party, terms: Terms, batches: Sequence[LocalData]) -> Values:
    """CountQuery: return a party's own counts; zeros if it has no records."""
    check_records(party, terms, batches)
    counts = np.zeros(terms.counts, np.int64)
    for data in batches:
        counts += measure(terms.schema.statistics, data)
    return counts


def data_pert(counts: Values, noise: Noise) -> Values:
    """DataPert: return the counts with fresh noise on each, zeros included."""
    return counts + noise(len(counts))
