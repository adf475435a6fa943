"""Studies of the people of all lists: level 2 of an alignment beside level 1, and what tables tell.

    python benchmarks/alignment_tables.py [--sites 3] [--held 0.8] [--records 0]

Each site holds a share of the people of ALARM or Adult, in an order of its own, with the columns
dealt to the sites in turn. K2 learns over the people whom all sites hold. A row has, of each
level, the processor seconds of the alignment and of learning, of all parties in one process, and
the bytes of all links. The last column says of how many of its people a site and the analyst
together learn from the tables of level 2 whether they are in the study.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import reduce
from pathlib import Path

import numpy as np
from runs import arguments, seed_of
from side_by_side import table

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.site.text_column import TextColumn

DATA = Path(os.environ.get("VERTIBAYES_DATA", "data"))


def alarm() -> SiteData:
    columns = read_columns(DATA / "alarm/alarm.csv.gz")
    columns.pop("record_id")
    return SiteData.from_text("alarm", columns)


def adult() -> SiteData:
    columns = read_columns(DATA / "uci/adult_train.csv.gz")
    return SiteData.from_text("adult", columns, strict=False)


def site_of(data: SiteData, site: str, names: list[str], people: np.ndarray) -> SiteData:
    ids = TextColumn(tuple(f"{person + 1:07d}" for person in people), np.arange(len(people)))
    return SiteData(
        {name: data.variables[name] for name in names},
        {name: data.codes[name][people] for name in names},
        ids,
        identifiers=Identifiers.of(site, {"id": ids}, ("exact",)),
    )


def spread(data: SiteData, sites: int, held: float, seed: int = 1) -> dict[str, tuple]:
    """Return the columns and the people of each site."""
    generator, names = np.random.default_rng(seed_of(seed)), [*data.variables]
    return {
        f"site {place}": (
            names[place::sites],
            generator.permutation(np.flatnonzero(generator.random(data.records) < held)),
        )
        for place in range(sites)
    }


def run(data: SiteData, at: dict[str, tuple], level: int, options: Options) -> tuple:
    """Return processor seconds and megabytes of both steps, and what was learned."""
    sites = {site: site_of(data, site, *parts) for site, parts in at.items()}
    with federate(sites, policy=FREE) as federation:
        start = time.process_time()
        request = AlignmentRequest(level)
        counter = SecureCounter.of(federation, alignment=request, order=[*data.variables])
        opened, sent = time.process_time(), federation.traffic.bytes
        learned = learn(counter, options)
        end = time.process_time()
        figures = opened - start, end - opened, sent / 1e6, (federation.traffic.bytes - sent) / 1e6
        return figures, learned


def identified(
    data: SiteData, at: dict[str, tuple], families: list, common: np.ndarray
) -> list[float]:
    """Return of which share of its people each site learns whether they are in the study.

    From each revealed table the site takes the table of its own columns. A cell that has none, or
    all, of the people of its list says so of each of them.
    """
    inside, shares = np.isin(np.arange(data.records), common), []
    for names, people in at.values():
        known = np.zeros(len(people), bool)
        for family in families:
            own = [name for name in family.members if name in names]
            if own:
                lengths = [data.variables[name].codes for name in own]
                cell = np.ravel_multi_index([data.codes[n][people] for n in own], lengths)
                all_ = np.bincount(cell, minlength=np.prod(lengths))
                here = np.bincount(cell[inside[people]], minlength=np.prod(lengths))
                known |= ((here == 0) | (here == all_))[cell]
        shares.append(float(known.mean()))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--held", type=float, default=0.8)
    parser.add_argument("--records", type=int, default=0, help="of each data set; 0 for all")
    given = arguments(parser)
    rows = []
    for name, load in (("alarm", alarm), ("adult", adult)):
        data = load()
        if given.records:
            data = data.rows(np.arange(min(given.records, data.records)))
        at = spread(data, given.sites, given.held)
        common = reduce(np.intersect1d, [people for _, people in at.values()])
        options = Options(algorithm="k2", max_parents=3 if name == "alarm" else 2)
        pooled = learn(PlainCounter(data.rows(common)), options).network
        cells = []
        for level in (1, 2):
            figures, learned = run(data, at, level, options)
            same = learned.network.structure == pooled.structure
            cells.append(
                f"{figures[0]:.1f} s, {figures[2]:.0f} MB; {figures[1]:.1f} s, {figures[3]:.0f} MB"
                + ("" if same else ", NOT AS POOLED")
            )
        families = [*pooled.structure.families]
        shares = identified(data, at, families, common)
        known = f"{min(shares):.2%} to {max(shares):.2%}"
        people = f"{name}, {data.records:,} records, {len(common):,} in common"
        rows.append([people, *cells, known])
        print(*rows[-1], flush=True)
    header = ["data", "level 1: alignment; K2", "level 2: alignment; K2"]
    header += ["own people of whom a site and the analyst learn from the tables"]
    print(table("alignment_tables", header, rows))


if __name__ == "__main__":
    main()
