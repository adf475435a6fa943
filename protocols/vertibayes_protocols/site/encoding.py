"""How a site encodes its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from vertibayes_protocols.settings import BINS_FORM, is_bins
from vertibayes_protocols.site.binning import METHODS
from vertibayes_protocols.site.findings import COMMAND_LINE, Advice
from vertibayes_protocols.site.statistics import Numeric

NA = {  # texts that pandas' readers take as missing
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip


@dataclass(frozen=True)
class Encoding:
    """How a site encodes its columns."""

    missing_codes: Collection[str] = ()  # beside the empty text; COLUMN=CODE is for one column
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)  # declared, in order
    categorical: Collection[str] = ()  # columns whose numbers and dates are names: never binned
    bins: float = 0.1  # of a numeric column: the share of the records in each, or from 2 how many
    max_states: int = 100  # of a column
    cuts: Mapping[str, Sequence[Decimal]] = field(default_factory=dict)  # inner edges, ascending
    binning: str = "equal-frequency"  # of the other numeric columns: one of `METHODS`
    # Columns in which texts that differ only in case are one state, named by the most frequent.
    ignore_case: Collection[str] = ()
    own_bins: Mapping[str, float] = field(
        default_factory=dict
    )  # of columns that differ from `bins`
    advice: Advice = COMMAND_LINE  # the remedies that findings advise
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # these have no states
    # Records of a state that is found in a column: rarer states are one, `OTHER`.
    fewest: int = 1
    keep_na: bool = False  # whether the texts of `NA` are values
    # The states that columns had in earlier studies, which they keep; new texts follow them.
    earlier: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("missing_codes", "categorical", "ignore_case"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a collection of texts, not one text")
        for share in (self.bins, *self.own_bins.values()):
            if not is_bins(share):
                raise ValueError(f"bins must be {BINS_FORM}, got {share:g}")
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
        return self.is_code(text, name) or self.is_na(text, name)

    def is_code(self, text: str, name: str) -> bool:
        """Whether a text is empty or declared as missing."""
        codes = self.missing_codes
        return not text.strip() or text in codes or f"{name}={text}" in codes

    def is_na(self, text: str, name: str) -> bool:
        """Whether a text is one of `NA`, and not a declared or earlier state of its column."""
        if self.keep_na or text.strip() not in NA:
            return False
        return text not in (*self.states.get(name, ()), *self.earlier.get(name, ()))
