"""Naive Bayes over parties that hold records: the same for parties in this process and for sites.

hdpnb, federated    `Sums`       shares of noise, or exact sums
federated           `Updates`    a whole copy of noise of each party
gossip              `Updates`    the same, passed on among the parties
ldp                 `Report`     each person's record is perturbed
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.naive_bayes_learned import Learned, SpentError
from vertibayes.cli.naive_bayes_request import Request
from vertibayes.naive_bayes.releases import (
    learn_gossip,
    learn_people,
    learn_sums,
    learn_updates,
)
from vertibayes.report.disclosure import disclosure
from vertibayes.structure.search import Progress
from vertibayes_protocols.federation import ANALYST, RecordFederation
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.local_reports import ReportPlan
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.statistics import LocalData, apart
from vertibayes_protocols.variables import Rows, Variable


class Holders(NamedTuple):
    """Who holds the records."""

    sites: Sequence[str]  # all parties
    most_records: int  # how many records a party has at most
    absent: Collection[str] = ()  # the parties that are not there
    dishonest: float = 0.0  # as of `Terms`
    dropouts: float = 0.0  # as of `Terms`
    missing: bool = True  # whether values may be missing, which people then report


def learn_records(request: Request, session: Session, schema: Schema, holders: Holders) -> Learned:
    """Ask the parties as a request says, and return the model."""
    if request.method == "ldp":
        return _people(request, session, schema, holders)
    sizes = max(len(holders.sites), 2), holders.most_records
    shares = holders.dishonest, holders.dropouts
    terms = Terms(schema, *sizes, request.privacy(), *shares)
    if request.method == "gossip":
        return _gossip(request, session, terms, holders)
    if terms.privacy is not None and terms.privacy.is_local:
        sites, absent = holders.sites, holders.absent
        release = learn_updates(session, terms, sites, absent, alpha=request.alpha)
    else:
        members = Members(terms, holders.sites, request.via)
        release = learn_sums(session, terms, members, holders.absent, alpha=request.alpha)
    return Learned(release.model, release.promise, session.role.ledger, parties=release.parties)


def _gossip(request: Request, session: Session, terms: Terms, holders: Holders) -> Learned:
    models, gossip = learn_gossip(
        session,
        terms,
        holders.sites,
        request.iterations,
        holders.absent,
        alpha=request.alpha,
    )
    first, parties = min(models), tuple(sorted(gossip.updates))
    by = f"the model of {first}"
    learned = Learned(models[first], gossip.promise, session.role.ledger, predicted_by=by)
    return replace(learned, parties=parties, models=models)


def _people(request: Request, session: Session, schema: Schema, holders: Holders) -> Learned:
    assert request.epsilon is not None  # the request was checked
    plan = ReportPlan(
        schema=_missing(schema) if holders.missing else schema,
        eps=request.epsilon,
        reports=request.reports,
        oracle=request.oracle,
        bins=request.equal_bins or None if schema.numeric else None,
        approach=request.approach,
        missing=holders.missing,
    )
    present = sorted(set(holders.sites) - set(holders.absent))
    sites, most = present, holders.most_records
    model, people, promise = learn_people(session, plan, sites, most, alpha=request.alpha)
    learned = Learned(model, promise, session.role.ledger, parties=tuple(present), records=people)
    return replace(learned, prepare=plan.prepare)


def _missing(schema: Schema) -> Schema:
    """Return a schema whose values may be missing."""
    features = {
        name: replace(feature, missing=True) if isinstance(feature, Variable) else feature
        for name, feature in schema.features.items()
    }
    return replace(schema, target=replace(schema.target, missing=True), features=features)


def learn_horizontal(
    request: Request,
    schema: Schema,
    training: LocalData,
    tested: LocalData | None,
    seed: int,
    progress: Progress,
) -> Learned:
    """Deal the records to parties in this process, and ask these; predict the tested records."""
    if not 2 <= request.parties <= training.records:
        raise ValueError(
            f"--parties must be between 2 and {training.records} (the number of records), got "
            f"{request.parties}"
        )
    parts = enumerate(_dealt(request, training.records, np.random.default_rng(seed)))
    parties = {f"party-{place + 1}": training.rows(rows) for place, rows in parts}
    most = max(data.records for data in parties.values())
    holders = Holders(tuple(parties), most, missing=_has_missing(training))
    federation = RecordFederation(parties, policy=ALLOW_ALL)
    steps = 1 if tested is None else 2
    progress("learning", 0, steps)
    with federation.session() as session:
        try:
            learned = learn_records(request, session, schema, holders)
        except ValueError as error:
            raise _spent(error, session.role.ledger) from None
    if learned.promise is not None:
        shown = "the number of records", "the size of the largest party"
        learned.promise = learned.promise.beside(*shown)
        learned.ledger.note(learned.promise.beyond, "all parties together", (ANALYST,))
    else:
        tables, *_ = apart(schema.statistics, schema.variables, learned.model.sums_)
        shown_cells = disclosure([(Rows(), table) for table in tables], training.records)
        learned.warnings += [shown_cells.sentence()] if shown_cells.cells else []
    learned.add(federation.traffic)
    if tested is not None:
        progress("prediction", 1, steps)
        learned.predict(tested)
    return learned


def _dealt(
    request: Request, records: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Return the places of each party's records.

    Gossip shows models of single parties: each record is dealt by itself there, as one that decided
    where others go would change what several parties show. Otherwise the parties are equally large.
    """
    if request.method == "gossip":
        holder = generator.integers(request.parties, size=records)
        return [np.flatnonzero(holder == party) for party in range(request.parties)]
    return np.array_split(generator.permutation(records), request.parties)


def _spent(error: ValueError, ledger: Ledger) -> ValueError:
    """Return what to raise where noise has left no class: sums were revealed all the same."""
    if not ledger.facts:
        return error
    reason = "the budget of what was revealed is spent: use a larger --epsilon or more records"
    return SpentError(f"{error}; {reason}", ledger)


def _has_missing(data: LocalData) -> bool:
    coded = any((codes == len(data.variables[n].states)).any() for n, codes in data.codes.items())
    return coded or any(np.isnan(column).any() for column in data.numbers.values())
