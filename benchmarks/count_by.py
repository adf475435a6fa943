"""K2 by each way of counting: what it costs, and what was predicted.

    python benchmarks/count_by.py --data FOLDER [--parts asia,alarm] [--sites 2,3] [--records N]
        [--most 300] [--seed 0]

FOLDER has asia/asia.bif and alarm/alarm.bif, of which the records are drawn (--seed) and dealt to
the sites. Each row learns structure and CPTs in one process. A run by masked tables for
each number of sites is not measured: it shows which tables K2 asks for, and what is predicted is of
these (`vertibayes.forecast`). Seconds are the processor's, of all parties, once the study is open;
bytes, of all links, and rounds are of opening it too.
Masked tables are also counted all by products and all by shuffles, of which the planner chooses.
A way of which more than `--most` seconds are predicted is not run: its row has the prediction
alone. A network that differs from that of pooled records ends the benchmark.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import process_time
from typing import TypeAlias
from unittest.mock import patch

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.forecast import Forecast, forecast, slowness
from vertibayes.network import read_bif
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes.words import duration, size
from vertibayes_protocols.federation import federate
from vertibayes_protocols.queries.tables.counting import Cost, kept_costs
from vertibayes_protocols.queries.tables.masked_costs import MaskedCosts, choose_shuffled
from vertibayes_protocols.queries.tables.ways import WAYS
from vertibayes_protocols.settings import MASKED_TABLES, CountBy
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows

RECORDS = {"asia": 1_000, "alarm": 10_000}
MEMORY = 4 << 30  # bytes, of all parties
NOT_TOGETHER = {
    "masked-tables, shuffles": "dealer and a site",
    "masked-tables": "dealer and a site; dealer and analyst",
    "scalar-product": "dealer and a holder of the table",
    "paillier": "first holder and any holder after the second",
}
HEADINGS = (
    "network", "records", "sites", "count_by", "tables", "seconds", "predicted s", "MB",
    "predicted MB", "rounds", "predicted rounds", "must not work together",
)  # fmt: skip


WAYS_AND_KINDS: list[tuple[CountBy, str]] = [
    (MASKED_TABLES, "products"),
    (MASKED_TABLES, "shuffles"),
    *((way, "") for way in WAYS),
]
Calls: TypeAlias = list[Sequence[Family]]
Took: TypeAlias = tuple[float, int, int]  # seconds, bytes, rounds


class Noting(SecureCounter):
    """A counter that keeps which families it asked for, call by call."""

    asked: Calls

    def _ask(self, families: list[Family], missing: bool, rows: Rows) -> None:
        self.asked.append(list(families))
        super()._ask(families, missing, rows)


def learned(data: SiteData, sites: int, way: CountBy) -> tuple[Noting, Took]:
    """Learn by a way; return its counter, and the seconds, bytes and rounds."""
    order, pooled = list(data.variables), PlainCounter(data)
    with federate(split_columns(data, sites), memory_budget=MEMORY) as federation:
        counter = Noting.of(federation, order=order, count_by=way)
        counter.asked = []
        start = process_time()
        structure = k2(counter)
        network = fit_cpts(counter, structure)
        took = process_time() - start, federation.traffic.bytes, federation.traffic.rounds
    wanted = fit_cpts(pooled, k2(pooled))
    if structure != wanted.structure or any(
        (network.cpts[name] != wanted.cpts[name]).any() for name in order
    ):
        raise SystemExit(f"{way} over {sites} sites has another network than pooled records")
    return counter, took


@contextmanager
def forced(kind: str) -> Iterator[None]:
    """Have all parties count masked tables by products, or by shuffles; by either if neither."""
    never = Cost(10**30, 0)
    both = {
        "products": lambda costs, size: (never, costs.products(size)),
        "shuffles": lambda costs, size: (costs.shuffle(size), never),
    }.get(kind, MaskedCosts._both)
    kept_costs.cache_clear(), choose_shuffled.cache_clear()
    with patch.object(MaskedCosts, "_both", both):
        yield
    kept_costs.cache_clear(), choose_shuffled.cache_clear()


def row(study: Study, predicted: Forecast, took: Took | None, name: str, way: str) -> list[object]:
    """Return the row of a way; without figures of a run that was too long."""
    seconds, sent, rounds = took or ("", "", "")
    return [
        name,
        f"{study.records:,}",
        len(study.sites),
        way,
        predicted.tables,
        seconds if took is None else round(float(seconds), 2),
        round(predicted.seconds, 2),
        sent if took is None else round(int(sent) / 1e6, 2),
        round(predicted.bytes / 1e6, 2),
        rounds,
        predicted.rounds,
        NOT_TOGETHER.get(way, NOT_TOGETHER[study.count_by]),
    ]


def one_of(
    data: SiteData, sites: int, way: CountBy, kind: str, most: float, name: str, asked: Calls
) -> list[object]:
    """Predict a way, and run it unless it takes too long; return its row."""
    with federate(split_columns(data, sites), memory_budget=MEMORY) as federation:
        study = Noting.of(federation, order=list(data.variables), count_by=way).study
    predicted = forecast(study, asked)
    predicted = replace(predicted, seconds=predicted.seconds - forecast(study, []).seconds)
    done = learned(data, sites, way)[1] if predicted.seconds <= most else None
    said = f"{way}, {kind}" if kind else way
    print(
        f"{name}, {sites} sites, {said}: {duration(predicted.seconds)} and "
        f"{size(predicted.bytes)} predicted; {done or 'not run'}",
        flush=True,
    )
    return row(study, predicted, done, name, said)


def main() -> None:
    """Measure every case, print its rows as they are done, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="asia,alarm")
    parser.add_argument("--sites", default="2,3")
    parser.add_argument("--records", type=int, help="of all parts; 1,000 and 10,000 if not given")
    parser.add_argument("--most", type=float, default=300.0, help="seconds of a run, as predicted")
    given = arguments(parser, data=True)
    slowness()  # which measures this machine once
    rows = []
    for name in given.parts.split(","):
        network = read_bif((given.data / name / f"{name}.bif").read_text())
        data = sample(network, given.records or RECORDS[name], seed=given.seed)
        for sites in map(int, given.sites.split(",")):
            asked = learned(data, sites, MASKED_TABLES)[0].asked
            for way, kind in WAYS_AND_KINDS:
                with forced(kind):
                    rows.append(one_of(data, sites, way, kind, given.most, name, asked))
    print(table("count_by", HEADINGS, rows))


if __name__ == "__main__":
    main()
