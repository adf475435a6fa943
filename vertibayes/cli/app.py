"""Commands and their options. Whatever is heavy is imported by the command that needs it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vertibayes.cli.data_options import (
    Binning,
    Bins,
    Categorical,
    Cut,
    Exclude,
    IgnoreCase,
    KeepSpaces,
    MaxStates,
    MissingCodes,
    Strict,
    several_values,
)
from vertibayes.cli.deployment import STOPPED, commands, leave, stop_when_told

INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bayesian networks from data whose columns lie in different organizations.",
)

app.add_typer(commands)

Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")]


def _version(wanted: bool) -> None:
    if wanted:
        from vertibayes import __version__

        sys.stdout.write(f"vertibayes {__version__}\n")
        raise typer.Exit


@app.callback()
def _callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian networks from data whose columns lie in different organizations."""
    del version


@app.command("learn")
def _learn(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="A folder, new or empty, for the results.")],
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study.toml, whose sites run elsewhere; the file sets every option except --out "
            "and --quiet."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="FILE.csv[.gz] to split over --sites; or NAME=FILE: repeat --data for each site."
        ),
    ] = None,
    sites: Annotated[int | None, typer.Option(help="How many sites to split FILE over.")] = None,
    partition: Annotated[
        Path | None, typer.Option(help='JSON {"site": ["column", ...]}: who holds what.')
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Identifies records; matches them between files.")
    ] = None,
    exclude: Exclude = None,
    missing_codes: MissingCodes = None,
    categorical: Categorical = None,
    ordering: Annotated[
        Path | None,
        typer.Option(
            help="JSON list of all variables, causes before effects; default: as in the data. "
            "Another order gives another network: CHILD's is 0, 20 or some 50 edges from the truth "
            "in its true, alphabetical or reversed order."
        ),
    ] = None,
    structure: Annotated[
        Path | None,
        typer.Option(help='JSON {"nodes": [...], "edges": [[parent, child], ...]}: CPTs only.'),
    ] = None,
    max_parents: Annotated[
        int, typer.Option(help="Maximum number of parents of a node, 0 to 7.")
    ] = 3,
    missing: Annotated[
        str | None,
        typer.Option(
            help="em: fill by EM on tables (the default where cells are missing); synthetic: the "
            "three steps of VertiBayes; available: count complete families; state: a state."
        ),
    ] = None,
    wider_cells: Annotated[
        int,
        typer.Option(
            help="em: number of further cells to open, in tables widened by the most informative "
            "variable."
        ),
    ] = 0,
    synthetic_records: Annotated[
        int | None, typer.Option(help="How many synthetic records are drawn; as many as there are.")
    ] = None,
    write_synthetic: Annotated[
        bool,
        typer.Option(
            "--write-synthetic",
            help="Write records drawn from the tables with missing as a state, which it opens.",
        ),
    ] = False,
    em_restarts: Annotated[int, typer.Option(help="synthetic: further random starts of EM.")] = 0,
    target: Annotated[str | None, typer.Option(help="What --validate predicts.")] = None,
    validate: Annotated[
        str | None, typer.Option(help="Some of public,scv,svdg: writes validation.json.")
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="FILE.csv[.gz] of records for --validate public.")
    ] = None,
    folds: Annotated[
        int,
        typer.Option(help="Number of folds for scv and svdg; svdg needs 10 records in each fold."),
    ] = 10,
    pseudo_count: Annotated[
        float,
        typer.Option(
            help="Added to each cell of the CPTs, so that predictions meet no probability of zero; "
            "0: maximum likelihood. Counts, structure and scores are exact either way."
        ),
    ] = 0.5,
    bins: Bins = 0.1,
    binning: Binning = "equal-frequency",
    cut: Cut = None,
    ignore_case: IgnoreCase = None,
    max_states: MaxStates = 100,
    keep_spaces: KeepSpaces = False,
    strict: Strict = False,
    structure_records: Annotated[
        int | None, typer.Option(help="Learn the structure on a sample of so many records.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="Memory that all parties may take together: 512MiB, 4GiB.")
    ] = "1GiB",
    seed: Annotated[int, typer.Option(help="Seed of the random split of columns.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Learn a Bayesian network from columns held by several sites.

    For example: vertibayes learn --data patients.csv --sites 3 --out results

    or, with sites on other machines: vertibayes learn study.toml --out results

    OUT has model.json, model.bif, model.bifxml, structure.json, structure.svg, summary.json and
    ledger.json; validations add validation.json and a picture each, --write-synthetic adds
    synthetic.csv.
    """
    stop_when_told()
    if study is not None:
        from vertibayes.cli.study import check_alone, run_study

        check_alone(context, study)
        return run_study(study, out, quiet)
    if not data:
        raise ValueError("specify a study.toml or --data FILE: neither was given")
    from vertibayes.cli.inputs import Source, read_ordering, read_structure
    from vertibayes.cli.learn import run_learn
    from vertibayes.cli.validations import Validations
    from vertibayes.learning import Options

    methods = tuple(filter(None, (name.strip() for name in (validate or "").split(","))))
    codes = tuple(missing_codes or ())
    source = Source(
        tuple(data),
        sites,
        partition,
        id_column,
        exclude=tuple(exclude or ()),
        missing_codes=codes,
        categorical=tuple(categorical or ()),
        bins=bins,
        max_states=max_states,
        cut=tuple(cut or ()),
        binning=binning,
        ignore_case=tuple(ignore_case or ()),
        keep_spaces=keep_spaces,
        strict=strict,
        seed=seed,
        memory=_bytes(memory),
    )
    options = Options(
        ordering=read_ordering(ordering),
        structure=read_structure(structure),
        max_parents=max_parents,
        missing=missing,
        pseudo_count=pseudo_count,
        structure_records=structure_records,
        wider_cells=wider_cells,
        synthetic_records=synthetic_records,
        em_restarts=em_restarts,
        write_synthetic=write_synthetic,
    )
    validations = Validations(methods, target, folds, public, codes)
    return run_learn(source, out, options=options, validations=validations, quiet=quiet)


def _bytes(memory: str) -> int:
    from protocols.sizes import parse_size

    try:
        return parse_size(memory)
    except ValueError as error:
        raise ValueError(f"--memory: {error}") from None


@app.command("nb")
def _nb(
    data: Annotated[str, typer.Option(help="FILE.csv[.gz] to be dealt to --parties.")],
    target: Annotated[str, typer.Option(help="The column to be predicted.")],
    method: Annotated[
        str, typer.Option(help="hdpnb: parties hold records; vdpnb: parties hold attributes.")
    ],
    parties: Annotated[int, typer.Option(help="How many parties FILE is dealt to.")],
    out: Annotated[Path, typer.Option(help="A folder, new or empty, for the results.")],
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget of the noise, above 0; required unless --noise none."),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="none; hdpnb: polya (shares of one copy, the default) or diluted (as published); "
            "vdpnb: laplace (a copy at each site, the default)."
        ),
    ] = None,
    accounting: Annotated[
        str, typer.Option(help="--epsilon is of the whole that --protect names; count: of a count.")
    ] = "whole",
    protect: Annotated[str, typer.Option(help="record; hdpnb also: party, all its records.")] = (
        "record"
    ),
    delta: Annotated[float, typer.Option(help="hdpnb, diluted noise.")] = 1e-5,
    gamma: Annotated[float, typer.Option(help="hdpnb: least share of honest parties.")] = 1.0,
    via: Annotated[
        str,
        typer.Option(
            help="additive; hdpnb: or masked. vdpnb predicts tests by sums of logarithms "
            "(additive) or by products of counts (product)."
        ),
    ] = "additive",
    alpha: Annotated[float, typer.Option(help="Added to each count of a feature.")] = 1.0,
    test: Annotated[
        Path | None, typer.Option(help="FILE.csv[.gz] of records to test the model on.")
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of the records to hold out and test on, as 0.1.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Identifies records: no feature.")] = None,
    exclude: Exclude = None,
    missing_codes: MissingCodes = None,
    categorical: Categorical = None,
    bins: Bins = 0.1,
    binning: Binning = "equal-frequency",
    cut: Cut = None,
    ignore_case: IgnoreCase = None,
    max_states: MaxStates = 100,
    keep_spaces: KeepSpaces = False,
    strict: Strict = False,
    seed: Annotated[int, typer.Option(help="Seed of how FILE is dealt and held out.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Learn a naive Bayes classifier, with noise or without.

    For example: vertibayes nb --data cars.csv --target class --method vdpnb --parties 6 --epsilon 1
    --holdout 0.1 --out results

    OUT has model.json, model.bif, model.bifxml, structure.json, structure.svg, summary.json and
    ledger.json.
    """
    from vertibayes.cli.inputs import Source
    from vertibayes.cli.naive_bayes import Request, run_nb

    source = Source(
        (data,),
        id_column=id_column,
        exclude=tuple(exclude or ()),
        missing_codes=tuple(missing_codes or ()),
        categorical=tuple(categorical or ()),
        bins=bins,
        max_states=max_states,
        cut=tuple(cut or ()),
        binning=binning,
        ignore_case=tuple(ignore_case or ()),
        keep_spaces=keep_spaces,
        strict=strict,
        seed=seed,
    )
    request = Request(
        method, target, parties, epsilon, noise, accounting, protect, delta, gamma, via, alpha,
        test, holdout,
    )  # fmt: skip
    run_nb(source, request, out, quiet=quiet)


@app.command("demo")
def _demo(
    out: Annotated[
        Path | None, typer.Option(help="A folder, new or empty, for the results.")
    ] = None,
    records: Annotated[int, typer.Option(help="How many to draw from ALARM.")] = 10_000,
    sites: Annotated[int, typer.Option(help="How many sites hold the columns.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the records and of the split.")] = 0,
) -> None:
    """Learn the ALARM network, and compare it with the truth."""
    from vertibayes.cli.demo import run_demo

    run_demo(out, records, sites, seed)


@app.command("predict")
def _predict(
    model: Annotated[Path, typer.Option(help="A model: model.json, .bif or .bifxml.")],
    data: Annotated[Path, typer.Option(help="FILE.csv[.gz] with any of its variables.")],
    target: Annotated[str, typer.Option(help="The variable to predict; its column is not used.")],
    out: Annotated[Path, typer.Option(help="A new CSV file, a line for each record.")],
    id_column: Annotated[str | None, typer.Option(help="Identifiers: first column of OUT.")] = None,
    missing_codes: Annotated[
        list[str] | None, typer.Option(help="What says missing, beside the empty field.")
    ] = None,
    missing_state: Annotated[
        bool,
        typer.Option(
            "--missing-state", help="Of a model learned with --missing state: empty is that state."
        ),
    ] = False,
) -> None:
    """Predict a variable from what each record has of the others.

    OUT has, for each record, the most probable state, the probability of each state, and a note if
    the model calls the record impossible, which a model learned with a pseudo-count never does.
    A value that the model does not know is a warning and is taken as missing.
    """
    from vertibayes.cli.predict import run_predict

    run_predict(model, data, target, out, id_column, tuple(missing_codes or ()), missing_state)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit with 2 and one sentence on standard error if it cannot."""
    try:
        _main(arguments)
    except SystemExit as stop:
        if stop.code in (STOPPED, INTERRUPTED):
            sys.stderr.write("vertibayes: stopped\n")
        leave(stop.code if isinstance(stop.code, int) else 0)
        raise
    except BaseException:  # a fault of ours, or nobody reads what is said
        sys.excepthook(*sys.exc_info())
        leave(1)
        sys.exit(1)


def _main(arguments: Sequence[str] | None) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # tables are small: threads cost more than they bring
    if sys.stdout is None:  # closed by the shell
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115

    from mpc.errors import ProtocolError
    from protocols.errors import QueryRefusedError, TransportError, words

    given = several_values(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, standalone_mode=True)
    except (ValueError, OSError, ProtocolError, QueryRefusedError, TransportError) as error:
        sys.stderr.write(f"vertibayes: {words(error)}\n")
        sys.exit(2)
    except MemoryError:
        sys.stderr.write(
            "vertibayes: not enough memory: use fewer records or fewer parents (--max-parents)\n"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
