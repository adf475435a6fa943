"""Cuts of numeric columns by MDLP: for ``learn --mdlp``, and printed by ``vertibayes cuts``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import Any

from vertibayes.cli.inputs import Sites, read_sites
from vertibayes.cli.source import Source
from vertibayes.counting.secure import SecureCounter
from vertibayes.discretization import discretize, edges_of, pre_binned
from vertibayes.study import connect_study
from vertibayes.words import counted
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.federation import federate
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.site.binning import plain
from vertibayes_protocols.study import Study


@dataclass(frozen=True)
class Cuts:
    """The cuts of columns, and what was revealed for them."""

    target: str  # the class
    edges: Mapping[str, tuple[Decimal, ...]]  # the edges of each pre-binned column
    ledger: Ledger  # what was revealed
    # The bytes that all parties sent for it, and the rounds.
    bytes: int = 0
    rounds: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The cuts as values of ``--cut``."""
        return tuple(f"{name}={_listed(own, ',')}" for name, own in self.edges.items() if own)

    @property
    def uncut(self) -> list[str]:
        """The columns that MDLP does not cut."""
        return [name for name, own in self.edges.items() if not own]

    def as_json(self) -> dict[str, Any]:
        """Return the cuts as JSON data for summary.json."""
        edges = {name: [plain(edge) for edge in own] for name, own in self.edges.items()}
        return {
            "class": self.target,
            "cuts": edges,
            "tables": len(self.ledger.tables),
            "cells": self.ledger.cells,
            "bytes": self.bytes,
            "rounds": self.rounds,
        }

    def note(self, ledger: Ledger) -> None:
        """Add what was revealed for the cuts to the ledger of the run that uses them."""
        for fact in self.ledger.facts:
            ledger.note(*fact)
        ledger.open(self.ledger.tables)

    @property
    def sentence(self) -> str:
        """What was revealed, in words."""
        tables, cells = counted(len(self.ledger.tables), "table"), self.ledger.cells
        return f"revealed to the analyst for the cuts: {tables}, {counted(cells, 'cell')}"


def with_cuts(source: Source) -> tuple[Source, Cuts | None]:
    """Return a source whose numeric columns are cut by MDLP, and the cuts.

    A column that MDLP does not cut keeps the bins of ``--binning``. Without ``--mdlp``, the source
    is returned as it is.
    """
    if source.mdlp is None:
        return source, None
    fine = replace(
        source,
        binning="intervals",
        bins=1 / source.pre_bins,
        max_states=max(source.max_states, source.pre_bins),
    )
    sites = read_sites(fine)
    declared = source.how.cuts
    _check_class(source.mdlp, sites, declared)
    columns = [name for name in pre_binned(sites.variables) if name not in declared]
    if not columns:
        raise ValueError(f"--mdlp {source.mdlp}: the data have no numeric column to cut")
    cuts = _ask(sites, columns, source.mdlp)
    return replace(source, cut=(*source.cut, *cuts.texts)), cuts


def _check_class(target: str, sites: Sites, declared: Mapping[str, object]) -> None:
    sites.check_known(target, "--mdlp")
    if target not in declared and edges_of(sites.variables[target]) is not None:
        raise ValueError(
            f"--mdlp {target}: the class must have states, and this column is numeric: declare its "
            f"bins with --cut {target}=EDGE,EDGE"
        )


def _ask(sites: Sites, columns: list[str], target: str) -> Cuts:
    """Ask the sites for the tables of class and pre-bins, in this process."""
    chosen = [name for name in sites.order if name in {*columns, target}]
    with federate(sites.data, memory_budget=sites.memory) as federation:
        counter = SecureCounter.of(
            federation, order=chosen, variables=chosen, count_by=sites.count_by
        )
        edges = discretize(counter, columns, target)
        sent = federation.traffic
        return Cuts(target, edges, counter.ledger, sent.bytes, sent.rounds)


def run_cuts(source: Source) -> None:
    """Print the cuts of columns of sites in this process, as options of ``learn``."""
    cuts = with_cuts(source)[1]
    assert cuts is not None  # the class is given
    lines = [f"--cut {quote(text)}" for text in cuts.texts]
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, *_about(cuts)]))


def run_study_cuts(path: Path, target: str) -> None:
    """Print the cuts of columns of a study, as lines of each site's file."""
    StudyFile.read(path)
    with connect_study(path) as counter:
        columns = [name for name in pre_binned(counter.variables) if name != target]
        if not columns:
            raise ValueError(
                f"{path}: no column has pre-bins: the sites' files need binning = "
                '"intervals" and bins = 0.015 in [data]'
            )
        cuts = Cuts(target, discretize(counter, columns, target), counter.ledger)
        study = counter.study
    sys.stdout.write("".join(f"{line}\n" for line in [*_for_files(cuts, study), *_about(cuts)]))


def _for_files(cuts: Cuts, study: Study) -> Iterator[str]:
    """Yield the lines of the section [variables] of each site's file."""
    for site in study.sites:
        own = {n: edges for n, edges in cuts.edges.items() if edges and site in study.holders[n]}
        if own:
            yield f"# {site}, site.toml, [variables]"
        for name, edges in own.items():
            key = name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'
            yield f"{key} = {{ cut = [{_listed(edges, ', ')}] }}"


def _about(cuts: Cuts) -> Iterator[str]:
    if cuts.uncut:
        yield f"no cut: {', '.join(cuts.uncut)}"
    yield cuts.sentence


def report_of_cuts(cuts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that ``learn`` prints about cuts; as `Cuts.as_json`."""
    uncut = [name for name, edges in cuts["cuts"].items() if not edges]
    bins = ", ".join(f"{name} {len(edges) + 1}" for name, edges in cuts["cuts"].items() if edges)
    yield f"bins by MDLP for {cuts['class']}: {bins or 'no column is cut'}"
    if uncut:
        yield f"bins by --binning, as MDLP does not cut them: {', '.join(uncut)}"


def _listed(edges: tuple[Decimal, ...], separator: str) -> str:
    return separator.join(map(plain, edges))
