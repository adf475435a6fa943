"""How a site encodes its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from vertibayes_protocols.site.binning import METHODS
from vertibayes_protocols.site.findings import COMMAND_LINE, Advice
from vertibayes_protocols.site.statistics import Numeric


@dataclass(frozen=True)
class Encoding:
    """How a site encodes its columns.

    Parameters
    ----------
    missing_codes : collection of str
        The texts that stand for a missing value, beside the empty text: in all columns, or in one
        column as ``COLUMN=CODE``.
    states : mapping of str to sequence of str
        The declared states, in order, of some columns; the states of others are those they have.
    categorical : collection of str
        The columns whose numbers and dates are names too, and are never binned.
    bins : float, default=0.1
        The share of the records in a bin of a numeric column.
    max_states : int, default=100
        The largest number of states of a column.
    cuts : mapping of str to sequence of Decimal
        The inner edges of the bins of some columns, ascending.
    binning : str, default="equal-frequency"
        How the other numeric columns are cut: "equal-frequency", "equal-width" or "intervals".
    ignore_case : collection of str
        The columns in which texts that differ only in case are one state, with the name of the most
        frequent text.
    own_bins : mapping of str to float
        The shares of the records in a bin of some columns, where it is not `bins`.
    advice : Advice
        The remedies that findings advise.
    bounds : mapping of str to (float, float)
        The least and largest number of the columns that stay numbers: these have no states.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range, edges or bounds do not ascend, a column has bounds and states,
        or a collection of texts is a single text.
    """

    missing_codes: Collection[str] = ()
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    categorical: Collection[str] = ()
    bins: float = 0.1
    max_states: int = 100
    cuts: Mapping[str, Sequence[Decimal]] = field(default_factory=dict)
    binning: str = "equal-frequency"
    ignore_case: Collection[str] = ()
    own_bins: Mapping[str, float] = field(default_factory=dict)
    advice: Advice = COMMAND_LINE
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("missing_codes", "categorical", "ignore_case"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a collection of texts, not one text")
        for share in (self.bins, *self.own_bins.values()):
            if not 0 < share <= 0.5:
                raise ValueError(
                    f"bins must be above 0 and at most 0.5 of the records, got {share}"
                )
        if not 2 <= self.max_states <= 65_000:
            raise ValueError(f"max_states must be from 2 to 65000, got {self.max_states}")
        if self.binning not in METHODS:
            *others, last = METHODS
            known = f"{', '.join(others)} or {last}"
            raise ValueError(f"binning must be {known}, got {self.binning!r}")
        for name, edges in self.cuts.items():
            if not edges or any(low >= high for low, high in pairwise(edges)):
                raise ValueError(f"the edges of {name!r} must be one number or more, ascending")
        self._check_bounds()

    def _check_bounds(self) -> None:
        for name, numeric in self.numerics.items():
            numeric.check()
            ways = {"states": self.states, "cut": self.cuts, "categorical": self.categorical}
            for way, names in (ways | {"bins": self.own_bins}).items():
                if name in names:
                    raise ValueError(f"{name}: bounds and {way} exclude each other: give one")

    @property
    def numerics(self) -> dict[str, Numeric]:
        """The columns that stay numbers."""
        return {name: Numeric(name, *map(float, pair)) for name, pair in self.bounds.items()}

    def says_missing(self, text: str, name: str) -> bool:
        """Whether a text of a column stands for a missing value."""
        codes = self.missing_codes
        return not text.strip() or text in codes or f"{name}={text}" in codes
