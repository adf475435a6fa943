"""The queries of naive Bayes, calibrations and predictions, as a contract declares them.

Each query is what the analyst's own code asks: for naive Bayes over records it asks a session that
takes down the query and sends nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NoReturn

from vertibayes.cli.calibrate_study import settings_of
from vertibayes.cli.naive_bayes_learning import Holders, learn_records
from vertibayes.cli.naive_bayes_study import NaiveBayesStudy, read_settings, schema_in
from vertibayes.cli.predict import check_target
from vertibayes.cli.study_settings import placed
from vertibayes.naive_bayes.model_file import is_naive_bayes
from vertibayes.network import Network, read_model
from vertibayes.prediction_over_sites import DeclaredPrediction
from vertibayes.settings import LEARNER, PREDICTION
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.queries import Consensus, Publish, Scores
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.declared_run import declare, declare_opening
from vertibayes_protocols.query import AnyQuery, Query
from vertibayes_protocols.release import Rule
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Session
from vertibayes_protocols.variables import Variable

Declared = tuple[dict[str, Any], ...]


def declared_calibration(file: StudyFile) -> Declared:
    """Return the query of a study's calibration."""
    study = settings_of(file)
    last = study.values["rounds"]
    return (declare(Consensus.of(AnalystRole(file.party), study.agreed, 1, last=last)),)


def declared_naive_bayes(file: StudyFile) -> Declared:
    """Return the queries of a study's naive Bayes."""
    study = read_settings(file)
    if study.request.method == "vdpnb":
        return _of_columns(study)
    if not file.states:
        reason = "missing; an approved study declares the states of its variables"
        raise file.source.error(("states",), reason)
    session = _Recorder(file.party)
    try:
        holders = Holders(file.sites, **study.membership)
        learn_records(study.request, session, schema_in(study), holders)
    except _AskedError as asked:
        return (declare(asked.query),)
    raise AssertionError  # each method asks a query


def _of_columns(study: NaiveBayesStudy) -> Declared:
    """Return the queries over sites that hold columns, with noise."""
    file, request = study.file, study.request
    if request.epsilon is None:
        reason = (
            "an approved study releases no exact tables of columns: set a noise, or remove "
            "[release] and ask sites that set free_tables = true"
        )
        raise file.source.error(("learning", "noise"), reason)
    features = {n: Variable(n, ("", "?")) for n in file.variables if n != request.target}
    schema = Schema(Variable(request.target, tuple(file.class_counts)), features)
    counts = list(file.class_counts.values())
    names, sites = list(features), file.sites  # who holds what is not declared
    held = {site: names[place :: len(sites)] for place, site in enumerate(sites)}
    split = Split.of(schema, {s: own for s, own in held.items() if own}, counts, request.alpha)
    queries: list[AnyQuery] = [
        Publish.of(split, RecordNoise(request.epsilon, request.accounting)),
    ]
    if study.predict:
        queries.append(Scores((), b"", split, request.via, 0, {}, 0, study.predict))
    opening = declare_opening(file.dealer, file.alignment)[:-1]  # no columns are committed
    return (*opening, *map(declare, queries))


class _AskedError(Exception):
    """A query that is not sent."""

    def __init__(self, query: AnyQuery) -> None:
        super().__init__(query.kind)
        self.query = query


class _Recorder(Session):
    """A session that takes down the first query."""

    def __init__(self, party: str) -> None:
        self.role = AnalystRole(party)

    def ask(self, query: Query[Any, Any]) -> NoReturn:
        """Raise the query."""
        raise _AskedError(query)


# ---- predictions ---------------------------------------------------------------------------------


def prediction_of(file: StudyFile, rule: Rule | None) -> DeclaredPrediction:
    """Return the prediction of a study's [learning], or its AUC if it has a rule."""
    table = file.source.table("learning")
    table.take(LEARNER)
    values = table.take_all(PREDICTION)
    table.end()
    with placed(table):
        network, target = network_of(values.pop("model")), values["target"]
        check_target(target, network.variables, "`target`")
        own = [n for n in file.variables if n in network.variables and n != target]
        evidence = values.pop("evidence") or own
        needed = (*evidence, target) if rule is not None else evidence
        if unknown := [name for name in needed if name not in file.variables]:
            reason = f"[study] must list the variables of the prediction; {unknown[0]} is missing"
            raise ValueError(reason)
        return DeclaredPrediction(network, evidence=evidence, rule=rule, **values)


def declared_prediction(
    file: StudyFile, prediction: DeclaredPrediction, alignment: Alignment | None
) -> dict[str, Any]:
    """Return what a contract has of a prediction: the model's digest, and the queries."""
    path: Path = file.source.table("learning").take(PREDICTION[0])
    model = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    queries = (*declare_opening(file.dealer, alignment), prediction.query)
    return {"options": {"model": model}, "queries": queries}


def network_of(path: Path, name: str = "`model`") -> Network:
    """Return the network of a file, by which sites can predict."""
    if is_naive_bayes(path):
        raise ValueError(f"{name} {path}: --study predicts with model.json, .bif or .bifxml")
    return read_model(path)
