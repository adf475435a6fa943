"""What ``vertibayes calibrate`` warns of after a run: results that disappoint, and why."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.cli.calibrate_learned import Outcome
from vertibayes.cli.calibrate_request import Request
from vertibayes.words import counted

WORSE = 0.005  # in error, that the nodes are above maximum likelihood; less can be chance


def advice(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return warnings about a run."""
    if request.mixing == "relay" and request.start == "uniform":
        yield (
            "a relay with --start uniform converges slowly, and its errors can rise on the way: "
            "use --start data"
        )
    yield from _about_rate(request, outcome)
    if outcome.error > outcome.likelihood_error + WORSE:
        scenario = outcome.scenario
        size = ", a larger --size" if request.size else ""
        yield (
            f"the nodes have an error of {outcome.error:.4f} after the last round, maximum "
            f"likelihood of the records of all nodes {outcome.likelihood_error:.4f} (on "
            f"{len(scenario.scored.classes)} {scenario.scored_on}): calibration.svg shows whether "
            f"more --rounds{size} or a lower --rate can help"
        )
    if repairs := outcome.rows[-1].repairs:
        yield (
            f"in the last round the nodes' models needed {counted(repairs, 'repair')}: counts or "
            "variances that updates had driven too low; the models have the least valid ones"
        )


def _about_rate(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return whether RC cannot improve on its start, or its rate is too high to do so."""
    soft = outcome.pooled.soft
    if request.rate > Request.rate and soft[1:3].max() > soft[0]:
        yield (
            f"the loss of RC on pooled records rises in its first iterations with --rate "
            f"{request.rate:g}: use a lower --rate (by default {Request.rate:g})"
        )
    elif not outcome.pooled.best:
        yield (
            "RC on pooled records has its lowest loss at its start, which is maximum likelihood: "
            "calibration does not help on these records"
        )
