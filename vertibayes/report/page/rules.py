"""What a release rule of a summary says, in words."""

from __future__ import annotations

import re

from vertibayes.report.page.entries import Entry
from vertibayes.report.release.texts import rule_in_words
from vertibayes_protocols.release import Rule

VALUES = re.compile(r"['\"].*['\"]|['\"].*|\d[\d.,]*")  # of a line: all that is quoted, and numbers
NOISY = "laplace", "gaussian"
LEFT_OUT = "[\u2026]"
LIMITS = {
    "cut": (
        "Tables have sums in common. From these, some of the counts that were cut can be computed, "
        "and others estimated.",
        "The counts that were not cut are exact.",
    ),
    "laplace": (
        "The noise bounds what one person's record changes. It does not hide what is true of a "
        "whole group.",
    ),
    "gaussian": (
        "The noise bounds what one person's record changes, except with the probability delta. It "
        "does not hide what is true of a whole group.",
    ),
}
STRUCTURE_IS_OPEN = (
    "No rule covers the arrows of the network, if they were learned, the number of records, the "
    "names of variables, states and files, and which columns were left out."
)
OTHER_RUNS = "Tables of other runs on the same data add to what these tables show."


def rule_sentence(rule: Entry) -> str:
    """Return what a rule protects, and what it does not."""
    try:
        return rule_in_words(Rule(**rule.value))
    except (TypeError, ValueError, KeyError):
        return "The rule is not one that this release knows; summary.json has it."


def short_rule(rule: Entry) -> str:
    """Return what a rule does to counts, in a few words."""
    kind = rule["kind"].text
    if kind == "cut":
        return f"counts below {rule['fewest'].text} are released as 0"
    if kind == "exact":
        return "counts are released as they are"
    epsilon = rule["epsilon"]
    strength = f"{epsilon.value:g}" if epsilon.is_number else epsilon.text
    return f"counts have {kind} noise (epsilon {strength})"


def not_stopped(rule: Entry) -> list[str]:
    """Return what a release rule does not stop, in a sentence each."""
    return [*LIMITS.get(rule["kind"].text, ()), STRUCTURE_IS_OPEN, OTHER_RUNS]


def is_protected(summary: Entry) -> bool:
    """Whether a rule that hides small counts, or noise, protects what the page shows."""
    rule = summary["release"]["rule"]
    fewest = rule["fewest"].value
    cuts = rule["kind"].value == "cut" and isinstance(fewest, int) and fewest > 1
    return cuts or rule["kind"].value in NOISY or summary["promise"]["sentence"].exists


def without_values(text: str) -> str:
    """Return a text without numbers, which may count records, and without what it quotes.

    Examples
    --------
    >>> without_values("one value, 'it's rare', in all 80 records")
    'one value, [\u2026], in all [\u2026] records'
    """
    return VALUES.sub(LEFT_OUT, text)


def cut_below(counts: Entry) -> int | None:
    """Return below which count the rule has cut; None if it has not."""
    fewest = counts["fewest"].value
    return fewest if counts["kind"].value == "cut" and isinstance(fewest, int) else None
