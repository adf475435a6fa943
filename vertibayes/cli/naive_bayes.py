"""``vertibayes nb``: read, deal to parties in this process, learn naive Bayes, test, write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.inputs import read_pooled
from vertibayes.cli.naive_bayes_learning import (
    OF_NOISE,
    Holders,
    Learned,
    Request,
    learn_records,
    publish,
    report,
    reveal,
    score,
)
from vertibayes.cli.run import Run
from vertibayes.cli.source import Source
from vertibayes.cli.tested import about_lost, divided_records
from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import log_proba
from vertibayes.report.disclosure import KnownRecords, disclosure
from vertibayes.splitting import deal_columns
from vertibayes_protocols.federation import ANALYST, RecordFederation, federate
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.columns.scores import SCORED_VIA
from vertibayes_protocols.queries.columns.scoring import check_products
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.settings import MASKED_TABLES, CountBy
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData, Numeric, apart
from vertibayes_protocols.variables import Rows, Variable

MUCH = 10  # of epsilon
REMEDY = "wider bins make them fewer, and noise hides them (--noise, --epsilon)"


def run_nb(source: Source, request: Request, run: Run) -> None:
    """Run the command; see its help."""
    request = request.checked()
    if source.count_by != MASKED_TABLES and not request.reveals_tables:
        raise ValueError("--count-by needs --method vdpnb and --noise none")
    sites = read_pooled(source)
    sites.check_known(request.target, "--target")
    (data,) = sites.data.values()
    schema = _schema(request, sites.order, data)
    training, tested, more = divided_records(source, schema, data)
    start = perf_counter()
    with run:
        place = Dealt(request, schema, training, tested, source.seed, source.count_by)
        learned = (place.columns if request.method == "vdpnb" else place.records)(run)
        learned.warnings[:0] = [*sites.warnings, *more, *_warnings(request, schema, training)]
        learned.records = training.records
        options = asdict(request) | source.options("test", "holdout")
        way = {"count_by": source.count_by} if request.reveals_tables else {}
        about = {"left_out": dict(sites.left_out), "options": options, **way}
        report(run, request, learned, tested, perf_counter() - start, about)


def _schema(request: Request, order: Sequence[str], data: SiteData) -> Schema:
    """Return the class and the features: numbers where bounds are declared."""
    if request.target in data.numerics:
        raise ValueError(
            f"--target {request.target}: --bounds keeps its numbers, and a class has states"
        )
    if data.numerics and request.method == "vdpnb":
        raise ValueError(
            f"--bounds {next(iter(data.numerics))}: vdpnb publishes tables of states; use "
            "--method hdpnb, or --cut"
        )
    columns: dict[str, Variable | Numeric] = {**data.variables, **data.numerics}
    features = {name: columns[name] for name in order if name != request.target}
    centred = request.noise != "none"
    return Schema(data.variables[request.target], features, centred=centred)


def _warnings(request: Request, schema: Schema, training: LocalData) -> Iterator[str]:
    """Return what the noise does not cover, and how many records have no class."""
    yield from about_lost(training, request.target)
    if request.noise == "none":
        return
    binned = [n for n, v in schema.variables.items() if bins_of(v.states) is not None]
    cut = f", and the bins of {', '.join(binned)} are cut from it" if binned else ""
    bounds = ", as are the --bounds" if schema.numerics else ""
    yield (
        "the states of all variables, and which of them have missing values, are those found in "
        f"the file, taken as known beforehand{bounds}{cut}: --epsilon does not cover them"
    )
    yield (
        "the numbers that warnings give, such as that of records without a class, and the scores "
        "of tested records are written as they are: --epsilon does not cover them"
    )
    shared = request.noise in OF_NOISE["gamma"]
    if shared and request.gamma * request.parties > request.parties - 1:
        yield (
            "--gamma counts on the noise of all parties: a party that sees the model knows its "
            "own, and has less against it; a gamma below 1 - 1/parties covers that"
        )
    if request.epsilon is not None and request.epsilon > MUCH:
        yield f"--epsilon {request.epsilon:g}: more than {MUCH} protects next to nothing"


# ---- parties in this process ---------------------------------------------------------------------


class Dealt(NamedTuple):
    """Records that are dealt to parties of this process."""

    request: Request
    schema: Schema
    training: LocalData
    tested: LocalData | None
    seed: int
    count_by: CountBy

    def records(self, run: Run) -> Learned:
        """Deal the records to parties, and ask these."""
        request, training = self.request, self.training
        self._check_parties(training.records, "the number of records")
        rows = _dealt(request, training.records, np.random.default_rng(self.seed))
        parties = {f"party-{n}": training.rows(own) for n, own in enumerate(rows, start=1)}
        most = max(data.records for data in parties.values())
        missing = [
            (c == len(training.variables[n].states)).any() for n, c in training.codes.items()
        ]
        missing += [np.isnan(column).any() for column in training.numbers.values()]
        holders = Holders(tuple(parties), most, missing=any(missing))
        federation = RecordFederation(parties, policy=ALLOW_ALL)
        with federation.session() as session, run.progress(ticks=True) as progress:
            run.ledger = session.role.ledger
            progress("learning", 0, steps := 1 if self.tested is None else 2)
            learned = learn_records(request, session, self.schema, holders)
            if self.tested is not None:
                progress("prediction", 1, steps)
                learned.log_proba = learned.model.predict_log_proba(learned.prepare(self.tested))
        learned.promised_beside("the number of records", "the size of the largest party")
        if learned.promise is not None:
            run.ledger.note(learned.promise.beyond, "all parties together", (ANALYST,))
        else:
            of = self.schema.statistics, self.schema.variables, learned.model.sums_
            target = self.schema.target.name
            members = [(target,), *((name, target) for name in self.schema.categorical)]
            counted = zip(members, apart(*of)[0], strict=True)
            tables = [(names, Rows(), table) for names, table in counted]
            cells = disclosure(tables, training.records, KnownRecords(training.codes))
            learned.warnings += [cells.sentence(REMEDY)] if cells.cells else []
        learned.add(federation.traffic)
        return learned

    def _check_parties(self, most: int, what: str) -> None:
        if not 2 <= (parties := self.request.parties) <= most:
            raise ValueError(f"--parties must be between 2 and {most} ({what}), got {parties}")

    def columns(self, run: Run) -> Learned:
        """Deal the columns to sites, and predict the tested records over them."""
        request, features, target = self.request, self.schema.features, self.schema.target
        self._check_parties(len(features), "the number of features; each site holds at least one")
        held = deal_columns(list(features), request.parties, self.seed)
        counts = np.bincount(self.training.codes[target.name], minlength=len(target.states))
        counts = counts[: len(target.states)].tolist()
        split = Split.of(self.schema, held, counts, request.alpha)
        if self.tested is not None and request.via == "product":
            check_products(split)
        steps = 1 if self.tested is None else 2
        with run.progress(ticks=True) as progress:
            progress("learning", 0, steps)
            learn = self._revealed if request.noise == "none" else self._published
            learned = learn(split, run)
            if self.tested is not None:
                progress("prediction", 1, steps)
                self._predict(self.tested, split, learned, run)
        return learned

    def _revealed(self, split: Split, run: Run) -> Learned:
        """Have one site hold the class."""
        target, first = self.schema.target.name, next(iter(split.holders))
        sites = {s: [*own, *([target] if s == first else [])] for s, own in split.holders.items()}
        with federate(_site_data(self.training, sites)) as federation:
            run.ledger = federation.session.role.ledger
            order, count_by = list(self.schema.variables), self.count_by
            counter = SecureCounter.of(federation, order=order, count_by=count_by)
            holders = {name: site for site, names in sites.items() for name in names}
            learned = reveal(self.request, counter, self.schema, sites, holders)
            known = KnownRecords(self.training.codes)
            cells = disclosure(counter.revealed, counter.records, known)
        learned.warnings += [cells.sentence(REMEDY)] if cells.cells else []
        learned.add(federation.traffic)
        return learned

    def _published(self, split: Split, run: Run) -> Learned:
        """Have all sites know the class."""
        target = self.schema.target.name
        sites = {site: (*own, target) for site, own in split.holders.items()}
        with federate(_site_data(self.training, sites), policy=ALLOW_ALL) as federation:
            run.ledger = ledger = federation.session.role.ledger
            classes = f"the {target} of every record, which all sites know beforehand"
            ledger.note(classes, "the records", tuple(sites))
            ledger.note(f"the counts of each {target}", "the records", (*sites, ANALYST))
            learned = publish(self.request, federation.session, split)
        learned.add(federation.traffic)
        return learned

    def _predict(self, tested: LocalData, split: Split, learned: Learned, run: Run) -> None:
        """Predict the tested records over the sites."""
        variables = {name: Variable(name, v.states, True) for name, v in tested.variables.items()}
        records = LocalData(variables, tested.codes)  # some values may be missing here alone
        data, request = _site_data(records, split.holders), self.request
        with federate(data, policy=ALLOW_ALL) as federation:
            session, dealer = federation.session, federation.dealer
            joint = score(request, session, dealer, learned, split, tested.records)
            assert run.ledger is not None  # of the learning
            run.ledger.facts += session.role.ledger.facts
            learned.add(federation.traffic)
        learned.log_proba = log_proba(joint)
        learned.predicted_by = SCORED_VIA[request.via]


def _site_data(records: LocalData, sites: Mapping[str, Iterable[str]]) -> dict[str, SiteData]:
    """Return the columns of each site."""
    return {
        site: SiteData(
            {name: records.variables[name] for name in names},
            {name: records.codes[name].astype(np.uint16) for name in names},
        )
        for site, names in sites.items()
    }


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
