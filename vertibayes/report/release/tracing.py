"""How well an attack can tell whether a person's record is among the records of a release.

The attacker knows a whole record, the true distribution, and the release. The likelihood ratio is
the most powerful test (Neyman and Pearson). For a model with p free parameters, fitted by maximum
likelihood to n records, the mean of the log-likelihood ratio differs by p / n between records
inside and outside of the data, and its variance is p / n. So the power at the false-alarm rate a is

    Phi(sqrt(p / n) - z_a),    where z_a is the upper a-quantile of the normal distribution.

This holds if p and n are large and no single parameter dominates. The tables of the families show
more than the CPTs: also the joint counts of parents. Tables that are consistent with each other are
the sufficient statistic of the log-linear model that has these margins, so the same formula holds
with the parameters of that model. A rule computes what it releases from these counts, so no rule
raises the power. The choice of the structure tells more, which this formula does not include.

References
----------
Murakonda, Shokri and Theodorakopoulos (2021), "Quantifying the privacy risks of learning
high-dimensional graphical models", AISTATS: z_a + z_(1 - power) is about sqrt(p / n).
Sankararaman, Obozinski, Jordan and Halperin (2009), "Genomic privacy and limits of individual
detection in a pool", Nature Genetics 41: the same for independent variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import prod, sqrt
from statistics import NormalDist
from typing import NamedTuple

from vertibayes.network import Network
from vertibayes.table_scores import free_parameters
from vertibayes.words import counted
from vertibayes_protocols.variables import Family

FALSE_ALARMS = 0.05


class Tracing(NamedTuple):
    """The largest power of a tracing attack, at 5 % false alarms."""

    records: int  # the number of records
    model_parameters: int
    table_parameters: int
    # The power of the best attack on the CPTs, and on the released tables.
    model_power: float
    table_power: float

    def sentence(self) -> str:
        """Return the sentence that the report prints."""
        return (
            "Tracing: somebody who knows a person's whole record recognizes at most "
            f"{self.table_power:.1%} of those in the data from the released tables "
            f"({self.model_power:.1%} from the model alone), if {FALSE_ALARMS:.0%} of those who "
            f"are not in the data may be accused ({counted(self.table_parameters, 'parameter')}, "
            f"{counted(self.records, 'record')}; a guess has {FALSE_ALARMS:.0%})."
        )


def tracing(
    network: Network, tables: Iterable[Family], lengths: Mapping[str, int], records: int
) -> Tracing:
    """Bound the power of tracing attacks on a release."""
    of_model = sum(free_parameters(cpt.shape) for cpt in network.cpts.values())
    of_tables = table_parameters(tables, lengths)
    powers = [tracing_power(parameters, records) for parameters in (of_model, of_tables)]
    return Tracing(records, of_model, of_tables, *powers)


def tracing_power(parameters: int, records: int, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the power of the best tracing attack (Murakonda et al. 2021).

    Examples
    --------
    >>> round(tracing_power(parameters=500, records=10_000), 3)
    0.078
    """
    normal = NormalDist()
    shift = sqrt(parameters / max(records, 1))
    return normal.cdf(shift - normal.inv_cdf(1 - false_alarms))


def table_parameters(tables: Iterable[Family], lengths: Mapping[str, int]) -> int:
    """Count the free parameters of the log-linear model that has all margins of tables.

    Each set of variables that lies in a table adds the product of (states - 1).

    Examples
    --------
    >>> table_parameters([Family("c", ("a", "b")), Family("a")], {"a": 2, "b": 2, "c": 3})
    11
    """
    terms = {
        frozenset(term)
        for family in tables
        for size in range(1, len(family.members) + 1)
        for term in combinations(family.members, size)
    }
    return sum(prod(lengths[name] - 1 for name in term) for term in terms)
