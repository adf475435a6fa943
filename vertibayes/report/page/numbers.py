"""How the numbers of the files are shown; each keeps its file, its place and its exact value."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vertibayes.report.page.content import Name, Number, Piece, Text
from vertibayes.report.page.entries import Entry
from vertibayes.words import percent, size

EXACT_DIGITS = 15  # integers of more digits are shown in a shorter form


def count(entry: Entry) -> Piece:
    """Return a number of things, as 10,000."""
    return shown(entry, lambda value: f"{value:,}" if isinstance(value, int) else f"{value:,.1f}")


def brief(entry: Entry) -> Piece:
    """Return a number with four digits: means and variances."""
    return shown(entry, lambda value: f"{value:,}" if _is_short(value) else _four_digits(value))


def plain(entry: Entry) -> Piece:
    """Return a number with six digits: settings and other values without a unit."""
    return shown(entry, lambda value: f"{value:,}" if _is_short(value) else f"{value:.6g}")


def share(entry: Entry) -> Piece:
    """Return a share in percent."""
    return shown(entry, percent)


def probability(entry: Entry) -> Piece:
    """Return a probability in percent; one that is not certain is not shown as 0% or 100%."""
    return shown(entry, lambda value: "over 99.9%" if 0.9995 < value < 1 else percent(value))


def fine_share(entry: Entry) -> Piece:
    """Return a share in percent with two digits, where small differences matter."""
    return shown(entry, lambda value: f"{value:.2%}")


def decimals(entry: Entry, digits: int = 3) -> Piece:
    """Return a number with some digits after the point: scores, probabilities and areas."""
    return shown(entry, lambda value: f"{value:,.{digits}f}")


def area(entry: Entry) -> Piece:
    """Return an area under a curve: one below 1 is not shown as 1."""
    return shown(entry, lambda value: next(
        (text for digits in (3, 4, 5, 6) if float(text := f"{value:.{digits}f}") != 1), "1.000"
    ))  # fmt: skip


def seconds(entry: Entry) -> Piece:
    """Return a time."""
    return shown(entry, lambda value: f"{value:.3f} s" if value < 10 else f"{value:,.1f} s")


def bytes_of(entry: Entry) -> Piece:
    """Return a number of bytes."""
    return shown(entry, lambda value: size(int(value)))


def shown(entry: Entry, form: Callable[[float], str]) -> Piece:
    """Return a number, or what the file has in its place."""
    if entry.is_number:
        return Number(entry.key, repr(entry.value), form(entry.value))
    if not entry.exists:
        return f"missing in {entry.file}"
    return Name(str(entry.value))


def length(entry: Entry) -> Piece:
    """Return how many entries a list or an object has."""
    if not isinstance(entry.value, list | dict):
        return f"missing in {entry.file}"
    return Number(entry.key, str(len(entry.value)), f"{len(entry.value):,}")


def noun(entry: Entry, singular: str, piece: Callable[[Entry], Piece] = count) -> Text:
    """Return a number with its noun, as 1 table or 2 tables."""
    value = len(entry.value) if isinstance(entry.value, list | dict) else entry.value
    return (piece(entry), f" {singular}" + "s" * (value != 1))


def listed(names: Iterable[str]) -> Text:
    """Return names with commas between them."""
    pieces: list[Piece] = []
    for name in names:
        pieces += [Name(name), ", "]
    return tuple(pieces[:-1]) if pieces else ("none",)


def value(entry: Entry) -> Text:
    """Return any value: a number, a text, or a list of them."""
    if isinstance(entry.value, bool):
        return ("yes" if entry.value else "no",)
    if entry.value is None:
        return ("not set",)
    if isinstance(entry.value, list):
        inside = [piece for each in entry.each() for piece in (*value(each), ", ")]
        return tuple(inside[:-1]) if inside else ("none",)
    if isinstance(entry.value, dict):
        named = [p for n, each in entry.items() for p in (Name(n), " ", *value(each), ", ")]
        return tuple(named[:-1]) if named else ("none",)
    return (plain(entry),)


def _is_short(value: float) -> bool:
    return isinstance(value, int) and len(str(value)) <= EXACT_DIGITS


def _four_digits(value: float) -> str:
    """Return a number with four digits, or with all digits before its point.

    Examples
    --------
    >>> _four_digits(36.78123), _four_digits(196.2604), _four_digits(123456.7), _four_digits(1e-7)
    ('36.78', '196.3', '123,457', '1e-07')
    """
    return f"{value:.4g}" if abs(value) < 1_000 else f"{value:,.0f}"
