"""The effects of a query: what it takes, shows and costs, stated once and as data.

`vertibayes_protocols.engine` holds them against a party's policy and memory, charges them and notes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.variables import Rows


class Planned(NamedTuple):
    """What a query takes: an upper bound of memory, and an estimate of time on an idle machine.

    Attributes
    ----------
    memory : int
        The bytes at one party.
    picoseconds : int
        The work of all parties, and the time on a link of 4 Gbit/s.
    less : str
        What to do if it is too much.
    """

    memory: int = 0
    picoseconds: int = 0
    less: str = "ask for fewer or smaller tables in one query"

    @property
    def seconds(self) -> float:
        """The time, in seconds."""
        return self.picoseconds / 1e12


class Number(NamedTuple):
    """The number of a query, above all before it: keys and masks are used once.

    Attributes
    ----------
    value : int
    analyst : bytes, default=b""
        The public key of the analyst whose numbers these are; empty if they are those of the study.
    """

    value: int
    analyst: bytes = b""


class Scored(NamedTuple):
    """Records of which each one's own scores leave: how many, and what they are."""

    records: int
    what: str


class Noise(NamedTuple):
    """The noise of a release: what it costs a site's budget, and its kind as OpenDP draws it.

    `mechanism` is empty if the project draws the noise itself.
    """

    cost: Cost
    mechanism: str


NONE = Released()  # no tables


def takes_little() -> Iterable[Planned]:
    """Return nothing: of a query whose memory and time need no limit."""
    return ()


T_co = TypeVar("T_co", covariant=True)


class Later(Iterable[T_co]):
    """Items that are computed when they are used, after the sizes of a query were allowed."""

    def __init__(self, make: Callable[[], Iterable[T_co]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._make())


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What a query does, as one party sees it. A field for each rule of a policy, without defaults.

    Parameters
    ----------
    asks : tuple of Party
        Exactly whom the query asks.
    columns : tuple of str
        The columns that a site must show, beside those of a study that it has committed.
    tables : tuple of (int, int)
        Variables and cells of all that is counted, by table or by group of tables.
    counts : Rows, optional
        The records of the joined study that tables or sums are over; None if it counts none.
    takes : callable
        () -> what the query takes, in steps: each is allowed before the next is computed.
    stored : int
        Bytes of masked columns that each site keeps.
    number : Number, optional
    released : Released
        Tables and cells that leave by a rule.
    freely : Released
        Exact tables that leave without a rule.
    scores : Scored, optional
    bits : int
        Of the winners of choices; sites limit those of approved studies.
    noise : Noise, optional
    dishonest : float, optional
        The share of the members that may work with the analyst, where the query depends on it.
    exact : bool
        Whether it adds up sites with other records without noise.
    says : iterable of Fact
    opens : iterable of RevealedTable
        What the party's ledger notes.
    """

    asks: tuple[Party, ...]
    columns: tuple[str, ...]
    tables: tuple[tuple[int, int], ...]
    counts: Rows | None
    takes: Callable[[], Iterable[Planned]]
    stored: int
    number: Number | None
    released: Released
    freely: Released
    scores: Scored | None
    bits: int
    noise: Noise | None
    dishonest: float | None
    exact: bool
    says: Iterable[Fact]
    opens: Iterable[RevealedTable]


def saying(asks: tuple[Party, ...], says: Iterable[Fact]) -> Effects:
    """Return the effects of a query that counts, releases and charges nothing: it names things.

    Parameters
    ----------
    asks, says
        As of `Effects`.
    """
    return Effects(
        asks=asks,
        columns=(),
        tables=(),
        counts=None,
        takes=takes_little,
        stored=0,
        number=None,
        released=NONE,
        freely=NONE,
        scores=None,
        bits=0,
        noise=None,
        dishonest=None,
        exact=False,
        says=says,
        opens=(),
    )
