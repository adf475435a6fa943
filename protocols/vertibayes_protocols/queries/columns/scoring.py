"""Scores in a vertical split: what a site sends of a record, and what the aggregator reads of all.

    Logarithms    v_k = rint(2^b sum of ln P(a_i | c_j))     additive scheme; b = 32 by default
                  ln P(x | c_j) = (v_1 + .. + v_K) / 2^b     each site's rounding: 2^-(b+1) at most
    Products      v_k = product of (n_ij + alpha)            product scheme; alpha a whole number
                  P(x | c_j) = v_1 .. v_K / product of T_ij  exact; T_ij: n_ij + alpha over all a_i

P(a_i | c_j) = (n_ij + alpha) / T_ij. The paper divides by n_j alone; T_ij is n_j + r_i alpha if the
table has neither noise nor missing values, and is announced by its site if it has. A missing value
of a record has ln P = 0, or the factor T_ij: the aggregator does not see which values are missing.

Two classes can change places by the rounding of logarithms only where their scores differ by less
than K 2^-b (`Logarithms.error` each way): 1.4e-9 nats for six sites. Products change nothing.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import additive_scheme, product_scheme
from vertibayes_mpc.aggregation import NEVER
from vertibayes_mpc.randomness import Randomness
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.queries.columns.split import Split, Table, Tables
from vertibayes_protocols.site.statistics import LocalData

Floats: TypeAlias = NDArray[np.float64]

TIME = 0  # each batch has keys of its own
FRACTION_BITS = 32
MOST_FRACTION_BITS = 40  # beyond, the rounding of floats would be as large


@dataclass(frozen=True)
class Logarithms:
    """Sums of fixed-point logarithms, by the additive scheme."""

    split: Split
    study: bytes  # names the study: part of every hash
    modulus: int = field(repr=False)  # of `vertibayes_mpc.additive_scheme.draw_modulus`
    fraction_bits: int = FRACTION_BITS  # of a logarithm in nats, from 1 to 40

    scheme: ClassVar[type[additive_scheme.Parameters]] = additive_scheme.Parameters

    def __post_init__(self) -> None:
        if not 1 <= self.fraction_bits <= MOST_FRACTION_BITS:
            raise ValueError(
                f"{self.fraction_bits} fractional bits: must be 1 to {MOST_FRACTION_BITS}"
            )
        _ = self.parameters  # sums that do not fit are refused here

    @property
    def error(self) -> float:
        """By how much a score is wrong at most, in nats: 2^-(b+1) a site."""
        return len(self.split.sites) * 2.0 ** -(self.fraction_bits + 1)

    @cached_property
    def parameters(self) -> additive_scheme.Parameters:
        """The scheme's: the bounds follow from what is public."""
        site_bounds = [
            sum(math.log(self.split.most_total(name)) - math.log(self.split.alpha) for name in held)
            for held in self.split.holders.values()
        ]
        lowest = -math.ceil(max(site_bounds) * 2**self.fraction_bits) - 1
        name = self.split.label(self.study, self.fraction_bits)
        return self.scheme(self.modulus, name, len(self.split.sites), lowest, 0)

    def deal(self, randomness: Randomness) -> additive_scheme.Keys:
        """Deal the keys of one batch: the dealer's part."""
        return additive_scheme.deal_keys(self.parameters, self.split.sites, randomness)

    def values(self, tables: Tables, records: LocalData) -> list[int]:
        """Return a site's v_k of a batch: record after record, class after class."""
        total = np.zeros((records.records, len(self.split.class_counts)))
        for name, table in tables.items():
            counts = table + self.split.alpha
            logs = np.log(counts) - np.log(counts.sum(axis=0))
            known = np.vstack([logs, np.zeros(logs.shape[1])])  # the last row is for missing values
            total += known[np.asarray(records.codes[name], np.intp)]
        rounded: list[int] = np.rint(total * 2.0**self.fraction_bits).astype(int).ravel().tolist()
        return rounded

    def contribute(
        self, site: Party, key: int, values: Sequence[int], aggregator: Party
    ) -> Program[None]:
        """Send a site's values to the aggregator, encrypted."""
        encryptor = additive_scheme.Encryptor(self.parameters, site, key, last_time=NEVER)
        return additive_scheme.contribute(encryptor, values, TIME, aggregator)

    def open(self, key: int, count: int) -> Program[Floats]:
        """Return the sums of all sites, in nats."""
        opened = additive_scheme.open_sums(self.parameters, key, self.split.sites, TIME, count)
        return np.asarray((yield from opened) / 2.0**self.fraction_bits)


@dataclass(frozen=True)
class Products:
    """Products of smoothed counts, as published, by the product scheme."""

    split: Split  # with a whole `alpha`
    study: bytes  # names the study: part of every hash
    totals: Mapping[str, Sequence[int]]
    bits: int = 2048  # of the group

    scheme: ClassVar[type[product_scheme.Parameters]] = product_scheme.Parameters
    error: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_whole(self.split.alpha)
        if set(self.totals) != set(self.split.features):
            raise ValueError("expected the totals of each feature, and no others")
        for name, totals in self.totals.items():
            fits = all(0 < total <= self.split.most_total(name) for total in totals)
            if len(totals) != len(self.split.class_counts) or not fits:
                raise ValueError(f"{name}: no totals of its table")
        _ = self.parameters  # products that do not fit are refused here

    @cached_property
    def parameters(self) -> product_scheme.Parameters:
        """The scheme's: the bounds follow from what is public."""
        highest = max(
            math.prod(int(self.split.most_total(name)) for name in held)
            for held in self.split.holders.values()
        )
        totals = json.dumps({name: list(map(int, self.totals[name])) for name in self.totals})
        name = self.split.label(self.study, totals)
        return self.scheme(self.bits, name, len(self.split.sites), highest)

    def deal(self, randomness: Randomness) -> product_scheme.Keys:
        """Deal the keys of one batch: the dealer's part."""
        return product_scheme.deal_keys(self.parameters, self.split.sites, randomness)

    def values(self, tables: Tables, records: LocalData) -> list[int]:
        """Return a site's v_k of a batch: record after record, class after class."""
        shape = records.records, len(self.split.class_counts)
        product = np.ones(shape, object)  # Python's integers: no product overflows
        for name, table in tables.items():
            counts = (table + int(self.split.alpha)).astype(object)
            known = np.vstack([counts, counts.sum(axis=0)])  # the last row is for missing values
            product = product * known[np.asarray(records.codes[name], np.intp)]
        return [int(value) for value in product.ravel()]

    def contribute(
        self, site: Party, key: int, values: Sequence[int], aggregator: Party
    ) -> Program[None]:
        """Send a site's values to the aggregator, encrypted."""
        encryptor = product_scheme.Encryptor(self.parameters, site, key, last_time=NEVER)
        return product_scheme.contribute(encryptor, values, TIME, aggregator)

    def open(self, key: int, count: int) -> Program[Floats]:
        """Return the logarithms of the products over those of the totals, in nats."""
        opened = yield from product_scheme.open_products(
            self.parameters, key, self.split.sites, TIME, count
        )
        every = range(len(self.split.class_counts))
        totals = [math.prod(int(self.totals[name][j]) for name in self.totals) for j in every]
        logs = np.array([math.log(total) for total in totals])
        products = np.array([math.log(product) for product in opened])
        return np.asarray(products - np.tile(logs, count // len(logs)))


Variant: TypeAlias = Logarithms | Products


def check_whole(alpha: float) -> None:
    """Refuse to multiply counts that are not integers."""
    if alpha != int(alpha):
        raise ValueError(f"alpha = {alpha}: products are of whole numbers, 1 for example")


def smoothed_totals(split: Split, table: Table) -> tuple[int, ...]:
    """Return T_ij of a feature, for each class: what its site announces for `Products`."""
    check_whole(split.alpha)
    return tuple((table + int(split.alpha)).sum(axis=0).tolist())


def check_products(split: Split) -> None:
    """Refuse products that cannot fit, whatever the tables."""
    classes = len(split.class_counts)
    largest = {name: (int(split.most_total(name)),) * classes for name in split.features}
    _ = Products(split, b"", largest)
