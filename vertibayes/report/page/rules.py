"""What a release rule of a summary says, in words."""

from __future__ import annotations

from vertibayes.report.page.entries import Entry
from vertibayes.report.release.texts import rule_in_words
from vertibayes_protocols.release import Rule


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
        return f"counts below {rule['fewest'].text} are 0"
    return f"counts have {kind} noise (epsilon {rule['epsilon'].text})"


def cut_below(counts: Entry) -> int | None:
    """Return below which count the rule has cut; None if it has not."""
    fewest = counts["fewest"].value
    return fewest if counts["kind"].value == "cut" and isinstance(fewest, int) else None
