"""The methods of a run, each with the papers that describe it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vertibayes.report.page.content import Block, Fold, Name, Paragraph, Section, Table, Text
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import value
from vertibayes.report.page.papers import (
    ALGORITHMS,
    CALIBRATION,
    COUNTING,
    ESTIMATES,
    MISSING,
    NAIVE_BAYES,
    NOISE,
    ORACLES,
    PSEUDO_COUNT,
    RULES,
    STRENGTHS,
    TRACING,
    VALIDATIONS,
    Method,
)
from vertibayes.report.page.results import Results


class _Used(NamedTuple):
    """A method, and for what it was used."""

    task: str
    method: Method


def methods_section(results: Results) -> Section:
    """Return the section of the methods."""
    of = {"nb": _of_naive_bayes, "calibrate": _of_calibration}.get(results.command, _of_network)
    rows: list[list[Text]] = [
        [(used.task,), (used.method.what,), (used.method.papers or "none",)]
        for used in of(results.summary)
    ]
    blocks: list[Block] = [
        Table("Methods of the run", ["task", "method", "papers"], rows),
        Paragraph(("The documents of the project say where a method differs from its paper "
                   "(docs/papers.md).",)),
        *_options(results.summary["options"]),
    ]  # fmt: skip
    return Section(
        "methods",
        "Methods",
        ("This section names each method that the run used, and the papers that describe it. It "
         "does not show why a method suits the data.",),
        blocks,
    )  # fmt: skip


def _of_network(summary: Entry) -> Iterator[_Used]:
    """Yield the methods of a Bayesian network."""
    yield _Used("counts over several sites", COUNTING)
    algorithm = summary["algorithm"]
    if algorithm.exists:
        yield _Used("structure", ALGORITHMS.get(algorithm.text, _unknown(algorithm)))
    else:
        yield _Used("structure", Method("The structure was given, not learned.", ""))
    if summary["strengths"].exists:
        yield _Used("strength of arrows", STRENGTHS)
    yield _Used("probabilities", PSEUDO_COUNT)
    missing = summary["missing"]
    if missing.exists and any(v["missing"].value for _, v in summary["variables"].items()):
        yield _Used("missing values", MISSING.get(missing.text, _unknown(missing)))
    rule = summary["release"]["rule"]["kind"]
    if rule.exists:
        yield _Used("release", RULES.get(rule.text, _unknown(rule)))
        yield _Used("risk of single persons", TRACING)
    if rule.value == "cut":
        yield _Used("counts that were cut", ESTIMATES)
    for name, _ in summary["auc"].items():
        yield _Used("validation", VALIDATIONS.get(name, Method(f"Validation {name}.", "")))


def _of_naive_bayes(summary: Entry) -> Iterator[_Used]:
    """Yield the methods of naive Bayes."""
    method, options = summary["method"], summary["options"]
    yield _Used("naive Bayes", NAIVE_BAYES.get(method.text, _unknown(method)))
    noise = options["noise"]
    if method.value == "ldp":
        yield _Used("noise on each record", ORACLES)
    elif noise.exists:
        yield _Used("noise", NOISE.get(noise.text, _unknown(noise)))


def _of_calibration(summary: Entry) -> Iterator[_Used]:
    """Yield the methods of a calibration."""
    yield _Used("calibration", CALIBRATION["calibration"])
    mixing = summary["options"]["mixing"]
    if mixing.exists:
        yield _Used("mixing of statistics", CALIBRATION.get(mixing.text, _unknown(mixing)))


def _unknown(entry: Entry) -> Method:
    return Method(f"{entry.text}.", "")


def _options(options: Entry) -> Iterator[Block]:
    """Yield the options of the run."""
    if not options.exists:
        yield Paragraph(("The summary of this run has no options: an earlier release did not "
                         "write them.",))  # fmt: skip
        return
    rows: list[list[Text]] = [[(Name(name),), value(entry)] for name, entry in options.items()]
    yield Fold(("The options of the run",), [Table("Options", ["option", "value"], rows)])
