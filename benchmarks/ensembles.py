"""Federated Bayesian network ensembles beside one network over the sites.

    python benchmarks/ensembles.py --data FOLDER [--sets NAME ...] [--parts PART ...]

Van Daalen, Ippel, Dekker, Bermejo (2024), "Federated Bayesian Network Ensembles",
arXiv:2402.12142, on the sets of the VertiBayes paper and Mushroom; Autism, which they have too, is
not at hand. We have the paper's abstract and its published code, not its text. As in the code, the
class is added to the columns of each site, each site has a network of these, and the vote is the
mean of their posteriors. Assumed here: columns are dealt at random; structures are learned by
`hybrid`, or by K2 with the class first and at most three parents; CPTs by EM from tables. Two more
ways to vote: weighted by each site's AUC above .5 on its training records, and the product of the
posteriors over the prior, which is right if the sites are independent given the class.

`auc`: ten folds, mean and standard deviation over seeds, of the folds and of the columns' sites.
"One network" is learned from all columns; that it is the same over the sites is checked with all
records of each case. `cost`: what learning costs over the sites, and what a vote tells of a record:
the entropy of the posterior of a site (of five digits, as in the code), which is a function of the
values there, beside the entropy of these values, both in the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from side_by_side import on_one_thread

on_one_thread()

import numpy as np
from curves import mean_sd
from numpy.typing import NDArray
from vertibayes_tables import FILES, FOLDS, load, main, over, print_table

from vertibayes.counting import Counter, PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.inference.prediction import predicted
from vertibayes.network import Network
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.splitting import deal_columns
from vertibayes.structure.learners import learn_structure
from vertibayes.validation.measures import auc
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

Floats = NDArray[np.float64]
Areas = Mapping[tuple[int, str], float]  # by sites and way to predict

TARGETS = {name: target for name, (_, target) in FILES.items()} | {"mushroom": "class"}
ALGORITHMS = ("hybrid", "k2")
MISSING = {"alarm": (0, 10), "mushroom": (0,)}  # others (0, 10, 30); ALARM's 30 % take minutes
SITES = (2, 3)
DIGITS = 5  # of a posterior, as the published code encrypts it
# AUC of ensemble and VertiBayes without missing values, of 2 and 3 sites: experiments_2.csv there.
PUBLISHED = {
    ("alarm", 2): (0.888, 0.789), ("alarm", 3): (0.884, 0.790),
    ("asia", 2): (0.996, 0.991), ("asia", 3): (0.997, 0.986),
    ("diabetes", 2): (0.811, 0.808), ("diabetes", 3): (0.801, 0.783),
    ("iris", 2): (0.940, 0.750),
    ("mushroom", 2): (0.999, 0.986), ("mushroom", 3): (0.989, 0.987),
}  # fmt: skip


def read(folder: Path, name: str, missing: int) -> SiteData:
    """Read the records of a set."""
    if name != "mushroom":
        return load(folder, name, missing)[0]
    columns = read_columns(folder / "uci" / "mushroom.csv.gz")
    columns.pop("veil-type")  # has one value
    return SiteData.from_text(name, columns, Encoding(missing_codes=("?",)))


def sites_of(data: SiteData, target: str, sites: int, seed: int) -> list[list[str]]:
    """Deal the features; return the columns of each site, with the class first."""
    features = [name for name in data.variables if name != target]
    return [[target, *names] for names in deal_columns(features, sites, seed).values()]


def learned(counter: Counter, target: str, algorithm: str) -> Network:
    """Learn structure and CPTs."""
    if algorithm == "k2":
        order = [target, *(name for name in counter.variables if name != target)]
        structure = learn_structure(counter, "k2", ordering=order, max_parents=3)
    else:
        structure = learn_structure(counter, algorithm)
    return fit_em_from_tables(counter, structure).network


def posteriors(network: Network, data: SiteData, target: str) -> Floats:
    """Return the class's distribution for each record."""
    found = predicted(network, data, target).probabilities
    return np.asarray(found[:, : len(data.variables[target].states)])


def votes(
    networks: Sequence[Network], training: SiteData, test: SiteData, target: str
) -> dict[str, Floats]:
    """Return the posteriors of an ensemble's ways to vote, and those of each site."""
    each = np.array([posteriors(network, test, target) for network in networks])
    weights = [area_of(posteriors(n, training, target), training, target) - 0.5 for n in networks]
    prior = np.bincount(training.codes[target], minlength=each.shape[2] + 1)[: each.shape[2]] + 0.5
    logs = np.log(each.clip(1e-12)).sum(axis=0) - (len(each) - 1) * np.log(prior / prior.sum())
    product = np.exp(logs - logs.max(axis=1, keepdims=True))
    return {
        "mean": each.mean(axis=0),
        "weighted": np.average(each, axis=0, weights=np.maximum(weights, 1e-6)),
        "product": product / product.sum(axis=1, keepdims=True),
    } | {f"site-{k}": posterior for k, posterior in enumerate(each)}


def area_of(probabilities: Floats, data: SiteData, target: str) -> float:
    """Return the AUC, or nan where all records have one class."""
    states = data.variables[target].states
    found = auc(data.codes[target], np.round(probabilities, 12), states).auc
    return np.nan if found is None else found


def areas(data: SiteData, target: str, algorithm: str, seed: int) -> Areas:
    """Return the AUCs over ten folds, of one network, of the ensembles and of their sites."""
    order = np.random.default_rng(seed).permutation(data.records)
    splits = {sites: sites_of(data, target, sites, seed) for sites in SITES}
    found: dict[tuple[int, str], list[float]] = {}
    for part in np.array_split(order, FOLDS):
        training, test = data.rows(np.setdiff1d(order, part)), data.rows(part)
        one = learned(PlainCounter(training), target, algorithm)
        for sites, columns in splits.items():
            held = [PlainCounter(training.take(names)) for names in columns]
            networks = [learned(counter, target, algorithm) for counter in held]
            ways = votes(networks, training, test, target)
            ways["one"] = posteriors(one, test, target)
            for way, each in ways.items():
                found.setdefault((sites, way), []).append(area_of(each, test, target))
    means = {key: float(np.nanmean(each)) for key, each in found.items()}
    for sites in SITES:
        alone = [means[sites, f"site-{k}"] for k in range(sites)]
        means |= {(sites, "best"): max(alone), (sites, "worst"): min(alone)}
    return means


def parts_of(data: SiteData, columns: Sequence[Sequence[str]]) -> dict[str, SiteData]:
    """Return what each site holds; the class is at the first."""
    return {f"site-{k}": data.take(own if k == 0 else own[1:]) for k, own in enumerate(columns)}


def check_over_sites(data: SiteData, target: str, algorithm: str, seed: int) -> None:
    """Check that the network over the sites is that of pooled records."""
    pooled = learned(PlainCounter(data), target, algorithm)
    for sites in SITES:
        with federate(parts_of(data, sites_of(data, target, sites, seed))) as federation:
            counter = SecureCounter.of(federation, order=list(data.variables))
            network = learned(counter, target, algorithm)
        assert network.structure == pooled.structure
        assert all(np.array_equal(network.cpts[n], pooled.cpts[n]) for n in pooled.cpts)


def auc_table(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print the AUCs."""
    ways = ("one", "mean", "weighted", "product", "best", "worst")
    header = ["data", "missing %", "sites", "structure by", "seeds", "one network",
              "mean of posteriors", "weighted by AUC", "product", "best site", "worst site",
              "published: ensemble", "published: VertiBayes"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for name in sets:
            for missing in MISSING.get(name, (0, 10, 30)):
                data = read(folder, name, missing)
                for algorithm in ALGORITHMS:
                    check_over_sites(data, TARGETS[name], algorithm, seeds[0])
                    found = [areas(data, TARGETS[name], algorithm, seed) for seed in seeds]
                    for sites in SITES:
                        theirs = ("", "") if missing else PUBLISHED.get((name, sites), ("", ""))
                        shown = [mean_sd([each[sites, way] for each in found]) for way in ways]
                        yield [name, missing, sites, algorithm, len(seeds), *shown, *theirs]

    print_table("ensembles", header, rows(), **over(seeds))


def told(data: SiteData, columns: Sequence[str], target: str) -> tuple[float, float]:
    """Return the bits of a record's values at a site that its posterior tells, and all of them."""
    held = data.take(columns)
    vote = posteriors(learned(PlainCounter(held), target, "hybrid"), held, target)
    values = np.column_stack([held.codes[name] for name in columns[1:]])
    return entropy(np.round(vote, DIGITS)), entropy(values)


def entropy(rows: NDArray[Any]) -> float:
    """Return the entropy of the rows of a matrix, in bits."""
    _, counts = np.unique(rows, axis=0, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def cost_of(
    parts: Mapping[str, SiteData], order: Sequence[str], target: str
) -> tuple[float, float]:
    """Return the processor seconds and the megabytes of learning over sites."""
    start = process_time()
    with federate(parts) as federation:
        learned(SecureCounter.of(federation, order=order), target, "hybrid")
    return process_time() - start, federation.traffic.bytes / 1e6


def cost_table(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print what learning costs, and what a vote tells."""
    header = ["data", "sites", "one network: s", "MB", "ensemble, the class kept: s",
              "ensemble: MB", "ensemble, the class given away: s",
              "bits of a site's record that a vote tells"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for name in sets:
            data, target = read(folder, name, 0), TARGETS[name]
            names = list(data.variables)
            for sites in SITES:
                columns = sites_of(data, target, sites, seeds[0])
                whole = cost_of(parts_of(data, columns), names, target)
                kept = [
                    cost_of({"a": data.take([target]), "b": data.take(own[1:])}, own, target)
                    for own in columns[1:]
                ]
                start = process_time()
                learned(PlainCounter(data.take(columns[0])), target, "hybrid")
                first = process_time() - start
                for own in columns[1:]:
                    learned(PlainCounter(data.take(own)), target, "hybrid")
                local = process_time() - start
                bits = [
                    told(data, own, target)
                    for seed in seeds
                    for own in sites_of(data, target, sites, seed)
                ]
                seconds, sent = (sum(each) for each in zip(*kept, strict=True))
                costs = (*whole, first + seconds, sent, local)
                tells = "{:.1f} of {:.1f}".format(*np.mean(bits, axis=0))
                yield [name, sites, *(f"{cost:.2f}" for cost in costs), tells]

    print_table("ensembles_cost", header, rows(), seeds=over(seeds)["seeds"])


PARTS = {"cost": cost_table, "auc": auc_table}


if __name__ == "__main__":
    main(__doc__, PARTS, TARGETS, 3, "how many")
