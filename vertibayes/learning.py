"""A whole run: structure, CPTs, scores, with the seconds that each takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeAlias

from protocols.site.data import SiteData
from protocols.variables import Family, Rows
from vertibayes.counting import Counter
from vertibayes.network import Network, Structure
from vertibayes.parameters.cpt import PSEUDO_COUNT, Scores, check_pseudo_count, fit_cpts, scores
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic, fit_three_steps
from vertibayes.parameters.widening import Widening
from vertibayes.structure.k2 import check_max_parents, check_ordering, k2, widest_families

Progress: TypeAlias = Callable[[str, int, int], None]  # stage, steps done, steps at most

MISSING = ("em", "synthetic", "available", "state")


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
    missing : {"em", "synthetic", "available", "state"}, optional
        Whether missing cells are filled by EM on the families' tables or by the three steps of
        VertiBayes (the structure is that of available cases), leave their record out of a family's
        counts, or are a state of their own. "em" if cells are missing and "available" if not, when
        None.
    pseudo_count : float, default=0.5
        Added to each cell of the CPTs; 0 for maximum likelihood.
    structure_records : int, optional
        Learn the structure on a common random sample of so many records; CPTs are learned on all.
    wider_cells : int, default=0
        How many cells "em" may open beyond those of the families, in wider tables.
    synthetic_records : int, optional
        How many synthetic records are drawn; as many as there are records if None.
    em_restarts : int, default=0
        Further random starts of the EM of the three steps.
    write_synthetic : bool, default=False
        Whether synthetic records, missing cells included, are drawn whatever the way, and kept.
        They are those of the three steps' intermediate network, which opens the families' tables
        with missing as a state.

    Raises
    ------
    ValueError
        If an option is out of range, or belongs to another way with missing cells.
    """

    ordering: Sequence[str] | None = None
    structure: Structure | None = None
    max_parents: int = 3
    missing: str | None = None
    pseudo_count: float = PSEUDO_COUNT
    structure_records: int | None = None
    wider_cells: int = 0
    synthetic_records: int | None = None
    em_restarts: int = 0
    write_synthetic: bool = False

    def __post_init__(self) -> None:
        if self.missing is not None and self.missing not in MISSING:
            raise ValueError(f"missing {self.missing}: one of {', '.join(MISSING)} is wanted")
        if self.ordering is not None and self.structure is not None:
            raise ValueError("a structure needs no ordering: its CPTs only are learned")
        check_pseudo_count(self.pseudo_count)
        if self.wider_cells < 0:
            raise ValueError(f"wider cells of {self.wider_cells}: a number from 0 on is wanted")
        if self.em_restarts < 0:
            raise ValueError(f"EM restarts of {self.em_restarts}: a number from 0 on is wanted")
        if self.synthetic_records is not None and self.synthetic_records < 1:
            raise ValueError(f"{self.synthetic_records} synthetic records: one at least is wanted")
        if self.wider_cells and self.missing not in (None, "em"):
            raise ValueError(f"wider cells are for missing em, not {self.missing}")
        if self.em_restarts and self.missing != "synthetic":
            raise ValueError("EM restarts are for missing synthetic: EM on tables has one start")
        if self.synthetic_records is not None and not (
            self.write_synthetic or self.missing == "synthetic"
        ):
            raise ValueError("synthetic records are for missing synthetic, or to be kept")


@dataclass(frozen=True)
class Fitted:
    """A network's CPTs, and what came with them.

    Attributes
    ----------
    network : Network
    widenings : tuple of Widening
        By which neighbours tables were widened, in the order of their choice.
    synthetic : SiteData, optional
        The records of the three steps.
    """

    network: Network
    widenings: tuple[Widening, ...] = ()
    synthetic: SiteData | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Learned:
    """What was learned, and how long it took.

    Attributes
    ----------
    network : Network
    scores : Scores
    structure_seconds, parameters_seconds : float
    pseudo_count : float
        Added to each cell of the CPTs.
    widenings : tuple of Widening
        By which neighbours tables were widened, in the order of their choice.
    synthetic : SiteData, optional
        The synthetic records, if they are to be kept.
    """

    network: Network
    scores: Scores
    structure_seconds: float
    parameters_seconds: float
    pseudo_count: float
    widenings: tuple[Widening, ...] = ()
    synthetic: SiteData | None = field(default=None, repr=False)


def learn(counter: Counter, options: Options, progress: Progress | None = None) -> Learned:
    """Learn a network from a counter.

    Parameters
    ----------
    counter : Counter
    options : Options
    progress : callable, optional
        Called with (stage, steps done, steps at most).

    Returns
    -------
    learned : Learned

    Raises
    ------
    ValueError
        If the options do not fit the variables or the records.
    """
    for check in checks(counter, options).values():
        check()
    missing = how_missing(counter, options)
    tell = progress or _silent
    start = perf_counter()
    structure = options.structure
    if structure is None:
        structure = k2(
            counter,
            ordering=options.ordering,
            max_parents=options.max_parents,
            missing=missing == "state",
            rows=sample_rows(counter, options.structure_records),
            progress=partial(tell, "K2"),
        )
    learned = perf_counter()
    fitted = fit(counter, structure, options, progress)
    synthetic = fitted.synthetic
    if options.write_synthetic and synthetic is None:
        synthetic = draw_synthetic(counter, structure, records=options.synthetic_records)
    found = scores(counter, structure, missing=missing == "state")
    seconds = learned - start, perf_counter() - learned
    kept = synthetic if options.write_synthetic else None
    return Learned(fitted.network, found, *seconds, options.pseudo_count, fitted.widenings, kept)


def families_of(counter: Counter, options: Options) -> list[Family]:
    """Return the widest families whose tables a run may ask for, beside wider tables for EM."""
    if options.structure is not None:
        return list(options.structure.families)
    order = list(counter.variables) if options.ordering is None else options.ordering
    as_state = how_missing(counter, options) == "state"
    return widest_families(counter, order, options.max_parents, missing=as_state)


def _silent(stage: str, done: int, steps: int) -> None:
    del stage, done, steps


def how_missing(counter: Counter, options: Options) -> str:
    """Return what is done with missing cells."""
    if options.missing is not None:
        return options.missing
    gaps = any(variable.missing for variable in counter.variables.values())
    return "em" if gaps else "available"


def fit(
    counter: Counter, structure: Structure, options: Options, progress: Progress | None = None
) -> Fitted:
    """Fit the CPTs of a structure, with missing cells as the options say.

    Raises
    ------
    ValueError
        As the fit that is chosen.
    """
    missing, pseudo_count = how_missing(counter, options), options.pseudo_count
    tell = partial(progress or _silent, "EM")
    if missing == "em":
        found = fit_em_from_tables(
            counter,
            structure,
            pseudo_count=pseudo_count,
            wider_cells=options.wider_cells,
            progress=tell,
        )
        return Fitted(found.network, found.widenings)
    if missing == "synthetic":
        final, synthetic = fit_three_steps(
            counter,
            structure,
            pseudo_count=pseudo_count,
            records=options.synthetic_records,
            restarts=options.em_restarts,
            progress=tell,
        )
        return Fitted(final.network, synthetic=synthetic)
    as_state = missing == "state"
    return Fitted(fit_cpts(counter, structure, pseudo_count=pseudo_count, missing=as_state))


def checks(counter: Counter, options: Options) -> dict[str, Callable[[], object]]:
    """Return, by option, the checks that it fits the variables and records; they open nothing."""
    if options.structure is not None:
        return {"structure": partial(_check_structure, counter, options.structure)}
    return {
        "ordering": partial(check_ordering, counter, options.ordering),
        "max_parents": partial(check_max_parents, counter, options.max_parents),
        "structure_records": partial(sample_rows, counter, options.structure_records),
    }


def _check_structure(counter: Counter, structure: Structure) -> None:
    """Refuse a structure over other nodes than the variables, or of wider tables than allowed."""
    unknown = [node for node in structure.nodes if node not in counter.variables]
    lacking = [name for name in counter.variables if name not in structure.nodes]
    for what, names in (("unknown", unknown), ("lacking", lacking)):
        if names:
            raise ValueError(f"the structure has nodes {what}: {', '.join(names)}")
    widest = max(structure.nodes, key=lambda node: len(structure.parents[node]))
    parents, most = len(structure.parents[widest]), counter.most_variables
    if most is not None and parents >= most:
        raise ValueError(
            f"the structure has a node of too many parents: {widest} has {parents}; the sites "
            f"allow tables of {most} variables, so at most {most - 1} parents"
        )


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
