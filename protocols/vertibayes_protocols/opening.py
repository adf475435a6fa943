"""Open a study: the parties meet, the sites describe their variables and commit their columns.

`open_study` asks the queries `Meet`, `Describe` and `Commit`, in this order. With an alignment it
asks `Align` before them, and `Describe` before that if the sizes of the lists, or who must hold
everybody, are to follow from what the sites describe, or if the alignment shares rows. It returns
the `OpenStudy`, of which an analyst asks for tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, get_args

from vertibayes_mpc.commitments import BLOCK_ROWS, MOST_INDICATORS
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignedPeople, Alignment, AlignmentRequest
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries import Align, Commit, Describe, Meet
from vertibayes_protocols.queries.opening.describe import Description
from vertibayes_protocols.queries.opening.meet import different_numbers
from vertibayes_protocols.session import Session
from vertibayes_protocols.settings import MASKED_TABLES, PAILLIER, CountBy
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.study import CHOICE_INDICATORS, NEEDS_MASKED_TABLES, Study
from vertibayes_protocols.variables import Variable

STUDY_BYTES = 16


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
    count_by: CountBy = MASKED_TABLES,
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
    records = max(counts.values())
    return Study(study, in_order, holders, records, dealer, block_rows, memory, count_by=count_by)


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


class StudyOptions(TypedDict, total=False):
    """What `open_study` takes by keyword."""

    order: Sequence[str] | None
    memory: int | None
    block_rows: int
    study: bytes | None
    variables: Collection[str] | None
    choices: bool
    alignment: Alignment | AlignmentRequest | None
    count_by: CountBy


def new_study() -> bytes:
    """Return the id of a new study."""
    return SystemRandomness().bytes(STUDY_BYTES)


def open_study(
    session: Session,
    sites: Sequence[Party],
    dealer: Party,
    *,
    order: Sequence[str] | None = None,
    memory: int | None = None,
    block_rows: int = BLOCK_ROWS,
    study: bytes | None = None,
    variables: Collection[str] | None = None,
    choices: bool = False,
    alignment: Alignment | AlignmentRequest | None = None,
    count_by: CountBy = MASKED_TABLES,
) -> OpenStudy:
    """Have the parties meet, the sites describe their variables, and all commit the study.

    Parameters
    ----------
    session : Session
        The analyst's.
    sites : sequence of Party
    dealer : Party
    order : sequence of str, optional
        The study's order of variables; site after site if None.
    memory : int, optional
        How many bytes one query may take at a party; tables that need more are asked for in several
        queries. The limit of the sites if None, and never more than that limit.
    block_rows : int, default=32768
        How many rows are masked and sent at a time.
    study : bytes, optional
        The id of a study that this session continues; 16 random bytes if None.
    variables : collection of str, optional
        The variables of the study; all that the sites show if None.
    choices : bool, default=False
        Whether choices or releases are asked for. They multiply columns: columns of more codes are
        then committed as indicators, which takes more bytes.
    alignment : Alignment or AlignmentRequest, optional
        Who is in the study. Several sites may then have rows of one variable. Without it the sites
        must hold the same people.
    count_by : {"masked-tables", "scalar-product", "paillier"}, default="masked-tables"
        How tables are counted: `vertibayes_protocols.queries.tables.ways`. Choices, releases,
        columns of several holders and alignments at level 2 need masked tables. By paillier the
        study has no dealer: nothing is asked of it.

    Returns
    -------
    study : OpenStudy
        The study, of which counters and choosers are made.

    Raises
    ------
    ValueError
        If two sites show one variable and the study is not aligned, or they declare it with
        different states; if record counts differ, or the order does not fit; if `count_by` cannot
        count what is asked for.
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    people = None
    if count_by not in (ways := get_args(CountBy)):
        raise ValueError(f"`count_by` must be one of {', '.join(ways)}, got {count_by!r}")
    if count_by != MASKED_TABLES and choices:
        raise ValueError(f"{NEEDS_MASKED_TABLES}: choices and releases need masked columns")
    if count_by != MASKED_TABLES and alignment is not None and alignment.level != 1:
        raise ValueError(f"{NEEDS_MASKED_TABLES}: alignments at level 2 need masked columns")
    dealer = "" if count_by == PAILLIER else dealer
    if alignment is not None:
        study = study or session.role.randomness.bytes(STUDY_BYTES)
        most = CHOICE_INDICATORS if choices else MOST_INDICATORS
        people = align_people(session, sites, dealer, study, alignment, variables, most)
    session.ask(Meet.of(session.role, sites, dealer))
    described = session.ask(Describe(tuple(sites)))
    identifier = study or session.role.randomness.bytes(STUDY_BYTES)
    allowed = min(description.most_memory for description in described.values())
    sizes = block_rows, allowed if memory is None else min(memory, allowed)
    aligned = alignment is not None
    agreed = study_of(identifier, described, dealer, order, *sizes, variables, aligned, count_by)
    if choices:
        agreed = replace(agreed, most_indicators=CHOICE_INDICATORS)
    if people is not None and people.name:
        agreed = agreed.hidden(people.name)
    most_variables: int = min(description.most_variables for description in described.values())
    joined = session.ask(Commit.of(agreed))
    return OpenStudy(session, joined, most_variables, people=people)


def align_people(
    session: Session,
    sites: Sequence[Party],
    dealer: Party,
    study: bytes,
    asked: Alignment | AlignmentRequest,
    variables: Collection[str] | None = None,
    most_indicators: int = MOST_INDICATORS,
) -> AlignedPeople:
    """Have the sites find out who is in a study, for this session."""
    if isinstance(asked, Alignment) and asked.level == 1:
        return session.ask(Align.of(session.role, asked, dealer, study))
    shown = session.ask(Describe(tuple(sites))), variables
    alignment = asked if isinstance(asked, Alignment) else alignment_of(asked, *shown)
    carried = carried_columns(alignment, *shown, most_indicators) if alignment.level == 2 else None
    return session.ask(Align.of(session.role, alignment, dealer, study, carried))
