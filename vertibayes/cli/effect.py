"""``vertibayes effect``: risks under interventions, from a model or from the sites' columns."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, prod
from pathlib import Path

from vertibayes.cli.inputs import Sites, read_sites
from vertibayes.cli.notices import warn
from vertibayes.cli.source import Source
from vertibayes.counting.secure import SecureCounter
from vertibayes.inference.adjustment import (
    MOST_SETS,
    adjustment_sets,
    check_names,
    check_roles,
    is_cause,
    why_not_valid,
)
from vertibayes.inference.effects import Effect, effect_in, standardized
from vertibayes.network import Network, read_model
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.words import counted
from vertibayes_protocols.federation import federate
from vertibayes_protocols.variables import Variable

NONE = ("none",)  # of --adjust: no variable


@dataclass(frozen=True)
class Question:
    """What is asked."""

    exposure: str  # the variable that is set
    outcome: str  # the variable of which the risks are asked, or VARIABLE=STATE
    adjust: tuple[str, ...] = ()  # the variables to adjust for; ``("none",)`` for no variable
    not_adjust: tuple[str, ...] = ()

    def outcome_in(self, variables: Mapping[str, Variable]) -> tuple[str, tuple[str, ...]]:
        """Return the outcome's variable, and the states whose risks are shown."""
        name, _, state = self.outcome.rpartition("=")
        if self.outcome in variables or not name:
            name, state = self.outcome, ""
        for option, column in (("--exposure", self.exposure), ("--outcome", name)):
            if column not in variables:
                known = ", ".join(variables)
                raise ValueError(f"{option} {column}: no such variable; there are {known}")
        states = variables[name].states
        if state and state not in states:
            raise ValueError(f"--outcome {self.outcome}: the states are {', '.join(states)}")
        return name, (state,) if state else states[1:] if len(states) == 2 else states


def run_effect(question: Question, model: Path | None, source: Source | None) -> None:
    """Print adjustment sets and risks."""
    network = None if model is None else read_model(model)
    if source is not None:
        lines = _from_records(question, network, source)
    elif network is None:
        raise ValueError("specify --model FILE or --data FILE: neither was given")
    elif question.adjust:
        raise ValueError("--adjust needs --data: a model alone gives the risks by its CPTs")
    else:
        outcome, states = question.outcome_in(network.variables)
        lines = _about_sets(question, outcome, network, _sets(question, outcome, network))
        lines += _report(effect_in(network, question.exposure, outcome), states)
    sys.stdout.write("\n".join(lines) + "\n")


def _from_records(question: Question, network: Network | None, source: Source) -> list[str]:
    sites = read_sites(source)
    variables = sites.variables
    sites.check_column(question.exposure, "--exposure")
    sites.check_column(question.outcome, "--outcome")
    for name in question.adjust:
        sites.check_column(name, "--adjust")
    outcome, states = question.outcome_in(variables)
    adjust, lines = _adjusted(question, outcome, network, variables)
    check_roles(question.exposure, outcome, adjust)
    for name in adjust:
        if name not in variables:
            raise ValueError(f"--adjust {name}: no such column; there are {', '.join(variables)}")
    warn(sites.warnings)
    effect, revealed = _count(sites, question.exposure, outcome, adjust)
    return [*lines, *_report(effect, states), revealed]


def _adjusted(
    question: Question, outcome: str, network: Network | None, variables: Mapping[str, Variable]
) -> tuple[Sequence[str], list[str]]:
    """Return the variables to adjust for, and the lines about them."""
    chosen = () if question.adjust == NONE else question.adjust
    if network is None:
        if not question.adjust:
            raise ValueError(
                "specify --model FILE, whose arrows give the adjustment set, or --adjust "
                "COLUMN,... (--adjust none to adjust for nothing)"
            )
        return chosen, []
    if not question.adjust:
        absent = [name for name in network.structure.nodes if name not in variables]
        question = replace(question, not_adjust=(*question.not_adjust, *absent))
        sets = _sets(question, outcome, network)
        if not sets:
            raise ValueError(_without_set(question, outcome, network))
        smallest = min(
            sets, key=lambda names: (prod(len(variables[n].states) for n in names), names)
        )
        return smallest, _about_sets(question, outcome, network, sets)
    check_names(network.structure, question.exposure, outcome, chosen)
    if reason := why_not_valid(network.structure, question.exposure, outcome, chosen):
        warn([f"--adjust is not valid by the network: {reason}"])
    return chosen, []


def _sets(question: Question, outcome: str, network: Network) -> tuple[tuple[str, ...], ...]:
    """Return the adjustment sets of a network."""
    return adjustment_sets(
        network.structure, question.exposure, outcome, excluded=question.not_adjust
    )


def _without_set(question: Question, outcome: str, network: Network) -> str:
    """Return the error about an effect that no adjustment set gives."""
    exposure, excluded = question.exposure, question.not_adjust
    if outcome in network.structure.parents[exposure]:
        return (
            f"{outcome} is a cause of {exposure} in the network: swap --exposure and --outcome or, "
            "if the network has this arrow the wrong way round, learn it with --constraints"
        )
    return (
        f"no adjustment set without {', '.join(excluded)} separates the effect of {exposure} on "
        f"{outcome} from other paths in the network: allow more variables with fewer --not-adjust"
    )


def _count(sites: Sites, exposure: str, outcome: str, adjust: Sequence[str]) -> tuple[Effect, str]:
    """Return the effect from one table of the sites, and the line on what was revealed."""
    chosen = [name for name in sites.order if name in {exposure, outcome, *adjust}]
    with federate(sites.data, memory_budget=sites.memory) as federation:
        counter = SecureCounter.of(federation, order=chosen, variables=chosen)
        effect = standardized(counter, exposure, outcome, adjust)
        ledger = counter.ledger
        tables, cells = counted(len(ledger.tables), "table"), counted(ledger.cells, "cell")
    return effect, f"revealed to the analyst: {tables}, {cells}, and nothing else of the records"


def _about_sets(
    question: Question, outcome: str, network: Network, sets: Sequence[Sequence[str]]
) -> list[str]:
    """Return the lines about adjustment sets, and about the directions of the exposure's edges."""
    shown = "; or ".join(", ".join(names) for names in sets) if sets else "no set is valid"
    more = f" (the first {MOST_SETS})" if len(sets) == MOST_SETS else ""
    lines = [f"adjustment sets by the network{more}: {shown or 'none is needed'}"]
    if not is_cause(network.structure, question.exposure, outcome):
        lines.append(f"by the network, {question.exposure} does not cause {outcome}")
    reversible = [e for e in cpdag_of(network.structure).reversible if question.exposure in e]
    if reversible:
        pairs = ", ".join(" - ".join(edge) for edge in reversible)
        lines.append(
            f"directions that data alone do not determine, and that you must know: {pairs}"
        )
    return lines


def _report(effect: Effect, states: Sequence[str]) -> Iterator[str]:
    """Yield the lines about the risks of some states of the outcome."""
    for outcome in states:
        yield f"P({effect.outcome.name}={outcome} | do({effect.exposure.name})):"
        yield from _risks(effect, outcome)
    yield effect.basis
    yield effect.assumptions


def _risks(effect: Effect, outcome: str) -> Iterator[str]:
    """Yield a line for each exposure; the first one with records is the baseline of the others."""
    states = effect.exposure.states
    width = max(map(len, states))
    baseline = next(state for state in states if not isnan(effect.risk(outcome, state)))
    for state in states:
        risk = effect.risk(outcome, state)
        if isnan(risk):
            yield f"  {state:{width}}  no record"
        elif state == baseline:
            yield f"  {state:{width}}  {risk:.4f}"
        else:
            difference = round(effect.difference(outcome, state, baseline), 4) + 0.0  # never -0.0
            ratio = effect.ratio(outcome, state, baseline)
            yield f"  {state:{width}}  {risk:.4f}  difference {difference:+.4f}  ratio {ratio:.3f}"
