"""What released tables show of one person, as a site can say it when the person asks.

The site's ledger has the variables of each table, and its memory keyed digests of each person's
values in the data that answered (`vertibayes_protocols.storage.changes`). Counts of people with the
same values are therefore those of the data that answered, also if the data have changed since. The
site does not know the columns of other sites: a cell counts at most the people who have the same
values in the site's own columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.ledger import Purpose, RevealedTable
from vertibayes_protocols.release import RuleKind
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.changes import Snapshot
from vertibayes_protocols.storage.ledger_entries import Entry, Tables
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Rows

MISSING = "no value"
KINDS = {"", *get_args(RuleKind)}
NOT_KNOWN = "a value that the site has no longer"


class Alike(NamedTuple):
    """Tables with the same columns of this site."""

    own: tuple[str, ...]
    others: int  # how many other people of this site have the same values in these columns
    tables: list[RevealedTable]


@dataclass(frozen=True)
class AskedRecord:
    """A person who asks, and what the site has: its memory and its data today."""

    memory: SiteMemory
    data: SiteData = field(repr=False)
    person: int = field(repr=False)  # the keyed digest of the identifier

    @cached_property
    def today(self) -> Snapshot:
        """The values of all people today."""
        return self.memory.snapshot(self.data, self.data.variables, self.memory.digests(self.data))

    @property
    def is_here(self) -> bool:
        """Whether the data have the person today."""
        return self.today.place_of(self.person) is not None

    @property
    def is_known(self) -> bool:
        """Whether the data have the person, or had in a study."""
        states = [self.today, *self.memory.changes.snapshots]
        return any(state.place_of(self.person) is not None for state in states)

    def values_in(self, state: Snapshot) -> dict[str, str]:
        """Return the person's values in a state of the data, in words."""
        place = state.place_of(self.person)
        assert place is not None  # the caller has found the person
        values = {}
        for name, column in state.columns.items():
            values[name], variable = NOT_KNOWN, self.data.variables.get(name)
            if variable is not None:
                known = self.memory.values_of(variable).tolist()
                if (digest := int(column.digests[column.places[place]])) in known:
                    values[name] = [*variable.states, MISSING][known.index(digest)]
        return values


@dataclass(frozen=True)
class Shown:
    """The tables of one study by one rule, and what the site knows of the person in them."""

    asked: AskedRecord
    purpose: Purpose
    rule: str  # as the ledger has it
    tables: list[RevealedTable]
    last: str  # the time of the newest entry

    @cached_property
    def _study(self) -> bytes:
        """The id of the study; empty if the memory does not know it."""
        try:
            digest = bytes.fromhex(self.purpose.study)
        except ValueError:  # of a ledger that was changed by hand
            return b""
        is_contract = bool(self.purpose.approval)
        return self.asked.memory.runs.only_study(digest) if is_contract else digest

    @cached_property
    def states(self) -> list[Snapshot]:
        """The states of the data that can have answered, as far as the memory tells them apart."""
        memory, study = self.asked.memory, self._study
        name, known = name_of(self.rule), memory.changes.snapshots
        if not self.purpose.study or name.split(" ")[0] not in KINDS:
            return []  # sums over the records of several parties, of which nothing is kept
        name = name if self.purpose.approval else ""
        states = [s for s in known if s.rule == name] or [s for s in known if not s.rule]
        kept = memory.aligned.of(study) if study else None
        if kept is not None:
            chosen = [s for s in states if len(s.people) == kept.own]
        else:
            unchanged = memory.is_unchanged(study, self.asked.data.codes)
            chosen = [s for s in states if self._is_today(s) is unchanged]
        return chosen or states

    @cached_property
    def having(self) -> list[Snapshot]:
        """Those states of the data that have the person."""
        return [s for s in self.states if s.place_of(self.asked.person) is not None]

    @property
    def is_in(self) -> bool | None:
        """Whether the study counts the person; None if the site cannot know it."""
        if not self.having:
            return False
        is_clear = len(self.having) == len(self.states)
        return True if is_clear and not self.asked.memory.hides(self._study) else None

    def _is_today(self, state: Snapshot) -> bool:
        today = self.asked.today
        return np.array_equal(state.people, today.people) and not self.changes_since(state)

    def changes_since(self, state: Snapshot) -> dict[str, int]:
        """Return how many people of a state have left, or have another value, by column."""
        people = self.asked.today.of_people(state.people).people
        before, today = state.of_people(people), self.asked.today.of_people(people)
        changed = {"people who left": len(state.people) - len(people)}
        for name, column in before.columns.items():
            after = today.columns.get(name)
            same = after is not None and (after.values == column.values)
            changed[name] = len(people) - int(np.sum(same))
        return {what: count for what, count in changed.items() if count}

    @cached_property
    def parts(self) -> int:
        """How many tables count some of the records only."""
        return sum(table.rows != Rows() for table in self.tables)

    @cached_property
    def alike(self) -> list[Alike]:
        """The tables of all records with columns of this site, those of the fewest people first."""
        of: dict[tuple[str, ...], list[RevealedTable]] = {}
        columns = {name for state in self.having for name in state.columns}
        for table in self.tables:
            if table.rows == Rows():
                own = tuple(sorted(columns.intersection(table.variables)))
                of.setdefault(own, []).append(table)
        found = [Alike(own, self._others(own), tables) for own, tables in of.items() if own]
        return sorted(found, key=lambda alike: (alike.others, len(alike.own), alike.own))

    @property
    def elsewhere(self) -> int:
        """How many tables of all records have no column of this site."""
        return len(self.tables) - self.parts - sum(len(each.tables) for each in self.alike)

    def _others(self, own: Sequence[str]) -> int:
        """Return how many other people have the same values: the fewest of all possible states."""
        return min(
            int(np.logical_and.reduce([self._same(state, name) for name in own]).sum()) - 1
            for state in self.having
            if all(name in state.columns for name in own)
        )

    def _same(self, state: Snapshot, name: str) -> NDArray[np.bool_]:
        place, column = state.place_of(self.asked.person), state.columns[name]
        return np.asarray(column.places == column.places[place])


def name_of(rule: str) -> str:
    """Return the `Rule.name` of a rule, given how the ledger words it."""
    number = re.search(r"\d+", rule)
    for words, kind in (("counts below", "cut"), ("counts rounded", "rounded")):
        if rule.startswith(words) and number:
            return f"{kind} {number[0]}"
    return rule.split(" ")[0].lower()  # exact, laplace, gaussian; nothing without a rule


def shown_of(entries: Iterable[Entry], asked: AskedRecord) -> Iterator[Shown]:
    """Yield the tables of each study and rule, the newest study first."""
    of: dict[tuple[Purpose, str], dict[RevealedTable, None]] = {}
    last: dict[tuple[Purpose, str], str] = {}
    for at, purpose, noted in reversed(list(entries)):
        for table in noted.tables if isinstance(noted, Tables) else ():
            last.setdefault((purpose, table.rule), at)
            of.setdefault((purpose, table.rule), {})[table] = None
    for (purpose, rule), tables in of.items():
        yield Shown(asked, purpose, rule, list(tables), last[purpose, rule])
