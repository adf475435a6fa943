"""Scores of choices in the clear: on the integers that the parties look up, and exactly."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, prod

import numpy as np

from mpc.lookups import log_gamma
from protocols.queries.choice_lookups import choice_lookups


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


def integer_score(data, asked, function_of, missing, places=slice(None)):
    """Score a family in the clear, on the integers that the parties look up."""
    table = counted(data, asked, missing, places)
    r, columns = len(table), table.sum(axis=0).ravel()
    of_columns = function_of(r)(columns) - function_of(r)(np.zeros(1, np.int64))
    return asked.sign * int(function_of(1)(table.ravel()).sum() - of_columns.sum())


def exact_value(data, candidate, missing):
    """Return the exponential of a candidate's K2 scores: a product of factorials, exactly."""
    value = Fraction(1)
    for asked in candidate:
        table = counted(data, asked, missing)
        r, columns = len(table), table.sum(axis=0).ravel().tolist()
        cells = prod(map(factorial, table.ravel().tolist()))
        divided = Fraction(cells, prod(factorial(n + r - 1) for n in columns))
        value *= (divided * factorial(r - 1) ** len(columns)) ** asked.sign
    return value


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

    def value(candidate):
        return sum(
            integer_score(data, s, lambda r: log_gamma(r, records, bits), choices.missing, places)
            for s in candidate
        )

    values = [[value(candidate) for candidate in candidates] for candidates in choices.sets]
    spans = [max(of_set) - min(of_set) for of_set in values]
    assert max(spans) <= needed.tables.span << bits
    return values


def decided_wrongly(data, choices, winners, decided):
    """Return the decided sets whose winner is not the only one of plain K2, exactly."""
    wrong = []
    for place, candidates in enumerate(choices.sets):
        values = [exact_value(data, candidate, choices.missing) for candidate in candidates]
        won = values.pop(winners[place])
        if decided[place] and won <= max(values):
            wrong.append(place)
    return wrong
