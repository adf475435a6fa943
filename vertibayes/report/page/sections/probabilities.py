"""The probabilities of the model: a table for each variable, with the counts that are known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from vertibayes.report.counts import IN_WORDS, RELEASED
from vertibayes.report.page.content import (
    Block,
    Columns,
    Cut,
    Fold,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import count, decimals, listed, noun
from vertibayes.report.page.numbers import probability as in_percent
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import cut_below
from vertibayes.report.page.sections.class_tables import class_tables

MOST_CELLS = 500  # of one table of the page
MOST_ON_PAGE = 4_000  # cells of all tables


def probabilities_section(results: Results) -> Section:
    """Return the section of the probabilities."""
    model = results.files["model.json"]
    numbers = results.files["naive_bayes.json"]
    lead: Text = (
        "Each table has the probabilities of one variable, for each combination of the values of "
        "the variables from which an arrow points to it; a click on a variable in the network "
        "shows the same table. The tables do not show how certain these probabilities are; few "
        "records make them uncertain.",
    )
    if numbers.exists and not model.exists:
        return Section("probabilities", "Probabilities", lead, list(class_tables(numbers)))
    if not model.exists:
        missing = Paragraph(("The folder has no model.json.",))
        return Section("probabilities", "Probabilities", lead, [missing])
    tables: list[list[Block]] = [[table] for table in _tables(results, model)]
    blocks = [*_about(results), Columns(tables, narrow=True)]
    return Section("probabilities", "Probabilities", lead, blocks)


def _about(results: Results) -> Iterator[Block]:
    """Yield what the counts are, and which combinations no record has."""
    counts, summary = results.files["counts.json"], results.summary
    below, pseudo = cut_below(counts), summary["pseudo_count"]
    if pseudo.is_number:
        yield Paragraph((
            "To each count ", decimals(pseudo, 1), " was added before the counts of a row were "
            "divided by their sum (the ", term("pseudo_count"), ").",
        ))  # fmt: skip
    if below is not None:
        yield Paragraph((
            RELEASED, " The rule cut those below ", count(counts["fewest"]), ": such a count is "
            "grey, and has the mark ", _cut(below), ". The probabilities use estimates of these "
            "counts.",
        ))  # fmt: skip
    elif counts.exists:
        yield Paragraph((IN_WORDS.get(counts["kind"].text, "The counts are of an unknown kind."),))
    else:
        yield Paragraph(("The folder has no counts.json, so that counts are not shown.",))
    unseen = list(summary["unseen_parent_configurations"].items())
    for name, entry in unseen:
        yield Paragraph((
            "Of ", Name(name), ", ", *noun(entry, "row"), " had no record: all states have the "
            "same probability there.",
        ))  # fmt: skip


def _tables(results: Results, model: Entry) -> Iterator[Block]:
    """Yield a table for each variable, as far as the page has room."""
    states = {node["name"].text: node["states"].texts() for node in model["nodes"].each()}
    left = MOST_ON_PAGE
    for node in model["nodes"].each():
        rows = node["probabilities"].value
        cells = sum(map(len, rows)) if isinstance(rows, list) else 0
        parents = node["parents"].texts()
        given: Text = (" given ", *listed(parents)) if parents else ()
        title: Text = (Name(node["name"].text), *given)
        if cells > min(left, MOST_CELLS):
            yield Paragraph((*title, f": the table has {cells:,} cells, and is in model.json."))
            continue
        left -= cells
        yield Fold(title, [_table(results, node, states, parents)])


def _table(
    results: Results, node: Entry, states: dict[str, list[str]], parents: list[str]
) -> Table:
    """Return the table of a variable."""
    name, counts = node["name"].text, results.files["counts.json"]
    below, own = cut_below(counts), counts["families"][node["name"].text]["counts"]
    rows: list[list[Text]] = []
    combinations = product(*(states.get(parent, [""]) for parent in parents))
    for at, given in enumerate(combinations):
        probabilities, numbers = node["probabilities"][at], own[at]
        cells = [
            _cell(each, numbers[place], below) for place, each in enumerate(probabilities.each())
        ]
        heads: list[Text] = [(Name(state),) for state in given] or [("all records",)]
        rows.append([*heads, *cells])
    return Table(f"Probabilities of {name}", [*(parents or ["given"]), *states.get(name, [])], rows)


def _cell(probability: Entry, number: Entry, below: int | None) -> Text:
    """Return a probability, and the count beside it."""
    shown = in_percent(probability)
    if not number.is_number:
        return (shown,)
    if below is not None and number.value < below:
        return (shown, " ", _cut(below))
    return (shown, " (", count(number), ")")


def _cut(below: int) -> Cut:
    return Cut(f"(fewer than {below})")
