"""The states of one column: declared, cut at declared edges, or found in it; or its numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site import inspection
from vertibayes_protocols.site.binning import METHODS, Bin, bin_names, bin_of, bins_at, plain
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import IDENTIFIERS, Finding, UnsuitableColumnError
from vertibayes_protocols.site.inspection import FEW_WORDS, MOST_NUMBERS, counted
from vertibayes_protocols.site.numerals import Numerals, read_numbers, read_plain
from vertibayes_protocols.site.scales import in_order
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import is_printable

FEW_KNOWN = 0.05  # share of records with a value, below which a column gets a warning
SHOWN = 3  # states, or groups of spellings, that a finding quotes
OTHER = "other"  # the state of all that are rare


class States(NamedTuple):
    """States, and the code of each text that is not a missing value."""

    states: tuple[str, ...]
    code_of: Mapping[str, int]
    findings: tuple[Finding, ...] = ()


def in_any_case(code_of: Mapping[str, int], texts: Iterable[str]) -> dict[str, int]:
    """Add to the codes of states those of the texts that differ from a state in case only."""
    by_case = {state.casefold(): code for state, code in code_of.items()}
    folded = {text: by_case.get(text.casefold()) for text in texts}
    return {text: code for text, code in folded.items() if code is not None} | dict(code_of)


def _merged(records: Mapping[str, int], fewest: int, kept: Collection[str]) -> list[str]:
    """Return the rare states, and the next rarest ones until all together have `fewest` records."""
    rarest = sorted((s for s in records if s not in kept), key=records.__getitem__)
    merged = [state for state in rarest if records[state] < fewest]
    if OTHER in records and OTHER not in merged:
        merged.append(OTHER)
    others = (state for state in rarest if state not in merged)
    while sum(records[state] for state in merged) < fewest and (more := next(others, None)):
        merged.append(more)
    return merged


def _with_other(coding: States, gone: Collection[str]) -> States:
    """Return states in which `OTHER`, the last one unless it was kept, is in place of some."""
    states = tuple(state for state in coding.states if state not in gone)
    states = states if OTHER in states else (*states, OTHER)
    place = {state: code for code, state in enumerate(states)}
    code_of = {t: place.get(coding.states[c], place[OTHER]) for t, c in coding.code_of.items()}
    return States(states, code_of)


class StateFinder:
    """A column and its encoding; `counts` has the number of records of each known text."""

    def __init__(self, source: str, name: str, column: TextColumn, encoding: Encoding) -> None:
        self.source, self.name, self.column, self.encoding = source, name, column, encoding
        used = np.bincount(column.places, minlength=len(column.texts)).tolist()
        self.counts: dict[str, int] = {
            text: count
            for text, count in zip(column.texts, used, strict=True)
            if count and not encoding.says_missing(text, name)
        }
        self.known = sum(self.counts.values())

    # ---- values and columns that cannot be encoded -----------------------------------------------

    def unsuitable(self, kind: str, what: str, remedy: str = "") -> UnsuitableColumnError:
        """Return the error about a column that cannot be used as it is."""
        finding = Finding(kind, what, remedy)
        return UnsuitableColumnError(finding, self.source, self.name, self.encoding.advice)

    def not_one_of(self, text: str, states: Sequence[str]) -> DataError:
        """Return the error about a value that is not one of the states."""
        return self._unlike(text, f"is not one of its states, {', '.join(states)}")

    def _unlike(self, text: str, what: str) -> DataError:
        count, first = self._records(text)
        remedy = self.encoding.advice.missing_code(text)
        return DataError(
            f"{self.source}: the column {self.name!r}, record {first}: {text!r} {what} ({count} "
            f"such records); if it says missing: {remedy}"
        )

    def not_printable(self) -> DataError:
        """Return the error about a name or a value with control characters, as line breaks."""
        text = next((text for text in self.counts if not is_printable(text)), None)
        record = "" if text is None else f", record {self._records(text)[1]}"
        advice = self.encoding.advice
        remedy = advice.of(advice.exclude, [self.name]).replace("\n", " ")
        return DataError(
            f"{self.source}: the column {self.name!r}{record}: {text or self.name!r} has control "
            "characters; replace line breaks in the file by spaces, or leave the column out: "
            f"{remedy}"
        )

    def everywhere(self) -> str:
        """Return a text that says how many records have a value."""
        records = len(self.column)
        return ("in 1 record" if records == 1 else f"in all {records} records") + (
            "" if self.known == records else f" except {records - self.known} without a value"
        )

    def _as_states(self) -> str:
        """Return the remedy that keeps the column's texts as states."""
        advice = self.encoding.advice
        many = len(self.counts) > self.encoding.max_states
        return advice.categorical + (f" {advice.states(len(self.counts))}" if many else "")

    def few_known(self) -> Iterator[Finding]:
        """Find that few records have a value."""
        if self.known < FEW_KNOWN * len(self.column):
            yield Finding(
                "few values",
                f"only {self.known / len(self.column):.1%} of the records have a value; its edges "
                "and CPTs depend on these records",
                f"{self.encoding.advice.exclude} leaves it out",
            )

    def _records(self, text: str) -> tuple[int, int]:
        """Return the number of records that have a text, and the first of them, from 1 on."""
        places = np.flatnonzero(self.column.places == self.column.texts.index(text))
        return len(places), int(places[0]) + 1

    # ---- declared states -------------------------------------------------------------------------

    def declared(self, states: tuple[str, ...]) -> States:
        """Give each text its declared state."""
        code_of = {state: code for code, state in enumerate(states)}
        if len(code_of) < len(states):
            raise DataError(
                f"{self.source}: the column {self.name!r}: a declared state appears twice: "
                f"{', '.join(states)}"
            )
        if self.name in self.encoding.ignore_case:
            code_of = in_any_case(code_of, self.counts)
        for text in self.counts:
            if text not in code_of:
                raise self.not_one_of(text, states)
        return States(states, code_of)

    def cut(self, edges: Sequence[Decimal]) -> States:
        """Give each number its declared bin."""
        bins = bins_at(edges)
        numbers, words = self._all_numbers(self.encoding.advice.edges)
        if words:
            raise self.not_one_of(words[0], bin_names(bins))
        coded = self._in_bins(numbers, bins)
        return coded._replace(findings=(*coded.findings, *self._about_edges(numbers, edges)))

    def _in_bins(self, numbers: Numerals, bins: Sequence[Bin]) -> States:
        """Give each number its bin, as a state."""
        code_of = {t: p for t, v in numbers.values.items() if (p := bin_of(v, bins)) is not None}
        return States(bin_names(bins), code_of, tuple(self._about_numbers(numbers)))

    # ---- declared numbers ------------------------------------------------------------------------

    def between(self, numeric: Numeric) -> tuple[NDArray[np.float64], tuple[Finding, ...]]:
        """Return the number of each record, nan where it is missing, and what to check."""
        numbers, words = self._all_numbers(self.encoding.advice.bounds)
        if words:
            raise self._unlike(words[0], "is not a number")
        value_of = [float(numbers.values.get(text, math.nan)) for text in self.column.texts]
        values = np.array(value_of, np.float64)[self.column.places]
        findings = (*self._about_numbers(numbers), *self._about_bounds(numeric, values))
        return values, findings

    def _all_numbers(self, option: str) -> tuple[Numerals, list[str]]:
        """Return a column's numbers, and the words among them that do not say missing."""
        numbers = read_numbers(self.counts)
        if numbers.fault:
            raise DataError(f"{self.source}: the column {self.name!r}: {numbers.fault}")
        words = [w for w in numbers.words if not inspection.says_missing(w, among_numbers=True)]
        if words and not numbers.values:
            first, *others = words
            has_letters = any(map(str.isalpha, first))
            unlike = (w for w in others if any(map(str.isalpha, w)) != has_letters)
            other = next((f" beside {word!r}" for word in unlike), "")  # as a unit in some records
            raise DataError(
                f"{self.source}: {self.name} has text, not numbers, as {first!r}{other}; {option} "
                "is for numeric columns"
            )
        return numbers, words

    # ---- states found in the column --------------------------------------------------------------

    def found(self) -> States:
        """Find the states in the column, or bins; rare states are one state."""
        if self.name in self.encoding.categorical:
            named = read_plain(self.counts)
            states = self._by_text() if named.words else self._by_number(named.values)
            return self.without_rare(states)
        self._check_dates()
        numbers = self._numbers()
        self._check_identifiers(numbers)
        if numbers is None:
            return self.without_rare(self._by_text())
        if len(set(numbers.values.values())) > MOST_NUMBERS:
            return self._binned(numbers)
        findings = tuple(self._about_numbers(numbers))
        return self.without_rare(self._by_number(numbers.values)._replace(findings=findings))

    def without_rare(self, coding: States, kept: Collection[str] = ()) -> States:
        """Make the states that fewer than `fewest` records have one state, which has `fewest`.

        Otherwise the names of states, which leave the site, would name a person. States that have
        left before are `kept`.
        """
        records = dict.fromkeys(coding.states, 0)
        for text, code in coding.code_of.items():
            records[coding.states[code]] += self.counts.get(text, 0)
        fewest, advice = self.encoding.fewest, self.encoding.advice.rare
        few = sum(count < fewest for state, count in records.items() if state not in kept)
        if not few or len(records) < 2:
            return coding
        merged = _merged(records, fewest, kept)
        shown = ", ".join(map(repr, merged[:SHOWN])) + (", ..." if merged[SHOWN:] else "")
        if len(merged) == len(records):
            what = f"{few} of {len(records)} states in fewer than {fewest} records ({shown})"
            raise self.unsuitable("rare states", f"{what}, and no two states without them", advice)
        each = "each" if few == len(merged) else f"{few} of them"
        what = (
            f"{shown}: {len(merged)} states are one, {OTHER!r}; fewer than {fewest} records have "
            f"{each}"
        )
        finding = Finding("rare states", what, advice)
        return _with_other(coding, {*merged} - {*kept})._replace(
            findings=(*coding.findings, finding)
        )

    def _numbers(self) -> Numerals | None:
        """Return the column's numbers; None if the column is text.

        Words for missing values may appear among any numbers. A few other words among many numbers
        make the column unsuitable, because each number would become a state too.
        """
        numbers = read_numbers(self.counts)
        if numbers.fault and len(self.counts) - len(numbers.words) > MOST_NUMBERS:
            keeps = f"write them in one, or {self.encoding.advice.categorical} takes them as names"
            raise self.unsuitable("several notations", numbers.fault, keeps)
        many = len(set(numbers.values.values())) > MOST_NUMBERS
        if not many:
            numbers = read_plain(self.counts)
        words = [w for w in numbers.words if not inspection.says_missing(w, among_numbers=True)]
        if not numbers.values or (words and not (many and len(words) <= FEW_WORDS)):
            return None
        if words:
            shown = inspection.words_shown(words, {word: self._records(word) for word in words})
            codes = self.encoding.advice.missing_code(words[0])
            raise self.unsuitable(
                "words among numbers",
                f"numbers, except {shown}",
                f"if it says missing, {codes}; {self.encoding.advice.categorical} keeps all as "
                "states",
            )
        return numbers

    def _check_dates(self) -> None:
        if inspection.are_dates(self.counts):
            dates = [text for text in self.counts if inspection.is_date(text)]
            raise self.unsuitable(
                "dates",
                f"{len(dates)} dates, as {dates[0]!r}",
                "write what matters of them as a column, such as the year, the month or the days "
                f"since; {self._as_states()} keeps them as states",
            )

    def _check_identifiers(self, numbers: Numerals | None) -> None:
        values = set(numbers.values.values()) if numbers is not None else set()
        if what := self._identifiers(values):
            advice = self.encoding.advice
            keeps = advice.cut if values else self._as_states()
            remedy = f"if they match records, {advice.identifies}; {keeps} keeps it as a variable"
            raise self.unsuitable(IDENTIFIERS, what, remedy)

    def _identifiers(self, values: Collection[Decimal]) -> str:
        """Say that a column, of these numbers or of texts, names records; empty if it does not."""
        different = len(values) or len(self.counts)
        if not inspection.identifies(values, different, self.known, len(self.column)):
            return ""
        return f"{different} different values in {self.known} records, which identify them"

    def kept_identifiers(self) -> Iterator[Finding]:
        """Find that a column whose states or edges are declared names records.

        Declared edges are also those of measurements, of which each may be different: such numbers
        name records if they number them.
        """
        advice = self.encoding.advice.declared
        if not advice or len(self.counts) <= MOST_NUMBERS:
            return
        numbers = read_numbers(self.counts)
        values = {*numbers.values.values()} if not numbers.words else set[Decimal]()
        is_list = values and max(values) - min(values) < 2 * len(values)
        what = self._identifiers(values)
        if what and (is_list or self.name not in self.encoding.cuts):
            yield Finding(IDENTIFIERS, what, advice)

    def _by_text(self) -> States:
        merged = self.name in self.encoding.ignore_case
        groups = inspection.spellings(self.counts)
        same = {text: group[0] for group in groups for text in group} if merged else {}
        states = tuple(in_order(text for text in self.counts if same.get(text, text) == text))
        code = {text: place for place, text in enumerate(states)}
        code_of = {text: code[same.get(text, text)] for text in self.counts}
        findings = (*self._about_words(), *self._about_case([] if merged else groups))
        return States(states, code_of, findings)

    def _by_number(self, values: Mapping[str, Decimal]) -> States:
        """Give each number a state, named by its first text: ``1`` and ``1.0`` are one state."""
        first: dict[Decimal, str] = {}
        for text, value in values.items():
            first.setdefault(value, text)
        place = {value: code for code, value in enumerate(sorted(first))}
        states = tuple(first[value] for value in place)
        return States(states, {text: place[value] for text, value in values.items()})

    def _binned(self, numbers: Numerals) -> States:
        values, counts = self._sorted(numbers)
        share = self.encoding.own_bins.get(self.name, self.encoding.bins)
        bins = METHODS[self.encoding.binning](values, counts, share)
        if len(bins) < 2:
            raise self.unsuitable(
                "too few records",
                f"{len(values)} numbers in {self.known} records, too few for two bins",
                f"{self.encoding.advice.cut} cuts them where it says",
            )
        return self._in_bins(numbers, bins)

    def _sorted(self, numbers: Numerals) -> tuple[list[Decimal], list[int]]:
        """Return the distinct numbers, ascending, and the number of records of each."""
        records: dict[Decimal, int] = {}
        for text, value in numbers.values.items():
            records[value] = records.get(value, 0) + self.counts[text]
        values = sorted(records)
        return values, [records[value] for value in values]

    # ---- texts that may mean something else ------------------------------------------------------

    def _about_numbers(self, numbers: Numerals) -> Iterator[Finding]:
        advice = self.encoding.advice
        for note in numbers.notes:
            yield Finding("notation", note, f"{advice.categorical} keeps them as they are")
        for word in numbers.words:
            yield Finding(
                "missing among numbers",
                f"{word!r} among numbers is taken as missing ({counted(self._records(word)[0])})",
                f"{advice.missing_code(word)} says so; {advice.categorical} keeps all as states",
            )
        values, counts = self._sorted(numbers)
        codes = inspection.codes_among(values, counts)
        rest = [value for place, value in enumerate(values) if place not in codes]
        for place in codes:
            text = next(text for text, value in numbers.values.items() if value == values[place])
            yield Finding(
                "a code among numbers",
                f"{text!r} ({counts[place]} records) lies apart from the other numbers, "
                f"{plain(rest[0])} to {plain(rest[-1])}",
                f"if it says missing: {advice.missing_code(f'{self.name}={text}')}",
            )

    def _about_edges(self, numbers: Numerals, edges: Sequence[Decimal]) -> Iterator[Finding]:
        """Find that all records lie on one side of the declared edges."""
        values, _ = self._sorted(numbers)
        empty = ""
        if values and values[-1] <= edges[0]:
            empty = f"above {plain(edges[0])}"
        elif values and values[0] > edges[-1]:
            empty = f"up to {plain(edges[-1])}"
        if empty:
            yield Finding(
                "edges beside the numbers",
                f"no record is {empty}: the numbers are {plain(values[0])} to {plain(values[-1])}",
                f"check {self.encoding.advice.edges}",
            )

    def _about_bounds(self, numeric: Numeric, values: NDArray[np.float64]) -> Iterator[Finding]:
        known = np.count_nonzero(~np.isnan(values))
        if beyond := numeric.beyond(values):
            yield Finding(
                "numbers beyond the bounds",
                f"{beyond} of {known} numbers lie beyond the bounds, {numeric.low:g} to "
                f"{numeric.high:g}, and count as the nearer bound",
                f"check {self.encoding.advice.bounds}",
            )

    def _about_words(self) -> Iterator[Finding]:
        encoding = self.encoding
        for text in self.column.texts:
            if encoding.is_na(text, self.name) and not encoding.is_code(text, self.name):
                what = f"{text!r} is missing, as in pandas"
                yield Finding("missing", what, f"{encoding.advice.keep_na} keeps it as a state")
        for text in self.counts:
            if inspection.says_missing(text, among_numbers=False):
                yield Finding(
                    "missing as a state",
                    f"{text!r} is taken as a state",
                    f"if it says missing: {self.encoding.advice.missing_code(text)}",
                )

    def _about_case(self, groups: Sequence[Sequence[str]]) -> Iterator[Finding]:
        if groups:
            shown = ", ".join(" and ".join(map(repr, group)) for group in groups[:SHOWN])
            more = f" and {len(groups) - SHOWN} more" if groups[SHOWN:] else ""
            yield Finding(
                "case",
                f"{shown}{more} differ only in case and are different states",
                f"{self.encoding.advice.ignore_case} makes them one",
            )
