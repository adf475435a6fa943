"""A site's data: its variables and the codes of its records, and its columns of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.encoded import Encoded, Numbers, encode, read_column_of_numbers
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Finding, Report, UnsuitableColumnError
from vertibayes_protocols.site.frame import columns_of, text_column
from vertibayes_protocols.site.identifiers import Identifiers, order_of
from vertibayes_protocols.site.statistics import LocalData, Numeric, check_numbers
from vertibayes_protocols.site.text import empty_at_end, same_length
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class SiteData:
    """The encoded columns of a site.

    Parameters
    ----------
    variables : mapping of str to Variable
        The variables, by name.
    codes : mapping of str to ndarray of shape (n,), dtype uint8 or uint16
        The codes of each variable: 0 to ``variable.codes - 1``.
    ids : TextColumn, optional
        The identifiers of the records. They distinguish record sets and never leave the site.
    report : Report
        The findings about the columns from which the data were read.
    numerics : mapping of str to Numeric
        The columns that stay numbers, by name: they are in sums, and in no table.
    numbers : mapping of str to ndarray of shape (n,), dtype float64
        The numbers of each such column; nan where a number is missing.
    identifiers : Identifiers, optional
        The identifiers in the normal form by which alignments match them; None if they match none.

    Raises
    ------
    DataError
        If columns of codes or numbers are missing, differ in length, or have another type or
        invalid values.
    """

    variables: Mapping[str, Variable]
    codes: Mapping[str, NDArray[np.unsignedinteger]] = field(repr=False)
    ids: TextColumn | None = field(default=None, repr=False)
    report: Report = field(default=Report(), repr=False)
    numerics: Mapping[str, Numeric] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    identifiers: Identifiers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not {*self.variables, *self.numerics} or set(self.variables) != set(self.codes):
            raise DataError("the data must have at least one variable, and codes of each variable")
        self._check_numbers()
        for name, codes in self.codes.items():
            if self.variables[name].name != name:
                raise DataError(f"{name}: its variable is named {self.variables[name].name!r}")
            if codes.ndim != 1 or codes.dtype not in (np.uint8, np.uint16):
                raise DataError(f"{name}: codes must have one axis and the type uint8 or uint16")
        lengths = {len(column) for column in (*self.codes.values(), *self.numbers.values())}
        if self.ids is not None:
            lengths.add(len(self.ids))
        if len(lengths) > 1:
            raise DataError(f"columns must have the same length, got {sorted(lengths)}")
        for name, codes in self.codes.items():
            if len(codes) and int(codes.max()) >= self.variables[name].codes:
                raise DataError(
                    f"{name}: codes must be below {self.variables[name].codes}, got {codes.max()}"
                )

    def _check_numbers(self) -> None:
        if set(self.numerics) != set(self.numbers) or set(self.numerics) & set(self.variables):
            raise DataError("the data must have numbers of each column of numbers, and no codes")
        for name, numbers in self.numbers.items():
            if numbers.ndim != 1 or numbers.dtype != np.float64:
                raise DataError(f"{name}: numbers must have one axis and the type float64")
        check_numbers(self.numerics, self.numbers)

    @property
    def records(self) -> int:
        """The number of records."""
        return len(next(iter((*self.codes.values(), *self.numbers.values()))))

    def version(self, names: Iterable[str]) -> str:
        """Return a short digest of the number of records, and of the states and bins of variables.

        Values are not in it: they may change, and it stays.
        """
        known: dict[str, tuple[object, ...]] = {n: tuple(v) for n, v in self.numerics.items()}
        known |= {n: (n, v.states, v.missing) for n, v in self.variables.items()}
        content = self.records, *(known[name] for name in sorted({*names} & {*known}))
        return hashlib.sha256(repr(content).encode()).hexdigest()[:8]

    @property
    def local(self) -> LocalData:
        """The same columns, of which statistics are summed."""
        return LocalData(self.variables, self.codes, self.numerics, self.numbers)

    def rare_states(self, names: Collection[str], fewest: int) -> list[str]:
        """Return the states of some variables that 1 to `fewest` - 1 records have, in words."""
        few = self.few_people(names, fewest)
        return [f"{name}: {state!r} ({count})" for name, state, count in few]

    def few_people(self, names: Collection[str], fewest: int) -> list[tuple[str, str, int]]:
        """Return these states, each with its variable and the number of its records."""
        return [
            (name, variable.states[code], int(count))
            for name, variable in self.variables.items()
            if name in names
            for code, count in enumerate(np.bincount(self.codes[name], minlength=variable.codes))
            if code < len(variable.states) and 0 < count < fewest
        ]

    def few(self, names: Sequence[str], fewest: int) -> int:
        """Return how many lines of a table have at least 1 and fewer than `fewest` records."""
        lines = np.stack([self.codes[name] for name in names])
        _, counts = np.unique(lines, axis=1, return_counts=True)
        return int((counts < fewest).sum())

    def take(self, names: Iterable[str]) -> SiteData:
        """Return the data of some variables and columns of numbers."""
        chosen = list(names)
        coded = [name for name in chosen if name not in self.numerics]
        numerics = {name: self.numerics[name] for name in chosen if name in self.numerics}
        return SiteData(
            {name: self.variables[name] for name in coded},
            {name: self.codes[name] for name in coded},
            self.ids,
            numerics=numerics,
            numbers={name: self.numbers[name] for name in numerics},
            identifiers=self.identifiers,
        )

    def rows(self, places: NDArray[np.integer]) -> SiteData:
        """Return the data of some records, without their identifiers."""
        codes = {name: column[places] for name, column in self.codes.items()}
        numbers = {name: column[places] for name, column in self.numbers.items()}
        return SiteData(self.variables, codes, numerics=self.numerics, numbers=numbers)

    def in_order_of_ids(self) -> SiteData:
        """Return the data with the records in the order of their identifiers' characters."""
        if self.ids is None:
            return self
        return self.people(order_of(self.ids))

    def people(self, order: NDArray[np.integer]) -> SiteData:
        """Return the data of some records, with their identifiers."""
        ids = None if self.ids is None else self.ids.take(order)
        matched = self.identifiers
        if matched is not None:
            matched = matched.take(order, self.records)
        return replace(self.rows(order), ids=ids, report=self.report, identifiers=matched)

    @classmethod
    def from_text(
        cls,
        site: str,
        columns: Mapping[str, TextColumn],
        encoding: Encoding | None = None,
        ids: TextColumn | None = None,
        *,
        strict: bool = True,
    ) -> SiteData:
        """Encode a site's columns of text.

        Parameters
        ----------
        site : str
            The name of the site in errors and findings.
        columns : mapping of str to TextColumn
            The columns, by name.
        encoding : Encoding, optional
            How to encode the columns; the defaults of `Encoding` if None.
        ids : TextColumn, optional
            The identifiers of the records.
        strict : bool, default=True
            Whether to refuse columns that cannot be used as they are; otherwise such columns are
            left out, and ``report`` says which and why.

        Raises
        ------
        DataError
            If a column cannot be encoded (the message names all such columns), if no column is
            left, or if a value is not one of the declared states of its column.
        """
        same_length(site, columns)
        how = encoding or Encoding()
        encoded: dict[str, Encoded | Numbers] = {}
        left_out: dict[str, Finding] = {}
        for name, column in columns.items():
            try:
                read = read_column_of_numbers if name in how.bounds else encode
                encoded[name] = read(site, name, column, how)
            except UnsuitableColumnError as error:
                left_out[name] = error.finding
        warnings = [(name, finding) for name, e in encoded.items() for finding in e.findings]
        empty = 0 if ids is not None or len(columns) < 2 else empty_at_end(columns)
        report = Report(site, len(columns), left_out, warnings, how.advice, empty)
        if left_out and (strict or not encoded):
            raise DataError(report.refusal())
        coded = {name: e for name, e in encoded.items() if isinstance(e, Encoded)}
        numbers = {name: e for name, e in encoded.items() if isinstance(e, Numbers)}
        return cls(
            {name: e.variable for name, e in coded.items()},
            {name: e.codes for name, e in coded.items()},
            ids,
            report,
            {name: e.numeric for name, e in numbers.items()},
            {name: e.values for name, e in numbers.items()},
        )

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        encoding: Encoding | None = None,
        *,
        site: str = "data frame",
        ids: str | None = None,
        strict: bool = True,
    ) -> SiteData:
        """Encode a data frame.

        The categories of a categorical column are its states, in their order. Other columns are
        encoded as in files; those with bounds stay numbers.

        Parameters
        ----------
        frame : DataFrame
            The records. The index is ignored, unless `ids` names it.
        encoding : Encoding, optional
            How to encode the columns. States that it declares replace a column's categories.
        site : str, default="data frame"
            The name of the data in errors.
        ids : str, optional
            The name of the column, or of the index, that has the records' identifiers.
        strict : bool, default=True
            As in `from_text`.

        Raises
        ------
        DataError
            If a column cannot be read or encoded, or a column named `ids` is not found.
        """
        how = encoding or Encoding()
        identifiers = None
        if ids is not None:
            frame = frame.reset_index() if ids == frame.index.name else frame
            if ids not in frame.columns:
                raise DataError(f"{site}: the data frame has no column or index named {ids!r}")
            identifiers = text_column(site, ids, frame[ids])
            frame = frame.drop(columns=ids)
        columns, declared = columns_of(site, frame)
        states = {
            name: [category for category in categories if not how.is_code(category, name)]
            for name, categories in declared.items()
            if name not in how.bounds
        }
        how = replace(how, states={**states, **how.states})
        return cls.from_text(site, columns, how, identifiers, strict=strict)
