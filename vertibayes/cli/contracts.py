"""The contract of a study's file: parties, variables, learner and options, and what is released.

The analyst has the file with a private key beside it. The owner of a site has the file alone, and
takes the analyst's public key from `site.toml`: the digests are equal if the keys are.
"""

from __future__ import annotations

from typing import Any

from vertibayes.cli.declared import (
    declared_calibration,
    declared_naive_bayes,
    declared_prediction,
    prediction_of,
)
from vertibayes.cli.study_settings import learner_of, options_of, placed
from vertibayes.contract import BAYESIAN_NETWORK, options_json
from vertibayes.released import check_options
from vertibayes.settings import RELEASE, VALIDATION, rule_of
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import SiteFile, StudyFile, own_keys
from vertibayes_protocols.policy import GIBIBYTE
from vertibayes_protocols.release import Rule
from vertibayes_protocols.settings import MASKED_TABLES


def has_contract(file: StudyFile) -> bool:
    """Whether a study is one that sites approve: its file has the table [release]."""
    return "release" in file.source.values


def check_approvable(file: StudyFile) -> None:
    """Refuse the file of a study that needs no approval, or that no owner can approve."""
    if not has_contract(file):
        reason = 'missing; sites approve what a study releases: add [release] with rule = "cut"'
        raise file.source.error(("release",), reason)
    if file.count_by != MASKED_TABLES:
        reason = "approved studies count by masked-tables: remove it, or [release]"
        raise file.source.error(("study", "count_by"), reason)


def check_addressed(file: StudyFile, own: SiteFile) -> None:
    """Refuse a study of which a site is no party, or whose analyst it does not know."""
    if own.party not in file.sites:
        raise file.source.error(("sites",), f"{own.party}, this site, is not among the sites")
    if file.party not in own.analysts:
        names = ", ".join(own.analysts)
        reason = f"{file.party!r} is not an analyst that {own.source.path} pins: {names}"
        raise file.source.error(("analyst", "name"), reason)


def contract_of(file: StudyFile, analyst_key: bytes | None = None) -> Contract:
    """Return the contract of a study's file.

    Parameters
    ----------
    file : StudyFile
        The study.
    analyst_key : bytes, optional
        The analyst's public key; that of the private key beside the file if None.

    Raises
    ------
    ValueError
        If the file does not say what a contract needs; the message names the line and the key.
    """
    check_approvable(file)
    if not file.variables:
        reason = "missing; an approved study lists its variables, in its order"
        raise file.source.error(("study", "variables"), reason)
    learner, (rule, runs) = learner_of(file), _release_of(file)
    if learner == "prediction":
        content = declared_prediction(file, prediction_of(file, rule), _alignment_of(file))
    else:
        content = _steps_of(file, rule) if learner == BAYESIAN_NETWORK else _queries_of(file, rule)
    return Contract(
        sites=tuple((site, file.pinned[site]) for site in file.sites),
        dealer=(file.dealer, file.pinned[file.dealer]),
        analyst=(file.party, analyst_key or own_keys(file).public),
        variables=file.variables,
        learner=learner,
        rule=rule,
        runs=runs,
        memory=file.memory or GIBIBYTE,
        alignment=_alignment_of(file),
        **content,
    )


def _alignment_of(file: StudyFile) -> Alignment | None:
    """Return who is in a study, as its owners approve it; None without [alignment]."""
    if file.alignment is None:
        return None
    with placed(file.source.table("alignment")):
        return file.alignment.for_contract(file.sites)


def _release_of(file: StudyFile) -> tuple[Rule | None, int]:
    """Return the rule of a study's [release], None without one, and the number of runs."""
    table = file.source.table("release")
    values = table.take_all(RELEASE)
    table.end()
    with placed(table):
        return rule_of(values), values["runs"]


def _steps_of(file: StudyFile, rule: Rule | None) -> dict[str, Any]:
    """Return the options of a learner whose steps sites follow; its rule must be given."""
    if rule is None:
        reason = 'missing; expected how the tables are released, as rule = "cut"'
        raise file.source.error(("release", "rule"), reason)
    options, validation = options_of(file), _validation(file)
    with placed(file.source.table("learning")):
        check_options(options, validation["validate"])
    return {"options": {"learning": options_json(options), "validation": validation}}


def _queries_of(file: StudyFile, rule: Rule | None) -> dict[str, Any]:
    """Return the options and the queries of a learner that asks sums, reports or rounds."""
    if rule is not None:
        reason = (
            "only Bayesian networks and predictions use it; [learning] has the noise here: remove "
            "it"
        )
        raise file.source.error(("release", "rule"), reason)
    is_calibration = learner_of(file) == "calibration"
    queries = declared_calibration(file) if is_calibration else declared_naive_bayes(file)
    return {"options": {}, "queries": queries}


def _validation(file: StudyFile) -> dict[str, Any]:
    """Return which validations the analyst runs; its public records stay with the analyst."""
    values = file.source.table("validation").take_all(VALIDATION)
    validate, target, folds = values["validate"], values["target"], values["folds"]
    return {"validate": list(validate), "target": target, "folds": folds}
