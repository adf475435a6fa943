"""The prediction that a study's file declares (``learner = "prediction"``), and its contract."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from vertibayes.cli.predict import check_target
from vertibayes.cli.study_settings import placed
from vertibayes.naive_bayes.model_file import is_naive_bayes
from vertibayes.network import Network, read_model
from vertibayes.prediction_over_sites import DeclaredPrediction
from vertibayes.settings import LEARNER, PREDICTION
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.queries.declared_run import declare_opening
from vertibayes_protocols.release import Rule


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
