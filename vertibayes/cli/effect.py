"""``vertibayes effect``: risks under interventions, from a model or from the sites' columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isnan
from pathlib import Path

from vertibayes.cli.inputs import Sites, read_sites
from vertibayes.cli.notices import warn
from vertibayes.cli.source import Source
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.adjustment import MOST_SETS, check_names, check_roles, why_not_valid
from vertibayes.inference.effects import standardized
from vertibayes.inference.intervals import Interval
from vertibayes.json_content import read_json
from vertibayes.network import Network, read_model
from vertibayes.report.disclosure import disclosure
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import fixed_by
from vertibayes.structure.possible_effects import (
    Directions,
    EffectRange,
    Sets,
    effects_in,
    standardized_range,
)
from vertibayes.words import counted
from vertibayes_protocols.federation import federate
from vertibayes_protocols.release import Rule
from vertibayes_protocols.variables import Variable

NAMED = 5  # edges that a line names at most
REMEDY = "wider bins, and fewer columns to adjust for, make them fewer"
REPAIR = "correct what is given, or learn the model with it"
NONE = ("none",)  # of --adjust: no variable


@dataclass(frozen=True)
class Question:
    """What is asked."""

    exposure: str  # the variable that is set
    outcome: str  # the variable of which the risks are asked, or VARIABLE=STATE
    adjust: tuple[str, ...] = ()  # the variables to adjust for; ``("none",)`` for no variable
    not_adjust: tuple[str, ...] = ()
    knowledge: Constraints = Constraints()  # of directions, beside what the model has

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

    def directions(self, network: Network, outcome: str) -> Directions:
        """Return the structures that the data, the model's experts and the options allow."""
        structure, knowledge = network.structure, self.knowledge
        try:
            knowledge.check_names(structure.nodes)
            _check_edges(knowledge, structure)
            fixed = network.fixed | fixed_by(structure, knowledge)
            return Directions.of(structure, self.exposure, outcome, fixed)
        except ValueError as error:
            given = "" if knowledge == Constraints() else "--constraints or --ordering: "
            raise ValueError(f"{given}{error}") from None


def _check_edges(knowledge: Constraints, structure: Structure) -> None:
    """Refuse knowledge that requires an edge which a structure lacks, or that rules out its own."""
    near = {frozenset(edge) for edge in structure.edges}
    for parent, child in knowledge.required:
        if frozenset((parent, child)) not in near:
            raise ValueError(
                f"{parent} -> {child} is required, and the model has no edge between {parent} and "
                f"{child}: {REPAIR}"
            )
    rules = replace(knowledge, required=())
    for edge in structure.edges:
        alone = (Structure.of(edge, [arrow]) for arrow in (edge, edge[::-1]))
        reasons = [reason for one in alone for reason in rules.violations(one)]
        if len(reasons) == 2:
            raise ValueError(
                f"the model has the edge {' - '.join(edge)}, and both its directions are ruled "
                f"out: {' and '.join(reasons)}: {REPAIR}"
            )


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
        directions = question.directions(network, outcome)
        lines = _about(directions, question.not_adjust)
        lines += _report(effects_in(network, question.exposure, outcome, directions), states)
        lines += _released(model)
    sys.stdout.write("\n".join(lines) + "\n")


def _released(model: Path | None) -> Iterator[str]:
    """Yield what summary.json beside a model says of how its tables were released."""
    path = None if model is None else model.with_name("summary.json")
    if path is None or not path.is_file():
        return
    try:
        rule = Rule(**read_json(path)["release"]["rule"])
    except (ValueError, TypeError, KeyError):  # no release, or not the summary of a model
        return
    if rule.kind != "exact":
        chance = "can be noise" if rule.is_noisy else "can be an effect of it"
        how = f"released with {rule.words} (summary.json)"
        yield f"The model's tables were {how}: the risks and ratios {chance}."


def _from_records(question: Question, network: Network | None, source: Source) -> list[str]:
    sites = read_sites(source)
    variables, exposure = sites.variables, question.exposure
    sites.check_column(exposure, "--exposure")
    sites.check_column(question.outcome, "--outcome")
    for name in question.adjust:
        sites.check_column(name, "--adjust")
    outcome, states = question.outcome_in(variables)
    if network is None and not question.adjust:
        raise ValueError(
            "specify --model FILE, whose arrows give the adjustment set, or --adjust "
            "COLUMN,... (--adjust none to adjust for nothing)"
        )
    directions = None if network is None else question.directions(network, outcome)
    if directions is None or question.adjust:
        chosen = _adjusted(question, outcome, directions, variables)
        sets: Sets = (chosen,)
        lines = []

        def measure(counter: SecureCounter) -> EffectRange:
            return EffectRange((standardized(counter, exposure, outcome, chosen),))
    else:
        excluded = question.not_adjust
        sets = _smallest_sets(directions, variables, excluded)
        lines = _about(
            directions, (*excluded, *(set(directions.structures[0].nodes) - set(variables)))
        )

        def measure(counter: SecureCounter) -> EffectRange:
            return standardized_range(counter, directions, excluded=excluded)

    warn(sites.warnings)
    names = {exposure, outcome, *chain.from_iterable(sets)}
    effects, revealed = _count(sites, names, measure)
    return [*lines, *_report(effects, states), revealed]


def _adjusted(
    question: Question,
    outcome: str,
    directions: Directions | None,
    variables: Mapping[str, Variable],
) -> tuple[str, ...]:
    """Return the columns that a user adjusts for; warn if the network does not accept them."""
    exposure = question.exposure
    chosen = () if question.adjust == NONE else tuple(question.adjust)
    check_roles(exposure, outcome, chosen)
    for name in chosen:
        if name not in variables:
            raise ValueError(f"--adjust {name}: no such column; there are {', '.join(variables)}")
    if directions is None:
        return chosen
    structures = directions.structures
    check_names(structures[0], exposure, outcome, chosen)
    reasons = [why_not_valid(s, exposure, outcome, chosen) for s in structures]
    if all(reasons):
        warn([f"--adjust is not valid by the network: {reasons[0]}"])
    elif any(reasons):
        warn([f"--adjust is valid for some directions only, and {_undecided(directions)}"])
    return chosen


def _smallest_sets(
    directions: Directions, variables: Mapping[str, Variable], excluded: Sequence[str]
) -> Sets:
    """Return the sets to adjust for, or refuse an effect that no adjustment gives."""
    exposure, outcome = directions.exposure, directions.outcome
    try:
        return directions.smallest_sets(variables, excluded)
    except ValueError as error:
        if not directions.causal:
            fact = f"{exposure} does not cause {outcome} by the network"
            if all(outcome in s.parents[exposure] for s in directions.structures):
                fact = f"{outcome} is a cause of {exposure} in the network"
            raise ValueError(
                f"{fact}: swap --exposure and --outcome or, if the network has an arrow the wrong "
                "way round, learn it with --constraints"
            ) from None
        raise ValueError(
            f"{error} from other paths in the network: allow more variables with fewer --not-adjust"
        ) from None


def _count(
    sites: Sites, names: Collection[str], measure: Callable[[SecureCounter], EffectRange]
) -> tuple[EffectRange, str]:
    """Return effects from tables of the sites, and the line on what was revealed."""
    chosen = [name for name in sites.order if name in names]
    with federate(sites.data, memory_budget=sites.memory) as federation:
        counter = SecureCounter.of(
            federation, order=chosen, variables=chosen, count_by=sites.count_by
        )
        effects = measure(counter)
        ledger = counter.ledger
        tables, cells = counted(len(ledger.tables), "table"), counted(ledger.cells, "cell")
        alone = disclosure(counter.revealed, counter.records)
        warn([alone.sentence(REMEDY)] if alone.cells else [])
    return effects, f"revealed to the analyst: {tables}, {cells}, and nothing else of the records"


def _about(directions: Directions, excluded: Collection[str]) -> list[str]:
    """Return the lines about directions and adjustment sets."""
    exposure, outcome = directions.exposure, directions.outcome
    if not directions.is_determined:
        return [f"{_undecided(directions)}: give what is known with --constraints or --ordering"]
    sets = directions.sets(excluded=set(excluded) - {exposure, outcome})
    shown = "; or ".join(", ".join(names) for names in sets) if sets else "no set is valid"
    more = f" (the first {MOST_SETS})" if len(sets) == MOST_SETS else ""
    lines = [f"adjustment sets by the network{more}: {shown or 'none is needed'}"]
    if not directions.causal:
        lines.append(f"by the network, {exposure} does not cause {outcome}")
    return lines


def _undecided(directions: Directions) -> str:
    """Say which directions the data do not show."""
    x = directions.exposure
    others = [c if p == x else p for p, c in directions.undecided]
    pairs = [f"whether {x} causes {other} or {other} causes {x}" for other in others]
    more = f", and of {len(pairs) - NAMED} more edges" if len(pairs) > NAMED else ""
    return f"the data do not say {', or '.join(pairs[:NAMED])}{more}"


def _report(effects: EffectRange, states: Sequence[str]) -> Iterator[str]:
    """Yield the lines about the risks of some states of the outcome."""
    for outcome in states:
        yield f"P({effects.outcome.name}={outcome} | do({effects.exposure.name})):"
        yield from _risks(effects, outcome)
    unsure = effects.unsure
    if unsure:
        yield f"no interval: {unsure}"
    elif len(effects.effects) > 1:
        yield "Each 95 % interval covers those of all effects in its range."
    else:
        yield "The 95 % intervals are of chance in the sample alone."
    yield from dict.fromkeys(effect.basis for effect in effects.effects)
    yield from dict.fromkeys(effect.assumptions for effect in effects.effects)


def _risks(effects: EffectRange, outcome: str) -> Iterator[str]:
    """Yield the lines of each exposure; the first one with records is the others' baseline."""
    states = effects.exposure.states
    width = max(map(len, states))
    baseline = next(state for state in states if not isnan(effects.risk(outcome, state)[0]))
    for state in states:
        risk = effects.risk(outcome, state)
        if isnan(risk[0]):
            yield f"  {state:{width}}  no record"
            continue
        shown = [_ends(risk, ".4f")]
        intervals = [_interval(effects.risk_interval(outcome, state), ".4f")]
        if state != baseline:
            pair = outcome, state, baseline
            shown.append(f"difference {_ends(effects.difference(*pair), '+.4f')}")
            shown.append(f"ratio {_ends(effects.ratio(*pair), '.3f')}")
            interval = effects.difference_interval(*pair), effects.ratio_interval(*pair)
            intervals.append(f"difference {_interval(interval[0], '+.4f')}")
            intervals.append(f"ratio {_interval(interval[1], '.3f')}")
        yield f"  {state:{width}}  {'  '.join(shown)}"
        if not effects.unsure:
            yield f"  {'':{width}}  95 %: {'  '.join(intervals)}"


def _ends(ends: Interval, form: str) -> str:
    """Return a number, or the range between two that are shown with different digits."""
    low, high = (format(round(end, 4) + 0.0, form) for end in ends)  # never -0.0
    return low if low == high else f"between {low} and {high}"


def _interval(interval: Interval | None, form: str) -> str:
    if interval is None:
        return "without an interval"
    low, high = (format(round(end, 4) + 0.0, form) for end in interval)
    return f"{low} to {high}"
