"""Who of a site's people is in the study of a session, as far as the site knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.hidden_rows import HiddenRows


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


@dataclass(frozen=True)
class StudyPeople:
    """Who of a site's people is in the study of a session: one of three cases."""

    everybody: SiteData = field(repr=False)  # the data of all people that the site holds
    study: bytes = b""  # the id of the study that was aligned
    # All sites hold everybody in the study,
    chosen: NDArray[np.integer] | None = field(default=None, repr=False)
    placement: Placement | None = None  # or the site knows where its own people are in the study,
    hidden: HiddenRows | None = None  # or no site knows who is in it: the site's shares of the rows
    apart: tuple[tuple[Party, Party], ...] = ()
    everyone: tuple[Party, ...] = ()  # with `placement`, the sites that hold everybody in the study

    @classmethod
    def placed(
        cls, everybody: SiteData, study: bytes, alignment: Alignment, placement: Placement
    ) -> StudyPeople:
        """Return the people of a study after an alignment of level 1.

        If all sites hold all of them, their order is that of the normal forms, which all sites
        have; otherwise it is that of the places.
        """
        if not alignment.is_common:
            apart, everyone = alignment.apart, alignment.everyone
            return cls(everybody, study, placement=placement, apart=apart, everyone=everyone)
        assert everybody.identifiers is not None  # they were matched
        here = everybody.identifiers.by_form()
        return cls(everybody, study, chosen=here[placement.places[here] >= 0])

    @property
    def data(self) -> SiteData:
        """The data of the session."""
        return self.everybody if self.chosen is None else self.everybody.people(self.chosen)
