"""The validations that ``vertibayes learn --validate`` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocols.site.data import SiteData
from protocols.site.encoding import Encoding, encode_known
from protocols.site.text import read_columns
from protocols.variables import Variable
from vertibayes.counting import Counter
from vertibayes.learning import Learned
from vertibayes.network import Network
from vertibayes.validation.curves import Calibration, Roc
from vertibayes.validation.methods import Validation, public, scv, svdg

METHODS = ("public", "scv", "svdg")


@dataclass(frozen=True)
class Validations:
    """Which validations are wanted, as the options of ``vertibayes learn``."""

    methods: tuple[str, ...] = ()
    target: str | None = None
    folds: int = 10
    public: Path | None = None
    missing_codes: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what cannot be run, before anything is read.

        Raises
        ------
        ValueError
            It names the option.
        """
        for method in self.methods:
            if method not in METHODS:
                raise ValueError(f"--validate {method}: some of {','.join(METHODS)} are wanted")
        if self.methods and self.target is None:
            raise ValueError("--validate needs a --target")
        if ("public" in self.methods) != (self.public is not None):
            raise ValueError("--validate public and --public FILE belong together")

    def run(self, counter: Counter, learned: Learned) -> dict[str, Validation]:
        """Run them.

        Raises
        ------
        ValueError
            If the target is no variable, or there are too few records for the folds.
        """
        found: dict[str, Validation] = {}
        structure, target = learned.network.structure, self.target or ""
        if self.methods and target not in structure.nodes:
            raise ValueError(f"--target {target}: there are {', '.join(structure.nodes)}")
        for method in self.methods:
            if method == "public":
                found[method] = public(learned.network, self._public(learned.network), target)
            else:
                validate = scv if method == "scv" else svdg
                found[method] = validate(counter, structure, target, folds=self.folds)
        return found

    def _public(self, network: Network) -> SiteData:
        """Read the public records in the network's states."""
        assert self.public is not None  # checked
        columns = read_columns(self.public)
        names = [name for name in columns if name in network.variables]
        states = {name: network.variables[name].states for name in names}
        how = Encoding(self.missing_codes, states)
        codes = {n: encode_known(str(self.public), n, columns[n], how) for n in names}
        variables = {name: Variable(name, states[name], missing=True) for name in names}
        return SiteData(variables, codes)


def as_json(validation: Validation, aic: float) -> dict[str, Any]:
    """Return a validation, and the network's AIC on the private records, as JSON data."""
    overall, curves = validation.overall, validation.curves
    return {
        "target": validation.target,
        "auc": overall.auc,
        "auc_by_class": dict(overall.by_class),
        "auc_by_fold": [fold.auc for fold in validation.by_fold],
        "scored": overall.scored,
        "left_out": overall.left_out,
        "impossible": validation.impossible,
        "aic": aic,
        "roc": {state: _lists(roc) for state, roc in curves.roc.items()},
        "calibration": {state: _lists(found) for state, found in curves.calibration.items()},
        "confusion": {
            "states": list(curves.calibration),
            "records_by_true_and_predicted": curves.confusion.tolist(),
        },
    }


def _lists(arrays: Roc | Calibration) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in arrays._asdict().items()}
