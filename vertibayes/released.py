"""Learn from what a rule releases: the structure by choices, then the learned families' tables.

    analyst -> sites    Choices         of each set of candidates, which one has the highest score
    sites -> analyst    winners         no score and no table
                        ...             until the search ends
    analyst -> sites    FamilyTables    of the learned structure
    sites -> analyst    tables          by the rule: exact, cut, rounded or with noise

CPTs, scores and validations follow from the released tables alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import log2
from time import perf_counter
from typing import TypeAlias

from vertibayes.choosing import Chooser, follow
from vertibayes.choosing.secret import fits_of
from vertibayes.counting.counter import Table
from vertibayes.counting.hidden_counts import with_estimates
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.learning import Learned, learn_cpts
from vertibayes.options import Options, checks, families_of, how_missing
from vertibayes.parameters.em import NoValueError
from vertibayes.settings import USED_BY
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.learners import in_order
from vertibayes.structure.search import Fits, Progress, Search, silent
from vertibayes_protocols.approval import Step, Steps, Winners
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows, Variable

ReleaseTables: TypeAlias = Callable[[FamilyTables], list[Table]]


@dataclass(frozen=True)
class Released:
    """What was learned by choices and a release."""

    learned: Learned  # the network and its scores, from the released tables
    counter: ReleasedCounter = field(repr=False)  # the released tables
    calls: int  # how often choices and tables were asked for
    decisions: int  # the number of sets of which the winner was revealed
    candidates: int  # the number of candidates in all sets
    undecided: int  # in how many of these sets another candidate may win by exact scores
    bits: float
    too_large: int  # the number of families that were left out of the candidates
    resolution: float  # in nats


def steps_of(
    variables: Mapping[str, Variable],
    records: int,
    options: Options,
    rule: Rule,
    fits: Fits,
) -> Steps[Structure]:
    """Learn a structure and release the tables of its families.

    The steps follow from the parameters and the winners: all who know these know the next step.
    """
    check_options(options)
    structure = options.structure
    if structure is None:
        algorithm, rows = ALGORITHMS[options.by], Rows(last=options.structure_records)
        assert algorithm.steps is not None  # `check_options`
        search = Search(
            variables=variables,
            records=rows.count(records),
            fits=fits,
            max_parents=options.most_parents,
            constraints=options.constraints,
            start=options.start,
            missing=how_missing(variables, options) == "state",
            rows=rows,
            ordering=None if options.ordering is None else tuple(options.ordering),
            class_variable=options.class_variable,
            most_bits=options.most_bits,
        )
        structure = in_order((yield from algorithm.steps(search)), variables)
    yield FamilyTables(structure.families, _has_missing_state(variables, options), rule)
    return structure


def steps_of_study(study: Study, options: Options, rule: Rule) -> Steps[Structure]:
    """Learn as `steps_of`, by choices among which the sites of a study can choose."""
    as_state = how_missing(study.variables, options) == "state"
    fits = fits_of(study, missing=as_state)
    return steps_of(study.variables, study.records, options, rule, fits)


def _has_missing_state(variables: Mapping[str, Variable], options: Options) -> bool:
    """Whether the released tables need missing values as a state."""
    available = how_missing(variables, options) == "available" and not options.write_synthetic
    return not available and any(variable.missing for variable in variables.values())


def check_options(options: Options, validate: Iterable[str] = ()) -> None:
    """Refuse options and validations that need tables which are not released."""
    if options.wider_cells:
        raise ValueError(
            "`wider_cells` needs tables that are not released: remove it, or learn without a "
            "release"
        )
    if options.structure is None and ALGORITHMS[options.by].steps is None:
        raise ValueError(
            f"`algorithm` {options.by} needs tables that are not released: use another algorithm, "
            "or learn without a release"
        )
    if options.max_seconds is not None:
        raise ValueError(
            "`max_seconds` cannot end a search by choices, whose steps the sites derive from the "
            "choices alone: remove it, or learn without a release"
        )
    limited = options.most_bits is not None
    if limited and (options.structure is not None or not ALGORITHMS[options.by].ends_early):
        early = " or ".join(name for name, how in ALGORITHMS.items() if how.ends_early)
        raise ValueError(
            f"`most_bits` needs a search that ends early: remove it, or use `algorithm` {early}"
        )
    if "holdout" in validate:
        raise ValueError(
            "`validate` holdout needs tables of some of the records, and only tables of all "
            "records are released: use scv or public, or learn without a release"
        )
    if "svdg" in validate:
        raise ValueError(
            "`validate` svdg needs the tables of each fold, and only tables of all records are "
            "released: use scv or public, or learn without a release"
        )


def check_validations(
    variables: Mapping[str, Variable], options: Options, validate: Iterable[str]
) -> None:
    """Refuse a validation that needs missing values as a state where they are left out."""
    missing = any(variable.missing for variable in variables.values())
    if missing and "scv" in validate and not _has_missing_state(variables, options):
        raise ValueError(
            "`validate` scv needs tables with missing values as a state, and `missing` available "
            "releases tables without them: use another value of `missing`, or `write_synthetic`"
        )


def learn_released(
    chooser: Chooser,
    release: ReleaseTables,
    options: Options,
    rule: Rule,
    progress: Progress = silent,
) -> Released:
    """Learn a network by choices and one release of tables.

    Parameters
    ----------
    chooser : Chooser
    release : callable
        Takes `FamilyTables`; returns the released tables.
    options : Options
    rule : Rule
    progress : callable, optional
        Called with (stage, steps done, steps at most), with 0 if the most is unknown.

    Returns
    -------
    released : Released
        What was learned, the released tables, and what the choices revealed.

    Raises
    ------
    ValueError
        If the options need tables that are not released, or do not fit the variables or the
        records; nothing is then revealed. Also if the rule leaves no count of a variable, after
        the release.
    """
    check_options(options)
    if rule.kind in USED_BY["fewest"] and rule.fewest > chooser.records:
        raise ValueError(
            f"`fewest` must be at most {chooser.records} (the number of records), got "
            f"{rule.fewest}: more would release no count"
        )
    for check in checks(chooser, options).values():
        check()
    as_state = how_missing(chooser.variables, options) == "state"
    chooser.check(families_of(chooser, options), missing=as_state)
    undecided = chooser.undecided
    start, asked = perf_counter(), _Asked(chooser, release, options.by, progress)
    fits = partial(asked.fits, missing=as_state)
    steps = steps_of(chooser.variables, chooser.records, options, rule, fits)
    structure = follow(steps, asked.answer)
    seconds = perf_counter() - start
    request, tables = asked.released[-1]
    counter = ReleasedCounter(chooser.variables, chooser.records, request, tables)
    _check_something_left(counter)
    try:
        learned = learn_cpts(with_estimates(counter), structure, options, seconds, progress)
    except NoValueError as error:
        raise ValueError(
            f"the rule {rule.kind} leaves too little: {error}, or use fewer parents or another rule"
        ) from None
    sizes = [len(candidates) for choices in asked.choices for candidates in choices.sets]
    return Released(
        learned,
        counter,
        calls=len(asked.choices) + 1,
        decisions=len(sizes),
        candidates=sum(sizes),
        undecided=chooser.undecided - undecided,
        bits=len(sizes) + sum(map(log2, sizes)),
        too_large=len(asked.too_large),
        resolution=2 * max(map(chooser.score_error, asked.choices), default=0.0),
    )


def _check_something_left(counter: ReleasedCounter) -> None:
    """Refuse to learn CPTs where a rule leaves no count of a variable."""
    for family, table in zip(counter.request.families, counter.released, strict=True):
        if counter.records and not (table > 0).any():
            raise ValueError(
                f"the rule {counter.request.rule.kind} leaves too little: no count of "
                f"{', '.join(family.members)}; use fewer parents or another rule"
            )


class _Asked:
    """Answers the steps of a learner, and keeps what was asked."""

    def __init__(
        self, chooser: Chooser, release: ReleaseTables, stage: str, progress: Progress
    ) -> None:
        self._chooser, self._release = chooser, release
        self._progress = progress
        self._stage = stage
        self.choices: list[Choices] = []
        self.released: list[tuple[FamilyTables, list[Table]]] = []
        self.too_large: set[Family] = set()

    def fits(self, family: Family, *, missing: bool) -> bool:
        """Whether a family is small enough for a candidate."""
        is_small = self._chooser.fits(family, missing=missing)
        if not is_small:
            self.too_large.add(family)
        return is_small

    def answer(self, step: Step) -> Winners:
        """Answer a step."""
        if isinstance(step, FamilyTables):
            self.released.append((step, self._release(step)))
            return ()
        self._progress(self._stage, len(self.choices), 0)  # the most depends on the winners
        self.choices.append(step)
        return self._chooser.choose(step)
