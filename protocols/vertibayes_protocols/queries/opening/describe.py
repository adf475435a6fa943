"""Describe: the variables that a site shows, and the number of records that it holds.

    site -> analyst    Description

Leakage: to the analyst, the record count, and of each variable that the site's policy shows the
name, the states (the edges of bins) and whether values are missing. Cost: 1 round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.approval import Phase
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, saying
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.variables import Variable

DESCRIPTION_CELLS = 4_000_000
REVEALED = "record count, names and states of variables"


@dataclass(frozen=True, slots=True)
class Description(Message):
    """What a site shows: for each variable its name, its states, and whether values are missing."""

    kind: ClassVar[str] = "description"
    records: int
    most_variables: int  # in a table, by its policy
    most_memory: int  # bytes of a query, by its policy
    variables: tuple[tuple[str, tuple[str, ...], bool], ...]

    def named(self) -> dict[str, Variable]:
        """Return the variables by name, in the site's order; a ValueError if one is not valid."""
        variables = {name: Variable(name, states, gaps) for name, states, gaps in self.variables}
        if len(variables) < len(self.variables):
            raise ValueError("a variable appears twice")
        for variable in variables.values():
            variable.check_printable()
        return variables


@dataclass(frozen=True, slots=True)
class Describe(Query[dict[Party, Description], None]):
    """Ask sites for the variables that they show."""

    kind: ClassVar[str] = "describe"
    phase: ClassVar[Phase] = "opening"

    def matches(self, contract: Contract) -> None:
        """Refuse other sites than those of an approved contract."""
        contract.check_parties(self.kind, self.parties, dealer=False)

    def plan(self, at: At) -> None:
        """Plan nothing."""

    def effects(self, plan: None, at: At) -> Effects:
        """Return the effects: what the analyst learns of each site."""
        shown_by = at.shown_by(self.parties)
        return saying(self.parties, [Fact(REVEALED, site, (at.analyst,)) for site in shown_by])

    def run_site(self, site: SiteRole, plan: None, give: Give) -> Program[None]:
        """Send the description."""
        variables = tuple((v.name, v.states, v.missing) for v in site.shown.values())
        limits = site.policy.most_variables, site.policy.most_memory
        yield from send({site.analyst: Description(site.records, *limits, variables)})

    def run_analyst(self, analyst: AnalystRole, plan: None) -> Program[dict[Party, Description]]:
        """Receive the descriptions, whose names must be valid."""
        expect = dict.fromkeys(self.parties, Expect(Description, DESCRIPTION_CELLS))
        described = yield from exchange({}, expect)
        for party, description in described.items():
            try:
                description.named()
            except ValueError as error:
                raise MalformedMessageError(party, str(error)) from None
        return described
