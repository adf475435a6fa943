"""What was released, to whom, under which approval, and what single persons risk by it."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.ledger.statement import digest_in_words
from vertibayes.report.page.content import (
    Block,
    Bullets,
    Fact,
    Facts,
    Fold,
    Heading,
    Link,
    Name,
    Note,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import count, decimals, listed, noun, plain, share, value
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import is_protected, not_stopped, rule_sentence, short_rule
from vertibayes.report.page.sections.ledger import ledger_blocks, lines_of, receivers_of
from vertibayes.report.page.sections.verdicts import needs_review, verdict_blocks
from vertibayes.report.release.texts import TRACING_LIMITS


def released_section(results: Results) -> Section:
    """Return the section of what was released."""
    summary = results.summary
    return Section(
        "released",
        "What was released, and to whom",
        ("This section says what left the parties in this run, and under which rule and approval. "
         "It does not show what other runs on the same data released.",),
        [
            Facts(list(_facts(results))),
            *verdict_blocks(results, summary["release"]),
            *_rule(summary),
            *_choices(summary["choices"]),
            *_tracing(summary["release"]["tracing"]),
            *ledger_blocks(results.files["ledger.json"]),
            *_study(summary["study"]),
        ],
    )  # fmt: skip


def _facts(results: Results) -> Iterator[Fact]:
    """Yield what an officer asks first."""
    summary = results.summary
    yield Fact(("What left",), list(_opened(summary)))
    yield Fact(("To whom",), [Paragraph(_receivers(results))])
    yield Fact(("Under which approval",), [_approval(summary)])
    yield Fact(("Under which rule",), [Paragraph(_by_rule(summary))])
    yield Fact(("What is not protected",), [_unprotected(summary)])
    if summary["release"]["verdicts"].exists:
        yield Fact(("Verdicts",), [Paragraph(needs_review(summary["release"]))])


def _opened(summary: Entry) -> Iterator[Block]:
    """Say how many tables and cells were revealed, and how many count one record."""
    opened, choices = summary["opened"], summary["choices"]
    if not opened.exists:
        yield Paragraph(("The summary counts no tables. The nodes of a calibration send each other "
                         "statistics of their models, and no table.",))  # fmt: skip
        return
    yield Paragraph((
        *noun(opened["tables"], "table"), " with ", *noun(opened["cells"], "count"),
        *((", and the winners of ", *noun(choices["decisions"], "choice"),
           " when the arrows were learned") if choices.exists else ()), ".",
    ))  # fmt: skip
    single = opened["single_record"]
    if single.exists:
        yield Paragraph(_single(summary["release"]["rule"], single))


def _single(rule: Entry, single: Entry) -> Text:
    """Say how many counts are of one record, as far as the rule lets them be seen."""
    found: Text = (
        *noun(single["cells"], "count"), " in ", *noun(single["tables"], "table"), ", and ",
        *noun(single["records"], "record"), " (", share(single["share"]), ")",
    )  # fmt: skip
    if rule["kind"].text in ("laplace", "gaussian"):
        return ("The check for counts of exactly one record does not apply to counts with noise "
                "(it lists ", *found, ").")  # fmt: skip
    if rule["kind"].value == "cut":
        return ("The check for released counts of exactly one record lists ", *found, ".")
    return ("Of these counts, some are of exactly one record: ", *found, " can be singled out at "
            "least. Differences of tables may single out more.")  # fmt: skip


def _receivers(results: Results) -> Text:
    """Say who learned the tables, and where the ledger says the rest."""
    names = receivers_of(lines_of(results.files["ledger.json"]) or [])
    if not names:
        return ("The folder does not say who learned tables.",)
    more: Text = (" learned the tables. The ", term("ledger"), " below says who learned what else.")
    return (*listed(names), *more)


def _approval(summary: Entry) -> Block:
    """Say under which approval the run was made."""
    study = summary["study"]
    if not study.exists:
        return Paragraph(("All data were in one process, so that no approval was necessary.",))
    if not study["contract"].exists:
        return Note(("The sites answered free queries: no approval of this study was asked for.",))
    sites: Text = (" They are ", *listed(name for name, _ in summary["sites"].items()), ".")
    return Paragraph((
        "All sites approved this study.", *(sites if summary["sites"].value else ()), " The ",
        term("digest"), " that their owners compared is ",
        Name(digest_in_words(study["contract"].text)), ".",
    ))  # fmt: skip


def _by_rule(summary: Entry) -> Text:
    rule, promise = summary["release"]["rule"], summary["promise"]
    if rule.exists:
        return ("Rule ", Name(rule["kind"].text), ": ", short_rule(rule), ".")
    if promise["sentence"].exists:
        return (
            "The counts have noise, with ", term("epsilon"), " ", plain(promise["eps"]), ". ",
            Link("validation", "What the noise protects"), " has its promise.",
        )  # fmt: skip
    if summary["opened"].exists:
        return ("None: the tables have the counts as they are.",)
    return ("None: the models of the nodes have no noise.",)


def _unprotected(summary: Entry) -> Block:
    """Say what the rule does not stop."""
    rule, uncovered = summary["release"]["rule"], summary["promise"]["uncovered"]
    if rule.exists and is_protected(summary):
        return Bullets([(text,) for text in not_stopped(rule)])
    if is_protected(summary) and uncovered.texts():
        return Bullets([(Name(text),) for text in uncovered.texts()])
    if is_protected(summary):
        return Paragraph(("Scores of test records, the names of the states, and the warnings.",))
    return Paragraph(("Nothing protects single persons: a count of 1 says that one person has "
                      "these values, and a count of 0 that nobody has.",))  # fmt: skip


def _rule(summary: Entry) -> Iterator[Block]:
    """Say what the rule protects, and what it costs."""
    rule, cost = summary["release"]["rule"], summary["cost"]
    if not rule.exists:
        return
    settings: list[list[Text]] = [[(Name(name),), value(entry)] for name, entry in rule.items()]
    yield Heading(("The rule in full",))
    yield Paragraph((rule_sentence(rule),))
    if cost["share"].is_number:
        yield Paragraph((
            "The rule cut counts that have ", share(cost["share"]), " of the records in the mean "
            "over the tables, and ", share(cost["most"]), " at most.",
        ))  # fmt: skip
    if cost["deviation"].is_number:
        yield Paragraph((
            "The noise on each count has a standard deviation of ", decimals(cost["deviation"], 1),
            ": most counts are off by less.",
        ))  # fmt: skip
    if cost["nats_about"].is_number:
        yield Paragraph((
            "The rule makes the probabilities worse by about ", decimals(cost["nats_about"], 4),
            " ", term("nats"), " per record (", term("divergence"), ", estimated).",
        ))  # fmt: skip
    elif cost.exists:
        yield Paragraph(("How much worse the probabilities are by the rule is not known.",))
    yield Fold(("Settings of the rule",),
               [Table("Settings of the rule", ["setting", "value"], settings)])  # fmt: skip


def _choices(choices: Entry) -> Iterator[Block]:
    """Say what the choices of the structure revealed."""
    if not choices.exists:
        return
    yield Heading(("What learning the arrows revealed",))
    yield Paragraph((
        "The arrows were learned by ", *noun(choices["decisions"], "choice"), " between ",
        *noun(choices["candidates"], "candidate"), ". In each ", term("choice"), " the analyst and "
        "the sites learned which candidate won, and no score. All winners together tell at most ",
        decimals(choices["bits_at_most"], 1), " ", term("bits"), ". ", count(choices["undecided"]),
        " choices were closer than ", decimals(choices["resolution_in_nats"], 3), " ",
        term("nats"), ", so that another candidate may win by exact scores. ",
        count(choices["too_large"]),
        " candidates were left out, because their tables are too large.",
    ))  # fmt: skip


def _tracing(tracing: Entry) -> Iterator[Block]:
    """Say how many persons can be recognized at most."""
    if not tracing.exists:
        return
    yield Heading(("Who can be recognized",))
    yield Paragraph((
        "Somebody who knows a person's whole record (", term("tracing"), ") recognizes at most ",
        share(tracing["table_power"]), " of those in the data from the released tables, and ",
        share(tracing["model_power"]), " from the model alone, if 5% of those who are not in the "
        "data may be accused. A guess has 5%. The tables have ",
        *noun(tracing["table_parameters"], "parameter"), ", the model has ",
        *noun(tracing["model_parameters"], "parameter"), ", and the data ",
        *noun(tracing["records"], "record"), ".",
    ))  # fmt: skip
    yield Paragraph((TRACING_LIMITS,))


def _study(study: Entry) -> Iterator[Block]:
    """Yield the file of the study, and the keys of its parties."""
    if not study.exists:
        return
    rows: list[list[Text]] = [
        [(Name(name),), value(entry)]
        for name, entry in study.items()
        if name not in ("contract", "keys")
    ]
    rows += [[("key of ", Name(party)), (Name(key.text),)] for party, key in study["keys"].items()]
    yield Fold(("The study and the keys of its parties",),
               [Table("The study", ["entry", "value"], rows)])  # fmt: skip
