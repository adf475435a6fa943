"""The validations that ``vertibayes learn --validate`` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertibayes.data_dictionary import NO_DICTIONARY, Dictionary
from vertibayes.settings import Validate
from vertibayes.words import counted

if TYPE_CHECKING:
    from vertibayes.counting import Counter
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.dag import Structure
    from vertibayes.learning import Learned
    from vertibayes.network import Network
    from vertibayes.options import Options
    from vertibayes.records import Records
    from vertibayes.structure.search import Progress
    from vertibayes.validation.measures import Band, Calibration, Roc
    from vertibayes.validation.methods import Validation
    from vertibayes_protocols.variables import Variable

HOLDOUT = 0.2  # the default share
DRAWS = 3  # of the synthetic records of scv and svdg


@dataclass(frozen=True)
class Validations:
    """Which validations to run: the values of `vertibayes.settings.VALIDATION`."""

    validate: tuple[Validate, ...] = ()
    target: str | None = None
    folds: int = 10
    holdout: float = HOLDOUT  # share of the records
    public: Path | None = None
    missing_codes: tuple[str, ...] = ()
    public_records: Records | None = None
    dictionary: Dictionary = NO_DICTIONARY  # of the public records too
    seed: int = 0  # of the choice of held-out records

    def check(self) -> None:
        """Refuse settings that do not fit each other, before any file is read."""
        if self.validate and self.target is None:
            raise ValueError("`validate` tests the prediction of a variable: name it by `target`")
        if ("public" in self.validate) != (self.public is not None):
            raise ValueError("`validate` public and `public` FILE belong together: specify both")
        if self.holdout != HOLDOUT and "holdout" not in self.validate:
            raise ValueError(
                f"`holdout` {self.holdout} is the share of the records that the validation holdout "
                "tests on: add holdout to `validate`, or remove `holdout`"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON data."""
        names = ("validate", "target", "folds", "holdout", "public")
        return {name: getattr(self, name) for name in names}

    def prepared(self, variables: Mapping[str, Variable], records: int) -> Validations:
        """Read the public records; refuse impossible validations before a table is revealed."""
        if self.target is not None and self.target not in variables:
            raise ValueError(
                f"`target` {self.target}: no such variable; there are {', '.join(variables)}"
            )
        if not self.validate:
            return self
        from vertibayes.records import read_records
        from vertibayes.validation.methods import check_folds
        from vertibayes_protocols.policy import Policy

        if "holdout" in self.validate:
            from vertibayes.holdout import held_out

            _, left = held_out(records, self.holdout)
            records = left.count(records)
        if {"scv", "svdg"} & set(self.validate):
            check_folds(records, self.folds)
        if "svdg" in self.validate:
            policy = Policy()
            sets = policy.most_row_sets - 2 - ("holdout" in self.validate)  # all, and a sample
            most = min(records // policy.fewest_records, sets)
            if self.folds > most:
                raise ValueError(
                    f"`folds` {self.folds}: the sites answer for {policy.most_row_sets} record "
                    f"sets of {policy.fewest_records} records or more, so that svdg has at most "
                    f"{most} folds here"
                )
        if self.public is None:
            return self
        records_read = read_records(
            self.public,
            variables,
            missing_codes=self.missing_codes,
            dictionary=self.dictionary,
        )
        if self.target in records_read.absent:
            raise ValueError(f"`public` {self.public}: no column {self.target!r}, the target")
        return replace(self, public_records=records_read)

    def parted(self, counter: SecureCounter) -> tuple[SecureCounter, SecureCounter | None]:
        """Return counters of the records to learn from, and of those that are held out, if any.

        Too few held-out records of a class are refused: this reveals how many there are.
        """
        if "holdout" not in self.validate or self.target is None:
            return counter, None
        from vertibayes.holdout import check_classes, held_out
        from vertibayes_protocols.study import NEEDS_MASKED_TABLES

        if not counter.study.is_masked:
            raise ValueError(f"{NEEDS_MASKED_TABLES}: the validation holdout needs masked columns")
        rows, left = held_out(counter.records, self.holdout, self.seed)
        check_classes(part := counter.within(rows), self.target)
        return counter.within(left), part

    def warnings(self) -> list[str]:
        """Return warnings about the public records."""
        if self.public is None or self.public_records is None:
            return []
        return self.public_records.warnings(self.public)

    def run(
        self,
        counter: Counter,
        learned: Learned,
        options: Options,
        progress: Progress,
        held: SecureCounter | None = None,
        warn: Callable[[str], object] = lambda _: None,
    ) -> dict[str, Validation]:
        """Run the validations; `held` counts the held-out records."""
        from vertibayes.holdout import TooLargeError, holdout
        from vertibayes.learning import fit
        from vertibayes.validation.methods import public, scv, svdg

        structure, target = learned.network.structure, self.target or ""
        results: dict[str, Validation] = {}

        def fitted(part: Counter, structure: Structure) -> Network:
            return fit(part, structure, options).network

        for method in self.validate:
            if method == "public" and self.public_records is not None:
                results[method] = public(learned.network, self.public_records.data, target)
            elif held is not None and method == "holdout":
                progress("held-out records", 0, 1)
                try:
                    results[method] = holdout(learned.network, held, target)
                except TooLargeError as error:  # what was learned is not lost for it
                    warn(f"{error}")
            elif method != "public":
                validate = scv if method == "scv" else svdg
                progress_of = partial(progress, method.upper())
                results[method] = validate(
                    counter,
                    structure,
                    target,
                    folds=self.folds,
                    draws=DRAWS,
                    fit=fitted,
                    progress=progress_of,
                )
        return results


def warnings_of(method: str, validation: Validation) -> list[str]:
    """Return warnings that a reader needs before the result of a validation."""
    from vertibayes.holdout import HeldOut

    overall, warnings = validation.overall, []
    if isinstance(validation, HeldOut) and validation.log_loss is None:
        warnings.append(
            "the validation holdout has no log-loss: a held-out record has a class of probability "
            "0; learn with a --pseudo-count above 0"
        )
    if validation.impossible:
        warnings.append(
            f"{counted(validation.impossible, 'record')} of the validation {method} had values "
            "that are impossible together under the model, and were predicted by the others; learn "
            "it with a --pseudo-count above 0"
        )
    if overall.auc is None:
        warnings.append(
            f"the validation {method} has no AUC: none of its folds has two classes of "
            f"{validation.target} among the {overall.scored} scored records"
        )
    return warnings


def as_json(validation: Validation, aic: float) -> dict[str, Any]:
    """Return a validation, and the structure's AIC on the private records, as JSON data."""
    from vertibayes.holdout import HeldOut

    overall, curves = validation.overall, validation.curves
    return {
        "target": validation.target,
        "auc": overall.auc,
        "auc_by_class": dict(overall.by_class),
        "auc_by_fold": [fold.auc for fold in validation.by_fold],
        "auc_interval": validation.interval,
        "auc_standard_deviation_over_draws": validation.spread,
        "test_records": validation.test_records,
        "scored": overall.scored,
        "left_out": overall.left_out,
        "impossible": validation.impossible,
        **(validation.as_json() if isinstance(validation, HeldOut) else {}),
        "aic": aic,
        "roc": {state: _lists(roc) for state, roc in curves.roc.items()},
        "roc_band": {state: _lists(band) for state, band in validation.bands.items()},
        "calibration": {state: _lists(curve) for state, curve in curves.calibration.items()},
        "confusion": {
            "states": list(curves.calibration),
            "records_by_true_and_predicted": curves.confusion.tolist(),
        },
    }


def _lists(arrays: Roc | Band | Calibration) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in arrays._asdict().items()}
