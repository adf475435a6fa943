"""One record for each person of a table with several rows a person, by declared rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.settings import RULES
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.inspection import says_missing
from vertibayes_protocols.site.numerals import number, read_numbers
from vertibayes_protocols.site.text_column import TextColumn

BY_ORDER: Final = ("first", "last")
SAME: Final = "same"


class People(NamedTuple):
    """Records of people: one identifier, and one value of each column."""

    ids: TextColumn
    columns: dict[str, TextColumn]


@dataclass(frozen=True)
class Aggregation:
    """How the rows of a person become one record. Rows without a value do not count."""

    rules: Mapping[str, str]  # the rule of each column
    order_by: str | None = None  # the column of numbers or of ISO dates that orders the rows

    def __post_init__(self) -> None:
        for name, rule in self.rules.items():
            if rule not in RULES:
                raise ValueError(f"{name}: aggregate must be one of {', '.join(RULES)}")
            if rule in BY_ORDER and self.order_by is None:
                raise ValueError(f"{name}: aggregate = {rule!r} needs order_by, a column")

    def people(
        self,
        source: str,
        ids: TextColumn,
        columns: Mapping[str, TextColumn],
        encoding: Encoding,
        order: TextColumn | None = None,
    ) -> People:
        """Return one record for each person, in the order of their first rows."""
        moments = None
        if order is not None and set(self.rules.values()) & set(BY_ORDER):
            moments = _moments(source, str(self.order_by), order)[order.places]
        made = {
            name: _Column(source, name, ids, column, encoding).made(self.rules[name], moments)
            for name, column in columns.items()
        }
        return People(TextColumn(ids.texts, np.arange(len(ids.texts), dtype=np.uint32)), made)


@dataclass(frozen=True)
class _Column:
    """One column, and whose each of its rows is."""

    source: str
    name: str
    ids: TextColumn
    column: TextColumn
    encoding: Encoding

    def made(self, rule: str, moments: NDArray[np.integer] | None) -> TextColumn:
        """Return the column with one value for each person."""
        known = self._known()
        rows = np.flatnonzero(known[self.column.places])
        people = len(self.ids.texts)
        if rule == "count":
            counts = np.bincount(self.ids.places[rows], minlength=people)
            distinct, places = np.unique(counts, return_inverse=True)
            return TextColumn(tuple(map(str, distinct.tolist())), places.reshape(-1))
        if rule in BY_ORDER and moments is not None:
            rank = moments[rows]
        elif rule == SAME:
            rank = np.zeros(len(rows), np.int64)
        else:
            ranks, known = self._ranks(known)
            rows = np.flatnonzero(known[self.column.places])
            rank = ranks[self.column.places[rows]]
        chosen = self._chosen(rows, rank if rule in ("first", "min", SAME) else -rank, rule)
        texts = (*self.column.texts, "")
        value = np.full(people, len(texts) - 1, np.uint32)
        value[self.ids.places[chosen]] = self.column.places[chosen]
        return TextColumn(texts, value)

    def _known(self) -> NDArray[np.bool_]:
        says = self.encoding.says_missing
        return np.array([not says(text, self.name) for text in self.column.texts], bool)

    def _chosen(
        self, rows: NDArray[np.intp], rank: NDArray[np.integer], rule: str
    ) -> NDArray[np.intp]:
        """Return each person's row of the lowest rank, whose rows must have one value."""
        person, place = self.ids.places[rows], self.column.places[rows]
        order = np.lexsort((rank, person))
        same = person[order][1:] == person[order][:-1]
        first = np.concatenate([[True], ~same])[: len(order)]
        if rule in (*BY_ORDER, SAME):
            tied = same & (rank[order][1:] == rank[order][:-1])
            tied &= place[order][1:] != place[order][:-1]
            lowest = np.flatnonzero(first)[np.cumsum(first) - 1]
            tied &= rank[order][1:] == rank[order][lowest][1:]
            if tied.any():
                at = int(np.argmax(tied))
                raise self._undetermined(sorted(rows[order[at : at + 2]].tolist()), rule)
        return np.asarray(rows[order[first]])

    def _undetermined(self, rows: list[int], rule: str) -> DataError:
        one, other = (row + 1 for row in rows)
        when = "at the same moment " if rule in BY_ORDER else ""
        return DataError(
            f"{self.source}: the column {self.name!r}: records {one} and {other} of one person "
            f"have different values {when}(aggregate = {rule!r}); choose another rule, one of "
            f"{', '.join(RULES)}"
        )

    def _ranks(self, known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the rank of each text among declared states or numbers, and which are known."""
        texts = [text for text, is_known in zip(self.column.texts, known, strict=True) if is_known]
        states = self.encoding.states.get(self.name)
        if states is not None:
            rank_of = {state: rank for rank, state in enumerate(states)}
            kind = f"one of its states, {', '.join(states)}"
        else:
            values = read_numbers(texts).values
            ranks = {value: rank for rank, value in enumerate(sorted(set(values.values())))}
            rank_of = {text: ranks[value] for text, value in values.items()}
            kind = "a number, and the column declares no states"
        for place, text in enumerate(self.column.texts):
            gone = states is None and says_missing(text, among_numbers=True)
            if known[place] and text not in rank_of and not gone:
                record = int(np.argmax(self.column.places == place)) + 1
                raise DataError(
                    f"{self.source}: the column {self.name!r}, record {record}: {text!r} is not "
                    f"{kind}: min and max need an order of the values"
                )
        found = np.array([rank_of.get(text, -1) for text in self.column.texts], np.int64)
        return found, known & (found >= 0)


def _moments(source: str, name: str, order: TextColumn) -> NDArray[np.int64]:
    """Return the rank of each distinct text of the column that orders the rows."""
    numbers: list[object] = [number(text) for text in order.texts]
    dates: list[object] = [_moment(text) for text in order.texts]
    moments = numbers if numbers.count(None) <= dates.count(None) else dates
    if None in moments:
        place = moments.index(None)
        record = int(np.argmax(order.places == place)) + 1
        shown = f"{source}, record {record}: {order.texts[place]!r} in {name!r} (order_by)"
        if not any(moment is not None for moment in moments):
            raise DataError(
                f"{shown} is not a number and not a date as 2024-01-31, and no other value is: "
                "change their form, as a query of a database can"
            )
        kind = "a number" if moments is numbers else "a date as 2024-01-31"
        raise DataError(f"{shown} is not {kind}, as most of its values")
    ranks = {moment: rank for rank, moment in enumerate(sorted(set(moments)))}  # type: ignore[type-var]
    return np.array([ranks[moment] for moment in moments], np.int64)


def _moment(text: str) -> datetime | None:
    """Return an ISO date or time; one without a time zone counts as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
