"""``vertibayes learn --release``: what is said of choices and of released tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from vertibayes.released import Released
from vertibayes.report.release import assess
from vertibayes.report.rule_cost import cut_cost, noise_cost
from vertibayes.words import counted, percent
from vertibayes_protocols.queries.releases.plan import ReleaseNoise


def summary_of(released: Released, sites: int) -> dict[str, Any]:
    """Return what summary.json has of choices and a release beside the results."""
    assessment = assess(released.counter, released.learned.network)
    return {
        "calls": released.calls,
        "release": {**assessment.as_json(), "sentences": assessment.sentences()},
        "choices": {
            "decisions": released.decisions,
            "candidates": released.candidates,
            "undecided": released.undecided,
            "bits_at_most": round(released.bits, 1),
            "too_large": released.too_large,
            "resolution_in_nats": released.resolution,
        },
        "cost": cost_of(released, sites),
    }


def cost_of(released: Released, sites: int) -> dict[str, Any] | None:
    """Return what the rule costs, as JSON data; None if the released tables do not show it."""
    counter, learned = released.counter, released.learned
    request = counter.request
    if request.rule.is_noisy:
        deviation = sqrt(sites * ReleaseNoise(request, sites).of_a_site().variance)
        about = None
        if learned.pseudo_count and not request.missing:
            about = noise_cost(learned.network, counter.records, deviation, learned.pseudo_count)
        return {"deviation": deviation, "nats_about": about}
    if request.rule.kind != "cut":
        return None
    cost = cut_cost(counter, learned.network, learned.pseudo_count)
    return None if cost is None else cost._asdict()


def report_of_release(summary: Mapping[str, Any]) -> list[str]:
    """Return the lines that the command prints about choices and a release."""
    rule, choices = summary["release"]["rule"], summary["choices"]
    estimated = ", with estimates of the counts that were cut" if rule["kind"] == "cut" else ""
    compared = "" if rule["kind"] == "exact" else "; compare scores of the same rule alone"
    return [
        *_chosen(choices, summary["algorithm"]),
        f"tables of the learned families: {_by_rule(rule)}",
        f"cost of the rule: {_cost(rule, summary['cost'])}",
        f"CPTs, scores and validations: from the released tables alone{estimated}{compared}",
        *summary["release"]["sentences"],
    ]


def _chosen(choices: Mapping[str, Any], algorithm: str | None) -> list[str]:
    """Say what was chosen, and how exactly."""
    resolution, left_out = choices["resolution_in_nats"], choices["too_large"]
    decisions, undecided = choices["decisions"], choices["undecided"]
    among = " among these candidates" if left_out else ""
    if not decisions:
        given = "the structure is given: " if algorithm is None else ""
        return [f"{given}no choice was asked"]
    lines = [
        f"choices: {decisions} between {choices['candidates']} candidates, of which analyst and "
        "sites learned the winners, and which of them win narrowly",
        f"all {decisions} choices are those of exact scores{among}: the errors of scores, of at "
        f"most {resolution / 2:.2g} nats, change none"
        if not undecided
        else f"{undecided} of {decisions} choices were closer than {resolution:.2g} nats, as the "
        "sites compute scores: by exact scores another candidate may win there",
    ]
    if left_out:
        lines.append(
            f"left out of the choices: {counted(left_out, 'set')} of parents whose tables are too "
            "large for products (more --memory allows larger tables)"
        )
    return lines


def _by_rule(rule: Mapping[str, Any]) -> str:
    """Say what a rule does to the released tables."""
    if rule["kind"] == "exact":
        return "released as they are"
    if rule["kind"] == "cut":
        return f"released with counts below {rule['fewest']} as 0"
    delta = f" and delta {rule['delta']:g}" if rule["kind"] == "gaussian" else ""
    return (
        f"released with {rule['kind']} noise, epsilon {rule['epsilon']:g}{delta} for all of them "
        "together; the structure was chosen without noise and has no such promise"
    )


def _cost(rule: Mapping[str, Any], cost: Mapping[str, Any] | None) -> str:
    """Say what a rule costs."""
    unknown = "unknown from the released tables; docs/results.md has it for known networks"
    if rule["kind"] == "exact":
        return "none"
    if cost is None:
        return unknown
    about = cost["nats_about"]
    estimate = (
        unknown
        if about is None
        else f"about {about:.2g} nats per record (KL), estimated by applying the rule again to "
        "counts of the learned network"
    )
    if "deviation" in cost:
        return f"noise of standard deviation {cost['deviation']:.3g} on each count; {estimate}"
    return (
        f"{percent(cost['share'])} of the records are in counts that were cut, in the mean over "
        f"the tables, and {percent(cost['most'])} at most; {estimate}"
        + ("" if about is None else ", which is too low where much was cut")
    )
