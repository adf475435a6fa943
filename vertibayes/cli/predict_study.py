"""``vertibayes predict --study``: records whose values lie at the sites of a study.

With ``learner = "prediction"`` the study's file says what is predicted, and the owners of the sites
have approved it. Otherwise the options say it, to sites that set free_tables.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.alignment import Alignment
from protocols.deployment.files import StudyFile
from protocols.queries.declared_run import declare_opening
from protocols.release import Rule
from protocols.storage.whole_file import replacing
from vertibayes.cli.study_settings import learner_of, placed
from vertibayes.declared_prediction import DeclaredPrediction
from vertibayes.model_file import read_model
from vertibayes.naive_bayes.model_file import is_naive_bayes
from vertibayes.network import Network
from vertibayes.prediction_over_sites import predict_over_sites
from vertibayes.settings import LEARNER, PREDICTION
from vertibayes.study import approved_study, connect_study
from vertibayes.validation.auc import Auc
from vertibayes.validation.over_sites import auc_over_sites

Result = Auc | NDArray[np.float64]


# ---- what a study's file declares ----------------------------------------------------------------


def prediction_of(file: StudyFile, rule: Rule | None) -> DeclaredPrediction:
    """Return the prediction of a study's [learning], or its AUC if it has a rule.

    Raises
    ------
    ValueError
        If a setting cannot be used; the message names the file, the line and the key.
    """
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


def check_target(target: str, variables: Iterable[str], name: str = "--target") -> None:
    """Refuse a target that a model does not have, with a ValueError."""
    if target not in variables:
        raise ValueError(f"{name} {target}: the model has {', '.join(variables)}")


# ---- the command ---------------------------------------------------------------------------------


def predicted_study(
    study: Path, model: Path | None, target: str | None, rule: Rule | None, bins: int
) -> tuple[Network, str, Result]:
    """Return the network and the target of a study, with the posteriors or the AUC.

    Parameters
    ----------
    study : Path
        The study's file.
    model, target, rule
        What the options say: None each if the file declares a prediction.
    bins : int
        With a rule: the number of bins of the AUC's table.

    Raises
    ------
    ValueError, QueryRefusedError, ProtocolError, TransportError
        As `connect_study`, `predict_over_sites` and `auc_over_sites`.
    """
    from vertibayes.cli.contracts import contract_of  # which asks this module what is declared

    file = StudyFile.read(study)
    if learner_of(file) == "prediction":
        _check_no_options({"model": model, "target": target, "auc": rule})
        contract = contract_of(file)
        prediction = prediction_of(file, contract.rule)
        with approved_study(file, contract) as opened:
            given = prediction.predict if contract.rule is None else prediction.auc
            with placed(file.source.table("learning")):
                result = given(opened)
        return prediction.network, prediction.target, result
    if model is None or target is None:
        reason = 'specify --model and --target, or learner = "prediction" in [learning]'
        raise ValueError(f"{study}: {reason}")
    network = network_of(model, "--model")
    check_target(target, network.variables)
    with connect_study(study) as counter:
        opened = counter.open_study
        if rule is None:
            return network, target, predict_over_sites(opened, network, target)
        return network, target, auc_over_sites(opened, network, target, rule=rule, bins=bins)


def _check_no_options(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            where = "[release] has rule" if name == "auc" else f"[learning] has {name}"
            raise ValueError(
                f"--{name} cannot be combined with a study that declares its prediction: {where}"
            )


def write_auc(out: Path, target: str, result: Auc) -> None:
    """Write an AUC as JSON, and print it."""
    with replacing(out) as part:
        content = {"target": target, **asdict(result)}
        part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    area = "no AUC: one class has no records" if result.auc is None else f"AUC {result.auc:.4f}"
    sys.stdout.write(f"{area}; {result.scored} records, {result.left_out} without {target}\n")
