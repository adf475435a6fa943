"""Public functions of a count, as sums of products of a function of its high and its low digit.

A count is ``c = h low + l``. The integers ``f~(c) = sum_k left[h, k] right[l, k]`` stand for ``f(c)
2**fraction_bits``. They are a function of the count alone, so that equal tables have equal scores,
and the same on every machine.

`log_gamma` and `log_power` need eight products at any number of records. Two give the counts below
``2 low`` exactly (to rounding). Three are a constant, a line and a parabola in l; each of the last
three has the shape of the row that the others approximate worst (adaptive cross approximation,
Bebendorf 2000, doi:10.1007/PL00005410), so that it serves the rows around it too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.lookups.logarithms import (
    LOG_ERROR,
    MOST_RECORDS,
    Integers,
    log_gammas,
    log_powers,
)

EXACT_ROWS = 2
SHAPES = 3  # rows whose shape is a product
HEAD = 64  # the rows among which these are chosen: f bends most where counts are small
MOST_SCALE = 20  # bits of a shape


@dataclass(frozen=True, eq=False)
class PublicFunction:
    """A function of the counts from 0 to `records`, which all parties know.

    A ValueError says that the shapes do not fit each other or the number of records.

    >>> function = log_gamma(1, 100, 40)
    >>> int(function(np.array([3]))[0]) / 2**40  # ln 3! - 3 ln 100
    -12.02375108873639
    >>> function.high, function.low, function.error < 1e-7
    (16, 8, True)
    """

    left: Integers = field(repr=False)  # of each high digit: (high, terms), high a power of two
    right: Integers = field(repr=False)  # of each low digit: (low, terms), low a power of two
    fraction_bits: int  # the values are multiples of 2**-fraction_bits
    records: int  # the largest count, below high * low
    error: float  # the largest distance to the true function, over all counts

    def __post_init__(self) -> None:
        sizes = self.left.shape[0], self.right.shape[0]
        if self.left.shape[1:] != self.right.shape[1:] or any(s & (s - 1) or not s for s in sizes):
            raise ValueError(
                "left and right must have powers of two as heights, and equally many terms, got "
                f"{self.left.shape} and {self.right.shape}"
            )
        if self.high * self.low <= self.records:
            raise ValueError(f"high * low must exceed {self.records} records, got {sizes}")

    @property
    def high(self) -> int:
        """The number of high digits."""
        return len(self.left)

    @property
    def low(self) -> int:
        """The number of low digits."""
        return len(self.right)

    @property
    def terms(self) -> int:
        """The number of products."""
        return int(self.left.shape[1])

    def __call__(self, counts: NDArray[np.integer]) -> Integers:
        """Return the integers of some counts, in their shape."""
        whole = counts.astype(np.int64)
        left, right = self.left[whole // self.low], self.right[whole % self.low]
        return np.asarray(np.einsum("...k,...k->...", left, right))

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of both tables: parties that look up have the same."""
        tables = (np.ascontiguousarray(t, "<i8").tobytes() for t in (self.left, self.right))
        sizes = np.array([*self.left.shape, self.low], "<i8").tobytes()
        return hashlib.sha256(sizes + b"".join(tables)).digest()

    @cached_property
    def lefts(self) -> NDArray[np.uint64]:
        """The left factors of each high digit, then of the digit below it: (2 * terms, high)."""
        pair = np.concatenate([self.left, np.roll(self.left, 1, axis=0)], axis=1)
        return np.ascontiguousarray(pair.T).view(np.uint64)

    @cached_property
    def rights(self) -> NDArray[np.uint64]:
        """The right factors of each low digit: (terms, low)."""
        return np.ascontiguousarray(self.right.T).view(np.uint64)


@lru_cache(maxsize=64)
def log_gamma(shift: int, records: int, fraction_bits: int) -> PublicFunction:
    """Return ``lnG(c + shift) - c ln records``, with eight terms.

    Its line cancels between cells and configurations. `shift` is at least 1, and `records`, the
    largest count, at most 2^24 - `shift`; otherwise a ValueError.
    """
    if shift < 1 or not 0 <= records <= MOST_RECORDS - shift:
        raise ValueError(
            f"shift must be at least 1, and records from 0 to {MOST_RECORDS} - shift, "
            f"got {shift} and {records}"
        )
    bits = 62 - (records + (shift + 1) * (records + shift + 1).bit_length()).bit_length()
    return _close(partial(log_gammas, shift, records), records, shift, (bits, fraction_bits))


@lru_cache(maxsize=64)
def log_power(records: int, fraction_bits: int) -> PublicFunction:
    """Return ``c ln c - c ln records``, 0 at c = 0, with eight terms: ``ln (c / records)^c``.

    Its line cancels between cells and configurations. `records`, the largest count, is at most
    2^24; otherwise a ValueError.

    >>> int(log_power(100, 40)(np.array([50]))[0]) / 2**40  # 50 ln 1/2
    -34.65735906478949
    """
    if not 0 <= records <= MOST_RECORDS:
        raise ValueError(f"records must be from 0 to {MOST_RECORDS}, got {records}")
    bits = 61 - records.bit_length()
    return _close(partial(log_powers, records), records, 0, (bits, fraction_bits))


@lru_cache(maxsize=64)
def cut(fewest: int, records: int) -> PublicFunction:
    """Return the count itself from `fewest` on, and 0 below, exactly; `records` is the largest."""
    if fewest < 0 or records < 0:
        raise ValueError(f"fewest and records must be at least 0, got {fewest} and {records}")
    high, low = _digits(records)
    while low < fewest and high > 1:
        high, low = high // 2, low * 2
    rows, columns = np.arange(high), np.arange(low)
    left, right = np.zeros((high, 3), np.int64), np.zeros((low, 3), np.int64)
    left[1:, 0], right[:, 0] = rows[1:] * low, 1
    left[1:, 1], right[:, 1] = 1, columns
    left[0, 2], right[:, 2] = 1, np.where(columns < fewest, 0, columns)
    return PublicFunction(left, right, 0, records, 0.0)


@lru_cache(maxsize=64)
def rounded(base: int, records: int) -> PublicFunction:
    """Return the nearest multiple of `base`, exactly; `records` is the largest count.

    A half is rounded up, with one exception. If `records` and the multiples of two cells would show
    one of their counts, and `base` is at least 5, the limit moves by up to 2: up, or down if that
    does not help.

    >>> rounded(10, 1001)(np.array([0, 4, 5, 14, 15, 996])).tolist()
    [0, 0, 10, 10, 20, 1000]
    """
    if base < 1 or records < 0:
        raise ValueError(
            f"base must be at least 1 and records at least 0, got {base} and {records}"
        )
    tried = [base // 2 + step for step in ((0, -1, -2, 1, 2) if base > 4 else (0,))]
    # So far apart, modulo the base, do the multiples of c and of records - c change.
    apart = {added: (records + 2 * added + 1) % base for added in tried}
    added = next((a for a in tried if apart[a] not in (1, base - 1)), base // 2)
    high, low = _digits(records)
    starts = np.arange(high) * low
    rests, kinds = np.unique(starts % base, return_inverse=True)
    left, right = np.zeros((high, 1 + len(rests)), np.int64), np.ones((low, 1), np.int64)
    left[:, 0], left[np.arange(high), 1 + kinds] = starts - starts % base, 1
    multiples = (rests + np.arange(low)[:, None] + added) // base * base
    return PublicFunction(left, np.hstack([right, multiples]), 0, records, 0.0)


def _close(
    values_of: Callable[[int, int], Integers], records: int, shift: int, all_bits: tuple[int, int]
) -> PublicFunction:
    """Return the function of few products that is close to some values, with fewer bits."""
    bits, fraction_bits = all_bits
    if not 0 <= fraction_bits <= bits:
        raise ValueError(f"fraction_bits must be from 0 to {bits}, got {fraction_bits}")
    high, low = _digits(records)
    rows = records // low + 1
    values = values_of(rows * low, bits).reshape(rows, low)
    left, right = _products(values, bits - fraction_bits)
    left = np.concatenate([left, np.zeros((high - rows, left.shape[1]), np.int64)])
    distance = _distance(values, left, right, bits - fraction_bits, records)
    error = distance / 2**bits + (records + shift) * (LOG_ERROR + 2.0**-bits)
    return PublicFunction(left, right, fraction_bits, records, error)


def _digits(records: int) -> tuple[int, int]:
    """Return how many high and low digits counts have."""
    bits = max(records.bit_length(), 1)
    return 1 << (bits - bits // 2), 1 << bits // 2


def _products(values: Integers, guard: int) -> tuple[Integers, Integers]:
    """Approximate values (rows, low) by products of (rows, k), (low, k), `guard` bits coarser."""
    rows, low = values.shape
    left = np.zeros((rows, EXACT_ROWS), np.int64)
    right = np.zeros((low, EXACT_ROWS), np.int64)
    for row in range(min(rows, EXACT_ROWS)):
        left[row, row] = 1
        right[:, row] = _nearest(values[row], 1 << guard)
    smooth = values[EXACT_ROWS:]
    places = np.arange(low)
    shapes = [(np.ones_like(places), 0), (places, low - 1)]
    shapes.append((places * (low - 1 - places) // 2, low // 2))
    for _ in range(SHAPES):
        shapes.append(_worst(smooth[:HEAD], shapes, guard))
    columns = np.stack([shape for shape, _ in shapes], axis=1)
    below = np.zeros((min(rows, EXACT_ROWS), len(shapes)), np.int64)
    factors = np.concatenate([below, _factors(smooth, shapes, guard)])
    return np.concatenate([left, factors], axis=1), np.concatenate([right, columns], axis=1)


def _factors(values: Integers, shapes: list[tuple[Integers, int]], guard: int) -> Integers:
    """Return what each row takes of each shape: what makes it right at the shape's place."""
    factors = np.zeros((len(values), len(shapes)), np.int64)
    for k, (shape, place) in enumerate(shapes):
        if shape[place]:
            before = sum(factors[:, i] * int(shapes[i][0][place]) for i in range(k))
            rest = values[:, place] - np.asarray(before << guard)
            factors[:, k] = _nearest(rest, int(shape[place]) << guard)
    return factors


def _worst(
    values: Integers, shapes: list[tuple[Integers, int]], guard: int
) -> tuple[Integers, int]:
    """Return the shape of the row that is approximated worst, and the place where it is worst."""
    columns = np.stack([shape for shape, _ in shapes], axis=1)
    rest = values - ((_factors(values, shapes, guard) @ columns.T) << guard)
    if not rest.any():
        return np.zeros(values.shape[1], np.int64), 0
    row, place = divmod(int(np.abs(rest).argmax()), values.shape[1])
    peak = int(rest[row, place])
    # The scale balances two roundings: a fine shape makes the factors coarse.
    scale = min(max((abs(peak).bit_length() - guard) // 2, 0), MOST_SCALE)
    shape = [(2 * (int(x) << scale) + peak) // (2 * peak) for x in rest[row]]
    return np.array(shape, np.int64), place


def _nearest(values: Integers, divisor: int) -> Integers:
    return np.asarray((values + divisor // 2) // divisor)


def _distance(values: Integers, left: Integers, right: Integers, guard: int, records: int) -> int:
    """Return the largest distance over all counts, in units of the values."""
    worst, low = 0, len(right)
    for start in range(0, len(values), HEAD):
        part = values[start : start + HEAD]
        away = np.abs(part - ((left[start : start + len(part)] @ right.T) << guard))
        worst = max(worst, int(away.ravel()[: records + 1 - start * low].max()))
    return worst
