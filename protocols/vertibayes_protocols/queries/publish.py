"""Noisy tables that sites publish: where attributes lie at several sites that all know the class.

    analyst -> P_k    Publish: the schema, who holds what, n_j of each class, eps
    P_k               n_ij + noise, clipped to 0 .. n_j, of its own attributes i; charges its budget
    P_k -> analyst    its tables, one after the other, flat

Security: none beyond the noise; what is published is the site's own noisy release. Noise protects
the training records. It does nothing for n_j, which is public. Neighbours differ in whether a
training record's value is known to its site, which changes one count of a table by one; two
different values of it are two such steps, 2 eps (see `RecordNoise`).
Leakage: the noisy tables, to the analyst. Cost: 1 round after the query's, 8 bytes a cell.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.noise import DiscreteLaplace, Noise, no_noise
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.scoring import Split, Table, check_features
from vertibayes_protocols.queries.statistics_query import check_opendp
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.site.statistics import LocalData, apart, measure
from vertibayes_protocols.variables import Rows, Variable

ACCOUNTINGS = ("whole", "count")
Described: TypeAlias = tuple[tuple[str, tuple[str, ...], str], ...]


@dataclass(frozen=True)
class RecordNoise:
    """What the noise of published tables protects, and how much of it a site adds.

    `vertibayes_protocols.accounting.Privacy` is the same for statistics over sites with different
    records.

    A record is in one count of each feature's table, at the sites that hold them: by basic
    composition its eps is that of all tables together.

    Parameters
    ----------
    eps : float
        Of a whole record (accounting "whole"), or of each of its counts ("count", as published).
    accounting : {"whole", "count"}, default="whole"
        What `eps` is of.

    Raises
    ------
    ValueError
        If `eps` is not a finite number above 0, or there is no such accounting.
    """

    eps: float
    accounting: str = "whole"

    def __post_init__(self) -> None:
        if self.accounting not in ACCOUNTINGS:
            expected = " or ".join(ACCOUNTINGS)
            raise ValueError(f"accounting {self.accounting}: it must be {expected}")
        _ = DiscreteLaplace(eps=self.eps)  # an eps out of range is refused here

    def of_a_table(self, schema: Schema) -> DiscreteLaplace:
        """Return the noise of each count of each table."""
        parts = len(schema.features) if self.accounting == "whole" else 1
        return DiscreteLaplace(eps=self.eps / parts)

    def promise(self, schema: Schema) -> Promise:
        """Return what is promised for the training records, at all sites together."""
        each = self.of_a_table(schema)
        eps = each.eps * len(schema.features)
        return Promise(
            eps=eps,
            delta=0.0,
            protects="attributes",
            mechanism="laplace",
            cost=Cost.of(eps),
            noise=f"each count has one copy of noise of its site alone, standard deviation "
            f"{math.sqrt(each.variance):.4g}",
            uncovered=("the class of each record, which all sites know",),
        )


@dataclass(frozen=True, slots=True)
class PublishedTables(Message):
    """One site's tables, flat: int64 of shape (cells,)."""

    kind: ClassVar[str] = "published tables"
    counts: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Publish(Query[dict[str, Table]]):
    """Ask sites for noisy tables of their features by class.

    Parameters
    ----------
    target : str
        The class, which all sites hold.
    classes : tuple of str
        Its states.
    class_counts : ndarray, dtype int64
        n_j of each class: public.
    features : tuple
        Name, states and site of each feature.
    eps : ndarray of shape (1,), dtype float64
        Of each count.
    first, last : int
        0 and -1: all records. Sites refuse others: what they refuse over some records, as the
        counts of classes are not theirs, would tell the class of each.
    """

    kind: ClassVar[str] = "publish"
    target: str
    classes: tuple[str, ...]
    class_counts: NDArray[np.int64]
    features: Described
    eps: NDArray[np.float64]
    first: int
    last: int

    @classmethod
    def of(cls, split: Split, noise: RecordNoise) -> Publish:
        """Return the query.

        Parameters
        ----------
        split : Split
            The schema, who holds what, and the counts of the classes.
        noise : RecordNoise
            How much noise each site adds.
        """
        eps = np.array([noise.of_a_table(split.schema).eps])
        counts = np.array(split.class_counts, np.int64)
        target = split.schema.target
        described = describe(split)
        parties = tuple(split.sites)
        return cls(parties, target.name, target.states, counts, described, eps, 0, -1)

    def split(self) -> Split:
        """Return what the query says all sites know; ValueError if it is not a split."""
        return split_of(self.target, self.classes, self.class_counts, self.features)

    def noise(self) -> DiscreteLaplace:
        """Return the noise of each count; ValueError if there is no such noise."""
        if self.eps.shape != (1,):
            raise ValueError("eps must be one number")
        return DiscreteLaplace(eps=float(self.eps[0]))


def describe(split: Split) -> Described:
    """Return the name, states and site of each feature."""
    states = {name: v.states for name, v in split.schema.variables.items()}
    return tuple((n, states[n], site) for site in split.sites for n in split.holders[site])


def split_of(
    target: str,
    classes: tuple[str, ...],
    counts: NDArray[np.int64],
    features: Described,
    alpha: float = 1.0,
) -> Split:
    """Take `describe` back.

    Parameters
    ----------
    target : str
        The class's name.
    classes : tuple of str
        Its states.
    counts : ndarray, dtype int64
        n_j of each.
    features : tuple
        As `describe` returns.
    alpha : float, default=1.0
        As of `Split`.

    Raises
    ------
    ValueError
        If it is not a split.
    """
    if counts.ndim != 1 or len({name for name, *_ in features}) < len(features):
        raise ValueError("class counts of one axis, and each feature once, are expected")
    schema = Schema(Variable(target, classes), {n: Variable(n, s) for n, s, _ in features})
    holders: dict[Party, list[str]] = {}
    for name, _, site in features:
        holders.setdefault(site, []).append(name)
    return Split(schema, holders, counts.tolist(), alpha)


def count_tables(
    split: Split, site: Party, data: LocalData, noise: Noise = no_noise, *, confirm: bool = True
) -> dict[str, Table]:
    """Count a site's features by class.

    Parameters
    ----------
    split : Split
        The schema, who holds what, and the counts of the classes.
    site : Party
        Whose features are counted.
    data : LocalData
        The site's features and the class column.
    noise : callable, default=no_noise
        Added to each count: see `RecordNoise.of_a_table`.
    confirm : bool, default=True
        Whether to refuse counts of classes that are not those of the data. An analyst can guess
        until a site no longer refuses, at no cost to its budget.

    Returns
    -------
    tables : dict of str to ndarray of shape (states, classes), dtype int64
        From 0 to n_j, which is public: noise beyond tells nothing.

    Raises
    ------
    ValueError
        If the data miss a feature or the class, have other states, or, with `confirm`, other counts
        of classes than the public ones.
    """
    part = Schema(split.schema.target, {n: split.schema.features[n] for n in split.holders[site]})
    check_features(part.variables, data)
    arrays = apart(part.statistics, part.variables, measure(part.statistics, data))
    classes, *tables = arrays[0]
    if confirm and tuple(classes.tolist()) != tuple(split.class_counts):
        raise ValueError(f"{site}: its records have other counts of classes than the public ones")
    drawn = noise(sum(table.size for table in tables))
    ends = np.cumsum([table.size for table in tables])[:-1]
    pairs = zip(part.categorical, tables, np.split(drawn, ends), strict=True)
    most = np.array(split.class_counts)
    return {n: np.clip(table + extra.reshape(table.shape), 0, most) for n, table, extra in pairs}


def cells_of(split: Split, name: str) -> int:
    """Return how many counts the table of a feature has."""
    return len(split.schema.variables[name].states) * len(split.class_counts)


def read_tables(
    split: Split, names: Sequence[str], counts: NDArray[np.int64], sender: Party
) -> dict[str, Table]:
    """Return the tables of features from the flat counts of a message.

    Raises
    ------
    MalformedMessageError
        If they are not counts from 0 to n_j; it names the sender.
    """
    ends = np.cumsum([cells_of(split, name) for name in names])
    if counts.shape != (ends[-1],) or counts.dtype != np.int64:
        raise MalformedMessageError(sender, f"sent other than tables of {ends[-1]} counts")
    most = np.array(split.class_counts)
    parts = zip(names, np.split(counts, ends[:-1]), strict=True)
    tables = {name: part.reshape(-1, len(most)) for name, part in parts}
    for name, table in tables.items():
        if (table < 0).any() or (table > most).any():
            raise MalformedMessageError(sender, f"a count of {name} beyond that of its class")
    return tables


# ---- the site ------------------------------------------------------------------------------------


def records_of(site: SiteRole) -> LocalData:
    """Return the site's records."""
    return LocalData(site.data.variables, site.data.codes)


def check_site(site: SiteRole, split: Split) -> None:
    """Refuse a split that does not name this site, or names what it does not show.

    Raises
    ------
    QueryRefusedError
        If so, or if another site is not found to hold the same records in the same order.
    """
    if site.party not in split.holders:
        raise QueryRefusedError(site.party, "it holds none of the features")
    if site.placement is not None:
        reason = (
            "its records are some of those of the study: naive Bayes over columns needs sites that "
            "hold the same people"
        )
        raise QueryRefusedError(site.party, reason)
    if site.hidden is not None:
        reason = (
            "no site knows who is in the study: naive Bayes over columns needs sites that know "
            "their people, as at level 1 of an alignment"
        )
        raise QueryRefusedError(site.party, reason)
    site.policy.check_shown(site.party, split.holders[site.party])
    strange = sorted(set(split.sites) - site.met - {site.party})
    if strange and site.data.ids is not None:
        reason = f"its records are not compared with those of {', '.join(strange)} in this session"
        raise QueryRefusedError(site.party, reason)


def _counted(site: SiteRole, split: Split, noise: Noise = no_noise) -> dict[str, Table]:
    """Count a site's tables; confirm counts of classes only where exact tables are free too."""
    confirm = site.policy.free_tables
    return count_tables(split, site.party, records_of(site), noise, confirm=confirm)


def _consider(site: SiteRole, query: Publish) -> None:
    site.policy.check_shown(site.party, (query.target,))  # later reasons tell of its classes
    with refusing(site.party):
        split, noise = query.split(), query.noise()
        if (query.first, query.last) != (0, -1):
            raise ValueError("tables are published of all records, not of some")
        check_site(site, split)
        _ = _counted(site, split)
    check_opendp(site.party, "laplace")
    cost = Cost.of(noise.eps * len(split.holders[site.party]))
    site.policy.check_budget(site.party, site.memory.spent, cost)


def _site(site: SiteRole, query: Publish) -> Program[None]:
    split, noise = query.split(), query.noise()
    site.memory.charge(Cost.of(noise.eps * len(split.holders[site.party])))
    _note(site.ledger, query, split, site.party, site.analyst)
    site.note_budget()
    tables = _counted(site, split, noise)
    flat = np.concatenate([tables[name].reshape(-1) for name in split.holders[site.party]])
    yield from send({site.analyst: PublishedTables(flat)})


def _note(ledger: Ledger, query: Publish, split: Split, site: Party, analyst: Party) -> None:
    held, classes = split.holders[site], len(query.classes)
    noise = f"discrete Laplace noise, eps = {float(query.eps[0]):.6g} a count"
    ledger.note(f"counts of {', '.join(held)} by {query.target}, with {noise}", site, (analyst,))
    names = [(name, query.target) for name in held]
    states = {name: len(v.states) for name, v in split.schema.variables.items()}
    ledger.open(
        RevealedTable(pair, states[pair[0]] * classes, analyst, Rows(), noise) for pair in names
    )


# ---- the analyst ---------------------------------------------------------------------------------


def _analyst(analyst: AnalystRole, query: Publish) -> Program[dict[str, Table]]:
    split = query.split()
    cells = {site: sum(cells_of(split, n) for n in held) for site, held in split.holders.items()}
    expect = {site: Expect(PublishedTables, n + 64) for site, n in cells.items()}
    messages = yield from exchange({}, expect)
    tables: dict[str, Table] = {}
    for site, message in messages.items():
        _note(analyst.ledger, query, split, site, analyst.party)
        tables |= read_tables(split, split.holders[site], message.counts, site)
    return tables


PUBLISH = Conversation(Publish, _analyst).side(SiteRole, _consider, _site)
