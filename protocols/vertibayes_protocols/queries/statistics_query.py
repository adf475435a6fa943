"""What queries for statistics of records have in common: what is counted, and with which noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.aggregation import MOST_TIME
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.queries.terms import Terms
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.schema import Declaration, Declared
from vertibayes_protocols.session import Query
from vertibayes_protocols.site.statistics import CentredMoments, Counts, Moments, Numeric, Statistic
from vertibayes_protocols.variables import Family, Variable

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StatisticsQuery(Query[R_co]):
    """Ask sites that hold different records for statistics; `parties` are those that are asked.

    Parameters
    ----------
    number : int
        Above that of all such queries of this analyst that a site has taken part in.
    analyst : bytes
        The analyst's public key: two analysts may use one number, and no label is used twice.
    variables : tuple
        Name and states of each categorical variable.
    numerics : tuple of str
        The columns of numbers.
    bounds : ndarray of shape (len(numerics), 2), dtype float64
        The least and largest number of each.
    families : tuple of tuple of str
        Child and parents of each table.
    moments : tuple
        For each statistic of numbers, the columns, the variable that groups them and whether the
        numbers are summed about the middle of their bounds.
    most_parties, most_records : int
        As of `Terms`.
    noise : tuple of str
        Accounting, who is protected and kind of noise; nothing for exact sums.
    shares : ndarray of shape (5,), dtype float64
        eps, delta, gamma, dishonest and dropouts, as of `Privacy` and `Terms`.
    """

    number: int
    analyst: bytes
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    numerics: tuple[str, ...]
    bounds: NDArray[np.float64]
    families: tuple[tuple[str, ...], ...]
    moments: tuple[tuple[tuple[str, ...], str, bool], ...]
    most_parties: int
    most_records: int
    noise: tuple[str, ...]
    shares: NDArray[np.float64]

    @staticmethod
    def fields_of(analyst: AnalystRole, terms: Terms) -> dict[str, Any]:
        """Return the fields that say what is counted, and with which noise.

        Parameters
        ----------
        analyst : AnalystRole
            Numbers the query.
        terms : Terms
            What is counted.
        """
        statistics, privacy = terms.schema.statistics, terms.privacy
        counts = [s for s in statistics if isinstance(s, Counts)]
        numbers = (privacy.eps, privacy.delta, privacy.gamma) if privacy else (0.0, 0.0, 0.0)
        numerics = terms.schema.numerics
        return {
            "number": analyst.next_number(),
            "analyst": analyst.keys.public,
            "variables": tuple((v.name, v.states) for v in terms.schema.variables.values()),
            "numerics": tuple(numerics),
            "bounds": bounds_of(numerics),
            "families": tuple(f.members for s in counts for f in s.families),
            "moments": tuple(
                (s.columns, s.by, isinstance(s, CentredMoments))
                for s in statistics
                if not isinstance(s, Counts)
            ),
            "most_parties": terms.most_parties,
            "most_records": terms.most_records,
            "noise": (privacy.accounting, privacy.protects, privacy.noise) if privacy else (),
            "shares": np.array([*numbers, terms.dishonest, terms.dropouts]),
        }

    def declared(self) -> Declared:
        """Return what is counted; ValueError if a name is given twice or is not declared."""
        variables = {name: Variable(name, states) for name, states in self.variables}
        numerics = numerics_of(self.numerics, self.bounds)
        counts = Counts(tuple(Family(child, tuple(parents)) for child, *parents in self.families))
        statistics: list[Statistic] = [counts] if self.families else []
        statistics += [(CentredMoments if c else Moments)(on, by) for on, by, c in self.moments]
        names = [*variables, *numerics]
        if len(set(names)) != len(self.variables) + len(self.numerics):
            raise ValueError("a variable is declared twice")
        if any(len(set(f)) < len(f) for f in self.families):
            raise ValueError("a table has a variable twice")
        if unknown := {name for columns, *_ in self.moments for name in columns} - set(numerics):
            raise ValueError(f"{min(unknown)!r} is not a declared column of numbers")
        return Declaration(variables, numerics, tuple(statistics))

    def terms(self) -> Terms:
        """Return the terms.

        Raises
        ------
        ValueError
            If they are not terms.
        """
        if self.shares.shape != (5,) or self.shares.dtype != np.float64:
            raise ValueError("the terms must have five numbers: eps, delta, gamma and two shares")
        eps, delta, gamma, dishonest, dropouts = self.shares.tolist()
        if len(self.noise) not in (0, 3):
            raise ValueError("the noise must have an accounting, a neighbour and a kind, or none")
        privacy = None
        if self.noise and not self.families:
            raise ValueError("the noise is for counts, and no table is asked for")
        if self.noise:
            accounting, protects, noise = self.noise
            privacy = Privacy(
                eps=eps,
                accounting=accounting,
                protects=protects,
                noise=noise,
                delta=delta,
                gamma=gamma,
            )
        sizes = self.most_parties, self.most_records
        return Terms(self.declared(), *sizes, privacy, dishonest, dropouts)

    def check_number(self) -> None:
        """Refuse a number that is out of its range, with a ValueError."""
        if not 0 <= self.number <= MOST_TIME:
            raise ValueError(f"sum number {self.number}: it must be from 0 to 2**62")


def bounds_of(numerics: Mapping[str, Numeric]) -> NDArray[np.float64]:
    """Return the least and largest number of each column: shape (columns, 2)."""
    return np.array([(n.low, n.high) for n in numerics.values()], float).reshape(-1, 2)


def numerics_of(names: Sequence[str], bounds: NDArray[np.float64]) -> dict[str, Numeric]:
    """Return the columns of numbers that a query names; the inverse of `bounds_of`.

    Raises
    ------
    ValueError
        If the columns do not have two bounds each.
    """
    if bounds.shape != (len(names), 2):
        raise ValueError(
            f"{len(names)} columns of numbers must have two bounds each, got the shape "
            f"{bounds.shape}"
        )
    pairs = zip(names, bounds.tolist(), strict=True)
    return {name: Numeric(name, *ends) for name, ends in pairs}
