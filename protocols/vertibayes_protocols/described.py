"""What follows from the sites' descriptions: the alignment of a study, and the study."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import Alignment, AlignmentRequest
from vertibayes_protocols.queries.opening.describe import Description
from vertibayes_protocols.queries.opening.meet import different_numbers
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable


def alignment_of(
    asked: AlignmentRequest,
    described: Mapping[Party, Description],
    chosen: Collection[str] | None,
) -> Alignment:
    """Return the alignment of a study; what the analyst left out follows from the descriptions."""
    people = {site: description.records for site, description in described.items()}
    holders = {name: tuple(by_site) for name, by_site in _shown(described, chosen).items()}
    alignment = asked.alignment(tuple(described), people, holders)
    for name, held in holders.items() if alignment.level == 1 else ():
        twice = [site for site in held if alignment.holds_all(site)]
        if len(twice) > 1:  # refused before the lists are matched
            raise ValueError(
                f"the column {name!r} is at {', '.join(twice)}, which all hold everybody of the "
                "study: rename or leave out all but one, or change everyone in [alignment]"
            )
    return alignment


def carried_columns(
    alignment: Alignment,
    described: Mapping[Party, Description],
    chosen: Collection[str] | None,
    most_indicators: int,
) -> CarriedColumns:
    """Return the columns that an alignment of level 2 shares."""
    shown = _shown(described, chosen)
    for name, by_site in shown.items():
        if len(by_site) > 1:
            raise ValueError(
                f"the column {name!r} is at {', '.join(by_site)}, and at level 2 of an alignment "
                "each column must be at one site: rename or leave out one, or use level 1"
            )
    owners = {name: site for name, by_site in shown.items() for site in by_site}
    variables = {name: shown[name][site] for name, site in owners.items()}
    return CarriedColumns(variables, owners, most_indicators, max(alignment.size.values()))


def study_of(
    study: bytes,
    described: Mapping[Party, Description],
    dealer: Party,
    order: Sequence[str] | None,
    block_rows: int,
    memory: int,
    chosen: Collection[str] | None = None,
    aligned: bool = False,
) -> Study:
    """Return the study of what the sites describe: all variables, or the chosen ones."""
    counts = {site: description.records for site, description in described.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(different_numbers(counts))
    at_sites = _shown(described, chosen)
    variables = {name: _agreed(by_site, aligned) for name, by_site in at_sites.items()}
    if absent := sorted(set(chosen or ()) - set(variables)):
        raise ValueError(
            f"no site shows {', '.join(absent)} with states; choose from what they show"
        )
    in_order = _in_order(variables, variables if order is None else order)
    holders = {name: tuple(sorted(at_sites[name])) for name in in_order}
    return Study(study, in_order, holders, max(counts.values()), dealer, block_rows, memory)


def _agreed(shown: Mapping[Party, Variable], aligned: bool) -> Variable:
    """Return a variable as all its holders show it; values of several holders may be missing."""
    (first, variable), *others = shown.items()
    for site, other in others:
        if not aligned:
            raise ValueError(
                f"the column {variable.name!r} is at two sites, {first} and {site}; rename one, or "
                "declare [alignment] if they have it of different people"
            )
        if other.states != variable.states:
            raise ValueError(_states_differ(variable, first, other, site))
    return replace(variable, missing=True) if others else variable


def _states_differ(one: Variable, first: Party, other: Variable, second: Party) -> str:
    """Say which states of a variable only one of two sites has."""
    alone = [
        f"only {site} has {', '.join(map(repr, more))}"
        for site, mine, theirs in ((first, one, other), (second, other, one))
        if (more := [state for state in mine.states if state not in theirs.states])
    ]
    how = "; ".join(alone) or f"{first} has {list(one.states)}, {second} has {list(other.states)}"
    return (
        f"{first} and {second} declare the column {one.name!r} with different states or in another "
        f"order: {how}; declare the same states in the same order at all its sites, or "
        "leave the column out"
    )


def _in_order(variables: Mapping[str, Variable], order: Collection[str]) -> dict[str, Variable]:
    if sorted(order) != sorted(variables):
        wrong = ", ".join(sorted(set(order) ^ set(variables))) or "a name twice"
        raise ValueError(
            f"the order does not fit the variables shown: {wrong}; name each variable once"
        )
    return {name: variables[name] for name in order}


def _shown(
    described: Mapping[Party, Description], chosen: Collection[str] | None
) -> dict[str, dict[Party, Variable]]:
    """Return each variable of the study, as each of its sites shows it."""
    shown: dict[str, dict[Party, Variable]] = {}
    for site, description in described.items():
        for name, variable in description.named().items():
            if chosen is None or name in chosen:
                shown.setdefault(name, {})[site] = variable
    return shown
