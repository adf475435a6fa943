"""README.txt and ledger.txt: a release in plain words, for readers who do not know the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from textwrap import fill
from typing import Any

from vertibayes.report.ledger.statement import digest_in_words, merged
from vertibayes.report.release.assessment import Assessment
from vertibayes.words import counted
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.release import Rule

WIDTH = 80

FILES = (
    ("README.txt", "This page."),
    ("tables.csv", "One row for each released table: its variables, the rule, the verdict."),
    ("output_N_count_table.csv", "Released table N: a row for each combination of states of the "
     "parents, a column for each state of the child."),
    ("output_N_cpt.csv", "The probabilities that the model has for the child of table N."),
    ("small_cells.csv", "Each small count of a table or of a sum of cells of a table."),
    ("differences.csv", "Each small count that results when a sum of cells of one table is "
     "subtracted from the same sum of another table, or a table's sum from the number of records."),
    ("ledger.txt", "What was revealed in the run, to whom, under which rule and approval."),
    ("evidence.json", "For ACRO 1.0: the tables without verdicts, as for a trusted aggregator."),
    ("results.json", "For ACRO 1.0 and SACRO-Viewer: the tables with their verdicts. checksums/ "
     "has a SHA-256 digest of each listed file."),
    ("config.json", "The limits of the verdicts, and the risk appetite if there was one."),
    ("ro-crate-metadata.json", "An RO-Crate, for archives and output checkers: who, what, which "
     "software, which approvals. The disclosure check is pending."),
)  # fmt: skip

VERDICTS = (
    "pass: no check objects. review: a person has to judge; the reason is in tables.csv. fail: the "
    "table shows a count that the threshold forbids.",
    "The threshold is on counts that are not 0. Dominance rules do not apply to counts, as each "
    "record adds 1. Differencing compares all released tables of this run with each other; tables "
    "of other runs are not known here: `vertibayes ledger --verdicts` compares them at a site.",
)
RULES = {
    "exact": "The tables are the counts themselves. The rule protects nothing: a count of 1 says "
    "that one person has these values, and a count of 0 that nobody has.",
    "cut": "A count below {fewest} is released as 0, so that a released 0 is any count from 0 to "
    "{hidden}. No released count is from 1 to {hidden}. The rule does not hide everything: tables "
    "have sums in common with each other and with the number of records, and these sums determine "
    "some hidden counts. On the network ALARM (10,000 records, 37 tables), linear programs over "
    "such sums determine 50 of 457 hidden counts at a threshold of 5 (10 of these 50 are above 0) "
    "and 32 of 516 at a threshold of 10 (9 above 0). Others can be estimated. differences.csv "
    "lists the differences of sums that are themselves small, of all pairs of tables; "
    "combinations of three and more tables are not searched.",
    "rounded": "Each count is released as the nearest multiple of {fewest}, so that a released 0 "
    "is a count from 0 to about {half}, and another number a count that is at most about {half} "
    "smaller or larger. Tables have sums in common with each other and with the number of records, "
    "which narrow these ranges, and so does another release of the same tables under another rule "
    "or number.",
    "laplace": "The sites added random numbers (the discrete Laplace distribution) to each count. "
    "The released tables together are differentially private with epsilon {epsilon:g} for one "
    "record more or fewer, if {condition}: no event becomes "
    "more likely by a factor above e^{epsilon:g} because one person is in the data, "
    "or e^{twice:g} because the person has another value. Counts may be "
    "negative, and sums of tables differ from each other.",
    "gaussian": "The sites added random numbers (the discrete normal distribution) to each count. "
    "The released tables together are differentially private with epsilon {epsilon:g} and delta "
    "{delta:g} for one record more or fewer, if {condition}; for another value "
    "of a person, with epsilon {twice:g}. Counts may be "
    "negative, and sums of tables differ from each other.",
}
STRUCTURE = (
    "The structure of the network says which variable has which parents. If the study did not give "
    "it, it was learned from the exact data, without showing any table; no rule protects it."
)


def readme(assessment: Assessment) -> str:
    """Return the content of README.txt."""
    figures = assessment.as_json()
    overview = (
        f"This folder has what a study released: {counted(figures['tables'], 'table')} of counts "
        f"with {figures['cells']:,} cells, over {counted(assessment.tracing.records, 'record')}, "
        "and the model (a Bayesian network) that was learned from them. It is for the analyst, the "
        "data protection officer and the output checker."
    )
    parts = [
        ("Released by vertibayes", [overview]),
        ("Files", [f"{name}\n{_indented(what)}" for name, what in FILES]),
        (f"The rule: {assessment.rule.kind}", [rule_in_words(assessment.rule), STRUCTURE]),
        ("Verdicts", [*assessment.sentences()[:1], *VERDICTS, *_limits(assessment)]),
        ("Who can be recognized", [*assessment.traced(), TRACING_LIMITS]),
    ]
    return "\n".join(_part(title, texts) for title, texts in parts)


def _limits(assessment: Assessment) -> Iterator[str]:
    if not assessment.rule.is_noisy:
        yield f"The threshold is {assessment.appetite.threshold}."
    if digest := assessment.appetite.digest:
        yield (
            f"The limits are those of a risk appetite whose file has the SHA-256 digest {digest}. "
            "config.json has its keys, and why some of them do not apply."
        )


TRACING_LIMITS = (
    "The bound is that of Murakonda, Shokri and Theodorakopoulos (2021): it is an approximation "
    "for many records and parameters, holds for an average person, and is the same for each rule. "
    "Persons with rare values are recognized more easily. It leaves out what the structure tells."
)


def rule_in_words(rule: Rule) -> str:
    """Return what a rule protects, and what it does not."""
    return RULES[rule.kind].format(
        fewest=rule.fewest,
        hidden=rule.fewest - 1,
        half=rule.fewest // 2,
        epsilon=rule.epsilon,
        twice=2 * rule.epsilon,
        delta=rule.delta,
        condition=rule.condition,
    )


def ledger_in_words(ledger: Ledger, assessment: Assessment, study: Mapping[str, Any] | None) -> str:
    """Return the content of ledger.txt."""
    approval = list(_entries(study)) if study else ["One process: no approval was necessary."]
    facts = [f"- {f.what} (about {f.about}) to {_names(f.to)}" for f in merged(ledger.facts)]
    by_receiver = groupby(sorted(ledger.tables, key=_receiver), key=_receiver)
    tables = [
        line for receiver, entries in by_receiver for line in _tables(receiver, list(entries))
    ]
    parts = [
        ("Rule", [rule_in_words(assessment.rule), STRUCTURE]),
        ("Study and approval", ["\n".join(approval)]),
        ("Revealed", ["\n".join(facts) or "Nothing beside the tables."]),
        ("Revealed tables", ["\n".join(tables) or "The ledger has no tables."]),
    ]
    return "\n".join(_part(title, texts) for title, texts in parts)


def _receiver(table: RevealedTable) -> str:
    return table.to


def _tables(receiver: str, tables: list[RevealedTable]) -> Iterator[str]:
    cells = sum(table.cells for table in tables)
    yield f"{counted(len(tables), 'table')} with {counted(cells, 'cell')} to {receiver}:"
    yield from (f"- {', '.join(t.variables)}: {counted(t.cells, 'cell')}" for t in tables)


def _entries(study: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in study.items():
        if isinstance(value, Mapping):
            yield f"{indent}- {name}:"
            yield from _entries(value, indent + "  ")
        else:
            values = value if isinstance(value, list | tuple) else [value]
            shown = map(digest_in_words if name == "contract" else _value, values)
            yield f"{indent}- {name}: {', '.join(shown)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_value(entry)}" for name, entry in value.items())
    return str(value)


def _names(parties: tuple[str, ...]) -> str:
    return ", ".join(parties) or "nobody else"


def _part(title: str, texts: list[str]) -> str:
    """Return a section; texts with lines of their own stay as they are."""
    body = "\n\n".join(text if "\n" in text else fill(text, WIDTH) for text in texts)
    return f"{title}\n{'=' * len(title)}\n\n{body}\n"


def _indented(text: str) -> str:
    return fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
