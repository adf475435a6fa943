"""Commands that say what is: in ledgers, of parties, in configuration files, and in data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vertibayes.cli.deployment import FILE, WHERE, stop_on_signal
from vertibayes.cli.folders import check_file
from vertibayes.cli.options import check_arguments, takes
from vertibayes.words import counted
from vertibayes_protocols.settings import Setting

commands = typer.Typer()

Watched = Annotated[Path, typer.Argument(help=FILE)]


@commands.command("ledger", epilog=WHERE)
def _ledger(
    folder: Annotated[
        Path, typer.Argument(help="A site's folder or site.toml, or an analyst's results.")
    ],
    html: Annotated[Path | None, typer.Option(help="Write a page of HTML to this file.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List all tables of each entry, not only the first 10.")
    ] = False,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help="For an output checker: say which tables of all the site's releases can be "
            "subtracted from each other, and write it to this file as JSON."
        ),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            help="For a person who asks: the identifier of a record. Say which of the released "
            "tables count it, and who is alone in one. Repeat it per column of id_column."
        ),
    ] = None,
) -> None:
    """Say what was revealed, to whom, and what was refused.

    The newest entries come first, by study. For a site the command also says what is left of its
    budgets, and first what is wrong: `vertibayes verify` has an exit status for that. It changes
    nothing, and the site may be running.

    With --record the command reads the site's data too, and writes the answer nowhere.
    """
    from vertibayes.cli.ledger import run_ledger, run_record

    if record:
        if html is not None or verdicts is not None:
            raise ValueError("--record prints its answer: specify it without --html and --verdicts")
        run_record(folder, record, everything)
    else:
        run_ledger(folder, html, everything, verdicts)


@commands.command("status")
@takes(
    Setting("watch", "flag", "Show the changes until the party or the run has ended.", False),
    Setting("interval", "number", "With --watch: seconds between two looks; 1 if not given."),
)
def _status(file: Watched, *, watch: bool, interval: float | None) -> None:
    """Print what a party does, or how far the run of a study is.

    Of site.toml, dealer.toml or relay.toml the command says whether the party runs, its sessions
    and its last error; of study.toml the phase of the run, its parties, and what it waits for.

    The exit status is 0 if the party or the run is well, or the run has written its results; 1 if
    it is not connected to the relay, or a party of the run is away; and 3 if it does not run, also
    if it was never started.
    """
    if interval is not None and not watch:
        raise ValueError(f"--interval is for --watch: got --interval {interval:g} without it")
    from vertibayes.cli.status import STOPPED, NotStartedError, run_status, watch_status

    seconds = 1.0 if interval is None else interval
    try:
        code = watch_status(file, seconds) if watch else run_status(file)
    except NotStartedError as error:
        sys.stderr.write(f"vertibayes: {error}\n")
        code = STOPPED
    if code:
        raise typer.Exit(code)


@commands.command("check")
def _check(
    files: Annotated[list[Path], typer.Argument(help="Configuration files, of any parties.")],
    meet: Annotated[
        bool, typer.Option("--meet", help="Begin a session of the study, the first file.")
    ] = False,
    digest: Annotated[
        bool,
        typer.Option(
            "--digest",
            help="Print the digest of the study, the first file, and nothing else. An owner adds "
            "site.toml, which has the analyst's key.",
        ),
    ] = False,
) -> None:
    """Check configuration files before a run.

    This checks keys, certificates, the clock, the data, and whether the relay listens; with several
    files, also whether they agree. With --meet, the parties of a study begin a session, which
    checks that all can be reached, pin each other's keys, run the same version, and hold the same
    people.
    """
    if len(files) == 1:
        check_file(files[0])
    from vertibayes.cli.check import run_check, run_digest

    stop_on_signal()
    if digest:
        if meet:
            raise ValueError("specify one of --meet and --digest")
        run_digest(*files)
        return
    if run_check(files, meet):
        raise typer.Exit(2)


@commands.command("schema")
def _schema(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="A data file or site.toml; or two drafts or site.toml to compare."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A data file, whose data dictionary is drafted for `learn --schema`."),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Separator of the fields of --data.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="Sign before decimals in --data.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of --data, as cp1252.")] = None,
) -> None:
    """Draft a site's variables from its data, or compare drafts.

    With one file, this prints [variables] as TOML for a person to edit: states, proposed bins, the
    share of missing values, and in comments what may say missing and which columns are left out.
    With two files, it prints where both declare one variable differently; the exit status is then
    1 if they do.

    With --data, it prints a data dictionary as JSON, which `learn`, `predict` and others read as
    --schema: states in their order, edges, values that may say missing, spellings that become one,
    dates that become years, and columns to leave out.
    """
    if data is not None:
        from vertibayes.data_dictionary import as_text, draft_dictionary
        from vertibayes_protocols.site.dialect import SEPARATORS, Dialect
        from vertibayes_protocols.site.sources.reading import read_table

        check_arguments([str(file) for file in files or ()])
        if separator not in (None, *SEPARATORS) or decimal not in (None, ".", ","):
            raise ValueError(f"--separator is one of {' '.join(SEPARATORS)}, --decimal of . ,")
        dialect = Dialect(separator, decimal, encoding)
        sys.stdout.write(as_text(draft_dictionary(read_table(data, dialect=dialect))))
        return
    if (separator, decimal, encoding) != (None, None, None):
        raise ValueError("--separator, --decimal and --encoding say how --data is written: give it")
    from vertibayes_protocols.deployment.schema import compare_schemas, draft_schema

    files = files or []
    if not 0 < len(files) < 3:
        raise ValueError(f"schema takes one file, or two to compare: got {len(files)}")
    if len(files) == 1:
        sys.stdout.write(draft_schema(files[0]))
        return
    lines, shared = compare_schemas(files[0], files[1])
    differ = len({line.partition(": ")[0] for line in lines})
    last = f"{counted(shared, 'variable')} in both files, {differ} declared differently"
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, last]))
    if lines:
        raise typer.Exit(1)
