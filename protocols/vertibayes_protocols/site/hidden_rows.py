"""Rows of people whom no site knows: what the sites hold after an alignment at level 2.

The alignment carries each column in every form in which a study may commit it. Afterwards the
sites hold additive shares of these forms, over the people of the study in an order that nobody
knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Commitments, Operand, SharedColumn
from vertibayes_mpc.commitments.operands import Form
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable

Described: TypeAlias = tuple[str, tuple[str, ...], bool, Party]
Codes: TypeAlias = Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True)
class CarriedColumns:
    """The columns of an alignment at level 2, and the forms in which it carries them."""

    variables: Mapping[str, Variable]  # in the study's order
    owners: Mapping[str, Party]  # the site whose table has each variable
    most_indicators: int  # the most indicators of a column that is carried as indicators
    size: int  # the public size of the longest list: indicators are in a ring that holds it

    def __post_init__(self) -> None:
        if any(name != variable.name for name, variable in self.variables.items()):
            raise ValueError("a column of the alignment has another's name; name each column once")
        few = any(variable.codes < 2 for variable in self.variables.values())
        if few or not self.variables or [*self.owners] != [*self.variables]:
            raise ValueError(
                "the alignment has no column, one of fewer than two states, or one of no site"
            )

    def forms(self, name: str) -> list[Form]:
        """Return the forms of a variable."""
        place = self._places[name]
        return [self._columns.form(kind, place) for kind in self._columns.operands[place].kinds]

    @classmethod
    def of_described(
        cls, columns: Iterable[Described], most_indicators: int, size: int
    ) -> CarriedColumns:
        """Return the columns that `described` returns; a ValueError if one appears twice."""
        listed = [(Variable(name, tuple(states), gaps), at) for name, states, gaps, at in columns]
        variables = {variable.name: variable for variable, _ in listed}
        if len(variables) < len(listed):
            raise ValueError("a column of the alignment appears twice; name each column once")
        owners = {variable.name: owner for variable, owner in listed}
        return cls(variables, owners, most_indicators, size)

    @property
    def described(self) -> tuple[Described, ...]:
        """The name, states, missing values and owner of each column."""
        variables = self.variables.values()
        return tuple((v.name, v.states, v.missing, self.owners[v.name]) for v in variables)

    def of(self, owner: Party) -> list[str]:
        """Return the variables of a site's table."""
        return self._owned.get(owner, [])

    def forms_of(self, owner: Party) -> list[tuple[str, Form]]:
        """Return what a site's rows consist of: each variable of the site, in each form."""
        return [(name, form) for name in self.of(owner) for form in self.forms(name)]

    def rings(self, owner: Party) -> tuple[Ring, ...]:
        """Return the ring of each element of a site's rows."""
        return tuple(form.ring for _, form in self.forms_of(owner) for _ in range(form.width))

    def rows(
        self, owner: Party, codes: Mapping[str, NDArray[np.unsignedinteger]]
    ) -> list[Elements]:
        """Return a site's rows: an array of shape (n,) for each ring of `rings`."""
        return [row for name, form in self.forms_of(owner) for row in form.of(codes[name])]

    def stacked(self, shares: Mapping[Party, list[Elements]]) -> dict[str, dict[str, Elements]]:
        """Return shares of rows, by owner, as columns: by variable and the name of the form."""
        columns: dict[str, dict[str, Elements]] = {name: {} for name in self.variables}
        for owner in dict.fromkeys(self.owners.values()):
            elements = iter(shares[owner])
            for name, form in self.forms_of(owner):
                columns[name][form.name] = np.stack([next(elements) for _ in range(form.width)])
        return columns

    @property
    def stored_bytes(self) -> int:
        """How many bytes the shares of one person take at a site."""
        forms = (form for name in self.variables for form in self.forms(name))
        return sum(form.width * form.ring.dtype.itemsize for form in forms)

    @cached_property
    def _owned(self) -> dict[Party, list[str]]:
        owned: dict[Party, list[str]] = {}
        for name, owner in self.owners.items():
            owned.setdefault(owner, []).append(name)
        return owned

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.variables)}

    @cached_property
    def _columns(self) -> Commitments:
        operands = tuple(
            Operand(
                name.encode(), v.codes - 1, (self.owners[name],), v.missing, self.most_indicators
            )
            for name, v in self.variables.items()
        )
        return Commitments(b"", Ring.holding(self.size), self.size, operands)


@dataclass(frozen=True)
class HiddenRows:
    """A site's shares of the rows of a study whose people no site knows."""

    alignment: bytes  # the name of the alignment: all its sites have the same
    sites: tuple[Party, ...]  # the sites of the alignment, sorted: each has shares of every column
    records: int  # the number of people in the study
    carried: CarriedColumns
    shares: Mapping[str, Mapping[str, Elements]] = field(repr=False)

    def column(self, name: str) -> SharedColumn:
        """Return the site's part of a column."""
        return SharedColumn(self.shares[name])

    def check(self, study: Study) -> None:
        """Refuse a study of other records or columns, with a ValueError."""
        if (study.alignment, study.records) != (self.alignment, self.records):
            raise ValueError(
                "the study is not one of the records that were aligned in this session: align "
                "them, or resume the study with its own id"
            )
        carried = self.carried
        for name, variable in study.variables.items():
            if carried.variables.get(name) != variable or study.holders[name] != self.sites:
                raise ValueError(
                    f"the alignment did not carry {name!r} with these states to all its sites: "
                    "study the variables that were aligned"
                )
        if study.most_indicators > carried.most_indicators:
            raise ValueError(
                f"the alignment carried columns of up to {carried.most_indicators} indicators, the "
                f"study has {study.most_indicators}: open the study as it was aligned"
            )

    @property
    def people(self) -> NDArray[np.uint64]:
        """A digest of each place: it stands for a person whom nobody knows.

        All sites have the same digests, which differ from those of every other alignment.
        """
        start = int.from_bytes(label("places", self.alignment)[:8], "little")
        places = np.arange(self.records, dtype=np.uint64)
        return places * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
