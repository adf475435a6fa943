"""``vertibayes learn --release``: what is said of choices and of released tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from vertibayes.cli.texts import text
from vertibayes.released import Released
from vertibayes.report.release import assess
from vertibayes.report.rule_cost import cut_cost, noise_cost
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
    release = summary["release"]
    facts = {name: summary[name] for name in ("algorithm", "choices", "cost")}
    shown = text("release.txt.j2", rule=release["rule"], **facts)
    return [*shown.splitlines(), *release["sentences"]]
