"""``vertibayes learn study.toml`` with ``learner = "naive_bayes"``: the sites are processes.

method = "hdpnb"    each site holds records of its own: sums over those that are there
method = "vdpnb"    each site holds columns of the same records: tables that the sites publish
with noise, or exact tables through a counter; predictions over the sites
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from vertibayes.cli.machines import Machines
from vertibayes.cli.naive_bayes_learning import (
    Holders,
    Learned,
    Request,
    learn_records,
    publish,
    report,
    reveal,
    score,
)
from vertibayes.cli.notices import warn
from vertibayes.cli.phases import LEARNING
from vertibayes.cli.run import Run
from vertibayes.cli.study_settings import COUNTS_TWICE, test_of
from vertibayes.cli.tested import read_tested
from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import log_proba
from vertibayes.naive_bayes.vertical import most_probable
from vertibayes.settings import LEARNER, MEMBERSHIP, NAIVE_BAYES, PREDICT, TEST
from vertibayes.study import opener
from vertibayes.study_files import TableFile
from vertibayes_protocols.accounting import share_of
from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.errors import words
from vertibayes_protocols.opening import align_people, new_study
from vertibayes_protocols.queries import Describe, Meet
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Session
from vertibayes_protocols.settings import MASKED_TABLES
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable

DESCRIBED = (
    "the states of the variables and the sites' numbers of records, as the sites described them"
)
FOUND_STATES = f"{DESCRIBED} (declare [states] in the study to describe nothing)"
SCORED = "the scores of the predicted records, which depend on the values of these records"


@dataclass(frozen=True)
class NaiveBayesStudy:
    """A study's file, and its options."""

    file: StudyFile
    request: Request
    membership: Mapping[str, Any]
    predict: int
    test: Path | None  # records to test on


def read_study(file: StudyFile) -> NaiveBayesStudy:
    """Return a study's options; refuse settings and test records that cannot be used."""
    study = read_settings(file)
    if study.test is None:
        return study
    try:  # after a release, an error in the records would be too late
        if file.states:
            read_tested(study.test, schema_in(study))
        else:  # the sites describe their states later
            study.test.open("rb").close()
    except (OSError, ValueError) as error:
        reason = words(error).removeprefix("--test ")
        raise file.source.error(("learning", "test"), reason) from None
    return study


def read_settings(file: StudyFile) -> NaiveBayesStudy:
    """Return a study's options, without the analyst's test records; as `read_study`."""
    table = file.source.table("learning")
    values = table.take_all([LEARNER, *NAIVE_BAYES, *TEST])
    membership, predict = table.take_all(MEMBERSHIP), table.take(PREDICT)
    table.end()
    test = test_of(table, values)
    del values["learner"], values["test"], values["holdout"]
    try:
        request = Request(**values, parties=len(file.sites)).checked()
    except ValueError as error:
        raise table.error("learner", str(error).replace("--", "")) from None
    if file.count_by != MASKED_TABLES and not request.reveals_tables:
        raise file.source.error(("study", "count_by"), "needs method vdpnb with noise none")
    if predict and not file.dealer:
        reason = "predictions need a dealer, and counting by paillier has none: remove one of both"
        raise table.error("predict", reason)
    study = NaiveBayesStudy(file, request, membership, predict or 0, test)
    if request.method == "vdpnb":
        _check_columns(study)
        return replace(study, file=of_common_people(file))
    _check_records(study)
    return study


def _check_records(study: NaiveBayesStudy) -> None:
    """Refuse settings of a study whose sites hold records."""
    file, request, membership = study.file, study.request, study.membership
    if file.alignment is not None:
        raise file.source.error(("alignment",), f"{request.method} {COUNTS_TWICE}")
    unused = f"{request.method} does not use it: "
    if file.class_counts:
        raise file.source.error(("class_counts",), unused + "remove the table")
    if study.predict:
        raise file.source.error(("learning", "predict"), unused + "use test")
    if membership["most_records"] is None:
        raise file.source.error(("learning", "most_records"), "declare the most records of a site")
    if len(file.sites) < 2:
        raise file.source.error(("sites",), "sums need two sites or more")
    if file.states:
        schema_in(study)
    privacy = None if request.method == "ldp" else request.privacy()
    gamma = privacy.needed if privacy is not None else 0.0
    shares = {"gamma": gamma} | {name: membership[name] for name in ("dishonest", "dropouts")}
    if sum(share_of(share, 1) for share in shares.values()) > 1:
        given = ", ".join(f"{name} = {share:g}" for name, share in shares.items())
        reason = f"gamma, dishonest and dropouts must be at most 1 together, got {given}"
        raise file.source.error(("learning", "dropouts"), reason)


def _check_columns(study: NaiveBayesStudy) -> None:
    """Refuse settings of a study whose sites hold columns."""
    file, counts = study.file, study.file.class_counts
    if file.states:
        raise file.source.error(("states",), "vdpnb does not use it: the sites declare states")
    if file.numbers:
        raise file.source.error(("numbers",), "vdpnb publishes tables of states: remove the table")
    if study.request.epsilon is None:
        return
    if not counts:
        reason = "declare how many records have each class, which all sites know"
        raise file.source.error(("class_counts",), reason)
    if study.predict > (most := sum(counts.values())):
        reason = f"must be at most {most} (the number of records), got {study.predict}"
        raise file.source.error(("learning", "predict"), reason)


def run_naive_bayes_study(place: Machines, study: NaiveBayesStudy, run: Run) -> None:
    """Learn naive Bayes over the sites of a study, and write the results."""
    request = study.request
    start = perf_counter()
    learned = (_columns if request.method == "vdpnb" else _records)(study, place, run)
    tested = None
    if study.test is not None:
        tested, more = read_tested(study.test, learned.model.schema)
        learned.warnings += more
    options = asdict(request) | {"test": study.test, "holdout": None}
    way = {"count_by": study.file.count_by} if request.reveals_tables else {}
    about = {"study": place.entry(), "options": options, **way}
    report(run, request, learned, tested, perf_counter() - start, about)


# ---- sites that hold records ---------------------------------------------------------------------


def _records(study: NaiveBayesStudy, place: Machines, run: Run) -> Learned:
    """Learn from the records of the sites that are there."""
    file, request, membership = study.file, study.request, study.membership
    most_absent = math.floor(share_of(membership["dropouts"], len(file.sites)))
    with place.star(most_absent, run) as (session, absent):
        schema = _schema(study, session, absent)
        holders = Holders(file.sites, absent=absent, **membership)
        run.watch.phase(LEARNING)
        with run.progress(ticks=True) as progress:
            progress("learning", 0, 1)
            learned = learn_records(request, session, schema, holders)
    if not file.states:
        learned.promised_beside(FOUND_STATES)
    learned.add(session.transport.traffic)
    gone = sorted(set(file.sites) - set(learned.parties))
    learned.warnings += [f"not in the model: {', '.join(gone)}"] if gone else []
    return learned


def _schema(study: NaiveBayesStudy, session: Session, absent: frozenset[str]) -> Schema:
    """Return the class and the features: as declared, or as the sites describe them."""
    states = dict(study.file.states)
    if not states:
        present = tuple(site for site in study.file.sites if site not in absent)
        for description in session.ask(Describe(present)).values():
            for name, variable in description.named().items():
                known = states.get(name, ())
                new = tuple(state for state in variable.states if state not in known)
                states[name] = (*known, *new)
    return _schema_of(study, variables_of(states))


def schema_in(study: NaiveBayesStudy) -> Schema:
    """Return the class and the features as the study declares them."""
    return _schema_of(study, variables_of(study.file.states))


def _schema_of(study: NaiveBayesStudy, variables: Mapping[str, Variable]) -> Schema:
    request = study.request
    return schema_of(study.file, request.target, variables, centred=request.noise != "none")


def variables_of(states: Mapping[str, tuple[str, ...]]) -> dict[str, Variable]:
    """Return the variables that have these states."""
    return {name: Variable(name, own) for name, own in states.items()}


def schema_of(
    file: StudyFile, target: str, states: Mapping[str, Variable], *, centred: bool = False
) -> Schema:
    """Return the class and the features that a study names; numbers have declared bounds."""
    numerics = {name: Numeric(name, *bounds) for name, bounds in file.numbers.items()}
    columns: dict[str, Variable | Numeric] = {**states, **numerics}
    chosen = file.variables or tuple(columns)
    if unknown := [name for name in chosen if name not in columns]:
        reason = f"{unknown[0]!r} is not among {', '.join(columns)}"
        raise file.source.error(("study", "variables"), reason)
    declared = columns.get(target) if target in chosen else None
    if declared is None:
        reason = f"{target!r} is not among {', '.join(chosen)}"
        raise file.source.error(("learning", "target"), reason)
    if isinstance(declared, Numeric):
        reason = f"{target!r} is in [numbers]: a class has states"
        raise file.source.error(("learning", "target"), reason)
    features = {name: columns[name] for name in chosen if name != target}
    return Schema(declared, features, centred=centred)


# ---- sites that hold columns ---------------------------------------------------------------------


def _columns(study: NaiveBayesStudy, place: Machines, run: Run) -> Learned:
    """Learn from tables, and predict records over the sites."""
    with place.session(run) as session:
        run.watch.phase(LEARNING)
        with run.progress(ticks=True) as progress:
            steps = 2 if study.predict else 1
            progress("learning", 0, steps)
            learn = _exact if study.request.noise == "none" else _noisy
            learned, split = learn(study, place.contract, session, run)
            if study.predict:
                progress("prediction", 1, steps)
                _predict(study, session, learned, split)
    learned.add(session.transport.traffic)
    return learned


def _exact(
    study: NaiveBayesStudy, _: Contract | None, session: Session, run: Run
) -> tuple[Learned, Split]:
    """Reveal exact tables: the class is at one site."""
    file, request = study.file, study.request
    with TableFile(file.tables) as kept:
        warn(kept.recovered(), run.watch)
        counter = SecureCounter(opener(file, kept)(session), kept)
        _check_one_site_each(counter.study)
        schema = _schema_of(study, counter.variables)
        holders = {name: sites[0] for name, sites in counter.study.holders.items()}
        learned = reveal(request, counter, schema, {}, holders)
    split = _split(study, schema, holders, learned.model.class_count_.astype(int).tolist())
    return replace(learned, sites=split.holders), split


def _check_one_site_each(study: Study) -> None:
    """Refuse columns of several sites, with a ValueError: a site scores what it holds alone."""
    for name, sites in study.holders.items():
        if len(sites) > 1:
            raise ValueError(
                f"the column {name!r} lies at several sites, {', '.join(sites)}: naive Bayes over "
                "columns needs each at one site; learn with `algorithm` tan or a given structure, "
                "or, if all sites have the same columns, with a method for records"
            )


def _noisy(
    study: NaiveBayesStudy, contract: Contract | None, session: Session, _: Run
) -> tuple[Learned, Split]:
    """Have each site count, add noise and publish its tables: all sites know the class."""
    file, request = study.file, study.request
    people = aligned(file, contract, session)
    session.ask(Meet.of(session.role, file.sites, file.dealer))
    target = Variable(request.target, tuple(file.class_counts))
    features: dict[str, Variable] = {}
    holders: dict[str, str] = {}
    for site, description in session.ask(Describe(file.sites)).items():
        for name, variable in description.named().items():
            if name != request.target and name in (file.variables or (name,)):
                features[name], holders[name] = variable, site
    split = _split(study, Schema(target, features), holders, list(file.class_counts.values()))
    learned = publish(request, session, split)
    learned.promised_beside(DESCRIBED, *([SCORED] if study.predict else []))
    learned.people = people
    return learned, split


def _split(
    study: NaiveBayesStudy, schema: Schema, holders: Mapping[str, str], counts: list[int]
) -> Split:
    held: dict[str, list[str]] = {}
    for name in schema.features:
        held.setdefault(holders[name], []).append(name)
    return Split.of(schema, held, counts, study.request.alpha)


def _predict(study: NaiveBayesStudy, session: Session, learned: Learned, split: Split) -> None:
    """Predict the first records, in the order of their identifiers, over the sites."""
    joint = score(study.request, session, study.file.dealer, learned, split, study.predict)
    classes, shares = most_probable(split, joint), np.exp(log_proba(joint))
    learned.predictions = [
        (place, name, *row) for place, (name, row) in enumerate(zip(classes, shares, strict=True))
    ]


# ---- the people whom all sites that hold columns have -----------------------------------------


def of_common_people(file: StudyFile) -> StudyFile:
    """Return a study of the people whom all sites hold, if it has an alignment."""
    asked = file.alignment
    if asked is None:
        return file
    if asked.level != 1:
        reason = "vdpnb needs level 1: each site counts and scores the people of the study itself"
        raise file.source.error(("alignment", "level"), reason)
    reason = "vdpnb is of people whom all sites hold: remove it"
    if asked.everyone is not None and set(asked.everyone) != set(file.sites):
        reason += f", or name {list(file.sites)}"
        raise file.source.error(("alignment", "everyone"), reason)
    if asked.apart:
        raise file.source.error(("alignment", "apart"), reason)
    return replace(file, alignment=replace(asked, everyone=file.sites, apart=()))


def aligned(file: StudyFile, contract: Contract | None, session: Session) -> AlignedPeople | None:
    """Align the sites' lists, if the study has an alignment; a release with noise follows."""
    asked = file.alignment if contract is None else contract.alignment
    if asked is None:
        return None
    parties = session, file.sites, file.dealer
    people = align_people(*parties, new_study(), asked, variables=())  # all sites have the class
    assert people.people is not None  # nobody has kept the alignment of a new study
    if people.people < (declared := sum(file.class_counts.values())):
        reason = (
            f"{declared} people together, and {people.people} are in the study: declare how many "
            "of the people whom all sites hold have each class"
        )
        raise file.source.error(("class_counts",), reason)
    return people
