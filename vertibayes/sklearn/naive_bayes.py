"""Naive Bayes of exact counts: of pooled records, or of parties that hold records or columns.

    NaiveBayes().fit(X, y)                       records at hand
    NaiveBayes().fit({"a": A, "b": B}, "ill")    parties hold records: one masked sum; or
                                                 sites hold columns: tables, through a federation
    NaiveBayes().fit({"a": A, "b": B}, y)        sites hold columns, and all of them know the class

All parties are in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import Floats
from vertibayes.naive_bayes.base import NaiveBayes as Model
from vertibayes.naive_bayes.releases import learn_sums
from vertibayes.sklearn.base import NaiveBayesEstimator
from vertibayes.sklearn.reading import are_sites, check_sites, class_column, side_by_side
from vertibayes.sklearn.temperature import (
    CHOSEN,
    TEMPERATURE,
    best_temperature,
    check_temperature,
    shares_of,
    some_of,
    tempered,
)
from vertibayes_protocols.federation import ANALYST, RecordFederation, federate
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData


@dataclass(eq=False, repr=False)
class NaiveBayes(NaiveBayesEstimator):
    """Naive Bayes of exact counts and moments, pooled or over parties: the same model.

    `FederatedNB` is the same with noise; `FederatedNB(None)` has this model too.

    Parameters
    ----------
    bounds : (float, float) or mapping, optional
        The bounds of all numbers, or of each column of numbers; the smallest and the largest number
        of all parties if not given. Numbers are rounded to 2^20 steps between them.
    categories : mapping, optional
        The values of each categorical column; those of all parties if not given.
    classes : sequence, optional
        The classes; those of y if not given.
    alpha : float, default=1.0
        Added to each count of a categorical feature.
    temperature : float or "chosen", default="chosen"
        What scales the logarithms of the probabilities: 1 for those of the model, as scikit-learn's
        naive Bayes has them. "chosen" is the number that predicts the records of `fit` best.

    Attributes
    ----------
    temperature_ : float
        The temperature of the probabilities.
    model_ : vertibayes.naive_bayes.base.NaiveBayes
        The fitted model: `class_log_prior_`, `feature_log_prob_`, `theta_`, `var_`, `sums_`.
    ledger_ : Ledger or None
        What was revealed, and to whom; None if the records are pooled.
    columns_, classes_, n_features_in_, feature_names_in_
        As of `FederatedNB`.

    References
    ----------
    .. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
       Decentralized Naive Bayes with Differential Privacy. Section 3.1, without noise.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [20.0, 31.0, 64.0, 70.0] * 9, "cough": [False, False, True] * 12})
    >>> records = X.assign(ill=X["age"] > 50)
    >>> pooled = NaiveBayes().fit(X, records["ill"])
    >>> apart = NaiveBayes().fit({"north": records[:10], "south": records[10:]}, "ill")
    >>> bool((apart.model_.sums_ == pooled.model_.sums_).all())
    True
    >>> apart.predict(X.head(3)).tolist()
    [False, False, True]
    """

    epsilon: None = field(default=None, init=False)
    _: KW_ONLY
    temperature: float | str = CHOSEN

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Fit to records.

        Parameters
        ----------
        X : DataFrame, array of shape (n, n_features) or mapping of str to DataFrame
            The records; or, by party, records of the same columns, or different columns of the same
            people in the same order.
        y : array of shape (n,) or str
            The classes; or the name of the column of the class, if `X` is a mapping. Sites that
            hold columns all know the classes if `y` is an array.

        Raises
        ------
        ValueError
            If the records, the classes or a parameter cannot be used, or one site alone knows the
            class and a feature is a number.
        TypeError
            If `X` is a mapping of other things than data frames.
        """
        check_temperature(self.temperature)
        self.ledger_: Ledger | None = None
        if not are_sites(X):
            return self._fitted(self._read(X, y, self.classes))
        check_sites(X)
        if len({frozenset(frame.columns) for frame in X.values()}) == 1:
            return self._fit_parties(X, y)
        joined = side_by_side(X)
        if not isinstance(y, str):
            return self._fit_known_classes(X, joined, y)
        return self._fit_columns(X, joined, y)

    def _fitted(self, data: LocalData) -> Self:
        """Fit to records that are at hand."""
        self.model_ = self._model().fit(data)
        return self._scaled(data)

    def _scaled(self, data: LocalData) -> Self:
        """Choose the temperature by the records of all parties."""
        codes = data.codes[self.columns_.schema.target.name].astype(np.intp)
        self._shares = shares_of(codes, len(self.classes_))
        if self.temperature != CHOSEN:
            self.temperature_ = float(self.temperature)
            return self
        some = some_of(data.records)
        with np.errstate(over="ignore"):
            logs = self.model_.predict_log_proba(data.rows(some))
        self.temperature_ = best_temperature(logs, codes[some], self._shares)
        return self

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return ``log P(y | x)``: shape (n, n_classes), in nats; missing values are left out."""
        logs = super().predict_log_proba(X)
        if self.temperature_ == 1:
            return logs
        return tempered(logs, self._shares, self.temperature_)

    def _model(self) -> Model:
        return Model(self.columns_.schema, alpha=self.alpha)

    def _fit_parties(self, parties: Mapping[str, pd.DataFrame], y: Any) -> Self:
        """Ask parties that hold different records for one masked sum of their statistics."""
        features, classes = class_column(pd.concat(list(parties.values())), y)
        data = self._read(features, classes, self.classes)
        if len(parties) < 2:
            return self._fitted(data)
        ends = np.cumsum([len(frame) for frame in parties.values()])[:-1]
        rows = np.split(np.arange(data.records), ends)
        held = {party: data.rows(own) for party, own in zip(parties, rows, strict=True)}
        most = max(each.records for each in held.values())
        terms = Terms(self.columns_.schema, len(held), most)
        with RecordFederation(held, policy=ALLOW_ALL).session() as session:
            release = learn_sums(session, terms, Members(terms, held), alpha=self.alpha)
            self.ledger_ = session.role.ledger
        self.ledger_.note(self._found(), "all parties together", (ANALYST,))
        self.model_ = release.model
        return self._scaled(data)

    def _fit_columns(self, sites: Mapping[str, pd.DataFrame], joined: pd.DataFrame, y: str) -> Self:
        """Ask sites that hold columns for tables: one of them holds the class."""
        data = self._read(*class_column(joined, y), self.classes)
        schema = self.columns_.schema
        constant = [name for name in schema.categorical if len(schema.variables[name].states) < 2]
        if constant:
            raise ValueError(f"{constant[0]} has one value in all records: drop the column")
        if schema.numeric:
            raise ValueError(
                f"{schema.numeric[0]} is a number, and {y} is at one site alone: sites make tables "
                "of states; declare its values in categories, cut it (pandas.cut), or pass the "
                "classes as an array if all sites know them"
            )
        names = {y: schema.target.name}
        held = {
            site: _site_data(data, [names.get(column, str(column)) for column in frame.columns])
            for site, frame in sites.items()
        }
        with federate(held) as federation:
            counter = SecureCounter.of(federation, order=list(schema.variables))
            self.model_, self.ledger_ = self._model().fit_counter(counter), counter.ledger
        if self.temperature == CHOSEN:
            self.ledger_.note(TEMPERATURE, "all parties together", (ANALYST,))
        return self._scaled(data)

    def _fit_known_classes(
        self, sites: Mapping[str, pd.DataFrame], joined: pd.DataFrame, y: Sequence[Any]
    ) -> Self:
        """Fit to what each site tells of its own columns, by the classes that all sites know."""
        data = self._read(joined, y, self.classes)
        self.ledger_ = Ledger()
        self.ledger_.note("the class of every record", "the records", tuple(sites))
        for site in sites:
            self.ledger_.note("the counts and sums of its columns by class", site, (ANALYST,))
        self.ledger_.note(self._found(), "all parties together", (ANALYST,))
        return self._fitted(data)

    def _found(self) -> str:
        """Return what was read off the records of all parties beside the sums."""
        schema, bounds = self.columns_.schema, self.bounds
        by_column = bounds is None or isinstance(bounds, Mapping)
        declared = map(str, bounds or ()) if by_column else schema.numeric
        numbers = sorted(set(schema.numeric).difference(declared))
        values = sorted(set(schema.categorical).difference(map(str, self.categories or ())))
        found = [
            "the number of records",
            *(["which classes there are"] if self.classes is None else []),
            *([f"the smallest and the largest number of {', '.join(numbers)}"] if numbers else []),
            *([f"which values {', '.join(values)} have"] if values else []),
            *([TEMPERATURE] if self.temperature == CHOSEN else []),
        ]
        return "; ".join(found)


def _site_data(records: LocalData, names: Sequence[str]) -> SiteData:
    """Return the columns of one site, whose values may be missing."""
    codes = {name: records.codes[name].astype(np.uint16) for name in names}
    variables = {name: records.variables[name] for name in names}
    variables = {
        name: variable
        if variable.missing or (codes[name] < len(variable.states)).all()
        else type(variable)(name, variable.states, missing=True)
        for name, variable in variables.items()
    }
    return SiteData(variables, codes)
