"""``vertibayes predict --study``: records whose values lie at the sites of a study.

With ``learner = "prediction"`` the study's file says what is predicted, and the owners of the sites
have approved it. Otherwise the options say it, to sites that set free_tables.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.cli.contracts import contract_of
from vertibayes.cli.predict import check_new, check_target, write_prediction
from vertibayes.cli.prediction_declared import network_of, prediction_of
from vertibayes.cli.study_settings import learner_of, placed
from vertibayes.inference.prediction import Prediction
from vertibayes.network import Network
from vertibayes.prediction_over_sites import predict_over_sites
from vertibayes.study import approved_study, connect_study
from vertibayes.validation.auc import Auc
from vertibayes.validation.over_sites import auc_over_sites
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.release import Rule
from vertibayes_protocols.storage.whole_file import replacing

Result: TypeAlias = Auc | NDArray[np.float64]


def run_predict_study(
    study: Path, out: Path, model: Path | None, target: str | None, rule: Rule | None, bins: int
) -> None:
    """Write a CSV file with a line for each record of a study, or the AUC as JSON.

    Parameters
    ----------
    study : Path
        The study's file.
    out : Path
        The file to write.
    model, target, rule
        What the options say: None each if the file declares a prediction.
    bins : int
        With a rule: the number of bins of the AUC's table.

    Raises
    ------
    ValueError, QueryRefusedError, ProtocolError, TransportError
        As `connect_study`, `predict_over_sites` and `auc_over_sites`; nothing is then written.
    """
    check_new(out)
    network, target, result = _predicted(study, model, target, rule, bins)
    if isinstance(result, Auc):
        return _write_auc(out, target, result)
    prediction = Prediction(result, np.zeros(len(result), np.bool_))
    return write_prediction(out, network.variables[target], prediction)


def _predicted(
    study: Path, model: Path | None, target: str | None, rule: Rule | None, bins: int
) -> tuple[Network, str, Result]:
    """Return the network and the target of a study, with the posteriors or the AUC."""
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


def _write_auc(out: Path, target: str, result: Auc) -> None:
    """Write an AUC as JSON, and print it."""
    with replacing(out) as part:
        content = {"target": target, **asdict(result)}
        part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    area = "no AUC: one class has no records" if result.auc is None else f"AUC {result.auc:.4f}"
    sys.stdout.write(f"{area}; {result.scored} records, {result.left_out} without {target}\n")
