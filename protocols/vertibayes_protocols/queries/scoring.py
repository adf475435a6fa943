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
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[np.int64]
Tables: TypeAlias = Mapping[str, Table]

TIME = 0  # each batch has keys of its own
FRACTION_BITS = 32
MOST_FRACTION_BITS = 40  # beyond, the rounding of floats would be as large


@dataclass(frozen=True)
class Split:
    """What all know: the schema, who holds which features, the counts of the classes.

    Parameters
    ----------
    schema : Schema
        Of categorical features.
    holders : mapping of Party to sequence of str
        The features of each site: each feature at one site.
    class_counts : sequence of int
        n_j of each class: public.
    alpha : float, default=1.0
        Added to each count.

    Raises
    ------
    ValueError
        If a feature is a number, unknown, at two sites or at none; a site has no features, or there
        are fewer than two; a count is negative or missing, or fewer than two classes have records;
        `alpha` is not a finite number above 0.
    """

    schema: Schema
    holders: Mapping[Party, Sequence[str]]
    class_counts: Sequence[int]
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.schema.numeric:
            raise ValueError(f"{self.schema.numeric[0]} is a number: bin it at its site first")
        if not 0 < self.alpha < math.inf:
            raise ValueError(
                f"alpha = {self.alpha}: it must be a finite number above 0, as zero counts have "
                "no logarithm and would show in a product"
            )
        self._check_holders()
        classes = self.schema.target.states
        name = self.schema.target.name
        if len(self.class_counts) != len(classes) or min(self.class_counts) < 0:
            raise ValueError(f"class_counts must have a count of each class of {name}")
        if sum(count > 0 for count in self.class_counts) < 2:
            raise ValueError(f"{name} has records of one class: it needs two")

    def _check_holders(self) -> None:
        if len(self.holders) < 2:
            raise ValueError(f"{len(self.holders)} sites: there must be at least two")
        for site, held in self.holders.items():
            if not held:
                raise ValueError(f"the site {site} holds no feature")
        seen: set[str] = set()
        for name in (name for held in self.holders.values() for name in held):
            if name not in self.schema.features:
                raise ValueError(f"{name} is not a feature")
            if name in seen:
                raise ValueError(f"the feature {name} is at two sites")
            seen.add(name)
        if missing := [name for name in self.schema.features if name not in seen]:
            raise ValueError(f"at no site: {', '.join(missing)}")

    @property
    def sites(self) -> list[Party]:
        """The sites, sorted."""
        return sorted(self.holders)

    def most_total(self, name: str) -> float:
        """Return a bound on T_ij of a feature: its counts are n_j at most, with their noise."""
        feature = self.schema.features[name]
        assert isinstance(feature, Variable)  # there are no numbers
        return len(feature.states) * (max(self.class_counts) + self.alpha)

    def label(self, study: bytes, *more: bytes | str | int) -> bytes:
        """Return a digest of all of this: messages under another are refused."""
        states = {name: v.states for name, v in self.schema.variables.items()}
        known = [states, {s: list(self.holders[s]) for s in self.sites}, list(self.class_counts)]
        text = json.dumps([*known, self.schema.target.name, self.alpha])
        return label("vertical naive Bayes", study, text, *more)


@dataclass(frozen=True)
class Logarithms:
    """Sums of fixed-point logarithms, by the additive scheme.

    Parameters
    ----------
    split : Split
    study : bytes
        Names the study: part of every hash.
    modulus : int
        Of `vertibayes_mpc.additive_scheme.draw_modulus`.
    fraction_bits : int, default=32
        Of a logarithm in nats, from 1 to 40.

    Raises
    ------
    ValueError
        If the bits are out of range, or sums of all sites do not fit in a slot.
    """

    split: Split
    study: bytes
    modulus: int = field(repr=False)
    fraction_bits: int = FRACTION_BITS

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
    """Products of smoothed counts, as published, by the product scheme.

    Parameters
    ----------
    split : Split
        With a whole `alpha`.
    study : bytes
        Names the study: part of every hash.
    totals : mapping of str to sequence of int
        T_ij of each feature, for each class, as its site announced it (`smoothed_totals`).
    bits : int, default=2048
        Of the group.

    Raises
    ------
    ValueError
        If `alpha` is not a whole number, totals are missing or larger than they can be, or products
        could exceed (p - 1) / 2.
    """

    split: Split
    study: bytes
    totals: Mapping[str, Sequence[int]]
    bits: int = 2048

    scheme: ClassVar[type[product_scheme.Parameters]] = product_scheme.Parameters
    error: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_whole(self.split.alpha)
        if set(self.totals) != set(self.split.schema.features):
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
    """Refuse to multiply counts that are not integers.

    Raises
    ------
    ValueError
        If `alpha` is not a whole number.
    """
    if alpha != int(alpha):
        raise ValueError(f"alpha = {alpha}: products are of whole numbers, 1 for example")


def smoothed_totals(split: Split, table: Table) -> tuple[int, ...]:
    """Return T_ij of a feature, for each class: what its site announces for `Products`."""
    check_whole(split.alpha)
    return tuple((table + int(split.alpha)).sum(axis=0).tolist())


def check_features(expected: Mapping[str, Variable], records: LocalData) -> None:
    """Refuse records without a feature, or have it in other states.

    Raises
    ------
    DataError
        It names the feature.
    """
    for name, variable in expected.items():
        own = records.variables.get(name)
        if own is None or own.states != variable.states:
            states = ", ".join(variable.states)
            raise DataError(
                f"the records have no {name!r} in the declared states; this site must offer it "
                f"with the states {states}, in this order"
            )


def check_products(split: Split) -> None:
    """Refuse products that cannot fit, whatever the tables.

    Raises
    ------
    ValueError
        It says how large they can be.
    """
    classes = len(split.class_counts)
    largest = {name: (int(split.most_total(name)),) * classes for name in split.schema.features}
    _ = Products(split, b"", largest)
