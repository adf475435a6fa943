"""Prediction over sites: seconds and bytes for each record, beside prediction of joined records.

    python benchmarks/prediction_over_sites.py [--data FOLDER] [--records 1000] [--bif child.bif.gz]

ALARM, CHILD (from the files that pgmpy has) and, if FOLDER has uci/adult_train.csv.gz, naive Bayes
of Adult, over 2, 3 and 5 sites in one process with all messages encoded. ALARM and CHILD predict
records drawn from the network, naive Bayes of Adult records that it was not learned from. The
columns are dealt to the sites at random. One thread; the local prediction is `predict_proba` in the
same run. The AUC of private records is that of `auc_over_sites`, beside the AUC of joined records.
"""

from __future__ import annotations

import argparse
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.cli.demo import alarm
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predict_proba
from vertibayes.network import Network, read_bif
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.prediction_over_sites import auc_over_sites, predict_over_sites
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.validation.measures import auc
from vertibayes_protocols.federation import Federation, federate
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

SITES = (2, 3, 5)
INCOME, ZEROS = "income", ("capital-gain", "capital-loss")


def worlds(folder: Path | None, bif: Path, records: int) -> Iterator[tuple[str, Network, SiteData]]:
    """Return names, networks and records."""
    network = alarm()
    yield "ALARM", network, sample(network, records, seed=seed_of(1))
    network = read_bif(gzip.decompress(bif.read_bytes()).decode())
    yield "CHILD", network, sample(network, records, seed=seed_of(1))
    if folder is not None:
        columns = read_columns(folder / "uci" / "adult_train.csv.gz")
        held = {name: column for name, column in columns.items() if name not in ZEROS}
        data = SiteData.from_text("adult", held, Encoding(missing_codes=("?",)))
        features = [name for name in data.variables if name != INCOME]
        structure = Structure({INCOME: (), **dict.fromkeys(features, (INCOME,))})
        training = PlainCounter(data.rows(np.arange(data.records - records)))
        naive = fit_cpts(training, structure, pseudo_count=1.0)
        tested = data.rows(np.arange(data.records - records, data.records))
        yield "Adult, naive Bayes", naive, tested


def targets_of(network: Network) -> list[str]:
    """Return what is predicted: the class, or each variable."""
    return [INCOME] if INCOME in network.variables else list(network.variables)


def without(data: SiteData, target: str) -> SiteData:
    """Return records without the target."""
    names = [name for name in data.variables if name != target]
    return SiteData({n: data.variables[n] for n in names}, {n: data.codes[n] for n in names})


def opened(data: SiteData, sites: int) -> tuple[Federation, OpenStudy]:
    """Start sites, and open their study."""
    started = federate(split_columns(data, sites, 0), policy=ALLOW_ALL)
    return started, open_study(started.session, started.sites, started.dealer)


def dealt_in(started: Federation) -> int:
    """Return the bytes that the dealer has sent."""
    return sum(n for (party, _), n in started.traffic.bytes_sent.items() if party == "dealer")


def measured(name: str, network: Network, data: SiteData, sites: int) -> list[object]:
    """Predict each target over sites and joined; return a row."""
    seconds, local, off = 0.0, 0.0, 0.0
    started, study = opened(data, sites)
    with started:
        before, opening = started.traffic.bytes, dealt_in(started)
        for target in targets_of(network):
            start = perf_counter()
            ours = predict_over_sites(study, network, target)
            seconds += perf_counter() - start
            start = perf_counter()
            joined = predict_proba(network, without(data, target), target)
            local += perf_counter() - start
            off = max(off, float(np.abs(ours - joined).max()))
        sent = started.traffic.bytes - before
        dealt = dealt_in(started) - opening
    count = len(targets_of(network))
    per = count * data.records
    return [name, sites, count, f"{seconds / count:.3f}", f"{local / count:.3f}",
            f"{sent / per:.0f}", f"{dealt / per:.0f}", f"{off:.1e}"]  # fmt: skip


def areas(name: str, network: Network, data: SiteData, sites: int, target: str) -> list[object]:
    """Return the AUC of private and of joined records, and its cost."""
    started, study = opened(data, sites)
    with started:
        before, start = started.traffic.bytes, perf_counter()
        ours = auc_over_sites(study, network, target).auc
        seconds = perf_counter() - start
        sent = started.traffic.bytes - before
    joined = predict_proba(network, without(data, target), target).round(12)
    pooled = auc(data.codes[target], joined, network.variables[target].states).auc
    assert ours is not None and pooled is not None
    return [name, target, sites, f"{ours:.5f}", f"{pooled:.5f}", f"{ours - pooled:.1e}",
            f"{seconds:.2f}", f"{sent / data.records:.0f}"]  # fmt: skip


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--bif", type=Path, required=False)
    parser.add_argument("--records", type=int, default=1000)
    given = arguments(parser)
    if given.bif is None:
        import importlib.resources

        folder = importlib.resources.files("pgmpy.utils") / "example_models"
        given.bif = Path(str(folder / "child.bif.gz"))
    folder = None if given.data is None else Path(given.data)
    found = list(worlds(folder, given.bif, given.records))
    rows = Rows(measured(*world, sites) for world in found for sites in SITES)
    header = [f"{given.records} records", "sites", "targets", "s per target", "local s",
              "bytes per record", "of these dealt", "largest difference"]  # fmt: skip
    print(table("prediction_over_sites", header, rows), "\n")
    classes = {"ALARM": "LVFAILURE", "CHILD": "Sick", "Adult, naive Bayes": INCOME}
    rows = Rows(areas(*world, sites, classes[world[0]]) for world in found for sites in SITES)
    header = ["AUC", "target", "sites", "private", "joined", "difference", "s", "bytes per record"]
    print(table("prediction_over_sites_auc", header, rows))


if __name__ == "__main__":
    main()
