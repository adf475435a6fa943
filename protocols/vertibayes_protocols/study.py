"""A study: what all parties know of its variables, and where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vertibayes_mpc.commitments import MOST_INDICATORS, Commitments, Selection
from vertibayes_mpc.paillier import PrivateKey, PublicKey
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.settings import MASKED_TABLES, PAILLIER, CountBy
from vertibayes_protocols.variables import Rows, Variable
from vertibayes_protocols.wire import FREE

CHOICE_INDICATORS = 127  # of columns with up to 128 codes, in studies of choices and releases
MOST_BLOCK_ROWS = 1 << 20
MOST_INDICATORS_OF_ALL = 255  # wider columns would take more bytes than all others
NEEDS_MASKED_TABLES = "`count_by` must be masked-tables"
MOST_SELECTIONS = 4  # kept, of choices of records: more are drawn again when they are asked


@dataclass(frozen=True)
class Study:
    """What all parties of a study know: its variables and where they are.

    A contract that declares its queries fixes the dealer and `most_indicators`.
    """

    id: bytes = field(metadata=FREE)  # names the study in every label; 16 random bytes
    variables: Mapping[str, Variable] = field(metadata=FREE)  # compared by their names
    holders: Mapping[str, tuple[Party, ...]] = field(metadata=FREE)  # in the order of the variables
    records: int = field(metadata=FREE)
    dealer: Party  # empty: nobody, where tables are counted by paillier
    block_rows: int = field(metadata=FREE)
    memory: int = field(metadata=FREE)  # how many bytes one query may take at a party
    most_indicators: int = MOST_INDICATORS  # the most indicators with which a column is committed
    alignment: bytes = field(default=b"", metadata=FREE)
    count_by: CountBy = field(default=MASKED_TABLES, metadata=FREE)  # contracts: by masked tables

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("the study has no id")
        if not self.variables or any(name != v.name for name, v in self.variables.items()):
            raise ValueError(
                "the study has no variables, or one under another name; name each variable once"
            )
        if [*self.holders] != [*self.variables]:
            raise ValueError("the study must have the holders of its variables, in their order")
        wrong = (not held or [*held] != sorted({*held}) for held in self.holders.values())
        if any(wrong) or any(variable.codes < 2 for variable in self.variables.values()):
            raise ValueError(
                "a variable of the study has fewer than two states, no holder, or a holder twice; "
                "its holders must be sorted"
            )
        if self.dealer in self.sites:
            raise ValueError(f"the dealer {self.dealer} is also a site of the study")
        if not 16 <= self.block_rows <= MOST_BLOCK_ROWS or self.block_rows % 16:
            raise ValueError(
                f"blocks must have 16 to {MOST_BLOCK_ROWS} rows, a multiple of 16; "
                f"got {self.block_rows}"
            )
        if not 1 <= self.most_indicators <= MOST_INDICATORS_OF_ALL:
            raise ValueError(
                f"columns must have between 1 and {MOST_INDICATORS_OF_ALL} indicators at most, got "
                f"{self.most_indicators}"
            )
        self._check_way()
        Ring.holding(self.records)  # which checks that some ring does

    def _check_way(self) -> None:
        if (self.dealer == "") != (self.count_by == PAILLIER):
            raise ValueError("a study has a dealer unless it counts by paillier (count_by)")
        if not self.is_masked and self.alignment:
            raise ValueError(f"{NEEDS_MASKED_TABLES}: no site knows the rows of the study")
        if not self.is_masked and any(len(held) > 1 for held in self.holders.values()):
            raise ValueError(f"{NEEDS_MASKED_TABLES}: a column has several holders")

    @property
    def is_masked(self) -> bool:
        """Whether it counts by masked tables: only then the sites send masked columns."""
        return self.count_by == MASKED_TABLES

    def place(self, variable: str) -> int:
        """Return a variable's place in the study's order."""
        return self._places[variable]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.variables)}

    def __hash__(self) -> int:
        """Hash what distinguishes studies; mappings have no hash."""
        return hash((self.id, tuple(self.variables), self.records, self.memory))

    def hidden(self, alignment: bytes) -> Study:
        """Return this study over the rows of an alignment at level 2, shared by all sites."""
        holders = dict.fromkeys(self.variables, self.sites)
        return replace(self, holders=holders, alignment=alignment)

    @cached_property
    def sites(self) -> tuple[Party, ...]:
        """Everyone who holds a variable, sorted."""
        return self.holders_of(self.holders)

    @property
    def parties(self) -> tuple[Party, ...]:
        """The sites, then the dealer, if there is one."""
        return self.with_dealer(self.sites)

    def with_dealer(self, sites: Iterable[Party]) -> tuple[Party, ...]:
        """Return some sites, then the dealer, if there is one."""
        return (*sites, self.dealer) if self.dealer else tuple(sites)

    def holders_of(self, names: Iterable[str]) -> tuple[Party, ...]:
        """Return the sites that hold at least one of some variables, sorted."""
        return tuple(sorted({site for name in names for site in self.holders[name]}))


@dataclass
class Joined:
    """A study that a party has joined."""

    study: Study
    commitments: Commitments
    seed: StreamKey | None = field(repr=False)  # the sites' common seed
    mark: bytes = b""  # what the sites agree that they have joined; at sites, by paillier alone
    keys: Mapping[Party, PublicKey] = field(default_factory=dict, repr=False)  # by paillier
    own_key: PrivateKey | None = field(default=None, repr=False)  # at a site
    asked: int = 0  # the number of the last query for tables; at sites, by paillier alone
    answered: set[Rows] = field(default_factory=set, repr=False)
    compared: object = None  # at a site: the earlier studies with which it compared its values
    # At the analyst and the sites.
    won: tuple[int, ...] = ()
    decided: tuple[bool, ...] = ()
    # By records and missing values: the sums of logarithms that were looked up, with a site's
    # shares of them; 0 at the dealer and the analyst, who know that they were.
    sums: dict[Hashable, dict[Any, int]] = field(default_factory=dict, repr=False)
    _selections: dict[Rows, Selection] = field(default_factory=dict, init=False, repr=False)

    @property
    def key_bits(self) -> tuple[int, ...]:
        """The length of the longest public key, on which costs depend; empty without keys."""
        return (max(key.bits for key in self.keys.values()),) if self.keys else ()

    def selection(self, rows: Rows) -> Selection:
        """Return the chosen records: places of a permutation that the analyst cannot foresee.

        The permutation sorts 64-bit numbers of the stream ``rows.seed`` under the sites' seed. A
        site knows it: one that works with the analyst can search for places to its liking.
        """
        if rows.count(self.commitments.records) == self.commitments.records:
            return Selection(self.commitments)
        if rows not in self._selections:
            if len(self._selections) == MOST_SELECTIONS:  # refused queries have them too
                del self._selections[next(iter(self._selections))]
            self._selections[rows] = self._select(rows)
        return self._selections[rows]

    def _select(self, rows: Rows) -> Selection:
        which = label("chosen", *(str(part) for part in rows))
        records = self.commitments.records
        if self.seed is None:
            return Selection(self.commitments, np.arange(rows.count(records)), which)
        keys = np.frombuffer(self.seed.expand(label("rows", rows.seed), 8 * records), "<u8")
        chosen = np.argsort(keys, kind="stable")[rows.first : rows.last]
        return Selection(self.commitments, np.sort(chosen), which)
