"""Commands and their options. Whatever is heavy is imported by the command that needs it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from vertibayes.cli import inspecting, joining
from vertibayes.cli.deployment import STOPPED, commands, stop_on_signal
from vertibayes.cli.folders import check_file
from vertibayes.cli.options import as_options, check_alone, given_by, takes, values_of
from vertibayes.cli.roster import roster_commands
from vertibayes.settings import (
    AUC_OPTIONS,
    BINS,
    BOUNDS,
    CALIBRATION,
    LEARNING,
    MDLP,
    MEMORY,
    NAIVE_BAYES,
    OUT,
    PARTIES,
    QUIET,
    READING,
    RELEASE_OPTIONS,
    RISK_APPETITE,
    SCHEMA,
    SIMULATION,
    SPLIT,
    TEST,
    VALIDATION,
    rule_of,
)
from vertibayes_protocols.settings import (
    COUNT_BY,
    ID_COLUMN,
    MISSING_CODES,
    REQUIRED,
    WRITTEN,
    Setting,
)

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
app.add_typer(joining.commands)
app.add_typer(inspecting.commands)
app.add_typer(roster_commands, name="roster")

SETTINGS = (*LEARNING, *VALIDATION, *RELEASE_OPTIONS, AUC_OPTIONS[0], MEMORY, COUNT_BY)
EXTRA = {"allow_extra_args": True}  # for `check_arguments`, whose error says more than typer's
IDENTIFIERS = replace(ID_COLUMN, help="Column of identifiers: the first column of OUT.")
ASKED = (  # by `effect`
    Setting("exposure", "text", "Variable that is set to each of its states.", REQUIRED),
    Setting("outcome", "text", "Variable of which the risks are shown.", REQUIRED,
            shown="VARIABLE[=STATE]"),
    Setting("model", "path", "model.json, .bif or .bifxml, whose arrows are causes."),
    Setting("adjust", "texts", "Columns to adjust for, with --data; none for no column; those that "
            "the arrows need if not given.", (), shown="COLUMN,...|none"),
    Setting("not_adjust", "texts", "Variables that may not be adjusted for.", (),
            shown="VARIABLE,..."),
    Setting("constraints", "path", "JSON file with what experts know, as in learn: of the model's "
            "edges, the directions that it fixes."),
    Setting("ordering", "names or file", "JSON file with variables, causes before effects: it "
            "fixes the directions of the model's edges between them."),
)  # fmt: skip
MISSING_STATE = Setting("missing_state", "flag", "For a model learned with --missing state: take "
                        "missing values as that state.", False)  # fmt: skip
PREDICTED = (
    Setting("out", "new file", "New CSV file, with a line for each record; JSON with --auc.",
            REQUIRED),
    Setting("model", "any path", "model.json, .bif, .bifxml or naive_bayes.json."),
    Setting("target", "text", "Variable to predict; its column is not used."),
    Setting("data", "any path", "FILE, as CSV or Parquet, with any of the model's variables."),
    Setting("study", "any path", "study.toml, whose sites hold the records' values; in place of "
            "--data."),
    MISSING_STATE,
)  # fmt: skip
ONE_FILE = Setting("data", "path", "Records, as CSV or Parquet, which are dealt to the parties or "
                   "nodes.", REQUIRED, shown="FILE")  # fmt: skip


def _version(is_asked: bool) -> None:
    if is_asked:
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


@app.command("learn", context_settings=EXTRA)
@takes(
    *(OUT, *SPLIT, *READING, *MDLP, MEMORY, COUNT_BY, *LEARNING),
    *(setting for setting in VALIDATION if setting is not MISSING_CODES),
    *(*RELEASE_OPTIONS, RISK_APPETITE, QUIET),
)
def _learn(
    context: typer.Context,
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study.toml, whose sites run elsewhere; the file sets every option except "
            "--out, --quiet and --risk-appetite."
        ),
    ] = None,
    **given: Any,
) -> None:
    """Learn a Bayesian network from columns that several sites hold.

    For example: vertibayes learn --data patients.csv --sites 3 --out results

    or, with sites on other machines: vertibayes learn study.toml --out results

    or, without revealing a table before the structure is chosen: add --release cut

    OUT has model.json, model.bif, model.bifxml, structure.json, structure.svg, summary.json and
    ledger.json. Validations add validation.json and a picture each; --write-synthetic adds
    synthetic.csv. An option with several values takes them separated by commas, or is repeated.
    """
    stop_on_signal()
    if study is not None:
        check_alone(context, study)
        check_file(study)
        from vertibayes.cli.study import run_study

        return run_study(study, given["out"], given["quiet"], given["risk_appetite"])
    if not given["data"]:
        raise ValueError("specify a study.toml or --data FILE: neither was given")
    named = given_by(context)
    rule = rule_of(values_of(RELEASE_OPTIONS, given), "release", named)
    if "pre_bins" in named and given["mdlp"] is None:
        raise ValueError("--pre-bins needs --mdlp")
    if given["risk_appetite"] is not None and rule is None:
        raise ValueError("--risk-appetite needs --release")

    from vertibayes.cli.json_files import check_options, options_from
    from vertibayes.cli.source import Source
    from vertibayes.cli.validations import Validations
    from vertibayes.options import check_without_release

    source = Source(**values_of([*SPLIT, *READING, *MDLP, MEMORY, COUNT_BY], given))
    values = values_of(VALIDATION, given) | {"missing_codes": source.missing_codes}
    validations = Validations(**values, dictionary=source.dictionary, seed=given["seed"])
    validations.check()
    options = options_from(values_of(LEARNING, given))
    if rule is None:
        check_without_release(options)
    check_options(options, given["target"], source)

    from vertibayes.cli.learn import Task, judged, run_learn
    from vertibayes.cli.run import Run

    task = judged(Task(options, validations, rule), given["risk_appetite"])
    return run_learn(source, task, Run(given["out"], given["quiet"]))


@app.command("nb", context_settings=EXTRA)
@takes(ONE_FILE, OUT, *NAIVE_BAYES, PARTIES, *TEST, BOUNDS, *READING, COUNT_BY, QUIET)
def _nb(**given: Any) -> None:
    """Learn a naive Bayes classifier, with noise or without.

    For example: vertibayes nb --data cars.csv --target class --method vdpnb --parties 6 --epsilon 1
    --holdout 0.1 --out results

    OUT has model.json, model.bif, model.bifxml, structure.json, structure.svg, summary.json and
    ledger.json; with --bounds, naive_bayes.json in place of the three models. An option with
    several values takes them separated by commas, or is repeated.
    """
    from vertibayes.cli.source import Source, check_columns

    values = values_of([BOUNDS, *READING, *TEST, COUNT_BY], given)
    source = Source((str(given["data"]),), **values)
    check_columns(source, {"--target": [given["target"]]})

    from vertibayes.cli.naive_bayes import run_nb
    from vertibayes.cli.naive_bayes_learning import Request
    from vertibayes.cli.run import Run

    request = Request(**values_of([*NAIVE_BAYES, PARTIES], given))
    run_nb(source, request, Run(given["out"], given["quiet"], sums=True))


@app.command("calibrate", context_settings=EXTRA)
@takes(
    *(ONE_FILE, OUT, *CALIBRATION[:1], *SIMULATION, *CALIBRATION[1:], *TEST),
    *(BOUNDS, *READING, QUIET),
)
def _calibrate(**given: Any) -> None:
    """Calibrate a classifier at the nodes of a network.

    For example: vertibayes calibrate --data cars.csv --target class --nodes 50 --network tree
    --holdout 0.1 --out results

    There is no server: each node has some of the records and sends statistics to its neighbours
    only. OUT has calibration.json and calibration.svg (errors by round, beside RC on pooled
    records), network.json and network.svg, summary.json, and the model of the nodes' mean
    statistics as model.json, model.bif and model.bifxml; with --bounds or --numbers,
    naive_bayes.json in place of the three models. An option with several values takes them
    separated by commas, or is repeated.
    """
    from vertibayes.cli.source import Source, check_columns

    values = values_of([*CALIBRATION, *SIMULATION], given)
    read = values_of([BOUNDS, *READING, *TEST], given)
    read |= {"numbers": values.pop("numbers"), "target": values["target"]}
    source = Source((str(given["data"]),), **read)
    check_columns(source, {"--target": [given["target"]]})

    from vertibayes.cli.calibrate import run_calibrate
    from vertibayes.cli.calibrate_learned import Request
    from vertibayes.cli.run import Run

    request = Request(**values)
    run_calibrate(source, request, Run(given["out"], given["quiet"]))


@app.command("report")
def _report(
    results: Annotated[Path, typer.Argument(help="Folder that a run has written.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="HTML file to write or replace; RESULTS/report.html if not given, or beside.html."
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(help="Folder of another run: the page has a section on what differs."),
    ] = None,
) -> None:
    """Write the page of a run, for a browser.

    For example: vertibayes report results

    `learn`, `nb` and `calibrate` write this page too, as report.html: it is one file, and needs no
    network. The command writes it again, or for results of an earlier release, whose missing
    entries the page names. With --beside OTHER, it compares two runs: arrows, probabilities and
    figures.
    """
    from vertibayes.cli.report import run_report

    run_report(results, out, beside)


@app.command("demo")
@takes(
    replace(OUT, default=None),
    Setting("records", "whole", "Number of records to draw from ALARM.", 10_000, least=0),
    Setting("sites", "whole", "Number of sites that hold the columns.", 3, least=1, most=37),
    Setting("seed", "whole", "Seed of the records and of the split.", 0),
)
def _demo(**given: Any) -> None:
    """Learn the ALARM network, and compare it with the truth."""
    from vertibayes.cli.demo import run_demo

    run_demo(**given)


@app.command("predict", context_settings=EXTRA)
@takes(*PREDICTED, IDENTIFIERS, MISSING_CODES, *WRITTEN, SCHEMA, *AUC_OPTIONS)
def _predict(**given: Any) -> None:
    """Predict a variable from what each record has of the others.

    OUT has, for each record, the identifier if --id-column is given, the most probable state, the
    probability of each state, and a note if the record is impossible under the model. No record is
    impossible under a model that was learned with a pseudo-count above 0. A value that the model
    does not know is taken as missing, with a warning.

    With --study, the values of a record lie at several sites, none of which learns a value of
    another: OUT has one line for each record of the study, in its order, without identifiers and
    notes. The policy of each site must allow it (most_scores). The study either declares the
    prediction (learner = "prediction"), and the owners of its sites have approved it; --out is then
    the only further option. Or its sites set free_tables.
    """
    data, study, missing_state = given["data"], given["study"], given["missing_state"]
    out, model, target = given["out"], given["model"], given["target"]
    if (data is None) == (study is None):
        raise ValueError("specify either --data FILE or --study study.toml")
    if study is None and (model is None or target is None):
        needed = "--target NAME, the variable to predict" if model else "--model FILE"
        raise ValueError(f"specify {needed}")
    released = values_of(AUC_OPTIONS, given)
    if data is not None and released["auc"] is None:
        check_file(model)
        check_file(data)

    rule, bins = rule_of(released, "auc"), released["bins"]
    if rule is None and bins != BINS.default:
        raise ValueError("--bins needs --auc, or bins in [learning]")
    if data is None:
        for setting in (MISSING_STATE, IDENTIFIERS, MISSING_CODES, *WRITTEN, SCHEMA):
            if given[setting.name]:
                raise ValueError(
                    f"{setting.option} cannot be combined with --study: sites read the data"
                )
        check_file(study)
        from vertibayes.cli.predict_study import run_predict_study

        return run_predict_study(study, out, model, target, rule, bins)
    if rule is not None:
        raise ValueError("--auc needs --study: `vertibayes learn --validate` has an AUC of a file")
    from vertibayes.cli.predict import run_predict
    from vertibayes_protocols.site.dialect import Dialect

    values = values_of([IDENTIFIERS, MISSING_CODES, SCHEMA], given)
    values["dialect"] = Dialect(**values_of(WRITTEN, given))
    return run_predict(model, data, target, out, missing_state=missing_state, **values)


@app.command("cuts", context_settings=EXTRA)
@takes(*MDLP, *SPLIT, *READING, MEMORY)
def _cuts(
    study: Annotated[
        Path | None,
        typer.Argument(help="A study.toml, whose sites set binning to intervals in their files."),
    ] = None,
    **given: Any,
) -> None:
    """Print the edges at which MDLP cuts numeric columns.

    For example: vertibayes cuts --data patients.csv --sites 3 --mdlp lung

    or, with sites on other machines, for lines of their files: vertibayes cuts cuts.toml --mdlp
    lung

    `vertibayes learn --mdlp` does the same and learns from the bins.
    """
    if study is None and not given["data"]:
        raise ValueError("specify a study.toml or --data FILE: neither was given")
    if given["mdlp"] is None:
        raise ValueError("specify the class: --mdlp COLUMN")
    if study is not None:
        check_file(study)
        from vertibayes.cli.cuts import run_study_cuts

        return run_study_cuts(study, given["mdlp"])
    from vertibayes.cli.source import Source, check_source

    source = Source(**values_of([*MDLP, *SPLIT, *READING, MEMORY], given))
    check_source(source)

    from vertibayes.cli.cuts import run_cuts

    return run_cuts(source)


@app.command("effect", context_settings=EXTRA)
@takes(*ASKED, *SPLIT, *READING, MEMORY, COUNT_BY)
def _effect(**given: Any) -> None:
    """Print the risk of an outcome if all records had one exposure.

    For example: vertibayes effect --model results/model.json --exposure smoke --outcome lung=yes

    or, from one table of the sites' columns: add --data patients.csv --sites 3

    These risks are effects only under assumptions that no data can check; the command prints them.
    """
    asked = values_of(ASKED, given)
    of_data = [*SPLIT, *READING, MEMORY, COUNT_BY]
    values = values_of(of_data, given)
    model, source = asked.pop("model"), None
    from vertibayes.cli.json_files import read_knowledge

    knowledge = read_knowledge(asked.pop("constraints"), asked.pop("ordering"))
    if given["data"]:
        from vertibayes.cli.source import Source, check_source

        source = Source(**values)
        check_source(source, {"--exposure": [asked["exposure"]]})
    elif unused := [s.option for s in of_data if given[s.name] not in (None, s.default)]:
        raise ValueError(f"{', '.join(unused)}: add --data, or remove what is about records")

    from vertibayes.cli.effect import Question, run_effect

    run_effect(Question(**asked, knowledge=knowledge), model, source)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit with 2 and one sentence on standard error if it cannot."""
    try:
        _main(arguments)
    except SystemExit as stop:
        if stop.code in (STOPPED, INTERRUPTED):
            sys.stderr.write("vertibayes: stopped\n")
        raise
    except BaseException:  # a defect, or standard output is closed
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def _main(arguments: Sequence[str] | None) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # tables are small: threads cost more than they bring
    if sys.stdout is None:  # closed by the shell
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115

    from vertibayes_mpc.errors import ProtocolError
    from vertibayes_protocols.errors import QueryRefusedError, TransportError, words
    from vertibayes_protocols.variables import for_terminals

    try:
        app(None if arguments is None else list(arguments), standalone_mode=True)
    except (ValueError, OSError, ProtocolError, QueryRefusedError, TransportError) as error:
        told = for_terminals(as_options(words(error), SETTINGS))
        sys.stderr.write(f"vertibayes: {told}\n")
        sys.exit(2)
    except MemoryError:
        sys.stderr.write(
            "vertibayes: not enough memory: use fewer records or fewer parents (--max-parents)\n"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
