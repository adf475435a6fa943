"""BIC as candidates of choices: log-likelihoods, and a penalty that is public.

The BIC of a family is taken relative to that of its child alone, over the records of the family's
own table. On complete data the difference is a constant of the child. With missing cells a family
with more parents has fewer records, so that its likelihood alone would rise for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from functools import cache
from math import prod

from vertibayes.structure.search import Search
from vertibayes_protocols.choices import Candidate, Constant, Score, Term
from vertibayes_protocols.variables import Family

_DIGITS = 40  # of decimals


def bic_penalty(free_parameters: int, records: int) -> int:
    """Return what BIC subtracts for free parameters: k ln(n) / 2, in millionths of a nat, rounded.

    It is computed in decimals, so that all parties of a study subtract the same (Schwarz 1978,
    doi:10.1214/aos/1176344136).

    Examples
    --------
    >>> bic_penalty(3, 10_000) / 1e6
    13.815511
    """
    with localcontext() as context:
        context.prec = _DIGITS
        nats = free_parameters * _logarithm(max(records, 1)) / 2
        return int((nats * 10**6).to_integral_value())


@cache
def _logarithm(number: int) -> Decimal:
    with localcontext() as context:
        context.prec = _DIGITS
        return Decimal(number).ln()


def added_parameters(search: Search, family: Family) -> int:
    """Return how many free parameters a family has more than its child alone."""
    lengths = search.lengths
    return (lengths[family.child] - 1) * (prod(lengths[name] for name in family.parents) - 1)


def bic_gain(search: Search, after: Iterable[Family], before: Iterable[Family] = ()) -> Candidate:
    """Return by how much the BIC of a structure rises if families take the place of others.

    The penalty is one constant, rounded once, so that moves of equal BIC tie exactly.
    """
    terms, parameters = _terms(search, after, before)
    penalty = bic_penalty(parameters, search.records)
    return (*terms, Constant(-penalty)) if penalty else terms


def aic_gain(search: Search, families: Iterable[Family]) -> Candidate:
    """Return by how much families raise AIC, whose penalty is one nat for each free parameter.

    Akaike (1974), doi:10.1109/TAC.1974.1100705.
    """
    terms, parameters = _terms(search, families, ())
    return (*terms, Constant(-parameters * 10**6)) if parameters else terms


def _terms(
    search: Search, after: Iterable[Family], before: Iterable[Family]
) -> tuple[Candidate, int]:
    """Return by how much the likelihood rises, and the number of free parameters."""
    terms: list[Term] = []
    parameters = 0
    for sign, families in ((1, after), (-1, before)):
        for family in families:
            terms += _likelihood(search, family, sign)
            parameters += sign * added_parameters(search, family)
    return tuple(terms), parameters


def _likelihood(search: Search, family: Family, sign: int) -> list[Term]:
    """Return the likelihood of a family, relative to its child alone if records may drop out."""
    if not search.drops_records:
        return [Score(family, sign=sign)]
    if not family.parents:
        return []
    return [Score(family, sign=sign), Score(Family(family.child), family.parents, -sign)]
