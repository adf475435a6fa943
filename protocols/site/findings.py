"""What a site finds in its columns: which are left out, which may mean something else.

Findings quote values of the data: they are for the site, and for whoever pools the data.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from protocols.errors import DataError

NAMES = "{names}"  # in a remedy: the columns that it is for


class Finding(NamedTuple):
    """What is found in a column.

    Parameters
    ----------
    kind : str
        A word or two that quote no value: for logs.
    what : str
        What is found, with values.
    remedy : str
        What to do about it; ``{names}`` stands for the columns. Empty if nothing can be done.
    """

    kind: str
    what: str
    remedy: str = ""


class UnsuitableColumnError(DataError):
    """A column that tells nothing as it is."""

    def __init__(self, finding: Finding, source: str, name: str, advice: Advice) -> None:
        self.finding = finding
        super().__init__(f"{source}: the column {name!r}: {_sentence(finding, [name], advice)}")


@dataclass(frozen=True)
class Advice:
    """What findings advise, in the words of where the encoding is set.

    ``{names}`` stands for columns, ``{code}`` for a value, ``{count}`` for a number; the defaults
    are the command line's.
    """

    exclude: str = "--exclude {names}"
    categorical: str = "--categorical {names}"
    ignore_case: str = "--ignore-case {names}"
    more_states: str = "--max-states {count}"
    cut: str = "--cut COLUMN=EDGE,EDGE"
    edges: str = "--cut"
    identifies: str = "--id-column {names}"
    missing: str = "--missing-codes {code}"
    strict: str = "--strict"
    for_shell: bool = True

    def quoted(self, *texts: str) -> str:
        """Return names or values as they are typed where the encoding is set."""
        if self.for_shell:
            return shlex.quote(",".join(f'"{t}"' if "," in t else t for t in texts))
        return ", ".join('"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"' for t in texts)

    def missing_code(self, text: str) -> str:
        """Return how a value is named as missing."""
        return self.missing.replace("{code}", self.quoted(text))

    def states(self, count: int) -> str:
        """Return how so many states are allowed."""
        return self.more_states.replace("{count}", str(count))

    def of(self, template: str, names: Sequence[str]) -> str:
        """Return a remedy for columns."""
        return template.replace(NAMES, self.quoted(*names))


COMMAND_LINE = Advice()


@dataclass(frozen=True)
class Report:
    """What was found in a site's columns.

    Parameters
    ----------
    source : str
        The file or site.
    columns : int
        How many were looked at.
    left_out : mapping of str to Finding
        Why columns are left out.
    doubts : sequence of (str, Finding)
        What else was found: the column, and what.
    empty_rows : int, default=0
        How many rows at the end are empty in all columns, as spreadsheets write them.
    """

    source: str = ""
    columns: int = 0
    left_out: Mapping[str, Finding] = field(default_factory=dict)
    doubts: Sequence[tuple[str, Finding]] = ()
    advice: Advice = COMMAND_LINE
    empty_rows: int = 0

    def message(self) -> str | None:
        """Return all findings as one message of several lines, None if nothing was found."""
        parts, lines = [], []
        if self.left_out:
            are = "is" if len(self.left_out) == 1 else "are"
            parts.append(f"{len(self.left_out)} of {_columns(self.columns)} {are} left out")
            lines += self._lines(list(self.left_out.items()), "left out: ")
        if self.doubts:
            doubted = len({name for name, _ in self.doubts})
            parts.append(f"{_columns(doubted)} to check")
            lines += self._lines(self.doubts, "")
        if self.empty_rows:
            some = "row is" if self.empty_rows == 1 else f"{self.empty_rows} rows are"
            parts.append(f"the last {some} empty in every column, and counted as records")
        return "\n".join([f"{self.source}: {', '.join(parts)}", *lines]) if parts else None

    def refusal(self) -> str:
        """Return the error that a strict reader makes of the columns to be left out."""
        names = list(self.left_out)
        remedy = self.advice.of(self.advice.exclude, names)
        head = f"{self.source}: {_columns(len(names))} cannot be used; leave out with {remedy}"
        return "\n".join([head, *self._lines(list(self.left_out.items()), "")])

    def reason(self, name: str) -> str:
        """Return why a column was left out."""
        return _sentence(self.left_out[name], [name], self.advice)

    def _lines(self, found: Sequence[tuple[str, Finding]], before: str) -> list[str]:
        """Return a line for each finding, with all columns that have it."""
        columns: dict[Finding, list[str]] = {}
        for name, finding in found:
            columns.setdefault(finding, []).append(name)
        return [
            f"  {', '.join(names)}: {before}{_sentence(finding, names, self.advice)}"
            for finding, names in columns.items()
        ]


def _sentence(finding: Finding, names: Sequence[str], advice: Advice) -> str:
    remedy = advice.of(finding.remedy, names)
    return f"{finding.what}; {remedy}" if remedy else finding.what


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
