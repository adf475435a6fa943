"""A Bayesian network as a classifier of scikit-learn: pooled, or of columns at several sites.

BayesianNetworkClassifier().fit(X, y)                     records at hand
BayesianNetworkClassifier().fit({"a": A, "b": B}, "ill")  columns at sites, in this process
BayesianNetworkClassifier().fit(counter, "ill")           a study, also between machines

The network is the same, bit for bit, in all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from vertibayes.choosing.secret import SecretChooser
from vertibayes.counting import Counter, PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.discretization import discretize, pre_binned
from vertibayes.inference.prediction import posterior, predict_proba
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes.released import learn_released
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.sklearn.reading import (
    are_sites,
    check_sites,
    class_column,
    distinct_classes,
    encoded,
    known_states,
    read_classes,
    read_frame,
    side_by_side,
    with_class,
)
from vertibayes.sklearn.temperature import (
    CHOSEN,
    TEMPERATURE,
    check_temperature,
    chosen_by_records,
    tempered,
)
from vertibayes.structure.constraints import Constraints
from vertibayes_protocols.federation import ANALYST, Federation, federate
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.binning import METHODS
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding

PRE_BINS = 64  # between which MDLP cuts


class _Sites(NamedTuple):
    """Who holds which columns, the class included; nobody but the caller if they are pooled."""

    frames: Mapping[str, pd.DataFrame]
    order: Sequence[str]
    pooled: bool

    @contextmanager
    def source(
        self, data: Mapping[str, SiteData], *, choices: bool = False
    ) -> Iterator[PlainCounter | OpenStudy]:
        """Open what counts the records: in this process, or by asking the sites."""
        known = {name for each in data.values() for name in each.variables}
        order = [name for name in self.order if name in known]
        if self.pooled:
            (records,) = data.values()
            yield PlainCounter(records.take(order))
            return
        with federate(data, policy=ALLOW_ALL if choices else None) as federation:
            yield _opened(federation, order, choices)


@dataclass(eq=False, repr=False)
class BayesianNetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A Bayesian network over the features and the class, which predicts the class.

    `fit` learns from pooled records, from columns at several sites, or from an open study. The
    network is the same, bit for bit, wherever the columns lie.

    Parameters
    ----------
    algorithm : str, default="hybrid"
        What learns the structure: "hybrid", "hill_climbing", "tabu", "pc", "chow_liu", "tan",
        "exact" or "k2" (docs/structures.md). "tan" has the class as its class variable [1]_.
    max_parents : int, optional
        The largest number of parents of a node; that of the algorithm if None.
    constraints : Constraints, optional
        What experts know of the structure.
    structure : Structure, optional
        A structure over the columns and the class; only its CPTs are then learned.
    ordering : sequence of str, optional
        With "k2": all columns and the class, parents before children.
    pseudo_count : float, default=0.5
        The number that is added to each count of a CPT.
    missing : {"em", "state", "available"}, optional
        How missing values are treated: by EM, as a state, or record by record. If None, by EM if a
        value is missing.
    binning : {"equal-frequency", "equal-width", "intervals", "mdlp"}, default="equal-frequency"
        How columns of more than 16 different numbers are cut. "mdlp" cuts them where the bins tell
        most about the class [2]_.
    bins : float, default=0.1
        The share of the records in a bin, or from 2 the number of bins. With "mdlp" it is that of
        columns that MDLP does not cut.
    max_states : int, default=100
        The largest number of states; a column with more is left out.
    classes : sequence, optional
        The classes; those of `y` if None.
    temperature : float or "chosen", default="chosen"
        What scales the logarithms of the probabilities: 1 for those of the network. "chosen" is the
        number that predicts the records of `fit` best, each left out of the CPTs; it is 1 with
        `release`, and where `fit` takes a federation, a study or a counter, whose records nobody
        has.
    release : Rule, optional
        The rule by which sites release tables. The structure is then learned by choices, and no
        other table is revealed. If None, exact tables are revealed to whoever calls `fit`.

    Attributes
    ----------
    network_ : Network
        The network.
    learned_ : Learned
        What else is known of it: scores, the gain of each edge, and seconds.
    target_ : str
        The variable of the class: the name of `y` if it has one.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `predict_proba`.
    temperature_ : float
        The temperature of the probabilities.
    left_out_ : dict of str to str
        The columns that cannot be variables, and why: constant columns, identifiers or dates.
    ledger_ : Ledger or None
        What was revealed, and to whom; None if the records are pooled.
    n_features_in_, feature_names_in_
        As of scikit-learn's estimators.

    References
    ----------
    .. [1] N. Friedman, D. Geiger, M. Goldszmidt (1997). Bayesian network classifiers. Machine
       Learning 29, 131-163.
    .. [2] U. Fayyad, K. Irani (1993). Multi-interval discretization of continuous-valued attributes
       for classification learning. IJCAI-93, 1022-1027.

    Examples
    --------
    >>> X = pd.DataFrame({"rain": ["no", "yes"] * 50, "hose": ["on", "off", "off", "off"] * 25})
    >>> wet = (X["rain"] == "yes") | (X["hose"] == "on")
    >>> pooled = BayesianNetworkClassifier(pseudo_count=0).fit(X, wet.rename("wet"))
    >>> pooled.predict(X.head(3)).tolist()
    [True, True, False]
    >>> sites = {"sky": X[["rain"]], "garden": X[["hose"]].assign(wet=wet)}
    >>> apart = BayesianNetworkClassifier(pseudo_count=0).fit(sites, "wet")
    >>> apart.network_.structure == pooled.network_.structure, apart.ledger_.cells > 0
    (True, True)
    """

    algorithm: str = "hybrid"
    _: KW_ONLY
    max_parents: int | None = None
    constraints: Constraints | None = None
    structure: Structure | None = None
    ordering: Sequence[str] | None = None
    pseudo_count: float = PSEUDO_COUNT
    missing: str | None = None
    binning: str = "equal-frequency"
    bins: float = 0.1
    max_states: int = 100
    classes: Sequence[Any] | None = None
    temperature: float | str = CHOSEN
    release: Rule | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn a network.

        Parameters
        ----------
        X : DataFrame, array, mapping of str to DataFrame, Federation, OpenStudy or Counter
            The records; or the columns of each site, of the same people in the same order; or a
            federation, a study or a counter, with the class among its variables.
        y : array of shape (n,) or str
            The classes; the name of the class if `X` has its column.

        Raises
        ------
        ValueError
            If the columns, the classes or a parameter cannot be used; the message names them.
        TypeError
            If `X` is a mapping of other things than data frames.
        """
        check_temperature(self.temperature)
        self.temperature_ = 1.0 if self.temperature == CHOSEN else float(self.temperature)
        if isinstance(X, Federation | OpenStudy) or callable(getattr(X, "tables", None)):
            return self._fit_source(X, y)
        sites = self._read_sites(X, y) if are_sites(X) else self._read_records(X, y)
        data, cuts = self._encoded(sites)
        options = self._options(self.left_out_)
        with sites.source(data, choices=self.release is not None) as source:
            self._learn(source, options)
        if self.temperature == CHOSEN and self.release is None:
            self.temperature_, self._shares = chosen_by_records(
                self.network_, data, self.target_, self.pseudo_count
            )
            if self.ledger_ is not None:
                self.ledger_.note(TEMPERATURE, "all parties together", (ANALYST,))
        if cuts is not None and self.ledger_ is not None:
            self.ledger_.tables[:0] = cuts.tables  # they were revealed first
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return ``P(class | x)``: shape (n, n_classes).

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            Records with the columns of `fit`. A value that no record of `fit` had causes a warning,
            and is a missing value; missing values are summed over.

        Raises
        ------
        ValueError
            If the columns are others, or a record misses so many values that the sums over them are
            too large.
        """
        check_is_fitted(self, "network_")
        frame = read_frame(self, X, self._names, texts=True)
        known = known_states(frame, self.network_, self.target_)
        probabilities = predict_proba(self.network_, known, self.target_)
        if self.temperature_ == 1:
            return probabilities
        with np.errstate(divide="ignore"):
            return np.exp(tempered(np.log(probabilities), self._shares, self.temperature_))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable classes: shape (n,); as `predict_proba`."""
        places = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    # ---- what the records are --------------------------------------------------------------------

    def _read_records(self, X: Any, y: Any) -> _Sites:  # noqa: N803
        """Read pooled records."""
        frame = read_frame(self, X, texts=True)
        return self._with_class({"X": frame}, "X", frame, getattr(y, "name", None), y)

    def _read_sites(self, X: Mapping[str, Any], y: Any) -> _Sites:  # noqa: N803
        """Read the columns of sites; the class is at the site that has its column."""
        check_sites(X)
        features, classes = class_column(side_by_side(X), y)
        read_frame(self, features)
        holder = next(site for site, frame in X.items() if y in frame.columns)
        frames = {site: frame.drop(columns=y, errors="ignore") for site, frame in X.items()}
        return self._with_class(frames, holder, features, y, classes)._replace(pooled=False)

    def _with_class(
        self,
        frames: Mapping[str, pd.DataFrame],
        holder: str,
        features: pd.DataFrame,
        name: Any,
        y: Any,
    ) -> _Sites:
        """Learn what the class is, and append it to the columns of its holder."""
        y = read_classes(features, y)
        self.classes_ = distinct_classes(y, self.classes)
        self._names = [str(column) for column in features.columns]
        free = (n for n in (name, "class") if isinstance(n, str) and n not in self._names)
        self.target_ = next(free, "the class of the records")
        own = with_class(frames[holder], self.target_, y, self.classes_)
        return _Sites({**frames, holder: own}, [*self._names, self.target_], pooled=True)

    def _encoded(self, sites: _Sites) -> tuple[dict[str, SiteData], Ledger | None]:
        """Return the data of sites, numbers binned, and the ledger of the tables for the cuts."""
        methods = (*METHODS, "mdlp")
        if self.binning not in methods:
            raise ValueError(f"binning must be one of {', '.join(methods)}, got {self.binning!r}")
        by_class = self.binning == "mdlp"
        if by_class and self.release is not None:
            raise ValueError(
                "binning='mdlp' reveals exact tables, and `release` does not: remove one"
            )
        how = Encoding(
            binning="equal-frequency" if by_class else self.binning,
            bins=self.bins,
            max_states=self.max_states,
        )
        ledger = None
        if by_class:
            cuts, ledger = self._cuts(sites, how)
            how = replace(how, cuts=cuts)
        data, self.left_out_ = encoded(sites.frames, how)
        if self.left_out_:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.left_out_.items())
            warnings.warn(f"columns are left out of the network: {reasons}", stacklevel=3)
        return data, ledger

    def _cuts(self, sites: _Sites, how: Encoding) -> tuple[dict[str, Any], Ledger | None]:
        """Return the edges at which MDLP cuts columns, and what was revealed for them."""
        fine = replace(
            how, binning="intervals", bins=1 / PRE_BINS, max_states=max(how.max_states, PRE_BINS)
        )
        data, _ = encoded(sites.frames, fine)
        columns = [name for each in data.values() for name in pre_binned(each.variables)]
        columns = [name for name in columns if name != self.target_]
        if not columns:
            return {}, None
        with sites.source(data) as source:
            counter = SecureCounter(source) if isinstance(source, OpenStudy) else source
            edges = discretize(counter, columns, self.target_)
        return {name: own for name, own in edges.items() if own}, getattr(counter, "ledger", None)

    # ---- learning --------------------------------------------------------------------------------

    def _fit_source(self, source: Any, y: Any) -> Self:
        """Learn from a federation, a study or a counter, which has its own variables."""
        if isinstance(source, Federation):
            source = _opened(source, None, self.release is not None)
        variables = source.study.variables if isinstance(source, OpenStudy) else source.variables
        if not isinstance(y, str) or y not in variables:
            known = ", ".join(variables)
            raise ValueError(f"y must be the name of a variable, got {y!r}; there are {known}")
        self.target_, self.left_out_ = y, {}
        self.classes_ = np.array(variables[y].states)
        self._names = [name for name in variables if name != y]
        self.feature_names_in_ = np.array(self._names, object)
        self.n_features_in_ = len(self._names)
        self._learn(source, self._options({}))
        self.classes_ = np.array(self.network_.variables[y].states)
        return self

    def _learn(self, source: Counter | OpenStudy, options: Options) -> None:
        """Learn from pooled records, or ask a study."""
        if (rule := self.release) is not None:
            if not isinstance(source, OpenStudy):
                raise ValueError(
                    f"release={rule.kind!r} needs sites: records that are pooled release nothing; "
                    "expected X to be a mapping of sites, a federation or a study"
                )
            chooser = SecretChooser(source)
            self.learned_ = learn_released(chooser, source.release, options, rule).learned
        else:
            counter = SecureCounter(source) if isinstance(source, OpenStudy) else source
            self.learned_ = learn(counter, options)
        self.ledger_ = cast("Ledger | None", getattr(source, "ledger", None))
        self.network_ = self.learned_.network
        if self.temperature_ != 1:
            self._shares = posterior(self.network_, {}, self.target_)[0]

    def _options(self, left_out: Mapping[str, str]) -> Options:
        """Return what to learn, without the columns that are left out."""
        given: dict[str, Any] = {"structure": self.structure}
        if self.structure is None:
            known = [name for name in self.ordering or () if name not in left_out]
            given = {
                "algorithm": self.algorithm,
                "constraints": (self.constraints or Constraints()).without(left_out.keys()),
                "ordering": None if self.ordering is None else known,
                "class_variable": self.target_ if self.algorithm == "tan" else None,
            }
        return Options(
            max_parents=self.max_parents,
            missing=cast("Any", self.missing),
            pseudo_count=self.pseudo_count,
            **given,
        )


def _opened(federation: Federation, order: Sequence[str] | None, choices: bool) -> OpenStudy:
    """Open the study of a federation in this process."""
    session, sites, dealer = federation.session, federation.sites, federation.dealer
    return open_study(session, sites, dealer, order=order, choices=choices)
