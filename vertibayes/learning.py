"""A whole run: structure, CPTs, scores, with the seconds that each takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from protocols.variables import Rows
from vertibayes.counting import Counter
from vertibayes.network import Network, Structure
from vertibayes.parameters.cpt import Scores, fit_cpts, scores
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.structure.k2 import k2

MISSING = ("available", "state", "em")


@dataclass(frozen=True)
class Options:
    """What to learn.

    Parameters
    ----------
    ordering : sequence of str, optional
        For K2; the study's order if None.
    structure : Structure, optional
        Learn its CPTs only.
    max_parents : int, default=3
    missing : {"available", "state", "em"}, default="available"
        Whether missing cells leave their record out of a family's counts, are a state of their own,
        or are filled by EM on the families' tables (the structure is then that of available cases).
    pseudo_count : float, default=0
    structure_records : int, optional
        Learn the structure on a common random sample of so many records; CPTs are learned on all.
    """

    ordering: Sequence[str] | None = None
    structure: Structure | None = None
    max_parents: int = 3
    missing: str = "available"
    pseudo_count: float = 0.0
    structure_records: int | None = None


@dataclass(frozen=True)
class Learned:
    """What was learned, and how long it took.

    Attributes
    ----------
    network : Network
    scores : Scores
    structure_seconds, parameters_seconds : float
    """

    network: Network
    scores: Scores
    structure_seconds: float
    parameters_seconds: float


def learn(
    counter: Counter, options: Options, progress: Callable[[int, int], None] | None = None
) -> Learned:
    """Learn a network from a counter.

    Raises
    ------
    ValueError
        If the options do not fit the variables or the records.
    """
    if options.missing not in MISSING:
        raise ValueError(f"missing {options.missing!r}: one of {', '.join(MISSING)} is wanted")
    start = perf_counter()
    structure = options.structure
    if structure is None:
        structure = k2(
            counter,
            ordering=options.ordering,
            max_parents=options.max_parents,
            missing=options.missing == "state",
            rows=sample_rows(counter, options.structure_records),
            progress=progress,
        )
    else:
        check_nodes(counter, structure)
    learned = perf_counter()
    as_state = options.missing == "state"
    if options.missing == "em":
        pseudo_count = options.pseudo_count
        network = fit_em_from_tables(counter, structure, pseudo_count=pseudo_count).network
    else:
        network = fit_cpts(counter, structure, pseudo_count=options.pseudo_count, missing=as_state)
    found = scores(counter, structure, missing=as_state)
    return Learned(network, found, learned - start, perf_counter() - learned)


def check_nodes(counter: Counter, structure: Structure) -> None:
    """Refuse a structure over other nodes than the variables.

    Raises
    ------
    ValueError
        It names the nodes.
    """
    unknown = [node for node in structure.nodes if node not in counter.variables]
    lacking = [name for name in counter.variables if name not in structure.nodes]
    for what, names in (("unknown", unknown), ("lacking", lacking)):
        if names:
            raise ValueError(f"the structure has nodes {what}: {', '.join(names)}")


def sample_rows(counter: Counter, records: int | None) -> Rows:
    """Return the rows of a sample, all of them if none is wanted.

    Raises
    ------
    ValueError
        If there are not so many records.
    """
    if records is None or records == counter.records:
        return Rows()
    if not 1 <= records <= counter.records:
        raise ValueError(f"a structure sample of {records} of {counter.records} records")
    return Rows(0, 0, records)
