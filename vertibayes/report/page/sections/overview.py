"""The overview: what was learned, its key figures, who may read the page, and the warnings."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import (
    Block,
    Bullets,
    Columns,
    Heading,
    Link,
    Name,
    Note,
    Paragraph,
    Section,
    Small,
    Text,
    Tiles,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import length, noun, plain, share
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import is_protected, short_rule, without_values
from vertibayes.report.page.sections.tiles import parties_of, tiles_of


def overview_section(results: Results) -> Section:
    """Return the section of the overview."""
    readers: list[Block] = [Heading(("Who may read this page",)), *_readers(results)]
    warnings: list[Block] = [Heading(("Warnings of the run",)), *_warnings(results)]
    return Section(
        "overview",
        "Overview",
        _learned(results),
        [
            Tiles(list(tiles_of(results))),
            Columns([readers, warnings]),
            Small(_run(results)),
        ],
    )


def _learned(results: Results) -> Text:
    """Say what was learned, from how many records of whom."""
    summary = results.summary
    people, variables = noun(summary["records"], "record"), noun(summary["variables"], "variable",
                                                                 length)  # fmt: skip
    if results.command == "learn":
        return (
            "A Bayesian network of ", *variables, " was learned from ", *people,
            _where(results.summary), *_of_sites(summary["sites"]), ".",
        )  # fmt: skip
    target = Name(summary["target"].text)
    if results.command == "nb":
        return (
            "A naive Bayes classifier, which predicts ", target, " from the other of ", *variables,
            ", was learned from ", *people, " of ", *parties_of(summary), ".",
        )  # fmt: skip
    return (
        "A classifier, which predicts ", target, " from the other of ", *variables,
        ", was learned from ", *people, " at ", *noun(summary["nodes"], "node"),
        " that send messages to their neighbours only; ", *noun(summary["edges"], "link"),
        " join the nodes.",
    )  # fmt: skip


def _where(summary: Entry) -> str:
    if summary["study"].exists:
        return ", which lie at "
    is_one = isinstance(summary["sites"].value, dict) and len(summary["sites"].value) == 1
    return " of " if is_one else ", whose columns were divided between "


def _of_sites(sites: Entry) -> Text:
    return noun(sites, "site", length)


def _run(results: Results) -> Text:
    """Say when and how the folder was written."""
    summary = results.summary
    version = summary["version"]
    pieces: Text = (
        "Written ", _date(summary["written"]), " by ", Name(f"vertibayes {results.command}"), ", ",
        f"version {version.text}" if version.exists else _absent("version"),
    )  # fmt: skip
    if summary["data"].exists:
        pieces += (", from ", Name(summary["data"].text))
    if summary["seed"].is_number:
        pieces += (", with the random seed ", plain(summary["seed"]))
    return (*pieces, ".")


def _date(written: Entry) -> str:
    if not written.exists:
        return _absent("time")
    return written.text.replace("T", " ").removesuffix("+00:00") + " UTC"


def _absent(what: str) -> str:
    return f"({what} missing in summary.json: an earlier release wrote no {what})"


def _readers(results: Results) -> Iterator[Block]:
    """Say who may read the page, from what was released."""
    summary = results.summary
    rule, promise = summary["release"]["rule"], summary["promise"]
    if not is_protected(summary):
        yield Note(_alone(summary))
        return
    if rule.exists:
        yield Note((
            "The analyst may read this page. The person who checks outputs decides who else may: "
            "the ", term("rule", "rule"), " of the release (", short_rule(rule), ") covers the "
            "counts and probabilities on this page. It does not cover the arrows of the network, "
            "the number of records, the names of variables, states and files, and which columns "
            "were left out.", *_approved(summary), " ",
            Link("released", "What was released, and to whom"), " says more.",
        ))  # fmt: skip
        return
    yield Note((
        "The analyst may read this page. Before others do, check what the noise does not cover: "
        "scores of test records, the number of records, and the names of variables, states and "
        "files. The promise holds against those whom it names: a party that reads this page can "
        "subtract its own noise.", *_approved(summary),
    ))  # fmt: skip
    yield Paragraph((Name(promise["sentence"].text), " ", *_privacy()))


def _approved(summary: Entry) -> Text:
    """Say that an approval names the analyst, and no other reader."""
    if not summary["study"]["contract"].exists:
        return ()
    return (
        " The owners of the sites approved what the analyst learns. They did not approve other "
        "readers.",
    )


def _privacy() -> Text:
    return ("See ", term("differential_privacy", "differential privacy"), ".")


def _alone(summary: Entry) -> Text:
    single = summary["opened"]["single_record"]
    only = (
        "Only the analyst may read this page, and those who may see the data: it shows exact "
        "numbers, without a rule that protects single persons. To give it to anybody else is a "
        "release that nobody has checked; without the counts, the probabilities still show them."
    )
    if not single["records"].is_number or not single["records"].value:
        return (only,)
    return (
        only, " At least ", *noun(single["records"], "record"), " (", share(single["share"]),
        ") can be singled out from the revealed tables.",
    )  # fmt: skip


def _warnings(results: Results) -> Iterator[Block]:
    warnings, protected = results.summary["warnings"], is_protected(results.summary)
    if not isinstance(warnings.value, list):
        yield Paragraph(("The summary of this run has no list of warnings: an earlier release "
                         "printed them only.",))  # fmt: skip
    elif not warnings.value:
        yield Paragraph(("The run printed no warning.",))
    else:
        texts = map(without_values, warnings.texts()) if protected else warnings.texts()
        yield Bullets([(Name(text),) for text in texts])
    if protected and warnings.value:
        yield Paragraph((
            "The warnings are shown without their numbers and without values that they quote, "
            "which neither a rule nor noise protects. The file summary.json has the whole texts.",
        ))  # fmt: skip
