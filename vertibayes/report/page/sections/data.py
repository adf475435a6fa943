"""The data as they were read: states, missing values, bounds, sites, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import (
    Block,
    Fold,
    Heading,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import count, listed, noun, plain, value
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import is_protected, without_values
from vertibayes_protocols.site.binning import bins_of

MOST_STATES = 60  # of a variable in the table
MOST_ROWS = 2_000


def data_section(results: Results) -> Section:
    """Return the section of the data."""
    return Section(
        "data",
        "The data as they were read",
        ("Each variable has the states that the sites have read, or bounds if it stayed a number. "
         "This section does not show how many records have each state; the probabilities do.",),
        [
            *_variables(results),
            *_left_out(results.summary["left_out"], is_protected(results.summary)),
            *_cuts(results.summary["discretization"]),
            *_people(results.summary["alignment"]),
        ],
    )  # fmt: skip


def _variables(results: Results) -> Iterator[Block]:
    sites = results.sites
    heads = ["variable", "kind", "states or bounds", "missing values", *["site"] * bool(sites)]
    variables = list(results.summary["variables"].items())
    rows: list[list[Text]] = [
        [
            (Name(name),),
            (_kind(entry),),
            _states(entry),
            (_missing(entry["missing"]),),
            *([(Name(sites.get(name, "")),)] if sites else []),
        ]
        for name, entry in variables[:MOST_ROWS]
    ]
    if any(_kind(entry) == "number in bins" for _, entry in variables):
        yield Paragraph((
            "A number in bins has ranges as states: le_40 is up to 40, from_40_to_60 is above 40 "
            "and up to 60, gt_60 is above 60, and eq_0 is 0 alone.",
        ))  # fmt: skip
    yield Table("Variables", heads, rows)
    if len(variables) > MOST_ROWS:
        yield Paragraph((f"The table has the first {MOST_ROWS:,} variables.",))


def _kind(entry: Entry) -> str:
    if entry["bounds"].exists:
        return "number"
    return "number in bins" if bins_of(entry["states"].texts()) is not None else "states"


def _states(entry: Entry) -> Text:
    if entry["bounds"].exists:
        return ("from ", plain(entry["bounds"][0]), " to ", plain(entry["bounds"][1]))
    states = entry["states"].texts()
    more: Text = (f", and {len(states) - MOST_STATES:,} more in summary.json",)
    return (*listed(states[:MOST_STATES]), *(more if len(states) > MOST_STATES else ()))


def _missing(entry: Entry) -> str:
    if not entry.exists:
        return "not known"
    return "some are missing" if entry.value else "none"


def _left_out(left_out: Entry, protected: bool) -> Iterator[Block]:
    yield Heading(("Left out",))
    if not isinstance(left_out.value, dict):
        yield Paragraph(("The summary of this run does not list them: the warnings may, or an "
                         "earlier release wrote it.",))  # fmt: skip
    elif not left_out.value:
        yield Paragraph(("No column was left out, except those that an option excluded.",))
    else:
        rows: list[list[Text]] = [
            [(Name(name),), (Name(without_values(reason.text) if protected else reason.text),)]
            for name, reason in left_out.items()
        ]
        yield Table("Columns that were left out", ["column", "reason"], rows)


def _cuts(cuts: Entry) -> Iterator[Block]:
    """Yield where MDLP cut numbers, and what that revealed."""
    if not cuts.exists:
        return
    yield Heading(("Cuts of numbers",))
    yield Paragraph((
        "Numbers were cut into bins so that the bins differ in ", Name(cuts["class"].text),
        " (MDLP). For this, ", *noun(cuts["tables"], "table"), " with ",
        *noun(cuts["cells"], "cell"), " were revealed to the analyst, in ",
        *noun(cuts["rounds"], "round"), " and ", count(cuts["bytes"]), " bytes.",
    ))  # fmt: skip
    rows: list[list[Text]] = [[(Name(name),), value(edges)] for name, edges in cuts["cuts"].items()]
    yield Table("Cuts by MDLP", ["variable", "cuts"], rows)


def _people(alignment: Entry) -> Iterator[Block]:
    """Say who is in the study."""
    if not alignment.exists:
        return
    yield Heading(("Who is in the study",))
    if alignment["kept"].value is True:
        yield Paragraph(("The people were matched in an earlier session of this study.",))
        return
    yield Paragraph((
        "The sites' lists of people differ. The study is of the ",
        *noun(alignment["people"], "person"), " whom all sites hold. The analyst learned how many "
        "people are in which lists; of a single list the number includes padding.",
    ))  # fmt: skip
    rows: list[list[Text]] = [
        [listed(each["sites"].texts()), (count(each["people"]),)]
        for each in alignment["lists"].each()
    ]
    yield Fold(("People by list",), [Table("People by list", ["in the lists of", "people"], rows)])
