"""Scores of choices in the clear: on the integers that the parties look up, and exactly."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import factorial, prod

import numpy as np

from vertibayes_mpc.lookups import log_gamma, log_power
from vertibayes_protocols.choices import constant_of, scores_of
from vertibayes_protocols.queries.choices.lookups import choice_lookups


def counted(data, asked, missing, places=slice(None)):
    """Count the table of a score in the clear."""
    codes = {name: c[places] for site in data.values() for name, c in site.codes.items()}
    variables = {name: v for site in data.values() for name, v in site.variables.items()}
    members = (*asked.family.members, *asked.within)
    complete = np.ones(len(next(iter(codes.values()))), bool)
    for name in () if missing else members:
        complete &= codes[name] < len(variables[name].states)
    states = [
        variables[name].codes if missing else len(variables[name].states)
        for name in asked.family.members
    ]
    table = np.zeros(states, np.int64)
    np.add.at(table, tuple(codes[name][complete] for name in asked.family.members), 1)
    return table


def functions_of(kind, records, bits):
    """Return the functions of a score of r states: of its cells, and of its columns."""
    if kind == "likelihood":
        return lambda r: (log_power(records, bits),) * 2
    return lambda r: (log_gamma(1, records, bits), log_gamma(r, records, bits))


def integer_score(data, asked, functions, missing, places=slice(None)):
    """Score a family in the clear, on the integers that the parties look up."""
    table = counted(data, asked, missing, places)
    of_cell, of_column = functions(len(table))
    columns = of_column(table.sum(axis=0).ravel()) - of_column(np.zeros(1, np.int64))
    return asked.sign * int(of_cell(table.ravel()).sum() - columns.sum())


def exact_k2(table):
    """Return the exponential of a K2 score: a product of factorials, exactly."""
    r, columns = len(table), table.sum(axis=0).ravel().tolist()
    cells = prod(map(factorial, table.ravel().tolist()))
    divided = Fraction(cells, prod(factorial(n + r - 1) for n in columns))
    return divided * factorial(r - 1) ** len(columns)


def exact_likelihood(table):
    """Return a largest likelihood: a product of powers, exactly."""
    cells = prod(n**n for n in table.ravel().tolist())
    return Fraction(cells, prod(n**n for n in table.sum(axis=0).ravel().tolist()))


def exact_value(data, candidate, missing, kind="k2"):
    """Return the logarithm of a candidate's score, with fifty digits."""
    exact = exact_likelihood if kind == "likelihood" else exact_k2
    value = Fraction(1)
    for asked in scores_of(candidate):
        value *= exact(counted(data, asked, missing)) ** asked.sign
    with localcontext() as context:
        context.prec = 50
        value = Decimal(value.numerator) / Decimal(value.denominator)
        return value.ln() + Decimal(constant_of(candidate)) / 10**6


def oracle(data, study, choices, places=slice(None)):
    """Return the winners: of each set, the first of the candidates with the highest value."""
    values = integer_values(data, study, choices, places)
    return tuple(of_set.index(max(of_set)) for of_set in values)


def leads(data, study, choices):
    """Return which winners lead by more than the margin of the study's integers."""
    ordered = map(sorted, integer_values(data, study, choices))
    margin = choice_lookups(study, choices).margin
    return tuple(of_set[-1] - of_set[-2] > margin for of_set in ordered)


def integer_values(data, study, choices, places=slice(None)):
    """Return the values of the candidates of each set."""
    needed = choice_lookups(study, choices)
    records, bits = needed.tables.records, needed.precision.fraction_bits
    functions = functions_of(choices.score, records, bits)

    def value(candidate):
        scores = (
            integer_score(data, s, functions, choices.missing, places) for s in scores_of(candidate)
        )
        return sum(scores) + round(Fraction(constant_of(candidate) << bits, 10**6))

    values = [[value(candidate) for candidate in candidates] for candidates in choices.sets]
    spans = [max(of_set) - min(of_set) for of_set in values]
    assert max(spans) <= needed.tables.span << bits
    return values


def decided_wrongly(data, choices, winners, decided):
    """Return the decided sets whose winner is not the only one of exact scores."""
    wrong = []
    for place, candidates in enumerate(choices.sets):
        values = [
            exact_value(data, candidate, choices.missing, choices.score) for candidate in candidates
        ]
        won = values.pop(winners[place])
        if decided[place] and won <= max(values):
            wrong.append(place)
    return wrong
