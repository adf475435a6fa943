"""``vertibayes learn``: read, federate, learn, write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from protocols.federation import federate
from vertibayes.cli.inputs import Sites, Source, read_sites
from vertibayes.cli.outputs import check_folder, summarize, write_results
from vertibayes.cli.validations import Validations
from vertibayes.counting import SecureCounter
from vertibayes.learning import MISSING, Learned, Options, Progress, learn
from vertibayes.report.disclosure import disclosure


def run_learn(
    source: Source,
    out: Path,
    *,
    options: Options,
    validation: Validations,
    quiet: bool,
) -> None:
    """Run the command; see its help.

    Raises
    ------
    ValueError
        If an input is at fault. Nothing is then written.
    """
    check_folder(out)
    check_options(options)
    validation.check()
    sites = read_sites(source)
    for doubt in sites.doubts:
        sys.stderr.write(f"warning: {doubt}\n")
    learned, summary = learn_from(sites, options, out, quiet, validation)
    if not quiet:
        sys.stdout.write(told(learned, summary))
        sys.stdout.write(f"Written: {out}\n")


def learn_from(
    sites: Sites,
    options: Options,
    out: Path | None,
    quiet: bool,
    validation: Validations | None = None,
) -> tuple[Learned, dict[str, Any]]:
    """Learn over sites in this process; write the results if a folder is named.

    Warns on standard error of records that the opened tables single out, and of parent
    configurations without a record.
    """
    start = perf_counter()
    with federate(sites.data) as federation:
        counter = SecureCounter.of(federation, order=sites.order)
        commit_seconds = perf_counter() - start
        with _progress(quiet) as progress:
            learned = learn(counter, options, progress)
        validated = (validation or Validations()).run(counter, learned)
        found = disclosure(counter.opened_tables, counter.records)
        summary = summarize(learned, counter, federation, commit_seconds, found)
        for method, validation_found in validated.items():
            if validation_found.impossible:
                sys.stderr.write(
                    f"warning: {validation_found.impossible} records of the validation {method} "
                    "have probability zero under the model and are ranked last in each class; "
                    "learn it with --pseudo-count\n"
                )
        if found.cells:
            sys.stderr.write(f"warning: {found.sentence()}\n")
        unseen = sum(learned.network.unseen.values())
        if unseen:
            sys.stderr.write(
                f"warning: {unseen} parent configurations have no record; their CPT columns are "
                "uniform (summary.json: unseen_parent_configurations)\n"
            )
        if out is not None:
            write_results(out, learned, federation, summary, validated)
    return learned, summary


def check_options(options: Options) -> None:
    """Refuse options that contradict each other, before anything is read.

    Raises
    ------
    ValueError
        It names the option.
    """
    missing = options.missing
    if missing is not None and missing not in MISSING:
        raise ValueError(f"--missing {missing}: one of {', '.join(MISSING)} is wanted")
    if options.ordering is not None and options.structure is not None:
        raise ValueError("--structure needs no --ordering: its CPTs only are learned")
    if options.wider_cells < 0:
        raise ValueError(f"--wider-cells {options.wider_cells}: a number from 0 on is wanted")
    if options.wider_cells and missing not in (None, "em"):
        raise ValueError(f"--wider-cells is for --missing em, not {missing}")


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress | None]:
    """Show a bar on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda stage, done, steps: bar.update(
            task, description=stage, completed=done, total=max(steps, 1)
        )


def told(learned: Learned, summary: dict[str, Any]) -> str:
    """Return a run in a few lines."""
    seconds, opened = summary["seconds"], summary["opened"]
    scores, found = learned.scores, learned.network.structure
    lines = [
        f"{summary['records']} records, {len(summary['variables'])} variables at "
        f"{len(summary['sites'])} site{'s' if len(summary['sites']) > 1 else ''}",
        f"structure: {len(found.edges)} edges; K2 score {scores.k2:.3f}, BIC {scores.bic:.3f}, "
        f"AIC {scores.aic:.3f} nats",
        f"seconds: commit {seconds['commit']:.3f}, structure {seconds['structure']:.3f}, "
        f"parameters {seconds['parameters']:.3f}",
        f"sent: {summary['bytes']['total'] / 1e6:.1f} MB in {summary['rounds']} rounds",
        f"opened to the analyst: {opened['tables']} tables, {opened['cells']} cells, and nothing "
        "else of the records",
    ]
    return "\n".join(lines) + "\n"
