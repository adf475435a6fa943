"""Which tables of a site's releases can be compared: verdicts over all runs of all studies.

A ledger has the names and sizes of tables, and no counts. Two tables that have variables in common
have a margin over them in common, and whoever has both tables can subtract one margin from the
other. Whether the difference tells something depends on the people and values of the two runs,
which the ledger does not have: so each such pair is for a person to judge, unless both tables have
noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from textwrap import fill
from typing import Any, NamedTuple

from vertibayes.report.ledger.statement import SHORT, digest_in_words, in_utc
from vertibayes.report.ledger.text import WIDTH
from vertibayes.words import counted
from vertibayes_protocols.ledger import Purpose, RevealedTable
from vertibayes_protocols.storage.ledger_entries import Entry, Tables

FORMAT = 1
FEW = 3  # margins of a line that are named
NOISE = "both have noise: their differences are noise too, and the site adds up what they cost"
BESIDE_NOISE = (
    "one has noise and the other has none: epsilon does not bound what the one without noise shows "
    "of the same people"
)
SAME = "if people and values are the same and none is missing, the difference is 0"
HIDING = (
    "if people and values are the same, a margin of one table can show a count that a rule hides "
    "in the other"
)
CHANGED = "otherwise it counts who came, left, was corrected or has a missing value"
LIMITS = (
    "The ledger has names and sizes of tables, no counts, and not which people and values a run "
    "had. So `review` says that two tables can be subtracted, not that the difference is small. "
    "Not compared: tables of one release (release/differences.csv has them) or of the free queries "
    "of one study, three and more tables together, tables without a common variable, winners, "
    "sums, models, and what left other sites alone or before this ledger began."
)


class Release(NamedTuple):
    """Tables that left at once by a rule, or in all free queries of a study."""

    at: str  # when the first of them left
    purpose: Purpose
    tables: list[RevealedTable]

    @property
    def title(self) -> str:
        """Which study it was, for whom and when."""
        study = digest_in_words(self.purpose.study)[:SHORT] or "no study"
        kind = "" if self.purpose.approval else ", not approved"
        return f"{in_utc(self.at)}, {study} for {self.purpose.analyst or 'nobody named'}{kind}"


class Pair(NamedTuple):
    """Two tables of two releases that have variables in common."""

    releases: tuple[int, int]  # their places
    tables: tuple[int, int]  # the place of each table in its release
    common: tuple[str, ...]
    verdict: str  # "review" or "pass"
    reason: str


def releases_of(entries: Iterable[Entry]) -> list[Release]:
    """Return what was released, the oldest first; tables of free queries by study."""
    releases, free = list[Release](), dict[Purpose, Release]()
    for at, purpose, noted in entries:
        if not isinstance(noted, Tables) or not noted.tables:
            continue
        if purpose.approval:
            releases.append(Release(at, purpose, list(noted.tables)))
        elif purpose in free:
            free[purpose].tables.extend(noted.tables)
        else:
            free[purpose] = Release(at, purpose, list(noted.tables))
            releases.append(free[purpose])
    return releases


def pairs_of(releases: Sequence[Release]) -> Iterator[Pair]:
    """Yield each pair of tables of two releases that have variables in common."""
    for (i, one), (j, other) in combinations(enumerate(releases), 2):
        names = [frozenset(table.variables) for table in other.tables]
        for at, table in enumerate(one.tables):
            own = frozenset(table.variables)
            for place, common in enumerate(map(own.intersection, names)):
                if common:
                    verdict = _verdict(table.rule, other.tables[place].rule)
                    yield Pair((i, j), (at, place), tuple(sorted(common)), *verdict)


def _verdict(one: str, other: str) -> tuple[str, str]:
    """Judge a pair by the rules, as the ledger has them: "" is exact."""
    noisy = sum("noise" in rule for rule in (one, other))
    if noisy:
        return ("pass", NOISE) if noisy == 2 else ("review", BESIDE_NOISE)
    same = SAME if {one, other} <= {"", "exact"} else HIDING
    return "review", f"{same}; {CHANGED}"


def overlaps_as_json(releases: Sequence[Release], pairs: Sequence[Pair]) -> Mapping[str, Any]:
    """Return all releases, their tables with verdicts, and all pairs, as JSON data."""
    review = {
        (release, table)
        for pair in pairs
        if pair.verdict == "review"
        for release, table in zip(pair.releases, pair.tables, strict=True)
    }
    return {
        "format": FORMAT,
        "limits": LIMITS,
        "releases": [
            {
                "at": release.at,
                **release.purpose._asdict(),
                "tables": [
                    {
                        "variables": list(table.variables),
                        "cells": table.cells,
                        "to": table.to,
                        "rule": table.rule or "exact",
                        "verdict": "review" if (i, j) in review else "pass",
                    }
                    for j, table in enumerate(release.tables)
                ],
            }
            for i, release in enumerate(releases)
        ],
        "pairs": [pair._asdict() for pair in pairs],
    }


def overlaps_in_words(releases: Sequence[Release], pairs: Sequence[Pair]) -> str:
    """Return the verdicts as text: by two releases and reason, with the commonest margins."""
    tables = sum(len(release.tables) for release in releases)
    verdicts = Counter(pair.verdict for pair in pairs)
    lines = [
        f"{counted(len(releases), 'release')} with {counted(tables, 'table')}; "
        f"{counted(len(pairs), 'pair')} of tables of two releases with a common variable: "
        f"{verdicts['review']:,} review, {verdicts['pass']:,} pass.",
        *(f"{at}. {release.title}: {counted(len(release.tables), 'table')}"
          for at, release in enumerate(releases, 1)),
    ]  # fmt: skip
    margins: dict[tuple[tuple[int, int], str, str], Counter[str]] = {}
    for pair in pairs:
        common = margins.setdefault((pair.releases, pair.verdict, pair.reason), Counter())
        common[", ".join(pair.common)] += 1
    for ((one, other), verdict, reason), common in margins.items():
        shown = "; ".join(f"{names} ({number:,})" for names, number in common.most_common(FEW))
        more = f"; and {len(common) - FEW:,} more" if len(common) > FEW else ""
        number = counted(common.total(), "pair")
        lines.append(
            f"{verdict.upper()} {one + 1} and {other + 1}: {number}: {reason}. "
            f"In common: {shown}{more}."
        )
    return "\n".join(fill(line, WIDTH) for line in [*lines, LIMITS]) + "\n"
