"""An approved study at the analyst: it continues where a broken session left it.

    analyst -> sites    Begin        with the id of the study
    sites -> analyst    Begun        what the steps of the run have shown so far
                        Align (if the study has an alignment), Meet, Describe, Commit
    analyst -> sites    the first step that not all sites have recorded, and the next ones

A site that has recorded one step more than another answers this step again. If all sites have kept
their shares of the release, they are asked to send these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries import Begin, Choose, Release
from vertibayes_protocols.queries.opening.begin import Begun
from vertibayes_protocols.queries.releases.plan import check_rule
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.session import Session
from vertibayes_protocols.storage.run_record import KEPT, Shown


@dataclass
class ApprovedStudy(OpenStudy):
    """A study that all sites have approved, and of which steps may have been answered before."""

    begun: Mapping[Party, Begun] = field(default_factory=dict, repr=False)
    seen: list[Shown] = field(default_factory=list, repr=False)
    keep: Callable[[Shown], None] = field(default=lambda _: None, repr=False)

    def __post_init__(self) -> None:
        self._asked: list[Choices] = []  # the portions that the learner has asked for
        self._shown = self._agreed()

    def choose(self, choices: Choices) -> tuple[int, ...]:
        """Return the winner of each set: from the record, or by asking; as `OpenStudy.choose`."""
        won: tuple[int, ...] = ()
        decided: tuple[bool, ...] = ()
        for portion in self._portions(choices):
            self._asked.append(portion)
            shown = self._answer(len(self._asked) - 1)
            won, decided = won + shown.won, decided + shown.decided
        self.joined.decided = decided
        return won

    def release(self, tables: FamilyTables) -> list[NDArray[np.int64]]:
        """Ask for the tables that the study ends with, or for a lost answer again."""
        check_rule(self.study, tables)
        released = None
        while released is None:
            if self._asked:  # a site may have lost the last step
                self._answer(len(self._asked) - 1)
            again = all(begun.state >= KEPT for begun in self.begun.values())
            released = self._asked_once(partial(Release.of, tables=tables, again=again))
        return released[0]

    def _answer(self, place: int) -> Shown:
        """Ask for the steps up to a place that not all sites have recorded."""
        while len(self._shown) <= place:
            at = len(self._shown)
            won = self._asked_once(partial(Choose.of, choices=self._asked[at]))
            if won is not None:
                self._note(at, Shown(won[0], self.joined.decided))
        return self._shown[place]

    def _note(self, at: int, shown: Shown) -> None:
        if at < len(self.seen) and shown != self.seen[at]:
            raise self._differ()
        if at == len(self.seen):
            self.keep(shown)
            self.seen.append(shown)
        self._shown.append(shown)

    def _take(self, other: OpenStudy) -> None:
        super()._take(other)
        assert isinstance(other, ApprovedStudy)  # opened as this one
        self.begun, self._shown = other.begun, other._shown

    def _agreed(self) -> list[Shown]:
        """Return the steps that all sites have recorded, and keep those that were not seen here."""
        records = {site: begun.shown for site, begun in self.begun.items()}
        fewest = min(map(len, records.values()), default=0)
        longest = max(self.seen, *records.values(), key=len) if records else self.seen
        for site, record in records.items():
            if record != longest[: len(record)]:
                raise self._differ()
            if len(record) < len(longest) - 1:
                reason = (
                    f"it remembers {len(record)} of {len(longest)} steps of this run: have it "
                    "restore its newest memory, or delete the file `run` in the study's folder to "
                    "begin another run"
                )
                raise QueryRefusedError(site, reason)
        if self.seen != longest[: len(self.seen)]:
            raise self._differ()
        for shown in longest[len(self.seen) : fewest]:
            self.keep(shown)
            self.seen.append(shown)
        return list(longest[:fewest])

    def _differ(self) -> UnknownFaultyPartyError:
        parties = self.study.sites
        return UnknownFaultyPartyError(parties, "they do not remember the same winners of this run")


def open_approved(
    session: Session,
    contract: Contract,
    study: bytes,
    seen: Sequence[Shown] = (),
    keep: Callable[[Shown], None] = lambda _: None,
) -> ApprovedStudy:
    """Begin or resume a run of an approved study, and open the study."""
    begun = session.ask(Begin.of(contract, study=study))
    opened = open_study(
        session,
        contract.site_names,
        contract.dealer[0],
        order=contract.variables,
        variables=contract.variables,
        memory=contract.memory,
        study=study,
        choices=True,
        alignment=contract.alignment,
    )
    parts = opened.session, opened.joined, opened.most_variables
    return ApprovedStudy(*parts, people=opened.people, begun=begun, seen=list(seen), keep=keep)
