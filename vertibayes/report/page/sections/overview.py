"""The overview: what was learned, from what, by which version, and who may read the page."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import (
    Block,
    Bullets,
    Heading,
    Name,
    Note,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import count, decimals, length, noun, plain, share
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import is_protected, short_rule, without_values

SCORES = {
    "log_likelihood": "log-likelihood of the records",
    "bic": "BIC",
    "aic": "AIC",
    "k2": "K2 score",
}


def overview_section(results: Results) -> Section:
    """Return the section of the overview."""
    return Section(
        "overview",
        "Overview",
        ("This section says what was learned, from which data, and who may read this page. It does "
         "not show how good the model is.",),
        [
            Paragraph(_learned(results)),
            *_facts(results),
            Heading(("Who may read this page",)),
            *_readers(results),
            *_warnings(results),
        ],
    )  # fmt: skip


def _learned(results: Results) -> Text:
    """Say what was learned, from how many records of whom."""
    summary = results.summary
    people, variables = noun(summary["records"], "record"), noun(summary["variables"], "variable",
                                                                 length)  # fmt: skip
    if results.command == "learn":
        return (
            "A Bayesian network with ", *noun(summary["edges"], "arrow"), " between ", *variables,
            " was learned from ", *people, _where(results.summary), *_of_sites(summary["sites"]),
            ".",
        )  # fmt: skip
    target = Name(summary["target"].text)
    if results.command == "nb":
        return (
            "A naive Bayes classifier, which predicts ", target, " from the other of ", *variables,
            ", was learned from ", *people, " of ", *_parties(summary), ".",
        )  # fmt: skip
    return (
        "A classifier, which predicts ", target, " from the other of ", *variables,
        ", was learned from ", *people, " at ", *noun(summary["nodes"], "node"),
        " that send messages to their neighbours only; ", *noun(summary["edges"], "link"),
        " join the nodes.",
    )  # fmt: skip


def _where(summary: Entry) -> str:
    is_study = summary["study"].exists
    return ", which lie at " if is_study else ", whose columns were divided between "


def _of_sites(sites: Entry) -> Text:
    return noun(sites, "site", length)


def _parties(summary: Entry) -> Text:
    parties = summary["parties"]
    return (count(parties), " party" if parties.value == 1 else " parties")


def _facts(results: Results) -> Iterator[Block]:
    """Yield when and how, and the scores."""
    summary = results.summary
    version, written = summary["version"], summary["written"]
    rows: list[list[Text]] = [
        [("Written",), (_date(written),)],
        [("Version",), (f"vertibayes {version.text}" if version.exists else _absent("version"),)],
        [("Command",), (Name(f"vertibayes {results.command}"),)],
    ]
    if summary["data"].exists:
        rows.append([("Data",), (Name(summary["data"].text),)])
    if summary["seed"].is_number:
        rows.append([("Seed of random numbers",), (plain(summary["seed"]),)])
    yield Table("The run", ["what", "value"], rows)
    if summary["scores"].exists:
        scores = summary["scores"]
        rows = [[(title,), (decimals(scores[name]),)] for name, title in SCORES.items()]
        rows.append([("free parameters",), (count(scores["free_parameters"]),)])
        yield Table("Scores of the network in nats; a higher score is better, and scores are only "
                    "comparable for the same data", ["score", "value"], rows)  # fmt: skip


def _date(written: Entry) -> str:
    if not written.exists:
        return _absent("time")
    return written.text.replace("T", " ").removesuffix("+00:00") + " UTC"


def _absent(what: str) -> str:
    return f"missing in summary.json: an earlier release wrote no {what}"


def _readers(results: Results) -> Iterator[Block]:
    """Say who may read the page, from what was released."""
    summary = results.summary
    rule, promise = summary["release"]["rule"], summary["promise"]
    if not is_protected(summary):
        yield Note(_alone(summary))
        return
    if rule.exists:
        yield Paragraph((
            "The counts and probabilities on this page follow from tables that were released by a "
            "rule: ", short_rule(rule), ". The section \u201cWhat was released, and to whom\u201d "
            "says what the rule protects, and what it does not.",
        ))  # fmt: skip
        yield Note((
            "The rule does not cover the structure of the network, the number of records, the "
            "names of variables, states and files, and which columns were left out. The person who "
            "checks outputs decides who may read this page beside the analyst.",
            *_approved(summary),
        ))  # fmt: skip
        return
    yield Paragraph((
        "The model is protected by noise. ", Name(promise["sentence"].text),
    ))  # fmt: skip
    yield Note((
        "Scores of test records, the number of records, and the names of variables, states and "
        "files have no noise. Check them before others read this page. The promise holds against "
        "those whom it names: a party that reads this page can subtract its own noise.",
        *_approved(summary),
    ))  # fmt: skip


def _approved(summary: Entry) -> Text:
    """Say that an approval names the analyst, and no other reader."""
    if not summary["study"]["contract"].exists:
        return ()
    return (
        " The owners of the sites approved what the analyst learns. They did not approve other "
        "readers.",
    )


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
        only, " The revealed tables have ", *noun(single["cells"], "count"), " of 1, in ",
        *noun(single["tables"], "table"), ". At least ", *noun(single["records"], "record"), " (",
        share(single["share"]), ") can be singled out from them.",
    )  # fmt: skip


def _warnings(results: Results) -> Iterator[Block]:
    yield Heading(("Warnings",))
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
