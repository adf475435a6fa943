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
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.variables import Variable

DESCRIPTION_CELLS = 4_000_000
REVEALED = "record count, names and states of variables"


@dataclass(frozen=True, slots=True)
class Describe(Query[dict[Party, "Description"]]):
    """Ask sites for the variables that they show."""

    kind: ClassVar[str] = "describe"


@dataclass(frozen=True, slots=True)
class Description(Message):
    """What a site shows: for each variable its name, its states, and whether values are missing.

    The site's policy allows `most_variables` variables per table and `most_memory` bytes per query.
    """

    kind: ClassVar[str] = "description"
    records: int
    most_variables: int
    most_memory: int
    variables: tuple[tuple[str, tuple[str, ...], bool], ...]

    def named(self) -> dict[str, Variable]:
        """Return the variables by name, in the site's order.

        Raises
        ------
        ValueError
            If a state or a variable appears twice, or has control characters.
        """
        variables = {name: Variable(name, states, gaps) for name, states, gaps in self.variables}
        if len(variables) < len(self.variables):
            raise ValueError("a variable appears twice")
        for variable in variables.values():
            variable.check_printable()
        return variables


def _consider(site: SiteRole, query: Describe) -> None:
    del query
    site.ledger.note(REVEALED, site.party, (site.analyst,))


def _site(site: SiteRole, query: Describe) -> Program[None]:
    del query
    variables = tuple((v.name, v.states, v.missing) for v in site.shown.values())
    limits = site.policy.most_variables, site.policy.most_memory
    description = Description(site.records, *limits, variables)
    yield from send({site.analyst: description})


def _analyst(analyst: AnalystRole, query: Describe) -> Program[dict[Party, Description]]:
    expect = dict.fromkeys(query.parties, Expect(Description, DESCRIPTION_CELLS))
    described = yield from exchange({}, expect)
    for party, description in described.items():
        try:
            description.named()
        except ValueError as error:
            raise MalformedMessageError(party, str(error)) from None
        analyst.ledger.note(REVEALED, party, (analyst.party,))
    return described


DESCRIBE = Conversation(Describe, _analyst).side(SiteRole, _consider, _site)
