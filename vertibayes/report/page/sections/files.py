"""The files beside the page, and entries of the summary that no other section has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vertibayes.report.page.content import (
    Block,
    Fold,
    Name,
    Number,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import plain
from vertibayes.report.page.results import Results
from vertibayes.report.page.sections.words import PARTS

KNOWN = {
    "model.json": "the network, for this project",
    "model.bif": "the network, for pgmpy, pyAgrum and others",
    "model.bifxml": "the network, for programs that read XMLBIF",
    "naive_bayes.json": "the classifier, with numbers",
    "structure.json": "the structure, and what is known of its arrows",
    "structure.svg": "a drawing of the structure",
    "summary.json": "the numbers of this page",
    "counts.json": "the counts of the learned tables",
    "ledger.json": "each table that was revealed, and to whom",
    "validation.json": "the validations, with the points of all curves",
    "calibration.json": "errors and losses by round, and by node",
    "calibration.svg": "a picture of them",
    "network.json": "the network of the nodes",
    "network.svg": "a drawing of the nodes' network",
    "predictions.csv": "predictions of the sites' records",
    "synthetic.csv": "synthetic records",
    "release/": "each released table with its verdict, for the person who checks what leaves",
    "report.html": "this page",
}


def files_section(results: Results, others: Iterable[Section]) -> Section:
    """Return the section of the files."""
    rows: list[list[Text]] = [[(Name(n),), (_what(n),)] for n in results.names]
    shown = {number.key for section in others for number in numbers_of(section)}
    return Section(
        "files",
        "Files",
        ("The folder of the results has these files when the page is made. The page does not show "
         "all of their content.",),
        [Table("Files of the folder", ["file", "what it has"], rows), *_further(results, shown)],
    )  # fmt: skip


def _what(name: str) -> str:
    if name.startswith("validation-"):
        return "a picture of a validation"
    if name.startswith("ledger-"):
        return "what an earlier run revealed before it failed"
    return KNOWN.get(name, "another file")


def _further(results: Results, shown: set[str]) -> Iterator[Block]:
    """Yield the numbers of the summary that no section has."""
    rows: list[list[Text]] = [
        [(Name(entry.pointer),), (plain(entry),)]
        for entry in leaves(results.summary)
        if entry.key not in shown
    ]
    if rows:
        yield Fold(("Other numbers of summary.json",), [
            Paragraph(("The sections above do not use these numbers.",)),
            Table("Other numbers of summary.json", ["where", "value"], rows),
        ])  # fmt: skip


def leaves(entry: Entry) -> Iterator[Entry]:
    """Yield all numbers inside an entry."""
    if entry.is_number:
        yield entry
    for _, inside in entry.items():
        yield from leaves(inside)
    for inside in entry.each():
        yield from leaves(inside)


def numbers_of(content: object) -> Iterator[Number]:
    """Yield all numbers inside parts of the page."""
    if isinstance(content, Number):
        yield content
    elif isinstance(content, list | tuple):
        for part in content:
            yield from numbers_of(part)
    else:
        for name in PARTS:
            inside = getattr(content, name, None)
            if isinstance(inside, list | tuple):
                yield from numbers_of(inside)
