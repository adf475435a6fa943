"""The verdicts on released tables: those first about which a person must decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from vertibayes.report.page.content import (
    Block,
    Fold,
    Heading,
    Name,
    Paragraph,
    Piece,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import count, noun
from vertibayes.report.page.results import Results
from vertibayes.report.release.texts import VERDICTS

Row: TypeAlias = Mapping[str, str]

ORDER = ("fail", "review", "pass")  # what needs a decision comes first
SHOWN = ("cells", "smallest count above 0", "small cells", "small differences")
NOT_SAID = "dominance"  # a check that applies to no count, as the text above the tables says
MANY = 5  # tables with one reason, which are then listed in one sentence


def needs_review(release: Entry) -> Text:
    """Say how many tables have each verdict, those that need a decision first."""
    return (*noun(release["tables"], "table"), ": ", *_tally(release["verdicts"]), ".")


def _tally(verdicts: Entry) -> Text:
    pieces: list[Piece] = []
    for name, entry in sorted(verdicts.items(), key=lambda each: _rank(each[0])):
        pieces += [", ", count(entry), " ", term("review", name)]
    return tuple(pieces[1:]) if pieces else ("no verdict",)


def verdict_blocks(results: Results, release: Entry) -> Iterator[Block]:
    """Yield the verdict of each released table."""
    if not release.exists:
        return
    yield Heading(("Verdicts: tables about which a person must decide",))
    yield Paragraph((
        *noun(release["tables"], "table"), " with ", *noun(release["cells"], "count"),
        " were released: ", *_tally(release["verdicts"]), ". ",
        *noun(release["small_cells"], "small count"), " and ",
        *noun(release["differences"], "small difference"), " are listed in release/.",
        *((" The ", term("threshold"), " is ", count(release["threshold"]), ".")
          if release["threshold"].exists else ()),
    ))  # fmt: skip
    objected = [row for row in results.release if row.get("verdict") != "pass"]
    yield from _objected(sorted(objected, key=lambda row: _rank(row.get("verdict", ""))))
    passed = [row for row in results.release if row.get("verdict") == "pass"]
    if passed:
        caption = "Tables to which no check objects"
        yield Fold((f"{caption} ({len(passed):,})",), [_table(caption, passed)])
    yield Fold(("What the verdicts mean",), [Paragraph((text,)) for text in VERDICTS])


def _rank(verdict: str) -> int:
    return ORDER.index(verdict) if verdict in ORDER else 0


def _objected(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the tables that need a decision; many with one reason in one sentence."""
    if not rows:
        yield Paragraph(("No table needs a decision.",))
        return
    reasons = {(row.get("verdict", ""), _reasons(row)) for row in rows}
    caption = "Tables that need a decision, from release/tables.csv"
    if len(rows) < MANY or len(reasons) > 1:
        yield _table(caption, rows)
        return
    verdict, reason = reasons.pop()
    yield Paragraph((
        f"All {len(rows):,} tables have the verdict ", term("review", verdict),
        " for the same reason: ", Name(reason.replace("\n", "; ")), ".",
    ))  # fmt: skip
    yield Fold((f"These tables ({len(rows):,})",), [_table(caption, rows)])


def _table(caption: str, rows: Sequence[Row]) -> Table:
    cells: list[list[Text]] = [
        [
            _family(row),
            (Name(row.get("verdict", "")),),
            (Name(_reasons(row)),),
            *((Name(row.get(name) or "none"),) for name in SHOWN),
        ]
        for row in rows
    ]
    return Table(caption, ["table", "verdict", "reasons", *SHOWN], cells)


def _family(row: Row) -> Text:
    parents = row.get("parents", "")
    given: Text = (" given ", Name(parents)) if parents else ()
    return (Name(row.get("child", "")), *given)


def _reasons(row: Row) -> str:
    """Return the reasons of a verdict, one on each line."""
    reasons = row.get("reasons", "").split("; ")
    return "\n".join(text for text in reasons if not text.startswith(NOT_SAID))
