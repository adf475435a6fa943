"""Natural logarithms of integers, log-gamma and c ln c, as integers: the same on every machine.

``ln k = ln t + (bits - 9) ln 2 + 2 atanh(z)``: t are the first nine bits of k, and z = (k' - t') /
(k' + t'), where k' and t' are k and t with equally many bits, is below 2^-9. The few logarithms of
t, of 2 and of n come from `decimal`, which rounds correctly; all else is arithmetic on integers.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
T = TypeVar("T", int, Integers)

LOG_BITS = 45  # fraction bits of a logarithm
LOG_ERROR = 2.0**-41  # of a logarithm, in nats: 12 roundings, and what the series leaves out
MOST_RECORDS = 1 << 24
_FIRST_BITS, _WORD_BITS = 9, 26
_CHUNK = 1 << 15


def fixed_log(number: int, bits: int) -> int:
    """Return ``ln number`` with `bits` fraction bits, rounded to nearest."""
    with localcontext() as context:
        context.prec = 40
        return int((Decimal(number).ln() * 2**bits).to_integral_value())


@cache
def _first_logs() -> Integers:
    """Return ln t for each t of nine bits: the sum of the logarithms of its prime factors."""
    top = 1 << _FIRST_BITS
    logs = [0] * top
    for prime in range(2, top):
        if not logs[prime]:
            value = fixed_log(prime, LOG_BITS + 16)
            power = prime
            while power < top:
                for multiple in range(power, top, power):
                    logs[multiple] += value
                power *= prime
    rounded = [(value + (1 << 15)) >> 16 for value in logs]
    return np.array(rounded[top // 2 :], np.int64)


def logs(numbers: Integers) -> Integers:
    """Return the logarithms of numbers from 1 to 2^26 - 1, in `LOG_BITS`, within `LOG_ERROR`."""
    bits = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    words = numbers << (_WORD_BITS - bits)
    low = _WORD_BITS - _FIRST_BITS
    firsts = words >> low
    rest = words - (firsts << low)
    twice = words + (firsts << low)
    z = ((rest << LOG_BITS) + (twice >> 1)) // twice
    short = z >> 15
    cube = ((short * short) >> 21) * short // 3 >> 24
    table = _first_logs()[firsts - (1 << _FIRST_BITS - 1)]
    return np.asarray(table + (bits - _FIRST_BITS) * fixed_log(2, LOG_BITS) + 2 * (z + cube))


def log_gammas(shift: int, records: int, count: int, bits: int) -> Integers:
    """Return ``lnG(c + shift) - c ln records`` for c = 0 .. count - 1, with `bits` fraction bits.

    Each is within ``(count + shift) * (LOG_ERROR + 2**-bits)`` nats. Of no records, the line is 0.
    """
    slope = fixed_log(max(records, 1), LOG_BITS)
    values = np.empty(count, np.int64)
    total = _rounded(sum(int(logs(part).sum()) for part in _ranges(1, shift)), bits)
    values[0], at = total, 1
    for part in _ranges(shift, shift + count - 1):
        steps = np.cumsum(_rounded(logs(part) - slope, bits))
        values[at : at + len(part)] = total + steps
        total, at = int(values[at + len(part) - 1]), at + len(part)
    return values


def log_powers(records: int, count: int, bits: int) -> Integers:
    """Return ``c ln c - c ln records`` for c = 0 .. count - 1; see `log_gammas` of shift 0."""
    slope = fixed_log(max(records, 1), LOG_BITS)
    values = np.zeros(count, np.int64)
    for part in _ranges(1, count):
        values[part] = _times(part, logs(part) - slope, bits)
    return values


def _times(factors: Integers, values: Integers, bits: int) -> Integers:
    """Multiply values of `LOG_BITS` fraction bits; the products have `bits`."""
    drop = max(LOG_BITS - bits, 0)  # the low bits apart: a product could need more than 64
    high = values >> drop
    low = factors * (values - (high << drop))
    whole = factors * high << max(bits - LOG_BITS, 0)
    return np.asarray(whole + _rounded(low, LOG_BITS - drop))


def _ranges(start: int, stop: int) -> list[Integers]:
    return [np.arange(at, min(at + _CHUNK, stop)) for at in range(start, stop, _CHUNK)]


def _rounded(value: T, bits: int) -> T:
    """Bring values from `LOG_BITS` to `bits` fraction bits."""
    if bits >= LOG_BITS:
        return value << (bits - LOG_BITS)
    drop = LOG_BITS - bits
    return (value + (1 << (drop - 1))) >> drop
