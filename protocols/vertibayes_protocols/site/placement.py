"""Where a site's records are among those of a study."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Placement:
    """Where a site's records are among those of a study."""

    records: int  # the number of records of the study, at all sites
    places: NDArray[np.int64] = field(repr=False)

    @property
    def own(self) -> NDArray[np.intp]:
        """The site's records that are in the study, in the study's order."""
        chosen = np.flatnonzero(self.places >= 0)
        return np.asarray(chosen[np.argsort(self.places[chosen])], np.intp)

    @property
    def is_complete(self) -> bool:
        """Whether the site holds every record of the study."""
        return len(self.own) == self.records

    def own_among(self, chosen: NDArray[np.integer] | None) -> NDArray[np.intp]:
        """Return the site's records that are at some places of the study, in the study's order.

        Examples
        --------
        >>> Placement(3, np.array([2, -1, 0])).own_among(np.array([1, 2]))
        array([0])
        """
        own = self.own
        return own if chosen is None else own[np.isin(self.places[own], chosen)]

    def spread(
        self, codes: NDArray[np.unsignedinteger], missing: int
    ) -> NDArray[np.unsignedinteger]:
        """Return a column in the order of the study, with `missing` where the site has no record.

        >>> placement = Placement(3, np.array([2, -1, 0]))
        >>> placement.spread(np.array([5, 6, 7], np.uint8), missing=9)
        array([7, 9, 5], dtype=uint8)
        """
        dtype = codes.dtype if missing <= np.iinfo(codes.dtype).max else np.uint16
        column = np.full(self.records, missing, dtype)
        here = self.places >= 0
        column[self.places[here]] = codes[here]
        return column
