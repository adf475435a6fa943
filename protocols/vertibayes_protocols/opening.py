"""Open a study: the parties meet, the sites describe their variables and commit their columns.

`open_study` asks the queries `Meet`, `Describe` and `Commit`, in this order. With an alignment it
asks `Align` before them, and `Describe` before that if the sizes of the lists, or who must hold
everybody, are to follow from what the sites describe, or if the alignment shares rows. It returns
the `OpenStudy`, of which an analyst asks for tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypedDict

from vertibayes_mpc.commitments import BLOCK_ROWS, MOST_INDICATORS
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignedPeople, Alignment, AlignmentRequest
from vertibayes_protocols.described import alignment_of, carried_columns, study_of
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries import Align, Commit, Describe, Meet
from vertibayes_protocols.session import Session
from vertibayes_protocols.study import CHOICE_INDICATORS

STUDY_BYTES = 16


class StudyOptions(TypedDict, total=False):
    """What `open_study` takes by keyword."""

    order: Sequence[str] | None
    memory: int | None
    block_rows: int
    study: bytes | None
    variables: Collection[str] | None
    choices: bool
    alignment: Alignment | AlignmentRequest | None


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

    Returns
    -------
    study : OpenStudy
        The study, of which counters and choosers are made.

    Raises
    ------
    ValueError
        If two sites show one variable and the study is not aligned, or they declare it with
        different states; if record counts differ, or the order does not fit.
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    people = None
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
    agreed = study_of(identifier, described, dealer, order, *sizes, variables, aligned)
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
