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
    """

    everybody: SiteData = field(repr=False)  # the data of all people that the site holds
    study: bytes = b""  # the id of the study that was aligned
    chosen: NDArray[np.integer] | None = field(default=None, repr=False)
    placement: Placement | None = None  # where the site's records are in the study
    hidden: HiddenRows | None = None  # the site's shares of the study's rows
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
