"""Write the posterior of a target as a product of small tables of the evidence.

Variables that are neither the target nor evidence are summed out in public, with free axes for the
evidence. What remains is P(target | evidence) = product of tables(target, some of the evidence), up
to a factor of the evidence alone. Sites that hold different axes look these tables up without
showing a value (`vertibayes_protocols.queries.predictions.predict`).

A variable that may be missing is summed out too. In its place the evidence has a report: one of its
states, or missing, which has the same likelihood in every state.

A probability of zero is e^-16384: sums never reach from one power of it to the next, so that a
record that is impossible has the limit of the distributions that `predicted` takes for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes.dag import Structure
from vertibayes.inference.algebra import LOGARITHMS, Array
from vertibayes.inference.elimination import MOST_STATES, parts
from vertibayes.inference.propagation import axes_as
from vertibayes.model import Model
from vertibayes_protocols.odds import MOST_FRACTION_BITS, Odds, OddsTable
from vertibayes_protocols.variables import Variable

Names: TypeAlias = tuple[str, ...]
Factor: TypeAlias = tuple[Names, Array]  # logarithms

MOST_ROWS = 1 << 12  # of a table of the evidence: `vertibayes_mpc.table_lookups.MOST_CELLS`
IMPOSSIBLE = 2.0**14  # nats: minus the logarithm of a zero; far more than any record's others
REPORT = "\0"  # before the name of a variable that may be missing: its report


class OddsTables(NamedTuple):
    """The log odds of a target's states, as a sum over tables of the evidence."""

    target: Variable  # what is predicted; all log odds are against its first state
    constant: Array  # the log odds of a record if there are no tables: the evidence does not matter
    tables: tuple[Factor, ...]  # in nats

    def odds(self, most_bits: int = MOST_FRACTION_BITS) -> Odds:
        """Return the tables as integers, as fine as their sums allow."""
        reach = sum(float(np.abs(table).max()) for _, table in self.tables)
        bits = min(most_bits, 61 - int(reach + 1).bit_length())
        tables = tuple(
            OddsTable(names, np.rint(np.ldexp(table, bits)).astype(np.int64))
            for names, table in self.tables
        )
        return Odds(self.target.name, self.target.states, tables, bits)


def odds_tables(network: Model, target: str, evidence: Mapping[str, Variable]) -> OddsTables:
    """Return the tables by which sites compute the log odds of a target from shared evidence.

    Examples
    --------
    >>> from vertibayes import read_bif
    >>> network = read_bif('''
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.75, 0.25; }
    ... probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.5, 0.5; }''')
    >>> wet = Variable("wet", ("no", "yes"), missing=True)
    >>> ((names, table),) = odds_tables(network, "rain", {"wet": wet}).tables
    >>> names, np.exp(table[:, 0]).round(3).tolist()  # no, yes, missing
    (('wet',), [0.185, 1.667, 0.333])
    """
    variable = network.variable(target)
    if target in evidence:
        raise ValueError(f"the target {target!r} cannot be evidence; leave it out")
    for known in evidence.values():
        network.check_states(known, "at the sites")
    reported = {name for name, v in evidence.items() if _is_reported(network, v)}
    given = {REPORT + name if name in reported else name for name in evidence}
    parents = dict(network.structure.parents) | {REPORT + name: (name,) for name in reported}
    names = Structure(parents)
    flags = {name: np.array([name in given]) for name in names.nodes}
    (part,) = parts(names, flags, target)
    factors = [_factor(network, child, evidence) for child in part.children]
    left = _eliminated(factors, part.open - {target}, target)
    merged = _merged(left, target)
    matters, zeros = len(variable.states) > 1, np.zeros(len(variable.states) - 1)
    tables = tuple((_plain(n), _odds(array)) for n, array in merged if n and matters)
    constant = sum((_odds(array) for scope, array in merged if not scope), zeros)
    return OddsTables(variable, constant, tables)


def _is_reported(network: Model, variable: Variable) -> bool:
    """Whether a value may be missing, and missing is not a state of the network."""
    return variable.missing and variable.states == network.variables[variable.name].states


# ---- factors -------------------------------------------------------------------------------------


def _factor(network: Model, child: str, evidence: Mapping[str, Variable]) -> Factor:
    """Return the logarithms of a CPT, or of a report's likelihoods."""
    if child.startswith(REPORT):
        name = child.removeprefix(REPORT)
        states = len(network.variables[name].states)
        likelihoods = np.vstack([np.eye(states), np.ones(states)])
        return (child, name), LOGARITHMS.of(likelihoods)
    names, cpt = (child, *network.structure.parents[child]), network.cpts[child]
    logs = LOGARITHMS.of(np.where(cpt > 0, cpt, 1 / len(cpt))) - IMPOSSIBLE * (cpt <= 0)
    for axis, name in enumerate(names):
        if name in evidence and not _is_reported(network, evidence[name]):
            logs = logs.take(range(evidence[name].codes), axis)  # no state for missing values
    return names, logs


def _eliminated(factors: Sequence[Factor], hidden: frozenset[str], target: str) -> list[Factor]:
    """Sum hidden variables out, that of the smallest product first."""
    left, todo = list(factors), set(hidden)
    while todo:
        scopes = {name: _scope([f for f in left if name in f[0]]) for name in sorted(todo)}
        name = min(scopes, key=lambda n: prod(scopes[n].values()))
        _check_size(scopes[name], todo, target)
        names, product = _product([factor for factor in left if name in factor[0]])
        summed = LOGARITHMS.total(product, (names.index(name),))
        left = [factor for factor in left if name not in factor[0]]
        left.append((tuple(n for n in names if n != name), summed))
        todo.remove(name)
    return left


def _scope(factors: Sequence[Factor]) -> dict[str, int]:
    """Return the variables of some factors and their numbers of states."""
    return {n: size for names, array in factors for n, size in zip(names, array.shape, strict=True)}


def _product(factors: Sequence[Factor]) -> Factor:
    """Multiply factors; the axes are sorted."""
    scope = _scope(factors)
    names = tuple(sorted(scope))
    product = np.zeros([scope[name] for name in names])
    for own, array in factors:
        product = LOGARITHMS.times(product, axes_as(array[None], own, names)[0])
    return names, product


def _check_size(scope: Mapping[str, int], hidden: set[str], target: str) -> None:
    """Refuse a table of too many joint values; the error names its variables."""
    known = [name for name in scope if name != target and name not in hidden]
    rows = prod(scope[name] for name in known)
    if rows <= MOST_ROWS and prod(scope.values()) <= MOST_STATES:
        return
    reports = [name.removeprefix(REPORT) for name in known if name.startswith(REPORT)]
    unknown = sorted(hidden & set(scope) - set(reports))
    why = f"; of {', '.join(sorted(reports))}, values may be missing" if reports else ""
    through = f", through {', '.join(unknown)}," if unknown else ""
    more = f", or include {', '.join(unknown)}" if unknown else ""
    raise ValueError(
        f"to predict {target}{through} a table of {rows:,} joint values of "
        f"{', '.join(sorted(_plain(known)))} would be looked up{why}; at most {MOST_ROWS:,} are "
        f"possible: leave some of these variables out of the evidence{more}"
    )


def _merged(factors: Sequence[Factor], target: str) -> list[Factor]:
    """Multiply each factor of the target into one whose evidence has all of its own.

    Return the evidence of each, and arrays whose last axis is the target.
    """
    mine = [factor for factor in factors if target in factor[0]]
    groups: dict[Names, list[Factor]] = {}
    for factor in sorted(mine, key=lambda f: (-len(f[0]), f[0])):
        home = next((names for names in groups if set(factor[0]) <= set(names)), factor[0])
        groups.setdefault(home, []).append(factor)
    merged = []
    for names, product in map(_product, groups.values()):
        _check_size(dict(zip(names, product.shape, strict=True)), set(), target)
        last = np.moveaxis(product, names.index(target), -1)
        merged.append((tuple(name for name in names if name != target), last))
    return merged


def _odds(logs: Array) -> Array:
    """Return the log odds against the first state of the target, which is the last axis."""
    return np.asarray(logs[..., 1:] - logs[..., :1])


def _plain(names: Sequence[str]) -> Names:
    return tuple(name.removeprefix(REPORT) for name in names)
