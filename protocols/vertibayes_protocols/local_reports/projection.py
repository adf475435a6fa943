"""Linear projections of numbers, which people apply to their own records before they report.

A projection is a public matrix. Whoever agrees the plan states where the matrix comes from:

    fitted_on="public"     from records that need no protection, such as those of volunteers
    fitted_on="declared"   from knowledge alone: no record was used
    fitted_on="private"    from the records of those who report, as in the paper. The matrix shows
                           something about these records, and no eps covers it.

PCA takes the directions of the largest variance, DCA the directions that separate the classes best.

References
----------
.. [1] S. Y. Kung (2014). Kernel Methods and Machine Learning. Cambridge University Press.
.. [2] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
   Classification. Section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric

Floats: TypeAlias = NDArray[np.float64]

SOURCES = ("public", "declared", "private")
BOUNDS = ("declared", "records")
RIDGE = 1e-3  # of the mean variance: keeps the total scatter invertible


@dataclass(frozen=True)
class Projection:
    """A matrix that takes numbers to fewer numbers.

    Each number is first moved and scaled so that its bounds are at -1 and 1, and cut to them.

    Parameters
    ----------
    columns : tuple of Numeric
        The numbers that are projected, with their declared bounds.
    matrix : tuple of tuple of float
        One row per component, with one weight per column.
    components : tuple of Numeric, optional
        The names and bounds of the components. By default their bounds are the sums of the sizes of
        the weights: no record can exceed these.
    fitted_on : {"public", "declared", "private"}, default="declared"
        Where the matrix, and the bounds of the components, come from.

    Raises
    ------
    ValueError
        If the matrix has another shape, a number that is not finite or a row of zeros, or
        `fitted_on` is not one of the three.

    Examples
    --------
    >>> columns = Numeric("height", 140, 200), Numeric("weight", 40, 120)
    >>> Projection(columns, ((0.6, 0.8),)).components
    (Numeric(name='component-1', low=-1.4, high=1.4),)
    """

    columns: tuple[Numeric, ...]
    matrix: tuple[tuple[float, ...], ...]
    components: tuple[Numeric, ...] = ()
    fitted_on: str = "declared"

    def __post_init__(self) -> None:
        weights = np.array(self.matrix, float)
        if weights.ndim != 2 or weights.shape[1] != len(self.columns) or not weights.size:
            raise ValueError(
                f"the matrix must have rows of {len(self.columns)} weights, one per column, "
                f"got the shape {weights.shape}"
            )
        if not np.isfinite(weights).all() or not weights.any(axis=1).all():
            raise ValueError("the weights must be finite, and not all of a row zero")
        if self.fitted_on not in SOURCES:
            raise ValueError(f"fitted_on must be one of {SOURCES}, got {self.fitted_on!r}")
        if not self.components:
            reach = np.abs(weights).sum(axis=1).tolist()
            named = (Numeric(f"component-{i}", -r, r) for i, r in enumerate(reach, 1))
            object.__setattr__(self, "components", tuple(named))
        if len(self.components) != len(weights):
            raise ValueError(
                f"{len(self.components)} components are named: the matrix has {len(weights)} rows"
            )

    @classmethod
    def pca(
        cls, data: LocalData, components: int, *, fitted_on: str, bounds: str = "declared"
    ) -> Self:
        """Return the directions of the largest variance of all numbers of some records.

        Parameters
        ----------
        data : LocalData
            The records; those with a missing number are left out.
        components : int
            How many directions; at most the number of columns.
        fitted_on : {"public", "declared", "private"}
            What the records are.
        bounds : {"declared", "records"}, default="declared"
            Whether the bounds of the components follow from the bounds of the columns, or are the
            smallest and the largest component of the records, which is narrower.

        Raises
        ------
        ValueError
            If there are fewer than two complete records, or too many components.
        """
        columns, scaled, _ = _complete(data)
        _check(components, len(columns), "the number of columns of numbers")
        _, vectors = np.linalg.eigh(np.cov(scaled, rowvar=False).reshape(len(columns), -1))
        return cls._fitted(columns, vectors[:, ::-1].T[:components], scaled, fitted_on, bounds)

    @classmethod
    def dca(
        cls,
        data: LocalData,
        target: str,
        components: int = 1,
        *,
        fitted_on: str,
        bounds: str = "declared",
        ridge: float = RIDGE,
    ) -> Self:
        """Return the directions with the largest share of variance between classes.

        These are the first eigenvectors of (T + ridge I)^-1 B, with B the scatter between the means
        of the classes and T the scatter of all records. ``ridge`` is a share of the mean variance.

        Parameters
        ----------
        data, components, fitted_on, bounds
            As of `pca`; components are fewer than classes, because B has no further direction.
        target : str
            The class. Records whose class is missing are left out.
        ridge : float, default=1e-3

        Raises
        ------
        ValueError
            If there are fewer than two complete records, or not more classes than components.
        """
        columns, scaled, complete = _complete(data, target)
        classes = data.codes[target][complete]
        _check(components, len(np.unique(classes)) - 1, "the number of classes minus one")
        _check(components, len(columns), "the number of columns of numbers")
        centred = scaled - scaled.mean(axis=0)
        means = np.array([centred[classes == c].mean(axis=0) for c in np.unique(classes)])
        sizes = np.unique(classes, return_counts=True)[1]
        between, total = (means.T * sizes) @ means, centred.T @ centred
        total += ridge * np.trace(total) / len(columns) * np.eye(len(columns))
        root = np.linalg.inv(np.linalg.cholesky(total))
        _, vectors = np.linalg.eigh(root @ between @ root.T)
        rows = (vectors[:, ::-1].T @ root)[:components]
        return cls._fitted(columns, rows, scaled, fitted_on, bounds)

    @classmethod
    def _fitted(
        cls, columns: tuple[Numeric, ...], rows: Floats, scaled: Floats, fitted_on: str, bounds: str
    ) -> Self:
        """Scale the rows to length one, with the largest weight positive, and bound components."""
        largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
        rows = rows / (np.linalg.norm(rows, axis=1) * np.sign(largest))[:, None]
        weights = tuple(tuple(row) for row in rows.tolist())
        fitted = cls(columns, weights, fitted_on=fitted_on)
        if bounds not in BOUNDS:
            raise ValueError(f"bounds must be one of {BOUNDS}, got {bounds!r}")
        if bounds == "declared":
            return fitted
        values = scaled @ rows.T
        spans = zip(fitted.components, values.min(axis=0), values.max(axis=0), strict=True)
        named = tuple(Numeric(c.name, float(low), float(high)) for c, low, high in spans)
        return replace(fitted, components=named)

    def apply(self, data: LocalData) -> LocalData:
        """Return records with the components in place of the projected columns.

        A component is missing if one of the columns is.
        """
        values = _scaled(self.columns, data) @ np.array(self.matrix).T
        gone = {column.name for column in self.columns}
        numerics = {n: c for n, c in data.numerics.items() if n not in gone}
        numbers = {name: data.numbers[name] for name in numerics}
        numerics |= {c.name: c for c in self.components}
        numbers |= {c.name: v for c, v in zip(self.components, values.T, strict=True)}
        return LocalData(data.variables, data.codes, numerics, numbers)

    def schema(self, schema: Schema) -> Schema:
        """Return a schema with the components in place of the projected columns.

        Raises
        ------
        ValueError
            If the schema has no such columns with these bounds, or a feature is named as a
            component.
        """
        if missing := [c.name for c in self.columns if schema.features.get(c.name) != c]:
            raise ValueError(f"{missing[0]}: the schema has no such number with these bounds")
        gone = {column.name for column in self.columns}
        kept = {name: f for name, f in schema.features.items() if name not in gone}
        if taken := [c.name for c in self.components if c.name in (*kept, schema.target.name)]:
            raise ValueError(f"{taken[0]} is the name of a column, and of a component")
        return replace(schema, features=kept | {c.name: c for c in self.components})


def _scaled(columns: Sequence[Numeric], data: LocalData) -> Floats:
    """Return the numbers with their bounds at -1 and 1: shape (n, columns)."""
    scaled = [(data.numbers[c.name] - c.middle) / (c.high - c.middle) for c in columns]
    return np.clip(np.array(scaled).T, -1.0, 1.0)


def _complete(
    data: LocalData, target: str | None = None
) -> tuple[tuple[Numeric, ...], Floats, NDArray[np.bool_]]:
    """Return the columns, the complete records, scaled, and which of all records these are."""
    columns = tuple(data.numerics.values())
    if not columns:
        raise ValueError("a projection is of numbers: the data have no column of numbers")
    scaled = _scaled(columns, data)
    complete = np.asarray(~np.isnan(scaled).any(axis=1))
    if target is not None:
        complete = complete & (data.codes[target] < len(data.variables[target].states))
    if complete.sum() < 2:
        raise ValueError(f"a projection needs two complete records, got {complete.sum()}")
    return columns, scaled[complete], complete


def _check(components: int, most: int, of: str) -> None:
    if not 1 <= components <= most:
        raise ValueError(f"components must be from 1 to {most} ({of}), got {components}")
