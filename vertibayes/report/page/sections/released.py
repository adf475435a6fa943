"""What was released, to whom, under which approval, and what single persons risk by it."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.ledger.analyst import ledger_of_run
from vertibayes.report.ledger.statement import Line, digest_in_words
from vertibayes.report.page.content import (
    Block,
    Bullets,
    Fold,
    Heading,
    Name,
    Note,
    Paragraph,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import count, decimals, noun, plain, share, value
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import rule_sentence
from vertibayes.report.release.texts import TRACING_LIMITS, VERDICTS

MOST_ITEMS = 100  # tables of one line of the ledger
MOST_LINES = 300


def released_section(results: Results) -> Section:
    """Return the section of what was released."""
    summary = results.summary
    return Section(
        "released",
        "What was released, and to whom",
        ("This section lists what left the parties in this run, and under which rule and approval. "
         "It does not show what other runs on the same data released.",),
        [
            *_approval(summary["study"]),
            *_opened(summary["opened"]),
            *_rule(summary),
            *_verdicts(results, summary["release"]),
            *_choices(summary["choices"]),
            *_tracing(summary["release"]["tracing"]),
            *_ledger(results.files["ledger.json"]),
        ],
    )  # fmt: skip


def _approval(study: Entry) -> Iterator[Block]:
    """Say under which approval the run was made."""
    yield Heading(("Approval",))
    if not study.exists:
        yield Paragraph(("All data were in one process, so that no approval was necessary.",))
        return
    contract = study["contract"]
    if contract.exists:
        yield Paragraph((
            "All sites approved this study. The digest that their owners compared is ",
            Name(digest_in_words(contract.text)), ".",
        ))  # fmt: skip
    else:
        yield Note(("The sites answered free queries: no approval of this study was asked for.",))
    rows: list[list[Text]] = [
        [(Name(name),), value(entry)]
        for name, entry in study.items()
        if name not in ("contract", "keys")
    ]
    rows += [[("key of ", Name(party)), (Name(key.text),)] for party, key in study["keys"].items()]
    yield Fold(("The study and the keys of its parties",),
               [Table("The study", ["entry", "value"], rows)])  # fmt: skip


def _opened(opened: Entry) -> Iterator[Block]:
    """Say how many tables and cells were revealed, and how many count one record."""
    yield Heading(("Tables",))
    if not opened.exists:
        yield Paragraph(("The summary counts no tables. The nodes of a calibration send each other "
                         "statistics of their models, and no table.",))  # fmt: skip
        return
    yield Paragraph((
        *noun(opened["tables"], "table"), " with ", *noun(opened["cells"], "cell"),
        " left the parties in this run.",
    ))  # fmt: skip
    single = opened["single_record"]
    if single.exists:
        yield Paragraph((
            "Of these, ", *noun(single["cells"], "cell"), " in ", *noun(single["tables"], "table"),
            " count exactly one record. At least ", *noun(single["records"], "record"), " (",
            share(single["share"]), ") are singled out. Differences of tables may single out more.",
        ))  # fmt: skip


def _rule(summary: Entry) -> Iterator[Block]:
    """Say what the rule protects, and what it costs."""
    rule, cost = summary["release"]["rule"], summary["cost"]
    if not rule.exists:
        yield from _without_rule(summary)
        return
    settings: list[list[Text]] = [[(Name(name),), value(entry)] for name, entry in rule.items()]
    yield Heading(("The rule",))
    yield Paragraph((rule_sentence(rule),))
    yield Table("Settings of the rule", ["setting", "value"], settings)
    if cost["share"].is_number:
        yield Paragraph((
            "The rule cut counts that have ", share(cost["share"]), " of the records in the mean "
            "over the tables, and ", share(cost["most"]), " at most.",
        ))  # fmt: skip
    if cost["deviation"].is_number:
        yield Paragraph((
            "The noise on each count has a standard deviation of ", plain(cost["deviation"]), ".",
        ))  # fmt: skip
    if cost["nats_about"].is_number:
        yield Paragraph((
            "The rule makes the probabilities worse by about ", decimals(cost["nats_about"], 4),
            " nats per record (Kullback-Leibler divergence, estimated).",
        ))  # fmt: skip
    elif cost.exists:
        yield Paragraph(("How much worse the probabilities are by the rule is not known.",))


def _without_rule(summary: Entry) -> Iterator[Block]:
    """Say what protects the tables of a run without a release rule: noise, or nothing."""
    if summary["promise"].exists:
        yield Paragraph(("The counts have noise. The section about predictions has its promise.",))
    elif summary["opened"].exists:
        yield Paragraph(("No release rule was applied: the tables have the counts as they are.",))


def _verdicts(results: Results, release: Entry) -> Iterator[Block]:
    """Yield the verdict of each released table."""
    if not release.exists:
        return
    yield Heading(("Verdicts on the released tables",))
    yield Paragraph((
        *noun(release["tables"], "table"), " with ", *noun(release["cells"], "cell"),
        " were released. ", *_tally(release["verdicts"]), ". ",
        *noun(release["small_cells"], "small count"), " and ",
        *noun(release["differences"], "small difference"), " are listed in release/.",
        *((" The threshold is ", count(release["threshold"]), ".")
          if release["threshold"].exists else ()),
    ))  # fmt: skip
    yield from (Paragraph((text,)) for text in VERDICTS)
    if results.release:
        heads = list(results.release[0])
        rows: list[list[Text]] = [
            [(Name(row.get(head, "")),) for head in heads] for row in results.release
        ]
        yield Fold(("The tables and their verdicts",),
                   [Table("Released tables, from release/tables.csv", heads, rows)])  # fmt: skip


def _tally(verdicts: Entry) -> Text:
    """Return how many tables have each verdict."""
    pieces = [piece for name, entry in verdicts.items() for piece in (count(entry), f" {name}, ")]
    return (*pieces[:-1], str(pieces[-1]).removesuffix(", ")) if pieces else ("No verdict",)


def _choices(choices: Entry) -> Iterator[Block]:
    """Say what the choices of the structure revealed."""
    if not choices.exists:
        return
    yield Heading(("The choices of the structure",))
    yield Paragraph((
        "The structure was learned from ", *noun(choices["decisions"], "choice"), " between ",
        *noun(choices["candidates"], "candidate"), ". The analyst and the sites learned which "
        "candidates won, and no score. The winners have at most ",
        decimals(choices["bits_at_most"], 1), " bits. ", count(choices["undecided"]),
        " choices were closer than ", plain(choices["resolution_in_nats"]), " nats, so that "
        "another candidate may win by exact scores. ", count(choices["too_large"]),
        " candidates were left out, because their tables are too large.",
    ))  # fmt: skip


def _tracing(tracing: Entry) -> Iterator[Block]:
    """Say how many persons can be recognized at most."""
    if not tracing.exists:
        return
    yield Heading(("Who can be recognized",))
    yield Paragraph((
        "Somebody who knows a person's whole record recognizes at most ",
        share(tracing["table_power"]), " of those in the data from the released tables, and ",
        share(tracing["model_power"]), " from the model alone, if 5% of those who are not in the "
        "data may be accused. A guess has 5%. The tables have ",
        *noun(tracing["table_parameters"], "parameter"), ", the model has ",
        *noun(tracing["model_parameters"], "parameter"), ", and the data ",
        *noun(tracing["records"], "record"), ".",
    ))  # fmt: skip
    yield Paragraph((TRACING_LIMITS,))


def _ledger(content: Entry) -> Iterator[Block]:
    """Yield the ledger in sentences."""
    yield Heading(("The ledger: each thing that was revealed, and to whom",))
    if not content.exists:
        yield Paragraph(("The folder has no ledger.json.",))
        return
    try:
        lines = ledger_of_run(content.value).lines
    except (KeyError, TypeError, AttributeError, ValueError):
        yield Note(("The file ledger.json is not a valid ledger.",))
        return
    if not lines:
        yield Paragraph(("The ledger has no entry.",))
        return
    rows = [_row(line) for line in lines[:MOST_LINES]]
    yield Table("What was revealed", ["to", "what"], rows)
    if len(lines) > MOST_LINES:
        more = len(lines) - MOST_LINES
        yield Paragraph((f"{more:,} more lines are in ledger.json.",))
    for line in lines:
        if line.items:
            yield Fold((f"The revealed tables ({len(line.items):,})",), _items(line))


def _row(line: Line) -> list[Text]:
    return [(Name(line.to or "nobody"),), (Name(line.text),)]


def _items(line: Line) -> list[Block]:
    blocks: list[Block] = [Bullets([(Name(item),) for item in line.items[:MOST_ITEMS]])]
    if len(line.items) > MOST_ITEMS:
        more = len(line.items) - MOST_ITEMS
        blocks.append(Paragraph((f"{more:,} more tables are in ledger.json.",)))
    return blocks
