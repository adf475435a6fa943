"""A prediction that the owners of sites approve: its tables follow from the model's file alone.

The analyst and the owner of each site compute the same tables, on different machines. The tables
are therefore coarser than those of `predict_over_sites`, so that machines whose logarithms differ
in the last bits round them to the same integers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.odds_tables import odds_tables
from vertibayes.missing_states import has_missing_state
from vertibayes.network import Network
from vertibayes.prediction_over_sites import distributions, evidence_of
from vertibayes.validation.auc import Auc
from vertibayes.validation.over_sites import BINS, auc_of_table, thresholds_of
from vertibayes_protocols.odds import Odds
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries import Predict, ScoreTable
from vertibayes_protocols.queries.declared_run import declare
from vertibayes_protocols.release import Rule
from vertibayes_protocols.variables import Rows, Variable

DECLARED_BITS = 24  # a probability differs by less than 1e-6


@dataclass(frozen=True)
class DeclaredPrediction:
    """What an approved study asks of the records' log odds."""

    network: Network  # the network
    target: str  # the variable that is predicted
    evidence: Collection[str]  # the variables whose values predict the target
    may_be_missing: Collection[str] = ()  # those of which sites miss values
    records: int | None = None  # the number of records, first in the order of the study
    rule: Rule | None = None  # by which rule the table of the AUC is released
    bins: int = BINS  # the number of bins of this table

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.may_be_missing) - set(self.evidence)):
            raise ValueError(f"{unknown[0]} may be missing, but is not among the evidence")
        _ = self.query  # which checks the rest
        states = self.network.variables[self.target].states
        if self.rule is not None and len(states) != 2:
            raise ValueError(
                f"the target {self.target!r} has {len(states)} states; an AUC needs two"
            )

    @property
    def rows(self) -> Rows:
        """The records."""
        return Rows(last=self.records)

    @cached_property
    def odds(self) -> Odds:
        """The tables that the sites look up."""
        known = {name: self._variable(name) for name in self.evidence}
        needed = odds_tables(self.network, self.target, known)
        if not needed.tables:
            raise ValueError(
                f"the evidence does not matter for {self.target!r}: all records have one posterior"
            )
        return needed.as_fine_as(DECLARED_BITS)

    @cached_property
    def thresholds(self) -> NDArray[np.int64]:
        """The thresholds of the AUC's bins."""
        return thresholds_of(self.network, self.odds, self.bins)

    @property
    def query(self) -> dict[str, Any]:
        """The query as a contract declares it."""
        if self.rule is None:
            return declare(Predict((), b"", 0, self.odds.shape, self.rows))
        asked = self.odds.shape, self.rows, self.thresholds, self.rule
        return declare(ScoreTable((), b"", 0, *asked))

    def predict(self, study: OpenStudy) -> NDArray[np.float64]:
        """Return the posteriors of the records, as `predict_over_sites` does."""
        self._check(study)
        return distributions(study.ask(lambda joined: Predict.of(joined, self.odds, self.rows)))

    def auc(self, study: OpenStudy) -> Auc:
        """Return the AUC by the rule, as `auc_over_sites` does."""
        assert self.rule is not None
        self._check(study)
        more = {"thresholds": self.thresholds, "rule": self.rule}
        table = study.ask(lambda joined: ScoreTable.of(joined, self.odds, self.rows, **more))
        return auc_of_table(table, self.network.variables[self.target].states)

    def _variable(self, name: str) -> Variable:
        """Return a variable of the evidence as sites have it, if the network has it."""
        own = self.network.variables.get(name)
        if own is None:
            raise ValueError(
                f"the network has no variable {name!r}; it has {', '.join(self.network.variables)}"
            )
        states = own.states[:-1] if has_missing_state(own) else own.states
        return Variable(name, states, name in self.may_be_missing)

    def _check(self, study: OpenStudy) -> None:
        """Refuse sites whose variables the contract does not describe, before a run is used up."""
        known = evidence_of(study, self.network, self.target, self.evidence)
        check_variables(known, {name: self._variable(name) for name in self.evidence})


def check_variables(known: Mapping[str, Variable], declared: Mapping[str, Variable]) -> None:
    """Refuse variables of sites that differ from the declared ones, with a ValueError."""
    for name, variable in declared.items():
        if known[name].states != variable.states:
            raise ValueError(
                f"{name} has other states at the sites than in the network, or in another order"
            )
        if known[name].missing and not variable.missing:
            raise ValueError(
                f"values of {name} are missing at its site: add it to `may_be_missing`, or leave "
                "it out of `evidence`"
            )
        if variable.missing and not known[name].missing:
            raise ValueError(f"no value of {name} is missing: remove it from `may_be_missing`")
