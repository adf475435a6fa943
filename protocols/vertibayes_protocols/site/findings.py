"""Findings about a site's columns: which are left out, and which may mean something else.

Findings quote values of the data: they are for the site, or for the person who pools the data.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vertibayes_protocols.errors import DataError

IDENTIFIERS = "identifiers"  # the kind of the finding that a column names records
NAMES = "{names}"  # in a remedy, stands for the columns
NAME = "{name}"  # for one column: where a remedy takes one at a time, and COLUMN for several


class Finding(NamedTuple):
    """A finding about a column."""

    kind: str  # the finding in one or two words, without values, for logs
    what: str  # the finding, with values
    remedy: str = ""  # what to do about it, with `NAMES` or `NAME`


class UnsuitableColumnError(DataError):
    """A column cannot be used as it is."""

    def __init__(self, finding: Finding, source: str, name: str, advice: Advice) -> None:
        self.finding = finding
        super().__init__(f"{source}: the column {name!r}: {_sentence(finding, [name], advice)}")


@dataclass(frozen=True)
class Advice:
    """The remedies that findings advise: by default options of the command line.

    ``{names}`` stands for columns, ``{name}`` for one column, ``{code}`` for a value and
    ``{count}`` for a number.
    """

    exclude: str = "--exclude {names}"
    categorical: str = "--categorical {names}"
    ignore_case: str = "--ignore-case {names}"
    more_states: str = "--max-states {count}"
    cut: str = "--cut {name}=EDGE,EDGE"
    edges: str = "--cut"
    bounds: str = "--bounds"
    identifies: str = "--id-column {name}"
    missing: str = "--missing-codes {code}"
    keep_na: str = "--keep-na"
    rare: str = ""  # of rare states, which the command line keeps
    declared: str = ""  # of identifiers with declared states or edges, which it keeps too
    strict: str = "--strict"
    for_shell: bool = True

    def quoted(self, *texts: str) -> str:
        """Return names or values, quoted as the command line or the file needs them."""
        if self.for_shell:
            return shlex.quote(",".join(f'"{t}"' if "," in t else t for t in texts))
        return ", ".join('"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"' for t in texts)

    def quoted_name(self, name: str) -> str:
        """Return one name, where no list of names is read: its commas need no quotes."""
        return shlex.quote(name) if self.for_shell else self.quoted(name)

    def missing_code(self, text: str) -> str:
        """Return the remedy that declares a value as missing."""
        return self.missing.replace("{code}", self.quoted(text))

    def states(self, count: int) -> str:
        """Return the remedy that allows a number of states."""
        return self.more_states.replace("{count}", str(count))

    def of(self, template: str, names: Sequence[str]) -> str:
        """Return a remedy for columns."""
        one = "COLUMN" if len(names) > 1 else self.quoted_name(names[0])
        return template.replace(NAMES, self.quoted(*names)).replace(NAME, one)


COMMAND_LINE = Advice()


@dataclass(frozen=True)
class Report:
    """The findings about a site's columns."""

    source: str = ""  # the file or site
    columns: int = 0  # the number of columns that were read
    left_out: Mapping[str, Finding] = field(default_factory=dict)
    warnings: Sequence[tuple[str, Finding]] = ()  # the other findings, each with its column
    advice: Advice = COMMAND_LINE  # the remedies that the findings advise
    empty_rows: int = 0

    def message(self) -> str | None:
        """Return all findings as one message of several lines; None without findings."""
        parts, lines = [], []
        if self.left_out:
            are = "is" if len(self.left_out) == 1 else "are"
            parts.append(f"{len(self.left_out)} of {_columns(self.columns)} {are} left out")
            lines += self._lines(list(self.left_out.items()), "left out: ")
        if self.warnings:
            parts.append(f"{_columns(len({name for name, _ in self.warnings}))} to check")
            lines += self._lines(self.warnings, "")
        if self.empty_rows:
            some = "row is" if self.empty_rows == 1 else f"{self.empty_rows} rows are"
            parts.append(f"the last {some} empty in every column, and counted as records")
        return "\n".join([f"{self.source}: {', '.join(parts)}", *lines]) if parts else None

    def refusal(self) -> str:
        """Return the error about the columns that cannot be used, for a strict reader."""
        names = list(self.left_out)
        remedy = self.advice.of(self.advice.exclude, names)
        head = f"{self.source}: {_columns(len(names))} cannot be used; leave out with {remedy}"
        if len(names) == self.columns:
            head = f"{self.source}: no column can be used"
        return "\n".join([head, *self._lines(list(self.left_out.items()), "")])

    def identifiers(self, names: Collection[str]) -> list[tuple[str, str]]:
        """Return which of some columns name records although they are variables, and the advice."""
        return [
            (name, _sentence(finding, [name], self.advice))
            for name, finding in self.warnings
            if finding.kind == IDENTIFIERS and name in names
        ]

    def reason(self, name: str) -> str:
        """Return why a column was left out."""
        return _sentence(self.left_out[name], [name], self.advice)

    def _lines(self, findings: Sequence[tuple[str, Finding]], before: str) -> list[str]:
        """Return a line for each different finding, with all its columns: none begins another."""
        columns: dict[Finding, list[str]] = {}
        for name, finding in findings:
            columns.setdefault(finding, []).append(name)
        lines = (
            f"  {', '.join(names)}: {before}{_sentence(finding, names, self.advice)}"
            for finding, names in columns.items()
        )
        return [line.replace("\n", " ") for line in lines]


def _sentence(finding: Finding, names: Sequence[str], advice: Advice) -> str:
    remedy = advice.of(finding.remedy, names)
    return f"{finding.what}; {remedy}" if remedy else finding.what


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
