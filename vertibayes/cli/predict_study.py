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
from vertibayes.cli.declared import network_of, prediction_of
from vertibayes.cli.phases import PREDICTING, WRITING
from vertibayes.cli.predict import check_target, write_prediction
from vertibayes.cli.study_settings import learner_of, placed
from vertibayes.cli.watched_run import watched_run
from vertibayes.inference.prediction import Prediction
from vertibayes.network import Network
from vertibayes.prediction_over_sites import auc_over_sites, predict_over_sites
from vertibayes.study import approved_study, connect_study
from vertibayes.validation.measures import Auc
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.release import Rule
from vertibayes_protocols.run_watch import RunWatch
from vertibayes_protocols.storage.whole_file import replacing

Result: TypeAlias = Auc | NDArray[np.float64]


def run_predict_study(
    study: Path, out: Path, model: Path | None, target: str | None, rule: Rule | None, bins: int
) -> None:
    """Write a CSV file with a line for each record of a study, or the AUC as JSON."""
    file = StudyFile.read(study)
    contract = None
    if learner_of(file) == "prediction":
        _check_no_options({"model": model, "target": target, "auc": rule})
        contract = contract_of(file)
    elif model is None or target is None:
        reason = 'specify --model and --target, or learner = "prediction" in [learning]'
        raise ValueError(f"{study}: {reason}")
    with watched_run(file, "prediction", out, contract=contract) as watch:
        if contract is not None:
            network, target, result = _declared(file, contract, watch)
        else:
            assert model is not None and target is not None  # checked above
            network = network_of(model, "--model")
            check_target(target, network.variables)
            result = _asked(study, network, target, rule, bins, watch)
        watch.phase(WRITING)
        if isinstance(result, Auc):
            return _write_auc(out, target, result)
        prediction = Prediction(result, np.zeros(len(result), np.bool_))
        return write_prediction(out, network.variables[target], prediction)


def _declared(file: StudyFile, contract: Contract, watch: RunWatch) -> tuple[Network, str, Result]:
    """Return the network and the target of an approved study, with the posteriors or the AUC."""
    prediction = prediction_of(file, contract.rule)
    with approved_study(file, contract, watch) as opened:
        watch.phase(PREDICTING)
        given = prediction.predict if contract.rule is None else prediction.auc
        with placed(file.source.table("learning")):
            result = given(opened)
    return prediction.network, prediction.target, result


def _asked(
    study: Path, network: Network, target: str, rule: Rule | None, bins: int, watch: RunWatch
) -> Result:
    """Return the posteriors or the AUC of sites that answer any query."""
    with connect_study(study, watch) as counter:
        watch.phase(PREDICTING)
        opened = counter.open_study
        if rule is None:
            return predict_over_sites(opened, network, target)
        return auc_over_sites(opened, network, target, rule=rule, bins=bins)


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
