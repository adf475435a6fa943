"""The effects of a query: what it takes, shows and costs, stated once and as data.

`vertibayes_protocols.engine` holds them against a party's policy and memory, charges them and notes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.variables import Rows


class Planned(NamedTuple):
    """What a query takes: an upper bound of memory, and an estimate of time on an idle machine."""

    memory: int = 0  # the bytes at one party
    picoseconds: int = 0  # the work of all parties, and the time on a link of 4 Gbit/s
    stored: int = 0  # bytes of masked columns that each site keeps
    less: str = "ask for fewer or smaller tables in one query"

    @property
    def seconds(self) -> float:
        """The time, in seconds."""
        return self.picoseconds / 1e12


class Number(NamedTuple):
    """The number of a query, above all before it: keys and masks are used once."""

    value: int
    analyst: bytes = b""  # the public key of the analyst whose numbers these are


class Noise(NamedTuple):
    """The noise of a release: what it costs a site's budget, and its kind as OpenDP draws it."""

    cost: Cost
    mechanism: str  # empty if the project draws the noise itself


# ---- in which way results leave ------------------------------------------------------------------


class Freely(NamedTuple):
    """Exact tables leave, without a rule."""

    tables: Released


class ByRule(NamedTuple):
    """Tables leave by a rule, which may add noise."""

    tables: Released
    noise: Noise | None
    dishonest: float | None  # the share that may work with the analyst, if noise depends on it


class RecordStatistics(NamedTuple):
    """Counts or sums of a site's own records leave: with noise, or exact in a sum over sites."""

    noise: Noise | None
    dishonest: float | None  # as of `ByRule`


class Scored(NamedTuple):
    """Each record's own scores leave: of how many records, and what they are."""

    records: int
    what: str


class Winners(NamedTuple):
    """The winners of choices leave, in so many bits; sites limit those of approved studies."""

    bits: int


# None if it only names things
Leaves: TypeAlias = Freely | ByRule | RecordStatistics | Scored | Winners | None
T_co = TypeVar("T_co", covariant=True)


class Later(Iterable[T_co]):
    """Items that are computed whenever they are used, once the sizes of a query were allowed."""

    def __init__(self, make: Callable[[], Iterable[T_co]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._make())


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What a query does, as one party sees it; no field has a default."""

    asks: tuple[Party, ...]  # exactly whom the query asks
    columns: tuple[str, ...]
    tables: tuple[tuple[int, int], ...]
    counts: Rows | None  # the records of the joined study that tables or sums are over; None: none
    takes: Iterable[Planned]  # what the query takes, in steps
    number: Number | None
    leaves: Leaves  # in which way results leave, and what this uses up
    says: Iterable[Fact]
    opens: Iterable[RevealedTable]  # what the party's ledger notes

    @property
    def noise(self) -> Noise | None:
        """The noise of what leaves; None without noise."""
        return self.leaves.noise if isinstance(self.leaves, ByRule | RecordStatistics) else None


def saying(asks: tuple[Party, ...], says: Iterable[Fact]) -> Effects:
    """Return the effects of a query that counts, releases and charges nothing: it names things."""
    return Effects(
        asks=asks,
        columns=(),
        tables=(),
        counts=None,
        takes=(),
        number=None,
        leaves=None,
        says=says,
        opens=(),
    )
