"""A vertical split: who holds which features, and what a site counts and has of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.noise import Noise, no_noise
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.query import At
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, apart, measure
from vertibayes_protocols.variables import Variable

Table: TypeAlias = NDArray[np.int64]
Tables: TypeAlias = Mapping[str, Table]


@dataclass(frozen=True)
class Split:
    """What all know: the class, who holds which features, the counts of the classes.

    A contract does not fix the features' states and who holds them, which the sites describe.
    """

    target: Variable  # the class
    features: Mapping[str, Variable] = field(metadata=wire.FREE)
    holders: Mapping[Party, tuple[str, ...]] = field(metadata=wire.FREE)  # each feature at one site
    class_counts: tuple[int, ...]  # n_j of each class: public
    alpha: float = 1.0  # added to each count

    @classmethod
    def of(
        cls,
        schema: Schema,
        holders: Mapping[Party, Sequence[str]],
        class_counts: Sequence[int],
        alpha: float = 1.0,
    ) -> Self:
        """Return the split of a schema of categorical features."""
        if schema.numeric:
            raise ValueError(f"{schema.numeric[0]} is a number: bin it at its site first")
        features = {name: schema.variables[name] for name in schema.features}
        held = {site: tuple(names) for site, names in holders.items()}
        return cls(schema.target, features, held, tuple(map(int, class_counts)), alpha)

    def __post_init__(self) -> None:
        _ = self.schema  # which refuses a class and features that are not one
        if not 0 < self.alpha < math.inf:
            raise ValueError(
                f"alpha = {self.alpha}: it must be a finite number above 0, as zero counts have "
                "no logarithm and would show in a product"
            )
        self._check_holders()
        classes, name = self.target.states, self.target.name
        if len(self.class_counts) != len(classes) or min(self.class_counts) < 0:
            raise ValueError(f"class_counts must have a count of each class of {name}")
        if sum(count > 0 for count in self.class_counts) < 2:
            raise ValueError(f"{name} has records of one class: it needs two")

    def _check_holders(self) -> None:
        if len(self.holders) < 2:
            raise ValueError(f"{len(self.holders)} sites: there must be at least two")
        seen: set[str] = set()
        for site, held in self.holders.items():
            if not held:
                raise ValueError(f"the site {site} holds no feature")
            for name in held:
                if name not in self.features:
                    raise ValueError(f"{name} is not a feature")
                if name in seen:
                    raise ValueError(f"the feature {name} is at two sites")
                seen.add(name)
        if missing := [name for name in self.features if name not in seen]:
            raise ValueError(f"at no site: {', '.join(missing)}")

    @cached_property
    def schema(self) -> Schema:
        """The class and the features."""
        return Schema(self.target, self.features)

    @property
    def sites(self) -> list[Party]:
        """The sites, sorted."""
        return sorted(self.holders)

    def held(self, party: Party) -> tuple[str, ...]:
        """Return the features of a party; none if it is not a site."""
        return self.holders.get(party, ())

    def cells(self, name: str) -> int:
        """Return how many counts the table of a feature has."""
        return len(self.features[name].states) * len(self.class_counts)

    def most_total(self, name: str) -> float:
        """Return a bound on T_ij of a feature: its counts are n_j at most, with their noise."""
        return len(self.features[name].states) * (max(self.class_counts) + self.alpha)

    def label(self, study: bytes, *more: bytes | str | int) -> bytes:
        """Return a digest of all of this: messages under another are refused."""
        states = {name: v.states for name, v in self.schema.variables.items()}
        known = [states, {s: self.holders[s] for s in self.sites}, self.class_counts]
        text = json.dumps([*known, self.target.name, self.alpha])
        return label("vertical naive Bayes", study, text, *more)

    def check_party(self, at: At) -> None:
        """Refuse, with a ValueError, to be asked as a site that holds nothing."""
        if at.party not in (*self.holders, at.dealer, at.analyst):
            raise ValueError("it holds none of the features")

    def matches(self, contract: Contract) -> None:
        """Refuse, with a ValueError, features that an approved contract does not have."""
        if not {self.target.name, *self.features} <= set(contract.variables):
            raise ValueError("the query names variables that the contract does not have")


# ---- tables --------------------------------------------------------------------------------------


def count_tables(
    split: Split, site: Party, data: LocalData, noise: Noise = no_noise, *, confirm: bool = True
) -> dict[str, Table]:
    """Count a site's features by class."""
    part = Schema(split.target, {name: split.features[name] for name in split.holders[site]})
    check_features(part.variables, data)
    arrays = apart(part.statistics, part.variables, measure(part.statistics, data))
    classes, *tables = arrays[0]
    if confirm and tuple(classes.tolist()) != split.class_counts:
        raise ValueError(f"{site}: its records have other counts of classes than the public ones")
    drawn = noise(sum(table.size for table in tables))
    ends = np.cumsum([table.size for table in tables])[:-1]
    pairs = zip(part.categorical, tables, np.split(drawn, ends), strict=True)
    most = np.array(split.class_counts)
    return {n: np.clip(table + extra.reshape(table.shape), 0, most) for n, table, extra in pairs}


def flat(tables: Tables, names: Sequence[str]) -> Table:
    """Return the counts of the tables of features, one after the other."""
    return np.concatenate([tables[name].reshape(-1) for name in names])


def read_tables(
    split: Split, names: Sequence[str], counts: Table, sender: Party
) -> dict[str, Table]:
    """Return the tables of features from the flat counts of a message."""
    ends = np.cumsum([split.cells(name) for name in names])
    if counts.shape != (ends[-1],):
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


def check_people(site: SiteRole, split: Split) -> None:
    """Refuse, with a ValueError, unless all sites hold the same records in the same order."""
    if site.placement is not None:
        raise ValueError(
            "its records are some of those of the study: naive Bayes over columns needs sites that "
            "hold the same people"
        )
    if site.hidden is not None:
        raise ValueError(
            "no site knows who is in the study: naive Bayes over columns needs sites that know "
            "their people, as at level 1 of an alignment"
        )
    strange = sorted(set(split.sites) - site.met - {site.party})
    if strange and site.data.ids is not None:
        names = ", ".join(strange)
        raise ValueError(f"its records are not compared with those of {names} in this session")


def check_features(expected: Mapping[str, Variable], records: LocalData) -> None:
    """Refuse records without a feature, or have it in other states."""
    for name, variable in expected.items():
        own = records.variables.get(name)
        if own is None or own.states != variable.states:
            states = ", ".join(variable.states)
            raise DataError(
                f"the records have no {name!r} in the declared states; this site must offer it "
                f"with the states {states}, in this order"
            )
