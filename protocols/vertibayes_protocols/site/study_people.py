"""Who of a site's people is in the study of a session, as far as the site knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.hidden_rows import HiddenRows
from vertibayes_protocols.site.placement import Placement


@dataclass(frozen=True)
class StudyPeople:
    """Who of a site's people is in the study of a session.

    One of three cases: all sites hold everybody in the study (`chosen`), the site knows where its
    own people are among those of the study (`placement`), or no site knows who is in it (`hidden`).

    Parameters
    ----------
    everybody : SiteData
        The data of all people that the site holds.
    study : bytes, default=b""
        The id of the study that was aligned; empty if the places come from no alignment.
    chosen : ndarray of int, optional
        Which records the session's data has, in the study's order; all records if None.
    placement : Placement, optional
        Where the site's records are in the study.
    hidden : HiddenRows, optional
        The site's shares of the study's rows.
    apart : tuple of (Party, Party), default=()
        With `placement`, the pairs of sites that hold different people of the study.
    everyone : tuple of Party, default=()
        With `placement`, the sites that hold everybody in the study.
    """

    everybody: SiteData = field(repr=False)
    study: bytes = b""
    chosen: NDArray[np.integer] | None = field(default=None, repr=False)
    placement: Placement | None = None
    hidden: HiddenRows | None = None
    apart: tuple[tuple[Party, Party], ...] = ()
    everyone: tuple[Party, ...] = ()

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
