"""What the run cost: seconds by phase, rounds, and bytes by link."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import Block, Fold, Name, Paragraph, Section, Table, Text
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import bytes_of, count, noun, seconds
from vertibayes.report.page.results import Results

PHASES = {
    "commit": "to mask the columns",
    "structure": "to learn the structure",
    "parameters": "to learn the probabilities",
    "strengths": "to find the strengths of the arrows",
    "validation": "to validate",
    "test": "to predict the test records",
    "nodes": "to calibrate the nodes",
    "pooled": "to calibrate all records in one place, for comparison",
    "total": "in all",
}
MOST_LINKS = 1_000


def cost_section(results: Results) -> Section:
    """Return the section of the cost."""
    summary = results.summary
    lead: Text = (
        "This section says how long each part of the run took, and how much the parties sent. It "
        "does not show what the same run costs on other machines or links.",
    )
    return Section(
        "cost",
        "Cost",
        lead,
        [*_forecast(summary), *_seconds(summary["seconds"]), *_sent(summary), *_asked(summary)],
    )


def _forecast(summary: Entry) -> Iterator[Block]:
    if summary["forecast"].exists:
        yield Paragraph(("The forecast before the run was: ", Name(summary["forecast"].text), "."))


def _seconds(entries: Entry) -> Iterator[Block]:
    rows: list[list[Text]] = [
        [(PHASES.get(name, name),), (seconds(entry),)] for name, entry in entries.items()
    ]
    yield Table("Seconds by phase", ["phase", "seconds"], rows)


def _sent(summary: Entry) -> Iterator[Block]:
    """Yield rounds and bytes, by link or by sender."""
    sent = summary["bytes"]
    if not sent.exists:
        return
    by = f" by {sent['sent_by'].text}" if isinstance(sent["sent_by"].value, str) else ""
    yield Paragraph((
        bytes_of(sent["total"]), f" were sent{by} in ", *noun(summary["rounds"], "round"),
        " of messages.",
    ))  # fmt: skip
    links = sent["links"] if sent["links"].exists else sent["sent_by"]
    rows: list[list[Text]] = [[(Name(name),), (bytes_of(entry),)] for name, entry in links.items()]
    if rows:
        title = "Bytes by link" if sent["links"].exists else "Bytes by sender"
        yield Fold((title,), [Table(title, ["who", "sent"], rows[:MOST_LINKS])])


def _asked(summary: Entry) -> Iterator[Block]:
    """Say how often tables were asked for."""
    if summary["calls"].is_number and summary["queries"].is_number:
        yield Paragraph((
            "The analyst asked for tables in ", *noun(summary["calls"], "call"), ", with ",
            count(summary["queries"]), " queries.",
        ))  # fmt: skip
    elif summary["calls"].is_number:
        yield Paragraph(("The analyst asked in ", *noun(summary["calls"], "call"), "."))
